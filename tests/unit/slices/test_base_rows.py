"""Row groups of a base file whose statistics show that log files have none of their keys."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import COMMIT_TIME, RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.slices.base_rows import BaseRows
from tests.merge_hooks import HOOK, add
from tests.recombined import recombined
from tests.tables import BUCKETS, TRIPS, TYPE, trips

MOR = {**TRIPS, "hoodie.parquet.block.size": "16k", BUCKETS: "1", TYPE: "MERGE_ON_READ"}
STORED = [(f"k{number:04}", "x", 5, float(number)) for number in range(1_000)]


@pytest.mark.parametrize("ts", [5, 9])
@pytest.mark.parametrize(
    ("keys", "compared"),
    [
        (["k0000"], "first"),
        (["k0000", "k0999"], "ends"),
        (["a", "k1", "z"], "none"),
        ([f"k{number:04}" for number in range(0, 1_000, 10)], "all"),
    ],
)
def test_keys_are_read_where_they_may_be(
    keys: list[str], compared: str, ts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(trips(*STORED))
    table.upsert(trips(*((key, "x", ts, -1.0) for key in keys)))
    read: list[int] = []
    count = 0
    inner = BaseFileReader.pieces

    def noted(reader: BaseFileReader, columns: Any = None, row_groups: Any = None) -> Any:
        nonlocal count
        count = reader.num_row_groups
        groups = range(count) if row_groups is None else row_groups
        read.extend(n for n in groups if RECORD_KEY in columns and "fare" not in columns)
        return inner(reader, columns, row_groups)

    fares = {key: fare for key, _, _, fare in STORED} | dict.fromkeys(keys, -1.0)
    with monkeypatch.context() as patched:
        patched.setattr(BaseFileReader, "pieces", noted)
        rows = table.read(["id", "fare"])
    assert dict(zip(rows["id"].to_pylist(), rows["fare"].to_pylist(), strict=True)) == fares
    assert count > 3
    groups = {"first": {0}, "ends": {0, count - 1}, "none": set(), "all": set(range(count))}
    assert set(read) == groups[compared]
    whole = recombined(tmp_path)
    assert dict(zip(whole["id"].to_pylist(), whole["fare"].to_pylist(), strict=True)) == fares


def test_hooks_get_whole_rows_where_keys_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), {**MOR, HOOK: "tests.merge_hooks:add"})
    table.upsert(trips(*STORED))
    table.upsert(trips(("k0001", "x", 6, 1.5), ("k0999", "x", 6, 2.5)))
    read: dict[int, list[str]] = {}
    inner = BaseFileReader.pieces

    def noted(reader: BaseFileReader, columns: Any, row_groups: Any) -> Any:
        read.update(dict.fromkeys(row_groups, columns))
        return inner(reader, columns, row_groups)

    with monkeypatch.context() as patched:
        patched.setattr(BaseFileReader, "pieces", noted)
        rows = table.read(["id", "fare"])
    first, *others, last = (read[number] for number in sorted(read))
    assert len(others) > 1
    assert first == last == table.schema.names
    assert others == [["id", "fare"]] * len(others)
    fares = {key: fare for key, _, _, fare in STORED[1:]} | {"k0001": 2.5, "k0999": 1001.5}
    for found in (rows, recombined(tmp_path, add)):
        pairs = zip(found["id"].to_pylist(), found["fare"].to_pylist(), strict=True)
        assert sorted(pairs) == sorted(fares.items())


def test_row_groups_of_which_few_rows_count() -> None:
    rows = pa.table({COMMIT_TIME: list("12211222"), RECORD_KEY: list("abcdefgh")})
    file = io.BytesIO()
    pq.write_table(rows, file, row_group_size=4)
    keys = pa.chunked_array([["g"]])

    def keep(rows: pa.Table) -> Any:
        return pc.not_equal(rows[RECORD_KEY], "g").to_numpy()

    base = BaseRows(BaseFileReader(file, rows.schema, "f"), None, ("2",))
    masks = np.concatenate([*base.stays([RECORD_KEY], keys, keep)])
    assert masks.tolist() == [True, True, True, False, True]
