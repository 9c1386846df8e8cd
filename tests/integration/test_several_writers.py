"""Optimistic concurrency: writers that overlap either serialise, or one of them is told."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    HoodieError,
    LockTimeoutError,
    OptionError,
    TimelineError,
    WriteConflictError,
)
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.testing import (
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    SimClock,
    SimIds,
    SimulatedCrash,
)
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import DECISIONS, FILE_LOCK, LEASES, heartbeat_path, numbered_path
from hoodie_ds.transaction.decision_log import newest_decision
from hoodie_ds.transaction.heartbeat import beat
from hoodie_ds.transaction.ownership import claim
from hoodie_ds.transaction.rollback import roll_back
from hoodie_ds.transaction.storage_lock import StorageLock
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips

MODE = "hoodie.write.concurrency.mode"
PROVIDER = "hoodie.write.lock.provider"
SHARED = {**TRIPS, MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}
BLOOM = {**{k: v for k, v in SHARED.items() if k != BUCKETS}, "hoodie.index.type": "BLOOM"}
DEAD_MS = 600_001
LOCKS = "org.apache.hudi.client.transaction.lock."
FIRST = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))


@dataclass
class NoPauses:
    """Moves the clock instead of waiting."""

    clock: SimClock

    def pause(self, longest_ms: int) -> int:
        self.clock.advance(longest_ms)
        return longest_ms


@dataclass
class SharedTable:
    """A table and the writers of it."""

    options: dict[str, str]
    clock: SimClock = field(default_factory=SimClock)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(clock=self.clock)
        self.ids = SimIds()

    def writer(self, storage: Storage | None = None, /, **changes: str) -> Coordinator:
        named = {key.replace("__", "."): value for key, value in changes.items()}
        options = WriteOptions.parse({**self.options, **named, "path": self.storage.root})
        self.clock.advance(1)
        pauses = NoPauses(self.clock)
        return Coordinator(options, storage or self.storage, self.clock, self.ids, pauses)

    def rows(self) -> list[tuple[str, str, int, float]]:
        return found(HoodieTable("/t", storage=self.storage))

    def put(self, rows: pa.Table) -> None:
        Written(self.writer(), rows).commit()


class Written:
    """A batch up to its commit."""

    def __init__(
        self, writer: Coordinator, rows: pa.Table, batch_id: BatchId | None = None
    ) -> None:
        self.writer = writer
        self.batch: Batch = writer.begin(rows.schema)
        self.message: TaskCommitMessage = write_task(
            self.batch, TaskId(), batch_id, rows.to_batches(), sole_writer=True
        )

    @property
    def time(self) -> str:
        assert self.message.instant_time is not None
        return self.message.instant_time

    def commit(self) -> None:
        self.writer.commit([self.message])


@pytest.fixture(params=TYPES)
def shared(request: pytest.FixtureRequest) -> SharedTable:
    place = SharedTable({**SHARED, TYPE: request.param})
    place.put(FIRST)
    return place


def test_writers_of_different_partitions_both_commit(shared: SharedTable) -> None:
    one = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    two = Written(shared.writer(), trips(("b", "y", 2, 2.0)))
    two.commit()
    one.commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 2, 2.0)]


def test_the_second_writer_of_a_file_group_fails_and_can_run_again(shared: SharedTable) -> None:
    one = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    two = Written(shared.writer(), trips(("a", "x", 3, 3.0)))
    one.commit()
    with pytest.raises(WriteConflictError, match="changed file group"):
        two.commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 1, 1.0)]
    shared.put(trips(("a", "x", 3, 3.0)))
    assert shared.rows() == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "FLINK_STATE"])
def test_one_new_key_in_two_file_groups_is_a_conflict(kind: str, index: str) -> None:
    shared = SharedTable({**BLOOM, TYPE: kind, "hoodie.index.type": index})
    shared.put(FIRST)
    # Nothing is small, so that new keys get file groups of their own.
    own = {"hoodie__parquet__small__file__limit": "0"}
    partition = "z" if "GLOBAL" in index or index == "FLINK_STATE" else "x"
    one = Written(shared.writer(**own), trips(("k", "x", 1, 1.0), ("l", "x", 1, 1.0)))
    two = Written(shared.writer(**own), trips(("m", "x", 1, 1.0)))
    three = Written(shared.writer(**own), trips(("k", partition, 2, 2.0)))
    one.commit()
    two.commit()
    with pytest.raises(WriteConflictError, match="'k'"):
        three.commit()
    keys = [row[0] for row in shared.rows()]
    assert keys == ["a", "b", "k", "l", "m"]


@pytest.mark.parametrize("kind", TYPES)
def test_plain_inserts_of_one_key_are_none(kind: str) -> None:
    place = SharedTable({**BLOOM, TYPE: kind, "hoodie.datasource.write.operation": "insert"})
    own = {"hoodie__parquet__small__file__limit": "0"}
    place.put(FIRST)
    one = Written(place.writer(**own), trips(("k", "x", 1, 1.0)))
    two = Written(place.writer(**own), trips(("k", "x", 2, 2.0)))
    one.commit()
    two.commit()
    assert [row for row in place.rows() if row[0] == "k"] == [
        ("k", "x", 1, 1.0),
        ("k", "x", 2, 2.0),
    ]


def test_only_dead_writers_are_rolled_back(shared: SharedTable) -> None:
    slow = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    shared.clock.advance(DEAD_MS - 2_000)
    beat(shared.storage, slow.time)
    shared.clock.advance(DEAD_MS - 2_000)
    shared.put(trips(("b", "y", 2, 2.0)))
    slow.commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 2, 2.0)]
    dead = Written(shared.writer(), trips(("a", "x", 3, 3.0)))
    shared.clock.advance(DEAD_MS)
    shared.put(trips(("b", "y", 3, 3.0)))
    timeline = load_timeline(shared.storage, 1)
    assert not timeline.pending
    assert any(i.action is Action.ROLLBACK for i in timeline.completed)
    left = [path for path in shared.storage.files if dead.time in path and "rollback" not in path]
    # what a process that goes on may still put, noted until archiving has looked for it
    assert [path for path in left if not path.startswith(".hoodie/.locks/late/")] == []
    with pytest.raises(TimelineError, match="rolled back"):
        dead.commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 3, 3.0)]


def test_a_commit_that_was_decided_is_carried_out_by_others(shared: SharedTable) -> None:
    """Its writer died between its decision and the completed file."""
    crash = Fault(Effect.CRASH_AFTER, kinds=frozenset({Kind.PUT}), path=f"{DECISIONS}/*")
    with pytest.raises(SimulatedCrash):
        Written(
            shared.writer(FaultyStorage(shared.storage, [crash])),
            trips(("a", "x", 2, 2.0)),
            BatchId("q", 0),
        ).commit()
    assert shared.rows() == [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)]
    shared.clock.advance(300_001)  # the dead writer's lock
    shared.put(trips(("b", "y", 2, 2.0)))
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 2, 2.0)]
    assert ReplayGuard.load(shared.storage, load_timeline(shared.storage, 1)).holds(BatchId("q", 0))


def test_a_conflict_with_a_decided_commit_is_seen(shared: SharedTable) -> None:
    rival = Written(shared.writer(), trips(("a", "x", 3, 3.0)))
    crash = Fault(Effect.CRASH_AFTER, kinds=frozenset({Kind.PUT}), path=f"{DECISIONS}/*")
    with pytest.raises(SimulatedCrash):
        Written(
            shared.writer(FaultyStorage(shared.storage, [crash])), trips(("a", "x", 2, 2.0))
        ).commit()
    shared.clock.advance(300_001)
    with pytest.raises(WriteConflictError, match="changed file group"):
        rival.commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 1, 1.0)]


def test_a_commit_of_another_engine_while_the_lock_is_waited_for_is_a_conflict(
    shared: SharedTable,
) -> None:
    """Other engines take the lock, and log no decision."""
    rival = Written(shared.writer(), trips(("a", "x", 3, 3.0)))

    def other_is_faster(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.startswith(LEASES) and not seen:
            seen.append(operation.path)
            rival.commit()
            decision = newest_decision(shared.storage)
            assert decision is not None
            shared.storage.delete(numbered_path(DECISIONS, decision.number))

    seen: list[str] = []
    slower = Written(
        shared.writer(FaultyStorage(shared.storage, before_each=other_is_faster)),
        trips(("a", "x", 2, 2.0)),
    )
    with pytest.raises(WriteConflictError, match="changed file group"):
        slower.commit()
    assert seen
    assert shared.rows() == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]


@pytest.mark.parametrize("same", [True, False], ids=["same group", "other group"])
def test_a_writer_that_stood_still_longer_than_its_lock(shared: SharedTable, same: bool) -> None:
    """It goes on just before its decision, as if it had the lock."""
    done: list[str] = []

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.startswith(DECISIONS) and not done:
            done.append(operation.path)
            shared.clock.advance(300_001)
            rows = trips(("a", "x", 5, 5.0)) if same else trips(("b", "y", 5, 5.0))
            shared.put(rows)

    halted = Written(
        shared.writer(FaultyStorage(shared.storage, before_each=others)), trips(("a", "x", 2, 2.0))
    )
    if same:
        with pytest.raises(WriteConflictError):
            halted.commit()
        assert shared.rows() == [("a", "x", 5, 5.0), ("b", "y", 1, 1.0)]
    else:
        halted.commit()
        assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 5, 5.0)]
    assert done


def test_a_writer_whose_lock_another_engine_has_taken_decides_nothing(shared: SharedTable) -> None:
    """It stood still for longer than its lock, before it checked that it has it."""
    theirs = StorageLock(shared.storage, 300_000, 30_000, "theirs", shared.clock)
    named = {"hoodie__write__lock__provider": LOCKS + "StorageBasedLockProvider"}

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and "/manifest_" in operation.path and not theirs.is_held():
            shared.clock.advance(300_501)
            assert theirs.try_take()

    storage = FaultyStorage(shared.storage, before_each=others)
    before = newest_decision(shared.storage)
    late = Written(shared.writer(storage, **named), trips(("a", "x", 2, 2.0)))
    with pytest.raises(LockTimeoutError, match="another writer has taken the lock"):
        late.commit()
    assert newest_decision(shared.storage) == before
    assert theirs.is_held()
    rival = Written(shared.writer(**named), trips(("a", "x", 3, 3.0)))
    with pytest.raises(LockTimeoutError, match=r"table_lock\.json.*theirs"):
        rival.commit()
    theirs.release()
    assert shared.rows() == [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)]
    Written(shared.writer(**named), trips(("a", "x", 4, 4.0))).commit()
    assert shared.rows() == [("a", "x", 4, 4.0), ("b", "y", 1, 1.0)]


def test_a_service_whose_lock_another_engine_has_taken_plans_nothing() -> None:
    options = {**SHARED, TYPE: "MERGE_ON_READ", PROVIDER: LOCKS + "StorageBasedLockProvider"}
    shared = SharedTable(options)
    for number in (1, 2):
        shared.put(trips(("a", "x", number, 1.0)))
    theirs = StorageLock(shared.storage, 300_000, 30_000, "theirs", shared.clock)

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.endswith("/claim"):
            shared.clock.advance(300_501)
            assert theirs.try_take()

    storage, before = FaultyStorage(shared.storage, before_each=others), shared.storage.files
    table = HoodieTable(storage.root, options, storage=storage, clock=shared.clock)
    with pytest.raises(LockTimeoutError, match="another writer has taken the lock"):
        table.compact()
    theirs.release()
    after = shared.storage.files
    assert {path for path in before.keys() ^ after.keys() if "/clock" not in path} == set()


def test_a_writer_rolled_back_as_dead_before_its_decision(shared: SharedTable) -> None:
    done: list[str] = []

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.startswith(DECISIONS) and not done:
            done.append(operation.path)
            shared.clock.advance(DEAD_MS)
            shared.put(trips(("b", "y", 5, 5.0)))

    halted = Written(
        shared.writer(FaultyStorage(shared.storage, before_each=others)), trips(("a", "x", 2, 2.0))
    )
    with pytest.raises(TimelineError, match="rolled back"):
        halted.commit()
    assert shared.rows() == [("a", "x", 1, 1.0), ("b", "y", 5, 5.0)]


def test_an_instant_is_later_than_those_opened_since_its_batch_began(shared: SharedTable) -> None:
    early = shared.writer()
    batch = early.begin(FIRST.schema)
    other = Written(shared.writer(), trips(("b", "y", 2, 2.0)), BatchId("other", 0))
    other.commit()
    tasks = [
        write_task(batch, TaskId(n), BatchId("early", 0), trips(row).to_batches())
        for n, row in enumerate([("a", "x", 2, 2.0), ("c", "x", 2, 2.0)])
    ]
    times = {message.instant_time for message in tasks}
    assert len(times) == 1
    assert all(time is not None and time > other.time for time in times)
    early.commit(tasks)
    guard = ReplayGuard.load(shared.storage, load_timeline(shared.storage, 1))
    assert guard.holds(BatchId("early", 0))
    assert guard.holds(BatchId("other", 0))


@pytest.mark.parametrize("restored", [True, False])
def test_a_commit_does_not_vouch_for_those_of_later_times(
    shared: SharedTable, restored: bool
) -> None:
    """Committed before it, and taken back without it; what was pending beside those stays known."""
    first = Written(shared.writer(), FIRST, BatchId("late", 0))
    first.commit()
    early = Written(shared.writer(), trips(("a", "x", 2, 2.0)), BatchId("early", 0))
    late = Written(shared.writer(), trips(("b", "y", 2, 2.0)), BatchId("late", 1))
    assert first.time < early.time < late.time
    late.commit()
    early.commit()

    def known() -> dict[str, str]:
        return dict(ReplayGuard.load(shared.storage, load_timeline(shared.storage, 1)).committed)

    assert known() == {"early": "0", "late": "1"}
    carried = newest_decision(shared.storage)
    assert carried is not None
    assert json.loads(carried.carried[CHECKPOINT_KEY]) == {"early": "0", "late": "1"}
    table = HoodieTable(
        "/t", shared.options, storage=shared.storage, clock=shared.clock, ids=shared.ids
    )
    if restored:
        table.restore(early.time)
    else:
        table.rollback()
    assert known() == {"early": "0", "late": "0"}
    again = Written(shared.writer(), trips(("b", "y", 2, 2.0)), BatchId("late", 1))
    again.commit()
    assert ("b", "y", 2, 2.0) in shared.rows()


def test_a_single_writer_does_not_undo_a_living_one_of_several(shared: SharedTable) -> None:
    living = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    with pytest.raises(WriteConflictError, match="at work"):
        shared.writer(hoodie__write__concurrency__mode="SINGLE_WRITER").begin(FIRST.schema)
    living.commit()
    assert shared.rows()[0] == ("a", "x", 2, 2.0)


def test_a_heartbeat_after_the_end_of_its_instant_is_deleted(shared: SharedTable) -> None:
    one = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    one.commit()
    beat(shared.storage, one.time)
    shared.clock.advance(DEAD_MS)
    Written(shared.writer(), trips(("a", "x", 3, 3.0)))
    shared.clock.advance(DEAD_MS)
    shared.put(trips(("a", "x", 4, 4.0)))
    assert heartbeat_path(one.time) not in shared.storage.files


def test_a_batch_that_was_given_up_is_undone_at_once(shared: SharedTable) -> None:
    one = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    one.writer.abort([one.message])
    shared.put(trips(("b", "y", 2, 2.0)))
    assert not load_timeline(shared.storage, 1).pending
    assert shared.rows() == [("a", "x", 1, 1.0), ("b", "y", 2, 2.0)]


def test_a_heartbeat_ends_with_its_instant(shared: SharedTable) -> None:
    one = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    assert heartbeat_path(one.time) in shared.storage.files
    one.commit()
    assert heartbeat_path(one.time) not in shared.storage.files


@pytest.mark.parametrize(
    "provider", ["StorageBasedLockProvider", "FileSystemBasedLockProvider", "InProcessLockProvider"]
)
def test_every_lock_keeps_others_out_and_lets_them_in_afterwards(
    shared: SharedTable, provider: str
) -> None:
    seen: list[type[HoodieError]] = []
    named = {"hoodie__write__lock__provider": LOCKS + provider}

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.startswith(DECISIONS) and not seen:
            rival = Written(shared.writer(**named), trips(("b", "y", 5, 5.0)))
            with pytest.raises(LockTimeoutError) as refused:
                rival.commit()
            seen.append(refused.type)

    storage = FaultyStorage(shared.storage, before_each=others)
    Written(shared.writer(storage, **named), trips(("a", "x", 2, 2.0))).commit()
    assert seen == [LockTimeoutError]
    Written(shared.writer(**named), trips(("b", "y", 6, 6.0))).commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 6, 6.0)]


def test_a_file_lock_that_was_left_behind_is_taken_when_it_is_old(shared: SharedTable) -> None:
    shared.storage.put_if_absent(FILE_LOCK, b"a dead JVM's")
    named = {"hoodie__write__lock__provider": LOCKS + "FileSystemBasedLockProvider"}
    with pytest.raises(LockTimeoutError, match="delete the file, which never expires"):
        Written(shared.writer(**named), trips(("a", "x", 2, 2.0))).commit()
    named["hoodie__write__lock__filesystem__expire"] = "5"
    shared.clock.advance(5 * 60_000 + 1)
    Written(shared.writer(**named), trips(("a", "x", 3, 3.0))).commit()
    assert shared.rows()[0] == ("a", "x", 3, 3.0)
    assert FILE_LOCK not in shared.storage.files


def test_only_the_last_decisions_are_kept(shared: SharedTable) -> None:
    for number in range(30):
        shared.put(trips(("a", "x", number, 0.0)))
    decisions = [path for path in shared.storage.files if path.startswith(DECISIONS)]
    assert len(decisions) <= 22
    assert max(decisions).endswith("000000000031")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, "hoodie.clean.failed.writes.policy"),
        ({PROVIDER: LOCKS + "StorageBasedLockProvider"}, PROVIDER),
        ({"hoodie.streaming.batches.per.commit": "2"}, "hoodie.streaming.batches.per.commit"),
        ({PROVIDER: LOCKS + "ZookeeperBasedLockProvider"}, PROVIDER),
        ({MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}, MODE),
        ({"hoodie.write.lock.filesystem.path": "/elsewhere"}, "hoodie.write.lock.filesystem.path"),
    ],
)
def test_what_does_not_go_together_is_refused(more: dict[str, str], key: str) -> None:
    with pytest.raises(OptionError) as refused:
        WriteOptions.parse({**SHARED, **more, "path": "/t"})
    assert refused.value.key == key


def test_lazy_clean_up_is_for_several_writers() -> None:
    with pytest.raises(OptionError, match="SINGLE_WRITER"):
        WriteOptions.parse({**TRIPS, "path": "/t", "hoodie.cleaner.policy.failed.writes": "LAZY"})


@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
def test_a_late_task_does_not_bring_an_undone_instant_back(shared: SharedTable, mode: str) -> None:
    writer = shared.writer(hoodie__write__concurrency__mode=mode)
    batch = writer.begin(FIRST.schema)
    rows = [trips(("a", "x", 2, 2.0)), trips(("c", "x", 2, 2.0))]
    early = write_task(batch, TaskId(0, 1, 0), BatchId("q", 0), rows[0].to_batches())
    shared.clock.advance(DEAD_MS)
    other = shared.writer(hoodie__write__concurrency__mode=mode)
    Written(other, trips(("b", "y", 5, 5.0))).commit()
    late = write_task(batch, TaskId(1, 1, 1), BatchId("q", 0), rows[1].to_batches())
    with pytest.raises(TimelineError):
        writer.commit([early, late])
    assert shared.rows() == [("a", "x", 1, 1.0), ("b", "y", 5, 5.0)]


def test_a_manifest_without_a_decision_commits_nothing_for_a_single_writer(
    shared: SharedTable,
) -> None:
    """The mode was changed after a writer had died between its manifest and its decision."""
    crash = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=f"{DECISIONS}/*")
    dead = Written(shared.writer(FaultyStorage(shared.storage, [crash])), trips(("a", "x", 4, 4.0)))
    with pytest.raises(SimulatedCrash):
        dead.commit()
    assert any(path.endswith("manifest_1.json") for path in shared.storage.files)
    shared.clock.advance(300_001)
    shared.put(trips(("a", "x", 3, 3.0)))  # did not know of it, as nothing was decided
    shared.clock.advance(DEAD_MS)
    single = shared.writer(hoodie__write__concurrency__mode="SINGLE_WRITER")
    Written(single, trips(("b", "y", 5, 5.0))).commit()
    assert shared.rows() == [("a", "x", 3, 3.0), ("b", "y", 5, 5.0)]


def test_a_rollback_shares_no_time_with_a_commit(shared: SharedTable) -> None:
    """Clocks far behind the table: everybody takes the next free time."""
    dead = Written(shared.writer(), trips(("a", "x", 2, 2.0)))
    shared.clock.advance(DEAD_MS)
    shared.clock.advance(-10 * DEAD_MS)
    taken: list[str] = []

    def others(operation: Operation) -> None:
        rolls_back = operation.path.endswith(".rollback.requested")
        if operation.kind is Kind.PUT and rolls_back and not taken:
            time = operation.path.rpartition("/")[2].partition(".")[0]
            taken.append(time)
            assert not claim(shared.storage, time, "another action")

    roll_back(
        Table(
            FaultyStorage(shared.storage, before_each=others),
            open_table(shared.storage).properties,
        ),
        Instant(dead.time, dead.batch.plan.action, State.INFLIGHT),
        shared.clock,
    )
    assert taken


def test_a_time_that_a_rollback_takes_meanwhile_is_left_to_it(shared: SharedTable) -> None:
    """All clocks are behind the table, so that everybody's next time is the same one."""
    shared.clock.advance(3_600_000)
    shared.put(FIRST)
    shared.clock.advance(-3_600_000)
    dead = Written(shared.writer(), trips(("b", "y", 9, 9.0)))
    rolled_back: list[str] = []
    overtaken: list[str] = []

    def others(operation: Operation) -> None:
        if operation.kind is not Kind.PUT:
            return
        if operation.path.endswith("/claim") and not rolled_back:
            rolled_back.append(operation.path)
            shared.writer().begin(FIRST.schema)
        if operation.path.endswith((".commit", ".deltacommit")) and not overtaken:
            overtaken.append(operation.path)
            shared.clock.advance(300_001)
            shared.put(trips(("a", "x", 3, 3.0)))

    writer = shared.writer(FaultyStorage(shared.storage, before_each=others))
    batch = writer.begin(FIRST.schema)
    shared.clock.advance(DEAD_MS)
    rows = trips(*((f"c{n}", "x", 2, 2.0) for n in range(8)))
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    assert message.instant_time is not None
    assert message.instant_time > dead.time
    timeline = load_timeline(shared.storage, 1)
    times = [instant.time for instant in (*timeline.completed, *timeline.pending)]
    assert len(rolled_back) == 1
    names = [path for path in shared.storage.files if f"/{message.instant_time}." in path]
    assert not [name for name in names if "rollback" in name]
    assert len(set(times)) == len(times)
    writer.commit([message])
    assert overtaken
    expected = [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]
    assert shared.rows() == [*expected, *((f"c{n}", "x", 2, 2.0) for n in range(8))]


