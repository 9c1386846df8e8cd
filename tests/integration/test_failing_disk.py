"""A disk that fills up, turns read-only or is taken away, at any point of a batch."""

import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    AccessDeniedError,
    CommitOutcomeUnknownError,
    OutOfSpaceError,
    StorageError,
)
from hoodie_ds.testing import (
    MUTATING,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    check_table,
    one_thread,
)
from tests.faults.stream import Model, Step, plain, run
from tests.faults.stream import found as rows_found
from tests.tables import TRIPS, TYPE, TYPES, found, trips
from tests.tiers import by_day

FIRST = ("a", "x", 1, 1.0)
SECOND = [("a", "x", 2, 2.0), ("b", "y", 2, 2.0)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("call", "code", "error"),
    [
        ("fsync", errno.ENOSPC, OutOfSpaceError),
        pytest.param("fsync", errno.EDQUOT, OutOfSpaceError, marks=pytest.mark.slow),
        ("open", errno.EROFS, AccessDeniedError),
        pytest.param("open", errno.EACCES, AccessDeniedError, marks=pytest.mark.slow),
    ],
)
def test_the_table_is_as_before_and_the_next_run_succeeds(
    tmp_path: Path, kind: str, call: str, code: int, error: type[StorageError]
) -> None:
    real, failures = getattr(os, call), 0
    for good in range(200):
        left = good

        def failing(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        table = HoodieTable(str(tmp_path / str(good)), {**TRIPS, TYPE: kind})
        table.upsert(trips(FIRST))
        failed = False
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, call, failing)
            try:
                table.upsert(trips(*SECOND))
            except (error, CommitOutcomeUnknownError) as raised:
                # Once it is decided, all that is left is to write it down.
                failed = error in (type(raised), type(raised.__cause__))
        assert found(table) == ([FIRST] if failed else SECOND), good
        table.upsert(trips(*SECOND))
        assert found(table) == SECOND, good
        if not failed:
            break
        failures += 1
    assert not failed
    assert failures > 5


FULL = frozenset({Kind.CREATE, Kind.WRITE, Kind.PUT, Kind.REPLACE})
LOST = {
    "the disk is full": (FULL, "", OutOfSpaceError),
    "the table is read-only": (MUTATING | FULL, "", AccessDeniedError),
    "the timeline is taken away": (frozenset(Kind), ".hoodie", AccessDeniedError),
    "a partition is taken away": (frozenset(Kind), "y", AccessDeniedError),
}
"""Operations that fail, in which folder, and how."""


@pytest.mark.parametrize(
    ("kind", "what", "every"),
    by_day(
        itertools.product(TYPES, LOST, (1, 3)),
        [(TYPES[n % 2], what, 3) for n, what in enumerate(LOST)],
    ),
)
def test_what_is_lost_in_the_middle_of_a_batch(kind: str, what: str, every: int) -> None:
    """From an operation on, for good; then all is well again, and the batch is run again."""
    kinds, folder, error = LOST[what]
    options = {**TRIPS, TYPE: kind}
    first, second = Step(trips(FIRST)), Step(trips(*SECOND), tasks=2)
    start = MemoryStorage("memory://lost")
    run(start, options, 0, first, 0)
    before = Model().after(first)
    failures = 0
    for good in itertools.count(0, every):
        left = start.copy()
        seen = itertools.count()

        def fail(operation: Operation, good: int = good, seen: Iterator[int] = seen) -> None:
            if next(seen) >= good and operation.kind in kinds and operation.path.startswith(folder):
                raise error(f"{operation.path}: {what}")

        failed = False
        with one_thread():
            try:
                run(FaultyStorage(left, before_each=fail), options, 1, second, 1)
            except (error, CommitOutcomeUnknownError):
                failed = True
        after = before.after(second)
        assert rows_found(left) == (before if failed else after).plain(), good
        run(left, options, 1, second, 2)
        assert rows_found(left) == plain(after.rows), good
        run(left, options, 2, first, 3)
        assert check_table(left.files, settled=True, buckets=True) == [], good
        failures += failed
        if not failed and next(seen) <= good:
            break
    assert failures > 5
