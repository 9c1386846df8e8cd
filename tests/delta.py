"""What other readers say of the Delta log beside a table: deltalake's, Polars' and DuckDB's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from hoodie_ds import HoodieTable

SYNC = {"hoodie.py.delta.sync": "true"}
READ_OPTIMISED = {"hoodie.datasource.query.type": "read_optimized"}


def delta(path: Path) -> DeltaTable:
    """The table as deltalake opens it."""
    return DeltaTable(str(path))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """All columns of all rows, in one order."""
    return sorted((dict(sorted(one.items())) for one in table.to_pylist()), key=str)


def ours(path: Path) -> pa.Table:
    """The table as Hudi's read-optimised query has it, with the meta columns."""
    return HoodieTable(path, READ_OPTIMISED).read()


def assert_same(path: Path) -> None:
    """Demand that all readers of Delta see the rows that we read."""
    table, expected = delta(path), rows(ours(path))
    dataset = table.to_pyarrow_dataset()
    assert rows(dataset.to_table()) == expected
    assert rows(polars.scan_delta(str(path)).collect().to_arrow()) == expected
    assert rows(duckdb.from_arrow(dataset).to_arrow_table()) == expected
    assert_same_by_filters(dataset, ours(path))


def assert_same_by_filters(dataset: ds.Dataset, expected: pa.Table) -> None:
    """Demand that filters of each column find what is there, whatever the log tells of it."""
    for field in expected.schema:
        if pa.types.is_nested(field.type):
            continue
        column = expected.column(field.name)
        assert dataset.to_table(filter=pc.field(field.name).is_null()).num_rows == column.null_count
        for value in pc.unique(column.drop_null())[:2]:
            equal = pc.sum(pc.equal(column, value)).as_py() or 0
            found = dataset.to_table(filter=pc.field(field.name) == value).num_rows
            assert found == equal, (field.name, value)
