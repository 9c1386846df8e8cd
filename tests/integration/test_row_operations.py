"""The column ``_hoodie_operation``: rows of deletes, and of before an update, delete their keys."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import SchemaError, UnsupportedTableError
from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.slices.merge_outcomes import merge_outcomes
from hoodie_ds.storage.connect import open_storage
from tests.golden.histories import TABLES
from tests.row_operations import (
    BATCHES,
    BY_COMMIT_TIME,
    BY_EVENT_TIME,
    changes,
    content,
    logged_as_rows,
)
from tests.tables import BUCKETS, KEY, ORDERING, VERSION
from tests.tiers import by_day

OPTIONS = {"hoodie.table.name": "t", KEY: "id", BUCKETS: "1"}
MOR = {**OPTIONS, ORDERING: "ts", **TABLES["mor_parquet"]}


@pytest.mark.parametrize(
    ("version", "kind", "by_event_time"),
    by_day(
        product("689", TABLES, (True, False)),
        {("6", "cow", True), ("9", "cow", True), ("8", "mor_avro", False), ("9", "cow", False)}
        | {("6", "mor_parquet", True)},
    ),
)
def test_writes(version: str, kind: str, by_event_time: bool, tmp_path: Path) -> None:
    options = {**OPTIONS, **TABLES[kind], VERSION: version}
    table = HoodieTable(str(tmp_path), {**options, ORDERING: "ts"} if by_event_time else options)
    for rows, expected in zip(
        BATCHES, BY_EVENT_TIME if by_event_time else BY_COMMIT_TIME, strict=True
    ):
        table.upsert(rows)
        assert content(table.read()) == expected
    assert table.read(columns=["v"]).num_rows == len(expected)


@pytest.mark.parametrize(("version", "kind"), list(product("689", ["mor_avro", "mor_parquet"])))
def test_reads_of_log_files(version: str, kind: str, tmp_path: Path) -> None:
    """Every way to read them; what lies in a base file is a row whatever it says."""
    path = str(tmp_path)
    table = HoodieTable(path, {**OPTIONS, ORDERING: "ts", **TABLES[kind], VERSION: version})
    with logged_as_rows():
        for rows in BATCHES:
            table.upsert(rows)
    first, second, _ = table.timeline.commits
    bounds = [i.time if version == "6" else i.ended for i in (first, second)]
    stored = [*BY_EVENT_TIME[0], ("e", 5, "1"), ("f", 5, "1")]
    assert content(table.read(as_of=first.time)) == sorted(stored)
    then = sorted([*BY_EVENT_TIME[1], ("f", 5, "1")])
    assert content(table.read(as_of=second.time)) == then
    last = sorted([*BY_EVENT_TIME[2], ("f", 5, "1")])
    assert content(table.read()) == last
    merge_outcomes.cache_clear()  # what a process knows already, it does not ask for
    assert table.read(columns=["v"])["v"].to_pylist().count("1") == 2
    assert table.read(filter=pc.field("v") == "2", columns=["id"]).num_rows == 2
    news = content(table.read_incremental(bounds[0], bounds[1]))
    assert news == [("a", 6, "2"), ("e", 6, "2")]
    pinned = PinnedTable.latest(open_storage(path))
    (slice_,) = pinned.slices()
    parts = list(LoggedRows(pinned.reader()).read(slice_, ["id", "ts", "v"]))
    assert content(pa.concat_tables(parts)) == [row for row in last if row[0] not in "cdf"]
    assert table.compact()
    assert content(table.read()) == content(read_optimized(path)) == last


def test_changes_of_log_files(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**MOR, VERSION: "9", "hoodie.table.cdc.enabled": "true"})
    with logged_as_rows():
        for rows in BATCHES[:2]:
            table.upsert(rows)
    found = table.read_changes(table.timeline.commits[0].time).to_pylist()
    assert sorted(row["op"] for row in found) == ["d", "d", "u", "u"]


def test_operations_that_the_table_does_not_know(tmp_path: Path) -> None:
    """Files of Flink's have the column, and the schema in their commits has not."""
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(BATCHES[0])
    with logged_as_rows():
        table.upsert(BATCHES[1])
    pinned = PinnedTable.latest(open_storage(str(tmp_path)))
    columns = pa.schema([f for f in pinned.schema if f.name != "_hoodie_operation"])
    known: Any = PinnedTable(pinned.table, pinned.timeline, columns)
    (slice_,) = known.slices()
    parts = list(known.reader().read(slice_, ["id", "ts", "v"]))
    assert content(pa.concat_tables(parts)) == BY_EVENT_TIME[1]


def test_rows_that_call_themselves_deletes_are_not_dropped_in_silence(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    with logged_as_rows():
        table.upsert(BATCHES[0])
    with pytest.raises(UnsupportedTableError, match="delete their keys"):
        table.rescale_buckets(2)
    assert table.read().num_rows == 7
    table.delete(pa.table({"id": ["e", "f"]}))
    table.compact()
    assert table.rescale_buckets(2)
    assert content(table.read()) == BY_EVENT_TIME[0]


def read_optimized(path: str) -> pa.Table:
    return HoodieTable(path, {"hoodie.datasource.query.type": "read_optimized"}).read()


@pytest.mark.parametrize("value", ["d", "", None])
def test_what_hudi_cannot_read_is_refused(value: str | None, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(BATCHES[0])
    with pytest.raises(SchemaError, match="row 1 of the batch: column '_hoodie_operation' holds"):
        table.upsert(changes(("U", "a", 9, "2"), (value, "b", 9, "2")))
    numbers = BATCHES[1].set_column(0, "_hoodie_operation", pa.array(range(6)))
    with pytest.raises(SchemaError, match=r"'_hoodie_operation' is int64; .* must be a string"):
        HoodieTable(str(tmp_path / "new"), MOR).upsert(numbers)
    assert content(table.read()) == BY_EVENT_TIME[0]
    assert table.delete(pa.table({"id": ["a"]})).instant_time
    assert content(table.read()) == BY_EVENT_TIME[0][1:]
