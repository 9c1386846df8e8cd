"""A change of the table's version ends at each of its operations: the table stays whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation, sweep
from hoodie_ds.testing.simulated import forget_process
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.archive.lsm_timeline import archived_keys
from hoodie_ds.timeline.paths import LAYOUTS
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips

CHANGES = [(6, 8), (6, 9), (8, 9), (9, 8), (9, 6), (8, 6)]
BY_DAY = [
    ("COPY_ON_WRITE", (6, 9), 5),
    pytest.param("MERGE_ON_READ", (9, 6), 3, marks=pytest.mark.slow),
]
ROWS = [("a", "x", 2, 2.0), ("b", "x", 1, 1.0)]
VERSION = "hoodie.write.table.version"
FEW = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}


def _table(storage: Storage, kind: str) -> HoodieTable:
    return HoodieTable("memory://t", {**TRIPS, BUCKETS: "1", TYPE: kind}, storage=storage)


def archive_of(storage: MemoryStorage, version: int) -> list[tuple[str, str]]:
    """Times and actions of the completed instants in the archive of a table of a version."""
    if version == 6:
        instants = archived_instants(storage, ".hoodie/archived")
        instants = instants or archived_instants(storage, ".hoodie/history")
        return sorted((instant.time, instant.action.value) for instant in instants)
    files = newest_snapshot(storage).files
    return sorted(key for file in files for key in archived_keys(storage, file))


def _timelines(storage: MemoryStorage) -> set[int]:
    """Layouts that have files of instants."""
    return {
        version
        for version, layout in LAYOUTS.items()
        if any(layout.parse(s.path.rpartition("/")[2]) for s in storage.list(layout.folder))
    }


class _Ends:
    """What the ends of a change from one version to another leave."""

    def __init__(self, kind: str, change: tuple[int, int], *, archived: bool = False) -> None:
        self.kind = kind
        self.before, self.to = change
        self.start = MemoryStorage("memory://t")
        table = _table(self.start, kind)
        table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)), {VERSION: str(self.before)})
        for fare in [0.0, 1.0, 3.0] if archived else []:
            table.upsert(trips(("a", "x", 1, fare)))
        table.upsert(trips(("a", "x", 2, 2.0)))
        assert bool(table.archive(FEW)) is archived
        self.archived = archive_of(self.start, self.before)
        assert bool(self.archived) is archived

    def play(self, storage: Storage) -> None:
        self._change(_table(storage, self.kind))

    def _change(self, table: HoodieTable) -> None:
        up = self.to > self.before
        _ = table.upgrade(self.to) if up else table.downgrade(self.to)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        forget_process()
        table = _table(left, self.kind)
        assert table.properties.version in (
            (self.to,) if raised is None else (self.before, self.to)
        )
        assert found(table) == ROWS
        self._check_writer(left.copy())
        self._change(table)
        table = _table(left, self.kind)
        assert table.properties.version == self.to
        assert found(table) == ROWS
        assert _timelines(left) == {1 if self.to == 6 else 2}
        assert archive_of(left, self.to) == self.archived
        table.upsert(trips(("a", "x", 3, 3.0), ("b", "x", 0, 0.0)))
        assert found(table) == [("a", "x", 3, 3.0), ("b", "x", 1, 1.0)]

    def _check_writer(self, left: MemoryStorage) -> None:
        """Whoever writes now is refused, or in the table for good."""
        table, expected = _table(left, self.kind), ROWS
        with suppress(TimelineError):
            table.upsert(trips(("c", "x", 1, 1.0)))
            expected = [*ROWS, ("c", "x", 1, 1.0)]
        assert found(table) == expected
        self._change(table)
        assert found(_table(left, self.kind)) == expected


@pytest.mark.parametrize(("kind", "change", "every"), BY_DAY)
def test_an_interrupted_version_change_is_resumed(
    kind: str, change: tuple[int, int], every: int
) -> None:
    ends = _Ends(kind, change)
    assert sweep(ends.start, ends.play, ends.check, every=every) > 100 // every


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("change", CHANGES)
def test_every_interrupted_version_change_is_resumed(kind: str, change: tuple[int, int]) -> None:
    ends = _Ends(kind, change)
    assert sweep(ends.start, ends.play, ends.check) > 40


@pytest.mark.slow
@pytest.mark.parametrize("change", [(6, 8), (9, 6)])
def test_an_archive_exists_once_wherever_its_change_ended(change: tuple[int, int]) -> None:
    ends = _Ends("COPY_ON_WRITE", change, archived=True)
    assert sweep(ends.start, ends.play, ends.check) > 40


@pytest.mark.parametrize("change", [(6, 9), pytest.param((9, 6), marks=pytest.mark.slow)])
def test_an_overtaken_version_change_deletes_nothing(
    change: tuple[int, int],
) -> None:
    ends = _Ends("COPY_ON_WRITE", change)
    row = ("c", "x", 1, 1.0)
    for number in count():
        inner, met = ends.start.copy(), count()

        def overtake(
            _: Operation, inner: MemoryStorage = inner, met: Iterator[int] = met, at: int = number
        ) -> None:
            if next(met) == at:
                ends.play(inner)
                _table(inner, ends.kind).upsert(trips(row))

        forget_process()
        with suppress(HoodieError):  # that the table has changed meanwhile
            ends.play(FaultyStorage(inner, before_each=overtake))
        forget_process()
        is_over = next(met) <= number
        assert found(_table(inner, ends.kind)) == (ROWS if is_over else [*ROWS, row])
        if is_over:
            break
    assert number > 40