@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
@pytest.mark.parametrize("stop", ["*/manifest_1.json", f"{DECISIONS}/*", "*commit"])
def test_an_old_driver_that_stood_still_in_its_commit(
    shared: SharedTable, stop: str, mode: str
) -> None:
    """The new one takes the same batch up, and then the old one goes on."""
    changes = {"hoodie__write__concurrency__mode": mode}
    rows = trips(("a", "x", 2, 2.0), ("c", "x", 2, 2.0), ("d", "y", 2, 2.0))
    done: list[str] = []

    def new_driver(operation: Operation) -> None:
        if operation.kind is Kind.PUT and fnmatchcase(operation.path, stop) and not done:
            done.append(operation.path)
            shared.clock.advance(DEAD_MS)
            Written(shared.writer(**changes), rows, BatchId("q", 0)).commit()

    storage = FaultyStorage(shared.storage, before_each=new_driver)
    old = Written(shared.writer(storage, **changes), rows, BatchId("q", 0))
    with suppress(TimelineError):  # or it finds that the batch is in the table
        old.commit()
    assert done
    expected = [("a", "x", 2, 2.0), ("b", "y", 1, 1.0), ("c", "x", 2, 2.0), ("d", "y", 2, 2.0)]
    assert shared.rows() == expected
    Written(shared.writer(**changes), trips(("b", "y", 3, 3.0)), BatchId("q", 1)).commit()
    assert shared.rows() == [row if row[0] != "b" else ("b", "y", 3, 3.0) for row in expected]


