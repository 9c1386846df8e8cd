"""Random histories whose log blocks name positions: merged by them as by record keys."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable, expr
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.table import block_order
from tests.golden.histories import BLOCKS
from tests.merge_hooks import MODE
from tests.positions import locate_records
from tests.recombined import recombined
from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TYPE, VERSION
from tests.tiers import by_day

OPTIONS = {
    "hoodie.table.name": "t",
    KEY: "id",
    PARTITION: "",
    BUCKETS: "1",
    TYPE: "MERGE_ON_READ",
    "hoodie.parquet.block.size": "4k",
}
UNCHECKED = {"hoodie.py.read.verify.checksums": "false"}
STORED = 400
BY_DAY = [0, 3, 5, 6]
"""Seeds that have each two of a merge mode, a block format and a version together."""
KINDS = {"id": pa.string(), "ts": pa.int64(), "v": pa.string(), "_hoodie_is_deleted": pa.bool_()}


def batch(draw: random.Random, number: int, keys: list[int], deletes: float) -> pa.Table:
    low, high = draw.choice([(0, 9), (5, 5), (20, 30)])
    rows = [
        {
            "id": f"k{key}",
            "ts": draw.choice([None, *range(low, high + 1)]),
            "v": f"{number} {key}",
            "_hoodie_is_deleted": draw.random() < deletes,
        }
        for key in keys
    ]
    return pa.Table.from_pylist(rows, pa.schema(KINDS))


def write(table: HoodieTable, draw: random.Random, others: bool) -> None:
    """Some batches, and others with keys that are not in the base file if wanted."""
    table.upsert(batch(draw, 0, list(range(STORED)), 0))
    for number in range(1, 5):
        found = draw.sample(range(STORED), draw.randint(1, 60))
        rows = batch(
            draw, number, found + [STORED] * (others and number == 2), draw.choice([0, 0.3, 1])
        )
        if draw.random() < 0.3:
            table.delete(rows.select(["id", "ts"] if draw.random() < 0.5 else ["id"]))
        else:
            table.upsert(rows)


def rows_of(path: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    read = HoodieTable(str(path), UNCHECKED).read([*(columns or KINDS), "_hoodie_commit_time"])
    return sorted(read.to_pylist(), key=repr)


def change(table: HoodieTable, draw: random.Random, number: int) -> None:
    """One write that knows where its rows are, or one that does not."""
    found = [f"k{key}" for key in draw.sample(range(STORED), draw.randint(1, 60))]
    where = pc.field("id").isin(found)
    kind = draw.choice(["delete", "update", "update", "merge", "upsert"])
    if kind == "delete":
        table.delete(where=where)
    elif kind == "update":
        table.update({"v": f"{number}"}, where)
    elif kind == "merge":
        rows = batch(draw, number, draw.sample(range(STORED + 9), 40), 0).drop_columns(["ts"])
        merge = table.merge(rows, "id").when_matched_delete(pc.field("source.v") < f"{number} 2")
        merge.when_matched_update({"v": expr("source.v")}).execute()
    elif draw.random() < 0.3:
        table.upsert(batch(draw, number, [draw.randrange(STORED + 9)], 0))


def options_of(draw: random.Random, seed: int) -> dict[str, str]:
    """Of eight seeds each merge mode, block format and version beside each other."""
    return {
        **OPTIONS,
        MODE: ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")[seed % 2],
        BLOCKS: ("avro", "parquet")[seed // 2 % 2],
        VERSION: ("8", "9")[seed // 4 % 2],
        ORDERING: draw.choice(["ts", "ts", "ts,v"]) if seed % 2 == 0 else "ts",
    }


@pytest.mark.parametrize("seed", by_day(range(8), BY_DAY))
def test_rows_win_by_positions_of_ours_as_by_keys(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    table = HoodieTable(str(tmp_path), options_of(draw, seed))
    table.upsert(batch(draw, 0, list(range(STORED)), 0))
    for number in range(1, 6):
        change(table, draw, number)
        if draw.random() < 0.1:
            table.compact()
        found = rows_of(tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(block_order, "positions_base", lambda _: None)
            assert rows_of(tmp_path) == found


@pytest.mark.parametrize("seed", by_day(range(8), BY_DAY))
def test_rows_win_by_positions_as_by_keys(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    others = draw.random() < 0.3
    write(HoodieTable(str(tmp_path), options_of(draw, seed)), draw, others)
    expected, two = rows_of(tmp_path), rows_of(tmp_path, ["v"])
    assert locate_records(tmp_path) >= 1
    keys_read: list[str] = []
    inner = BaseFileReader.pieces

    def noted(reader: BaseFileReader, columns: Any = None, row_groups: Any = None) -> Any:
        keys_read.extend(name for name in columns if name == RECORD_KEY)
        return inner(reader, columns, row_groups)

    with monkeypatch.context() as patched:
        patched.setattr(BaseFileReader, "pieces", noted)
        assert rows_of(tmp_path, ["v"]) == two
    assert bool(keys_read) == others
    assert rows_of(tmp_path) == expected
    again = recombined(tmp_path, verify=False).select([*KINDS, "_hoodie_commit_time"])
    assert sorted(again.to_pylist(), key=repr) == expected
