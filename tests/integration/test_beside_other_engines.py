"""What may not be done while another engine writes: drop its metadata table, or lock alone."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import ClusteringConflictError, OptionError, WriteConflictError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table, update_properties
from hoodie_ds.testing import Effect, Fault, FaultyStorage, MemoryStorage, SimClock, SimulatedCrash
from hoodie_ds.timeline.bodies.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import METADATA_TABLE, claim_path
from hoodie_ds.transaction.heartbeat import beat
from tests.cli_runs import done
from tests.faults import foreign
from tests.integration.test_several_writers import (
    DEAD_MS,
    LOCKS,
    MODE,
    PROVIDER,
    SharedTable,
    Written,
)
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, trips

PARTITIONS = "hoodie.table.metadata.partitions"
METADATA = "hoodie.metadata.enable"
DROPPING = {METADATA: "false"}
FIRST = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))
MORE = trips(("c", "x", 2, 2.0))
ROWS = [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)]
SHARED = {**TRIPS, MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}


class Place:
    """A table of Hudi's with a metadata table."""

    def __init__(self, kind: str = "COPY_ON_WRITE", version: str = "6") -> None:
        self.clock = SimClock()
        self.storage = MemoryStorage("/t", clock=self.clock)
        self.options = {**TRIPS, TYPE: kind, VERSION: version}
        self.table().upsert(FIRST)
        update_properties(open_table(self.storage), {PARTITIONS: "column_stats,files"}, (), 0)
        self.storage.put_if_absent(f"{METADATA_TABLE}/files/f.hfile", b"")
        latest = self.table().timeline.latest_time
        assert latest is not None
        self.later = following(latest)

    def table(self, **options: str) -> HoodieTable:
        named = {key.replace("__", "."): value for key, value in options.items()}
        return HoodieTable("/t", {**self.options, **named}, storage=self.storage)

    @property
    def dropping(self) -> HoodieTable:
        return self.table(hoodie__metadata__enable="false")

    def begin(self, action: Action, *states: State) -> None:
        """Begin on an instant, as a writer on the JVM does."""
        for state in states:
            path = foreign.step_path(self.storage, self.later, action, state)
            self.storage.put_if_absent(path, b"{}" if state is State.INFLIGHT else b"")

    @property
    def is_dropped(self) -> bool:
        there = bool(self.storage.list(METADATA_TABLE, recursive=True))
        assert there is bool(open_table(self.storage).properties.metadata_partitions)
        return not there


def files(storage: MemoryStorage) -> dict[str, bytes]:
    listed = [s.path for s in storage.list("", recursive=True)]
    return {path: storage.read(path) for path in listed if path != ".hoodie/.locks/clock"}


def refused(place: Place, work: Callable[[], object], match: str) -> None:
    before = files(place.storage)
    with pytest.raises(WriteConflictError, match=match):
        work()
    assert files(place.storage) == before


BEGUN: dict[str, tuple[Action, list[State]]] = {
    "commit": (Action.COMMIT, [State.REQUESTED]),
    "commit inflight": (Action.COMMIT, [State.REQUESTED, State.INFLIGHT]),
    "delta commit": (Action.DELTA_COMMIT, [State.REQUESTED, State.INFLIGHT]),
    "replace commit": (Action.REPLACE_COMMIT, [State.REQUESTED]),
    "compaction": (Action.COMPACTION, [State.REQUESTED, State.INFLIGHT]),
    "indexing": (Action.INDEXING, [State.REQUESTED, State.INFLIGHT]),
}


@pytest.mark.parametrize(
    ("what", "kind", "version"),
    [(what, TYPES[n % 2], "698"[n % 3]) for n, what in enumerate(BEGUN)],
)
def test_the_metadata_table_stays_under_a_writer_at_work(
    what: str, kind: str, version: str
) -> None:
    place = Place(kind, version)
    action, states = BEGUN[what]
    place.begin(action, *states)
    match = rf"{place.later}.*\(column_stats, files\).*hoodie-py rollback /t {place.later} --conf"
    refused(place, lambda: place.dropping.upsert(MORE), match)
    refused(place, place.dropping.clean, match)
    other = {"6": 8, "8": 9, "9": 8}[version]
    change = place.dropping.upgrade if other > int(version) else place.dropping.downgrade
    refused(place, lambda: change(other), match)
    assert not place.is_dropped


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING])
@pytest.mark.parametrize("version", ["6", "9"])
def test_nobody_is_at_work_on_a_plan(action: Action, version: str) -> None:
    place = Place("MERGE_ON_READ", version)
    plan: Any = foreign.plan_compaction if action is Action.COMPACTION else foreign.plan_clustering
    plan(place.storage, place.later, foreign.slices(place.storage, "x"))
    place.dropping.upsert(trips(("c", "y", 2, 2.0)))
    assert place.is_dropped


