"""A disk that fills up, turns read-only or is taken away, at any point of a batch."""

import errno
import os
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import AccessDeniedError, OutOfSpaceError, StorageError
from tests.tables import TRIPS, TYPE, TYPES, found, trips

FIRST = ("a", "x", 1, 1.0)
SECOND = [("a", "x", 2, 2.0), ("b", "y", 2, 2.0)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("call", "code", "error"),
    [
        ("fsync", errno.ENOSPC, OutOfSpaceError),
        ("fsync", errno.EDQUOT, OutOfSpaceError),
        ("open", errno.EROFS, AccessDeniedError),
        ("open", errno.EACCES, AccessDeniedError),
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
            except error:
                failed = True
        assert found(table) == ([FIRST] if failed else SECOND), good
        table.upsert(trips(*SECOND))
        assert found(table) == SECOND, good
        if not failed:
            break
        failures += 1
    assert not failed
    assert failures > 5