@pytest.mark.parametrize("kind", TYPES)
def test_a_manifest_whose_batch_was_committed_since_is_not_completed(kind: str) -> None:
    """An old driver's late tasks bring it as far as the manifest, beside the new driver."""
    place = SharedTable({k: v for k, v in TRIPS.items() if "write" not in k and k != BUCKETS})
    place.options[TYPE] = kind
    place.put(FIRST)
    rows = trips(("k", "x", 1, 1.0))
    crash = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=f"{DECISIONS}/*")
    old = place.writer(FaultyStorage(place.storage, [crash]))
    batch = old.begin(rows.schema)
    new = Written(place.writer(), rows, BatchId("q", 0))
    late = write_task(batch, TaskId(0, 9, 9), BatchId("q", 0), rows.to_batches(), sole_writer=True)
    with pytest.raises(SimulatedCrash):
        old.commit([late])
    assert any(path.endswith("manifest_1.json") for path in place.storage.files)
    new.commit()
    Written(place.writer(), trips(("l", "x", 1, 1.0)), BatchId("q", 1)).commit()
    assert [row[0] for row in place.rows()] == ["a", "b", "k", "l"]
    assert not load_timeline(place.storage, 1).pending


def test_a_whole_manifest_that_recovery_completes_is_carried_on(shared: SharedTable) -> None:
    """And its batch is known, even where all commits of ours are archived."""
    alone = {"hoodie__write__concurrency__mode": "SINGLE_WRITER"}
    crash = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=f"{DECISIONS}/*")
    storage = FaultyStorage(shared.storage, [crash])
    with pytest.raises(SimulatedCrash):
        Written(
            shared.writer(storage, **alone), trips(("a", "x", 2, 2.0)), BatchId("q", 0)
        ).commit()
    shared.writer(**alone).begin(FIRST.schema)
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 1, 1.0)]
    decision = newest_decision(shared.storage)
    assert decision is not None
    assert ReplayGuard.parse(decision.carried, "a decision").holds(BatchId("q", 0))