@pytest.mark.parametrize("begun", [False, True])
def test_a_heartbeat_tells_whether_a_writer_lives(begun: bool) -> None:
    place = Place()
    beat(place.storage, place.later)
    if begun:
        place.begin(Action.COMMIT, State.REQUESTED, State.INFLIGHT)
    refused(place, lambda: place.dropping.upsert(MORE), rf"{place.later}.*column_stats")
    place.clock.advance(DEAD_MS)
    place.dropping.upsert(MORE)
    assert place.is_dropped
    assert found(place.table()) == [*ROWS, ("c", "x", 2, 2.0)]


def test_the_heartbeat_of_a_completed_write_is_in_nobodys_way() -> None:
    place = Place()
    time = place.table().timeline.latest_time
    assert time is not None
    beat(place.storage, time)
    place.dropping.upsert(MORE)
    assert place.is_dropped


@pytest.mark.parametrize("beats", [False, True])
def test_our_own_write_is_in_nobodys_way(beats: bool) -> None:
    place = Place()
    place.storage.put_if_absent(claim_path(place.later), b"{}")
    if beats:
        beat(place.storage, place.later)
    else:
        place.begin(Action.COMMIT, State.REQUESTED)
    place.dropping.upsert(MORE)
    assert place.is_dropped


def test_a_write_of_ours_whose_claim_is_gone_is_ours() -> None:
    place = Place()
    owner = CommitMetadata(operation_type="UPSERT", extra={OWNER_KEY: "{}"})
    place.begin(Action.COMMIT, State.REQUESTED)
    path = foreign.step_path(place.storage, place.later, Action.COMMIT, State.INFLIGHT)
    place.storage.put_if_absent(path, owner.to_bytes(1, inflight=True))
    place.dropping.upsert(MORE)
    assert place.is_dropped


def test_a_rollback_says_that_the_writer_is_dead() -> None:
    place = Place()
    place.begin(Action.COMMIT, State.REQUESTED, State.INFLIGHT)
    refused(place, lambda: place.dropping.rollback("20200101000000000"), place.later)
    place.dropping.rollback(place.later)
    assert place.is_dropped
    assert found(place.table()) == ROWS


