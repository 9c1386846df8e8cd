"""Table services that follow a commit: one after the other, whatever becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import CorruptFileError, DeltaSyncError, HoodieError
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.failures import ServiceFailure
from hoodie_ds.services.post_commit import AfterCommit, catch_up, follow_up, followed
from hoodie_ds.table.table import Table
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import PROPERTIES
from hoodie_ds.timeline.timeline import Timeline
from tests.unit.transaction.failed_tables import new_table

TIME = "20250101000000000"
TIMELINE = Timeline.of([Instant(TIME, Action.COMMIT, State.COMPLETED)])
TABLE = new_table(MemoryStorage())
CONTEXT = ServiceContext(
    WriteOptions.parse({"path": "/t"}), TABLE.storage, SystemClock(), RandomIds()
)
AFTER = AfterCommit(CONTEXT, TABLE, TIMELINE, is_stream=True)


def failing(error: BaseException) -> Callable[[AfterCommit], None]:
    def work(_: AfterCommit) -> None:
        raise error

    return work


def test_a_failing_service_does_not_prevent_others() -> None:
    seen: list[tuple[Service, AfterCommit]] = []

    def noted(service: Service) -> Callable[[AfterCommit], None]:
        return lambda after: seen.append((service, after))

    services = {service: noted(service) for service in reversed(Service)}
    services[Service.COMPACTION_PLAN] = failing(CorruptFileError("a plan cannot be read"))
    failures = follow_up(AFTER, set(Service), services)
    reason = "CorruptFileError: a plan cannot be read"
    assert failures == (ServiceFailure(Service.COMPACTION_PLAN, TIME, reason),)
    # A compaction that is done makes room for the next plan; what a clean leaves may be archived.
    assert [service for service, _ in seen] == [
        Service.COMPACTION,
        Service.CLUSTERING,
        Service.DELTA,
        Service.METADATA,
        Service.CLEAN,
        Service.ARCHIVE,
        Service.CATALOG,
    ]
    assert {after.timeline for _, after in seen} == {TIMELINE}


@dataclass(frozen=True)
class Noting:
    """A follower that notes when it is asked to come to where the table is, and may fail."""

    service: Service
    names_files: bool
    seen: list[tuple[Service, Timeline | None]]
    error: HoodieError | None = None

    def check(self, columns: pa.Schema) -> None:
        raise AssertionError("the write is done")

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        raise AssertionError("the instant is visible")

    def after(self, table: Table, timeline: Timeline | None = None) -> None:
        self.seen.append((self.service, timeline))
        if self.error:
            raise self.error

    def repair(self, table: Table, *, dry: bool = False) -> None:
        raise AssertionError("nothing is broken")


def test_followers_that_name_files_are_updated_before_a_clean_and_others_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where no service is wanted; and one that fails keeps no other from its turn."""
    seen: list[tuple[Service, Timeline | None]] = []
    down = DeltaSyncError("it is down")
    catalog, delta = Noting(Service.CATALOG, False, seen), Noting(Service.DELTA, True, seen, down)
    monkeypatch.setattr(ServiceContext, "followers", lambda _, table: (catalog, delta))
    failures = follow_up(
        AFTER, {Service.CLEAN}, {Service.CLEAN: lambda after: seen.append((Service.CLEAN, None))}
    )
    wanted = [(Service.DELTA, TIMELINE), (Service.CLEAN, None), (Service.CATALOG, TIMELINE)]
    assert seen == wanted
    assert failures == (ServiceFailure(Service.DELTA, TIME, "DeltaSyncError: it is down"),)
    assert follow_up(AFTER, (), {}) == failures
    assert seen == [*wanted, wanted[0], wanted[2]]


def test_a_batch_without_a_commit_opens_the_table_once_for_all_followers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Service, Timeline | None]] = []
    both = tuple(Noting(service, False, seen) for service in (Service.CATALOG, Service.DELTA))
    monkeypatch.setattr(ServiceContext, "followers", lambda _, table: both)
    reads: list[str] = []
    read = MemoryStorage.read

    def noted(storage: MemoryStorage, path: str) -> bytes:
        reads.append(path)
        return read(storage, path)

    monkeypatch.setattr(MemoryStorage, "read", noted)
    assert catch_up(CONTEXT, TABLE) == ()
    assert seen == [(Service.DELTA, None), (Service.CATALOG, None)]
    assert reads == [PROPERTIES]


def test_an_unwanted_service_is_not_run() -> None:
    services = {service: failing(AssertionError(service.value)) for service in Service}
    assert follow_up(AFTER, (), services) == ()


def test_what_a_service_did_stays_if_the_table_cannot_be_opened_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = MemoryStorage("/t")
    options = WriteOptions.parse({"path": "/t", "hoodie.table.name": "t"})
    context = ServiceContext(options, storage, SimClock(), SimIds())
    assert followed(context, lambda: "done") == "done"
    assert "waits for the next write" in caplog.text
