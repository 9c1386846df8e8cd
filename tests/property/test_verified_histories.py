"""Random histories are in order, and each lost file that a row hangs on is found by `verify`.

What archived commits wrote is most of an old table, so histories are long enough to be archived.
"""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError
from tests.query_histories import History, Rows, content
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION
from tests.tiers import AT_NIGHT

STEPS = 60
UNCHECKED = {"hoodie.py.read.verify.checksums": "false"}
QUICK = [("2", "8", "COPY_ON_WRITE"), ("4", "9", "MERGE_ON_READ")]
"""Histories at whose end archived commits alone tell of files that matter."""
KINDS = list(product("689", ("COPY_ON_WRITE", "MERGE_ON_READ")))
BY_DAY = {(str(n), *kind) for n, kind in enumerate(KINDS, 1)}
ALL = [(seed, *kind) for seed, kind in product("123456", KINDS)]
CASES = [
    *QUICK,
    *(
        pytest.param(*case, marks=pytest.mark.slow if case in BY_DAY else AT_NIGHT)
        for case in ALL
        if case not in QUICK
    ),
]


def rows_of(path: Path) -> Rows | None:
    """What is read without a look at what is missing; None where nothing is."""
    try:
        return content(HoodieTable(path, UNCHECKED).read())
    except HoodieError:
        return None


class Unsaved(History):
    """A history without savepoints, which keep commits from being archived."""

    def service(self, kind: str) -> None:
        super().service("archive" if kind == "savepoint" else kind)


@pytest.mark.parametrize(("seed", "version", "kind"), CASES)
def test_no_file_of_a_row_is_lost_unseen(
    seed: str, version: str, kind: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{seed}/{version}/{kind}")
    options = {**TRIPS, BUCKETS: "8", TYPE: kind, VERSION: version}
    table = HoodieTable(tmp_path / "t", options)
    history = Unsaved(table, False, chance, keys="abcdefghijklmnop", batch=1)
    for number in range(1, STEPS):
        history.step(number)
        if not number % 8:
            assert table.inspect.verify().damage == ()
    path = tmp_path / "t"
    files = [*path.glob("[xy]/*.parquet"), *path.glob("[xy]/.*.log.*")]
    for file in files:
        lost = file.rename(tmp_path / "lost")
        if rows_of(path) != history.rows:
            named = {found.kind.value for found in HoodieTable(path).inspect.verify().damage}
            assert named == {"missing-file"}, file
        lost.rename(file)
