"""Table services that follow a commit: one after the other, whatever becomes of each."""

from __future__ import annotations

from collections.abc import Callable

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.services.after_commit import AfterCommit, follow_up
from hoodie_ds.services.boundary import ServiceFailure
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
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


def test_one_service_that_fails_keeps_no_other_from_its_turn() -> None:
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
        Service.CLEAN,
        Service.ARCHIVE,
        Service.CATALOG,
    ]
    assert {after.timeline for _, after in seen} == {TIMELINE}


def test_what_is_not_wanted_is_not_done() -> None:
    services = {service: failing(AssertionError(service.value)) for service in Service}
    assert follow_up(AFTER, (), services) == ()
