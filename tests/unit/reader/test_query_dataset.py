"""A table as a dataset of Arrow: DuckDB reads what its queries need."""

from __future__ import annotations

from typing import cast

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.storage.protocol import Storage
from tests.counted_reads import CountedReads
from tests.tables import TYPES
from tests.unit.api.test_polars_scan import made

QUERIES = [
    "SELECT count(*), sum(ts) FROM {}",
    "SELECT id, name FROM {} WHERE name <> 'name 1' ORDER BY id",
    "SELECT id FROM {} WHERE name NOT IN ('name 1', 'name 2') ORDER BY id",
    "SELECT id FROM {} WHERE name IN ('name 1') OR ts = 2 ORDER BY id",
    "SELECT id, fare::VARCHAR FROM {} WHERE fare > 3 ORDER BY id",
    "SELECT id FROM {} WHERE fare IS NULL AND city = 'x' ORDER BY id",
    "SELECT city, count(*) FROM {} GROUP BY city ORDER BY city",
    "SELECT id FROM {} WHERE flag IS NOT TRUE AND day > '2026-01-03' ORDER BY id",
]


@pytest.mark.parametrize("kind", TYPES)
def test_duckdb_finds_what_it_finds_in_all_rows(kind: str) -> None:
    table = HoodieTable("/t", storage=cast(Storage, made(kind)))
    whole, dataset = table.read(), table.to_pyarrow_dataset()  # DuckDB finds them by name
    for query in QUERIES:
        expected = duckdb.sql(query.format("whole")).fetchall()
        assert expected
        assert duckdb.sql(query.format("dataset")).fetchall() == expected
    assert whole.schema == dataset.schema


def test_duckdb_opens_what_it_needs() -> None:
    seen = CountedReads(made("COPY_ON_WRITE"))
    trips = HoodieTable("/t", storage=cast(Storage, seen)).to_pyarrow_dataset()
    query = "SELECT count(DISTINCT name) FROM trips WHERE city = 'x'"
    assert duckdb.sql(query).fetchall() == [(2,)]
    assert len(seen.bytes) == 1
    assert isinstance(trips, ds.Dataset)


def test_other_ways_to_ask() -> None:
    table = HoodieTable("/t", storage=cast(Storage, made("MERGE_ON_READ")))
    dataset = table.to_pyarrow_dataset()
    some = dataset.to_table(columns=["id"], filter=pc.field("ts") == 2, batch_size=10)
    assert (some.num_rows, some.column_names) == (14, ["id"])
    assert dataset.count_rows() == 39
    assert dataset.head(2, columns=["id"]).num_rows == 2
    assert sum(batch.num_rows for batch in dataset.to_batches()) == 39
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("ts") == 2).collect().height == 14
    with pytest.raises(SchemaError, match="column 'none' is not in the table"):
        dataset.to_table(columns=["none"])
    with pytest.raises(OptionError, match="columns"):
        dataset.to_table(columns={"x": pc.field("ts")})


@pytest.mark.parametrize("name", sorted({*dir(ds.Dataset)} - {*dir(object)}))
def test_what_needs_files_of_arrow_is_not_there(name: str) -> None:
    dataset = HoodieTable("/t", storage=cast(Storage, made("COPY_ON_WRITE"))).to_pyarrow_dataset()
    if name in ("schema", "scanner", "to_table", "to_batches", "head", "count_rows"):
        assert getattr(dataset, name)
    elif not name.startswith("_"):
        with pytest.raises(AttributeError, match="the dataset of a Hudi table has no such method"):
            getattr(dataset, name)