def test_a_manifest_whose_keys_were_not_compared_commits_nothing() -> None:
    """Its writer died before it did, and a single writer comes next."""
    place = SharedTable(dict(BLOOM))
    place.put(FIRST)
    own = {"hoodie__parquet__small__file__limit": "0"}
    crash = Fault(Effect.CRASH_AFTER, kinds=frozenset({Kind.PUT}), path="*/manifest_1.json")
    dead = Written(
        place.writer(FaultyStorage(place.storage, [crash]), **own), trips(("k", "x", 2, 2.0))
    )
    Written(place.writer(**own), trips(("k", "x", 1, 1.0))).commit()
    with pytest.raises(SimulatedCrash):
        dead.commit()
    place.clock.advance(DEAD_MS)
    place.writer(hoodie__write__concurrency__mode="SINGLE_WRITER").begin(FIRST.schema)
    assert [row[0] for row in place.rows()] == ["a", "b", "k"]
    assert not load_timeline(place.storage, 1).pending


def test_a_commit_that_could_not_know_of_an_earlier_instant_is_a_conflict_for_it(
    shared: SharedTable,
) -> None:
    """The replay guard would not find a batch that the newest commit does not know of."""
    later: list[Written] = []

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.endswith("/claim") and not later:
            later.append(Written(shared.writer(), trips(("b", "y", 5, 5.0)), BatchId("other", 0)))
            later[0].commit()

    rows = trips(("a", "x", 2, 2.0))
    halted = Written(
        shared.writer(FaultyStorage(shared.storage, before_each=others)), rows, BatchId("q", 0)
    )
    assert halted.time < later[0].time
    with pytest.raises(WriteConflictError, match=f"{later[0].time} is later than {halted.time}"):
        halted.commit()
    assert shared.rows() == [("a", "x", 1, 1.0), ("b", "y", 5, 5.0)]
    shared.clock.advance(DEAD_MS)
    Written(shared.writer(), rows, BatchId("q", 0)).commit()
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 5, 5.0)]


