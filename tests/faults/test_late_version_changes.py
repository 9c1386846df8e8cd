"""A process is stopped while it changes a table's version, and others go on: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, Operation
from hoodie_ds.testing.simulated import SimulatedCrash, forget_process
from hoodie_ds.timeline.paths import PROPERTIES
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, found, trips

ROWS = [("a", "x", 2, 2.0), ("b", "x", 1, 1.0)]
NEW = ("c", "x", 5, 5.0)


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
            ("COPY_ON_WRITE", 6, 9, (9, 6), False),
            ("COPY_ON_WRITE", 6, 9, (9, 6, 9), False),
            ("MERGE_ON_READ", 6, 8, (8, 9, 6), True),
            ("MERGE_ON_READ", 6, 9, (9, 6), False),
            ("MERGE_ON_READ", 9, 6, (6, 9), False),
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
