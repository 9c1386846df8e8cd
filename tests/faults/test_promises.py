"""Promises looked at one by one, at the moment at which they would be broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    CorruptFileError,
    TimelineError,
    UnavailableError,
    WriteConflictError,
)
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId, WriteResult
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import (
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    SimClock,
    SimulatedCrash,
)
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.transaction.open_instant import open_instant
from tests.faults.pairs import DEAD_MS, SEVERAL
from tests.faults.scenarios import BLOOM, BOTH, COW, ELSEWHERE, MOR, ONE, SPAN, TWO
from tests.faults.stream import OPERATION, NoPauses, Step, assert_well, begin, found, run, writer
from tests.tables import TRIPS, trips

pytestmark = pytest.mark.usefixtures("one_thread")

OPTIONS = {**TRIPS, **COW}


@pytest.fixture
def table() -> MemoryStorage:
    storage = MemoryStorage()
    run(storage, OPTIONS, 0, Step(ONE), 0)
    return storage


def begun(
    storage: object, attempt: str, schema: pa.Schema = TWO.schema, **options: str
) -> tuple[Batch, Callable[[Sequence[TaskCommitMessage | None]], WriteResult]]:
    given = {key: value for key, value in {**OPTIONS, **options}.items() if value}
    coordinator = writer(cast(Storage, storage), given, attempt, SimClock(), NoPauses())
    return coordinator.begin(schema, attempt), coordinator.commit


def written(batch: Batch, rows: pa.Table, attempt: int = 0) -> TaskCommitMessage:
    return write_task(batch, TaskId(0, attempt, attempt), None, rows.to_batches(), sole_writer=True)


def at_the_commit(do: Callable[[str], None]) -> Callable[[Operation], None]:
    """Do something just before the put of a completed file."""

    def before(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.endswith(".commit"):
            do(operation.path)

    return before


def test_two_writers_never_share_an_instant(table: MemoryStorage) -> None:
    """Also where their actions give their files on the timeline different names."""
    times: list[str] = []
    asked = [""]

    def other(operation: Operation) -> None:
        if asked[-1].endswith("/claim") and not times:  # before the first looks at the timeline
            times.append(open_instant(overwrite.pending))
        asked.append(operation.path)

    overwrite, _ = begun(table, "b", **{OPERATION: "insert_overwrite"})
    batch, _ = begun(FaultyStorage(table, before_each=other), "a")
    times.append(open_instant(batch.pending))
    assert times[0] > times[1] == batch.proposed_time
    assert open_instant(batch.pending) == times[1]


def test_a_bucket_is_one_file_group_of_any_writer(table: MemoryStorage) -> None:
    batches = [begun(table, attempt)[0] for attempt in "ab"]
    groups = [
        {status.group for status in written(batch, ELSEWHERE, number).statuses}
        for number, batch in enumerate(batches)
    ]
    assert groups[0] == groups[1] != set()


def test_file_ids_differ_between_partitions() -> None:
    batch, _ = begun(MemoryStorage(), "a", **BLOOM)
    groups = [status.group for status in written(batch, BOTH).statuses]
    assert {group.partition_path for group in groups} == {"x", "y"}
    assert len({group.file_id for group in groups}) == len(groups)


def test_a_completed_file_never_changes(table: MemoryStorage) -> None:
    """Another process completes the instant between this one's last look and its put."""
    puts: list[str] = []

    def put(path: str) -> None:
        puts.append(path)
        table.put_if_absent(path, b"{}")

    batch, commit = begun(FaultyStorage(table, before_each=at_the_commit(put)), "a")
    with pytest.raises(TimelineError, match="is not this batch's"):
        commit([written(batch, TWO)])
    assert [table.read(path) for path in puts] == [b"{}"]


def test_a_commit_that_recovery_completed_is_a_success(table: MemoryStorage) -> None:
    """The same put by two: the bytes are the manifest's whoever puts them."""

    def recover(_: str) -> None:
        begun(table, "b")

    batch, commit = begun(FaultyStorage(table, before_each=at_the_commit(recover)), "a")
    commit([written(batch, TWO)])
    assert len(found(table)) == 4


def test_a_put_that_may_still_arrive_is_unknown(table: MemoryStorage) -> None:
    def refuse(path: str) -> None:
        raise UnavailableError(f"{path}: no answer in time")

    before = found(table)
    batch, commit = begun(FaultyStorage(table, before_each=at_the_commit(refuse)), "a")
    with pytest.raises(CommitOutcomeUnknownError, match="no answer in time"):
        commit([written(batch, TWO)])
    assert found(table) == before
    # Nothing was deleted, so that the next start commits it.
    begun(table, "b")
    assert len(found(table)) == 4


@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_every_file_has_a_marker(kind: dict[str, str]) -> None:
    storage = FaultyStorage(MemoryStorage())
    for number, step in enumerate((Step(ONE), Step(BOTH, tasks=2))):
        run(storage, {**OPTIONS, **kind}, number, step, number)
    announced: set[str] = set()
    created = 0
    for operation in storage.recorder.operations:
        path, marker, _ = operation.path.partition(".marker.")
        if marker:
            announced.add(path.split("/", 3)[3])
        elif operation.kind is Kind.CREATE and not path.startswith(".hoodie"):
            assert path in announced
            created += 1
    assert created >= 4


def test_eleven_log_files_are_merged_in_their_order() -> None:
    storage = MemoryStorage()
    for number in range(13):
        run(storage, {**OPTIONS, **MOR}, number, Step(trips(("a", "x", 1, number * 1.0))), number)
    assert sum(".log." in path for path in storage.files) >= 11
    assert [dict(row)["fare"] for row in found(storage)] == [12.0]


