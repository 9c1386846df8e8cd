"""A process is stopped while it changes a table's version, and others go on: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, WriteResult
from hoodie_ds.errors import CommitOutcomeUnknownError, HoodieError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, Operation
from hoodie_ds.testing.simulated import SimulatedCrash, forget_process
from hoodie_ds.timeline.paths import DECISIONS, PROPERTIES
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, found, trips
from tests.tiers import AT_NIGHT

ROWS = [("a", "x", 2, 2.0), ("b", "x", 1, 1.0)]
NEW = ("c", "x", 5, 5.0)
UNKEYED = {
    "hoodie.table.name": "t",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def _table(storage: Storage, kind: str) -> HoodieTable:
    return HoodieTable("memory://t", {**TRIPS, BUCKETS: "1", TYPE: kind}, storage=storage)


def _change(table: HoodieTable, to: int) -> None:
    if table.properties.version != to:
        _ = table.upgrade(to) if to > table.properties.version else table.downgrade(to)


def _start(kind: str, version: int) -> MemoryStorage:
    storage = MemoryStorage("memory://t")
    table = _table(storage, kind)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)), {VERSION: str(version)})
    table.upsert(trips(("a", "x", 2, 2.0)))
    if kind == "MERGE_ON_READ":
        table.compact()
    return storage


def _others(storage: MemoryStorage, kind: str, ways: tuple[int, ...]) -> None:
    """Change the table's version to each of some, and write to it in between."""
    forget_process()
    for to in ways:
        _change(_table(storage, kind), to)
        _table(storage, kind).upsert(trips(NEW))
    forget_process()


def _stopped(
    storage: MemoryStorage, kind: str, to: int, at: int, meanwhile: Callable[[], None], dies: bool
) -> Operation | None:
    """Change a version; before one operation others go on, and then the process may end."""
    met, stopped = count(), []

    def before_each(operation: Operation) -> None:
        number = next(met)
        if number == at:
            stopped.append(operation)
            meanwhile()
        elif number > at and dies:
            raise SimulatedCrash

    forget_process()
    with suppress(HoodieError, SimulatedCrash):
        _change(_table(FaultyStorage(storage, before_each=before_each), kind), to)
    forget_process()
    return stopped[0] if stopped else None


STORIES = [
    pytest.param("COPY_ON_WRITE", 9, 6, (6, 9), True),
    *(
        pytest.param(*story, marks=pytest.mark.slow)
        for story in (
            ("COPY_ON_WRITE", 6, 9, (9, 6, 9), False),
            ("MERGE_ON_READ", 6, 8, (8, 9, 6), True),
            ("MERGE_ON_READ", 9, 6, (6, 9), False),
        )
    ),
    *(
        pytest.param(*story, marks=AT_NIGHT)
        for story in (
            ("COPY_ON_WRITE", 6, 9, (9, 6), False),
            ("MERGE_ON_READ", 6, 9, (9, 6), False),
            ("MERGE_ON_READ", 8, 9, (9, 6), True),
        )
    ),
    pytest.param("COPY_ON_WRITE", 8, 9, (9, 6), False),
]


@pytest.mark.parametrize(("kind", "before", "to", "ways", "dies"), STORIES)
def test_rows_are_there_wherever_it_was_stopped(
    kind: str, before: int, to: int, ways: tuple[int, ...], dies: bool
) -> None:
    start, put_late = _start(kind, before), 0
    others_moved = (ways[-1] == 6) != (to == 6)  # the timeline, away from where it looks for it
    for number in count():
        storage = start.copy()
        others = partial(_others, storage, kind, ways)
        operation = _stopped(storage, kind, to, number, others, dies)
        if operation is None:
            break
        if operation.kind is Kind.DELETE and operation.path.endswith(("commit", "requested")):
            continue  # no storage can take back what it deletes late
        comes_late = dies and operation.kind is Kind.REPLACE and operation.path == PROPERTIES
        if comes_late and others_moved:
            put_late += 1
            with pytest.raises(TimelineError, match="call upgrade or downgrade to the version"):
                found(_table(storage, kind))
            _table(storage, kind).upgrade(9)
        table = _table(storage, kind)
        assert found(table) == [*ROWS, NEW], operation
        table.upsert(trips(("d", "x", 1, 1.0)))
        assert found(table) == [*ROWS, NEW, ("d", "x", 1, 1.0)], operation
    assert number > 30
    assert put_late == (1 if dies and others_moved else 0)


def test_a_late_change_repairs_the_properties() -> None:
    storage = _start("COPY_ON_WRITE", 6)
    woken: list[Operation] = []

    def before_each(operation: Operation) -> None:
        if operation.kind is Kind.REPLACE and operation.path == PROPERTIES and not woken:
            woken.append(operation)
            _others(storage, "COPY_ON_WRITE", (9, 6))

    forget_process()
    faulty = FaultyStorage(storage, before_each=before_each)
    with pytest.raises(TimelineError, match="others have changed the table since"):
        _table(faulty, "COPY_ON_WRITE").upgrade(9)
    forget_process()
    table = _table(storage, "COPY_ON_WRITE")
    assert table.properties.version == 6
    assert found(table) == [*ROWS, NEW]


