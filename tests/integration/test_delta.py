"""A table and the Delta log beside it, through all that happens to a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.delta import SYNC, assert_same
from tests.tables import TRIPS, TYPE, VERSION, trips

TABLES = [
    ("COPY_ON_WRITE", "6"),
    ("MERGE_ON_READ", "9"),
    ("COPY_ON_WRITE", "8"),
    ("MERGE_ON_READ", "6"),
]
CLEAN = {
    "hoodie.write.set.null.for.missing.columns": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "6",
}


@pytest.mark.parametrize(("kind", "version"), TABLES)
def test_all_readers_of_delta_see_our_rows_after_every_step(
    tmp_path: Path, kind: str, version: str
) -> None:
    table = HoodieTable(tmp_path / "t", {**TRIPS, **SYNC, **CLEAN, TYPE: kind, VERSION: version})
    steps: list[Callable[[], object]] = [
        lambda: table.upsert(
            trips(("a", "oslo", 1, 1.0), ("b", "berlin", 1, 2.0), ("c", "a b%&", 1, 3.0))
        ),
        lambda: table.upsert(trips(("a", "oslo", 2, 1.5), ("d", "oslo", 1, 4.0))),
        lambda: table.delete(trips(("b", "berlin", 3, None))),
        lambda: (
            table.compact()
            if kind == "MERGE_ON_READ"
            else table.upsert(trips(("e", "rome", 1, 5.0)))
        ),
        lambda: table.upsert(
            trips(("f", "oslo", 3, 6.0)).append_column("new", pa.array([1], pa.int32()))
        ),
        lambda: table.overwrite(trips(("g", "oslo", 4, 7.0)), partitions_only=True),
        table.clean,
        lambda: table.upsert(trips(("h", "oslo", 5, 8.0), ("h", "rome", 5, 8.0))),
        table.rollback,
        lambda: table.delete_partitions("oslo"),
        table.savepoint,
        lambda: table.overwrite(trips(("i", None, 6, 9.0))),
        lambda: table.restore(table.timeline.savepoints[-1].time),
        table.archive,
        lambda: table.upsert(trips(("j", "oslo", 7, 10.0))),
    ]
    for number, step in enumerate(steps):
        step()
        assert_same(tmp_path / "t")
        assert not table.sync_delta(dry=True), number