@pytest.mark.parametrize("kind", TYPES)
def test_one_new_key_in_two_partitions_is_none_where_keys_are_of_a_partition(kind: str) -> None:
    place = SharedTable({**BLOOM, TYPE: kind})
    place.put(FIRST)
    own = {"hoodie__parquet__small__file__limit": "0"}
    one = Written(place.writer(**own), trips(("k", "x", 1, 1.0)))
    two = Written(place.writer(**own), trips(("k", "y", 2, 2.0)))
    one.commit()
    two.commit()
    assert [row for row in place.rows() if row[0] == "k"] == [
        ("k", "x", 1, 1.0),
        ("k", "y", 2, 2.0),
    ]


def test_tasks_that_open_an_instant_together_take_the_time_of_the_first(
    shared: SharedTable,
) -> None:
    """The slower one has seen fewer of the others' instants."""
    halted: list[str] = []
    faster: list[TaskCommitMessage] = []
    rows = [trips(("a", "x", 2, 2.0)), trips(("c", "x", 2, 2.0))]

    def others(operation: Operation) -> None:
        if operation.kind is Kind.PUT and "/start_" in operation.path and not halted:
            halted.append(operation.path)
            shared.put(trips(("b", "y", 5, 5.0)))
            faster.append(write_task(batch, TaskId(0, 1, 0), None, rows[0].to_batches()))

    writer = shared.writer(FaultyStorage(shared.storage, before_each=others))
    batch = writer.begin(FIRST.schema)
    slower = write_task(batch, TaskId(1, 1, 1), None, rows[1].to_batches())
    between = load_timeline(shared.storage, 1).commits[-1]
    assert slower.instant_time is not None
    assert slower.instant_time > between.time > batch.proposed_time
    writer.commit([*faster, slower])
    assert shared.rows() == [("a", "x", 2, 2.0), ("b", "y", 5, 5.0), ("c", "x", 2, 2.0)]