def _insert(storage: Storage, row: str, options: dict[str, str]) -> WriteResult:
    table = HoodieTable("memory://t", UNKEYED, storage=storage)
    return table.insert(pa.table({"row": [row]}), options)


def _inserting(
    before: int, stops: Callable[[Operation], bool], others: Callable[[MemoryStorage], object]
) -> tuple[Operation | None, WriteResult | HoodieError, MemoryStorage]:
    """Insert a row; before one operation others go on. Returns both, and what is left."""
    storage = MemoryStorage("memory://t")
    met: list[Operation] = []
    _insert(storage, "a", {VERSION: str(before)})

    def before_each(operation: Operation) -> None:
        if not met and stops(operation):
            met.append(operation)
            with suppress(HoodieError):  # a change is refused while the batch is at work
                others(storage)

    said: WriteResult | HoodieError
    try:
        said = _insert(FaultyStorage(storage, before_each=before_each), "b", {})
    except HoodieError as error:
        said = error
    return met[0] if met else None, said, storage


def _rows(storage: MemoryStorage) -> str:
    table = HoodieTable("memory://t", storage=storage).read()
    return "".join(sorted(table["row"].to_pylist()))


def _is_at(number: int, operation: Operation) -> bool:
    return operation.number == number


def _decides(operation: Operation) -> bool:
    return operation.kind is Kind.PUT and operation.path.startswith(f"{DECISIONS}/")


@pytest.mark.parametrize(("before", "to"), [(6, 8), (9, 6), (8, 9)])
def test_a_writer_says_whether_a_version_change_has_completed_its_batch(
    before: int, to: int
) -> None:
    def others(storage: MemoryStorage) -> None:
        _change(HoodieTable("memory://t", UNKEYED, storage=storage), to)

    completed = 0
    for number in count(1):
        met, said, left = _inserting(before, partial(_is_at, number), others)
        if met is None:
            break
        assert isinstance(said, WriteResult) == (_rows(left) == "ab"), met
        completed += isinstance(said, WriteResult) and said.already_committed
    assert completed
    assert number > 30


@pytest.mark.parametrize(("before", "to"), [(6, 8), (9, 6), (8, 9)])
def test_a_writer_finds_its_batch_in_a_table_that_is_being_changed(before: int, to: int) -> None:
    def others(storage: MemoryStorage) -> None:
        dies = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.REPLACE}), path=PROPERTIES)
        dying = FaultyStorage(storage, [dies])
        with pytest.raises(SimulatedCrash):
            _change(HoodieTable("memory://t", UNKEYED, storage=dying), to)

    _, said, left = _inserting(before, _decides, others)
    assert isinstance(said, WriteResult)
    assert said.already_committed
    assert _rows(left) == "ab"


def _archived(storage: MemoryStorage, to: int | None = None) -> None:
    """Change the version, and commit until what the writer had ready is in the archive."""
    table = HoodieTable("memory://t", UNKEYED, storage=storage)
    if to is not None:
        _change(table, to)
    for row in "cdefg":
        _insert(storage, row, {})
    assert table.archive()


@pytest.mark.parametrize(("before", "to"), [(6, 8), (9, 6), (8, 9)])
def test_a_writer_finds_its_batch_in_the_archive_of_a_changed_table(before: int, to: int) -> None:
    _, said, left = _inserting(before, _decides, partial(_archived, to=to))
    assert isinstance(said, WriteResult)
    assert _rows(left) == "abcdefg"


@pytest.mark.parametrize("version", [6, 9])
def test_a_writer_says_whether_others_have_completed_and_archived_its_batch(version: int) -> None:
    archived = 0
    for number in count(1):
        met, said, left = _inserting(version, partial(_is_at, number), _archived)
        if met is None:
            break
        assert isinstance(said, WriteResult) == ("b" in _rows(left)), met
        if isinstance(said, WriteResult) and said.instant_time is not None:
            timeline = HoodieTable("memory://t", storage=left).timeline
            archived += timeline.commit_at(said.instant_time) is None
    assert archived > 3
    assert number > 30


def test_a_writer_does_not_know_if_the_archive_of_a_changed_table_is_damaged() -> None:
    def others(storage: MemoryStorage) -> None:
        _archived(storage, 8)
        for path in storage.files:
            if "/history/" in path and path.endswith(".parquet"):
                storage.replace(path, b"damaged")

    _, said, _ = _inserting(6, _decides, others)
    assert isinstance(said, CommitOutcomeUnknownError)