def test_a_damaged_block_is_never_skipped() -> None:
    storage = MemoryStorage()
    for number, rows in enumerate((ONE, TWO)):
        run(storage, {**OPTIONS, **MOR}, number, Step(rows), number)
    logs = [path for path in storage.files if ".log." in path]
    storage.replace(logs[0], b"?" + storage.read(logs[0])[1:])
    unchecked = {"hoodie.py.read.verify.checksums": "false"}
    with pytest.raises(CorruptFileError, match="does not begin with the magic"):
        HoodieTable(storage.root, unchecked, storage=cast(Storage, storage)).read()


def test_a_write_to_a_replaced_partition_is_a_conflict() -> None:
    """Also in a file group of its own, which nobody else has touched."""
    storage = MemoryStorage()
    apart = {**BLOOM, "hoodie.parquet.small.file.limit": "0"}
    batch, commit = begun(storage, "first", **apart)
    commit([written(batch, ONE)])
    overwrite, replaces = begun(storage, "a", **apart, **{OPERATION: "insert_overwrite"})
    overwrite = replace(overwrite, proposed_time=following(overwrite.proposed_time))
    other, commit = begun(storage, "b", **apart)
    commit([written(other, trips(("z", "x", 1, 1.0)), 1)])
    with pytest.raises(WriteConflictError, match="changed file group x/"):
        replaces([written(overwrite, TWO, 2)])


def test_a_completion_by_another_engine_at_the_same_time_is_no_success(
    table: MemoryStorage,
) -> None:
    """It takes times without a claim, and its action has a name of its own on the timeline."""
    batch, commit = begun(table, "a")
    message = written(batch, TWO)
    body = CommitMetadata((), "INSERT_OVERWRITE", {}, {}).to_bytes(1)
    for state in (".requested", ".inflight", ""):
        table.put_if_absent(f".hoodie/{message.instant_time}.replacecommit{state}", body)
    with pytest.raises(TimelineError, match="run it again"):
        commit([message])


def test_a_rollback_takes_no_used_time(table: MemoryStorage) -> None:
    """A whole batch comes and goes between the rollback's look at the timeline and its claim."""
    dead, _ = begun(table, "dead")
    written(dead, ONE)
    times: list[str] = []

    def other(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.endswith("/claim") and not times:
            times.append(operation.path.split("/")[-2])
            name = f".hoodie/{times[0]}.replacecommit"
            for state, body in ((".requested", b""), (".inflight", b""), ("", b"{}")):
                table.put_if_absent(f"{name}{state}", body)

    begun(FaultyStorage(table, before_each=other), "b")
    assert times
    assert times[0].isdigit()
    taken = [path for path in table.files if path.startswith(f".hoodie/{times[0]}.rollback")]
    assert taken == []


def test_an_open_instant_is_continued_by_a_new_application() -> None:
    """The one before died in the second of two micro-batches, under the same task numbers."""
    storage = MemoryStorage()
    for number, attempt in ((0, "first"), (1, "dead"), (1, "next")):
        batch, commit = begun(storage, attempt, **SPAN)
        rows = (ONE, TWO)[number].to_batches()
        message = write_task(batch, TaskId(0, 5, 5), BatchId("q", number), rows, sole_writer=True)
        if attempt != "dead":
            commit([message])
    assert len(found(storage)) == 4


def test_a_writer_rolled_back_just_before_its_decision() -> None:
    """Whoever rolls it back decides nothing else, so that the decision's number alone tells."""
    done: list[Any] = []
    clock = SimClock()
    storage, options = MemoryStorage(clock=clock), {**OPTIONS, **SEVERAL}
    run(storage, options, 0, Step(ONE), 0, clock=clock)
    before = found(storage)

    def recovery(operation: Operation) -> None:
        is_turn = operation.path.startswith(".hoodie/.locks/decisions/")
        if operation.kind is Kind.PUT and is_turn and not done:
            done.append(operation.path)
            clock.advance(DEAD_MS)
            begin(storage, options, ONE.schema, "b", clock=clock)

    halted = FaultyStorage(storage, before_each=recovery)
    with pytest.raises(TimelineError, match="was rolled back"):
        run(halted, options, 1, Step(TWO), 1, clock=clock)
    assert done
    assert found(storage) == before
    assert_well(storage, options)


@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_a_late_delete_takes_no_newer_row_away(kind: dict[str, str]) -> None:
    storage = MemoryStorage()
    steps = [Step(trips(("a", "x", 5, 5.0))), Step(trips(("a", "x", 3, 3.0)), "delete")]
    for number, step in enumerate(steps):
        run(storage, {**OPTIONS, **kind}, number, step, number)
    assert [dict(row)["fare"] for row in found(storage)] == [5.0]


@pytest.mark.parametrize("killed", [False, True])
def test_a_late_file_of_the_first_instant_is_invisible(killed: bool) -> None:
    """Its task had put the marker when another driver undid the instant and went on."""
    done: list[Any] = []
    storage = MemoryStorage()

    def others(operation: Operation) -> None:
        if operation.kind is Kind.CREATE and not done:
            done.append(operation.path)
            run(storage, OPTIONS, 0, Step(ONE), 1)

    end = Fault(Effect.CRASH_AFTER, kinds=frozenset({Kind.WRITE}), path="y/*.parquet")
    faults = [end] if killed else []
    late, _ = begun(FaultyStorage(storage, faults, before_each=others), "late")
    with pytest.raises(SimulatedCrash if killed else TimelineError):
        written(late, trips(("late", "y", 9, 9.0)))
    assert done
    left = [path for path in storage.files if path.startswith("y/") and "parquet" in path]
    assert len(left) == killed  # a reader that lists folders would see it
    assert {dict(row)["id"] for row in found(storage)} == {"a", "b", "c"}