def test_the_command_of_the_error_takes_a_dead_write_off(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(FIRST)
    time = following(str(table.timeline.latest_time))
    storage = LocalStorage(str(tmp_path))
    update_properties(open_table(storage), {PARTITIONS: "files"}, (), 0)
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.put_if_absent(foreign.step_path(storage, time, Action.COMMIT, state), b"")
    with pytest.raises(WriteConflictError, match="pending") as caught:
        HoodieTable(str(tmp_path), DROPPING).upsert(MORE)
    command = str(caught.value).split("`")[1]
    done(*shlex.split(command)[1:], "--yes")
    HoodieTable(str(tmp_path)).upsert(MORE)
    assert found(table) == [*ROWS, ("c", "x", 2, 2.0)]


def test_a_dry_run_asks_nobody() -> None:
    place = Place()
    place.begin(Action.COMMIT, State.REQUESTED, State.INFLIGHT)
    before = files(place.storage)
    place.dropping.clean(dry=True)
    assert files(place.storage) == before


@pytest.mark.parametrize("work", ["upsert", "clean", "upgrade"])
def test_a_warning_names_what_is_dropped(work: str, caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    table = place.dropping
    works: dict[str, Callable[[], object]] = {
        "upsert": lambda: table.upsert(MORE),
        "clean": table.clean,
        "upgrade": lambda: table.upgrade(9),
    }
    works[work]()
    HoodieTable("/t", {**TRIPS, **DROPPING}, storage=place.storage).upsert(MORE)
    told = [r for r in caplog.records if "metadata table" in r.getMessage()]
    assert [record.levelno for record in told] == [logging.WARNING]
    assert "(column_stats, files)" in told[0].getMessage()
    assert METADATA in told[0].getMessage()


def _their_commit(shared: SharedTable) -> str:
    latest = open_table(shared.storage).load_timeline().latest_time
    assert latest is not None
    time, body = following(latest), {"partitionToWriteStats": {}, "operationType": "UPSERT"}
    foreign.complete(shared.storage, time, Action.COMMIT, {**body, "extraMetadata": {}})
    return time


COMMON_LOCKS = ["StorageBasedLockProvider", "FileSystemBasedLockProvider"]


def shared(provider: str | None, version: str = "6", **options: str) -> SharedTable:
    named = {PROVIDER: f"{LOCKS}{provider}"} if provider else {}
    place = SharedTable({**SHARED, **named, **options, VERSION: version})
    place.put(FIRST)
    return place


@pytest.mark.parametrize(("provider", "version"), [(None, "9"), ("InProcessLockProvider", "6")])
def test_a_lock_of_ours_alone_is_refused_beside_commits_of_others(
    provider: str | None, version: str
) -> None:
    place = shared(provider, version)
    time = _their_commit(place)
    before = files(place.storage)
    match = rf"{PROVIDER}.*{time}.*another lock.*FileSystemBasedLockProvider"
    with pytest.raises(OptionError, match=match):
        place.put(MORE)
    assert files(place.storage) == before
    with pytest.raises(OptionError, match=match):
        HoodieTable("/t", place.options, storage=place.storage).clean()
    for common in COMMON_LOCKS:
        both = {"hoodie__write__lock__provider": f"{LOCKS}{common}"}
        Written(place.writer(**both), MORE).commit()
        _their_commit(place)
    alone = {"hoodie__write__concurrency__mode": "SINGLE_WRITER"}
    _their_commit(place)
    Written(place.writer(**alone), trips(("d", "y", 2, 2.0))).commit()
    assert place.rows() == [*ROWS, ("c", "x", 2, 2.0), ("d", "y", 2, 2.0)]
    place.put(trips(("e", "y", 2, 2.0)))  # the newest commit is one of ours again


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_commit_of_others_meanwhile_is_one_beside_the_lock(version: str) -> None:
    place = shared(None, version)
    mine = Written(place.writer(), MORE)
    time = _their_commit(place)
    with pytest.raises(OptionError, match=rf"{PROVIDER}.*{time}.*FileSystemBasedLockProvider"):
        mine.commit()
    assert place.rows() == ROWS


def test_a_write_of_others_that_is_pending_is_one_beside_the_lock() -> None:
    place = shared(None)
    latest = open_table(place.storage).load_timeline().latest_time
    assert latest is not None
    time = following(latest)
    path = foreign.step_path(place.storage, time, Action.COMMIT, State.REQUESTED)
    place.storage.put_if_absent(path, b"")
    with pytest.raises(OptionError, match=rf"{PROVIDER}.*{time}"):
        place.put(MORE)
    both = {"hoodie__write__lock__provider": f"{LOCKS}FileSystemBasedLockProvider"}
    Written(place.writer(**both), MORE).commit()
    assert place.rows() == [*ROWS, ("c", "x", 2, 2.0)]


def test_a_clustering_of_others_at_work_is_one_beside_the_lock() -> None:
    for version in ("6", "9"):
        place = shared(None, version)
        latest = open_table(place.storage).load_timeline().latest_time
        assert latest is not None
        time = following(latest)
        foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
        place.put(trips(("c", "y", 2, 2.0)))
        path = foreign.step_path(place.storage, time, Action.CLUSTERING, State.INFLIGHT)
        place.storage.put_if_absent(path, b"")
        with pytest.raises(OptionError, match=rf"{PROVIDER}.*{time}"):
            place.put(trips(("d", "y", 3, 3.0)))


@pytest.mark.parametrize("last", ["*.inflight", "*.marker.*"])
@pytest.mark.parametrize(("kind", "version"), [*zip(TYPES, "69", strict=True)])
def test_a_dead_clustering_of_ours_blocks_its_file_groups_alone(
    kind: str, version: str, last: str
) -> None:
    bloom = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    place = shared(None, version, **bloom, **{TYPE: kind})
    place.put(trips(("c", "x", 1, 1.0)))
    killed = FaultyStorage(place.storage, [Fault(Effect.CRASH_AFTER, path=last)])
    with pytest.raises(SimulatedCrash):
        HoodieTable("/t", place.options, storage=killed).cluster()
    for time in range(2, 30):  # so many that the log of decisions has forgotten the plan
        place.put(trips(("b", "y", time, 2.0)))
    table = HoodieTable("/t", place.options, storage=place.storage)
    table.clean()
    update_properties(open_table(place.storage), {PARTITIONS: "files"}, (), 0)
    HoodieTable("/t", {**place.options, **DROPPING}, storage=place.storage).clean()
    assert not open_table(place.storage).properties.metadata_partitions
    with pytest.raises(ClusteringConflictError):
        place.put(trips(("a", "x", 2, 2.0)))
    assert table.cluster()
    place.put(trips(("a", "x", 2, 2.0)))
    assert place.rows() == [("a", "x", 2, 2.0), ("b", "y", 29, 2.0), ("c", "x", 1, 1.0)]
