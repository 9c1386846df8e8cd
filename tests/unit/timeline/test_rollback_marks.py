"""Marks of rolled back instants stay, and stay few, whoever is killed or folds them meanwhile."""

from __future__ import annotations

import pytest

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, Operation
from hoodie_ds.timeline.rollback_marks import MOST_FILES, fold_marks, mark_undone, marked_times
from tests.unit.transaction.failed_tables import DyingStorage, KilledError

TIMES = [f"2025010100{n:07d}" for n in range(MOST_FILES + 1)]


def marked(*times: str) -> MemoryStorage:
    storage = MemoryStorage()
    for time in times:
        mark_undone(storage, time)
    return storage


def test_many_marks_become_one_file_and_are_all_there() -> None:
    storage = marked(*TIMES)
    fold_marks(storage)
    assert len(storage.files) == 1
    assert marked_times(storage) == set(TIMES)
    later = [f"2026{time[4:]}" for time in TIMES]
    for time in (TIMES[0], *later):
        mark_undone(storage, time)
    fold_marks(storage)
    assert len(storage.files) == 1
    assert marked_times(storage) == {*TIMES, *later}


def test_few_marks_are_left_alone() -> None:
    storage = marked(*TIMES[1:])
    before = dict(storage.files)
    fold_marks(storage)
    assert dict(storage.files) == before


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("operation", [1, 2, 3])
def test_no_mark_is_missing_wherever_folding_is_killed(operation: int, after: bool) -> None:
    storage = marked(*TIMES)
    with pytest.raises(KilledError):
        fold_marks(DyingStorage(storage, operation, after=after))
    assert marked_times(storage) == set(TIMES)
    fold_marks(storage)
    assert marked_times(storage) == set(TIMES)
    assert len(storage.files) == 1


def test_a_folding_that_deleted_some_is_repeated() -> None:
    storage = marked(*TIMES)
    single = list(storage.files)
    with pytest.raises(KilledError):
        fold_marks(DyingStorage(storage, 2, after=True))
    storage.delete_many(single[::2])
    for time in TIMES:
        mark_undone(storage, f"2026{time[4:]}")
    assert marked_times(storage) >= set(TIMES)
    fold_marks(storage)
    assert marked_times(storage) >= set(TIMES)
    assert len(storage.files) == 1


def folded_meanwhile(files: dict[str, bytes], stale_listings: int) -> FaultyStorage:
    """A storage whose first listings show a file of marks that is folded into another by then."""
    storage, stale = MemoryStorage(files=files), ".hoodie/.locks/undone/times_0"
    left = [stale_listings]

    def fold(operation: Operation) -> None:
        if operation.kind is Kind.LIST and left[0] > 0:
            left[0] -= 1
            storage.replace(stale, b"")
        elif operation.kind is Kind.READ and operation.path == stale:
            storage.delete(stale)

    return FaultyStorage(storage, before_each=fold)


def test_marks_that_are_folded_meanwhile_are_looked_up_again() -> None:
    files = dict(marked(*TIMES).files)
    assert marked_times(folded_meanwhile(files, 2)) == set(TIMES)
    with pytest.raises(NotFoundError):
        marked_times(folded_meanwhile(files, 1000))


def test_a_damaged_file_of_marks_is_named() -> None:
    storage = marked(*TIMES)
    fold_marks(storage)
    (path,) = storage.files
    storage.replace(path, storage.read(path)[:-1])
    with pytest.raises(CorruptFileError, match=path):
        marked_times(storage)
