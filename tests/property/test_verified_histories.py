"""Random histories are in order, and each lost file that a row hangs on is found by `verify`.

What archived commits wrote is most of an old table, so histories are long enough to be archived.
Where the completed file of a new write is lost, nobody reads or writes without its rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.paths import commit_path
from tests.query_histories import History, Rows, content
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips
from tests.tiers import AT_NIGHT

STEPS = 60
UNCHECKED = {"hoodie.py.read.verify.checksums": "false"}
ROW = trips(("a", "y", STEPS, 0.0))
QUICK = [("2", "8", "COPY_ON_WRITE"), ("16", "9", "MERGE_ON_READ")]
"""A history with a hole, and one at whose end archived commits alone tell of files that matter."""
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


@pytest.mark.parametrize(("seed", "version", "kind"), CASES)
def test_nothing_of_a_row_is_lost_unseen(
    seed: str, version: str, kind: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{seed}/{version}/{kind}")
    options = {**TRIPS, BUCKETS: "8", TYPE: kind, VERSION: version}
    path = tmp_path / "t"
    history = History(path, options, chance, keys="abcdefghijklmnop", batch=1)
    for number in range(1, STEPS):
        history.step(number)
    for file in [*path.glob("[xy]/*.parquet"), *path.glob("[xy]/.*.log.*")]:
        with lost(file):
            if rows_of(path) != history.rows:
                named = {found.kind for found in HoodieTable(path).inspect.verify().damage}
                assert named == {Kind.MISSING_FILE}, file
    compaction = Action.COMMIT if kind == "MERGE_ON_READ" else None  # hides no row
    commits = history.table.timeline.commits_backwards()
    for instant in islice((one for one in commits if one.action is not compaction), 2):
        file = path / commit_path(instant)
        with lost(file):
            damage = HoodieTable(path).inspect.verify().damage
            assert str(file) in [str(path / found.where) for found in damage]
            for work in (history.table.read, lambda: history.table.upsert(ROW)):
                with pytest.raises(CorruptFileError, match=f"{file} is missing"):
                    work()
    assert content(history.table.read()) == history.rows


@contextmanager
def lost(file: Path) -> Iterator[None]:
    """Take a file away for a while."""
    aside = file.rename(file.with_suffix(".aside"))
    yield
    aside.rename(file)
