"""A merge whose outcome is remembered gives the rows of one that is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table
from tests.golden.test_late_columns import WITH_LOGS


@pytest.mark.parametrize("name", WITH_LOGS)
def test_every_table_reads_equal_again(name: str, tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    first, rows = table.read(), table.read()
    assert repr(rows.to_pylist()) == repr(first.to_pylist())  # NaN is unequal to itself
    assert_rows_equal(rows, expected_rows(name))
    for column in rows.column_names:
        again = table.read([column])
        assert repr(again[column].to_pylist()) == repr(rows[column].to_pylist())
        if not pa.types.is_integer(again.schema.field(column).type) or not rows.num_rows:
            continue
        middle = pc.quantile(rows.column(column), interpolation="lower")[0].as_py()
        chosen = table.read([column], filter=[(column, ">=", middle)])
        assert chosen.equals(again.filter(pc.greater_equal(again.column(column), middle)))


@pytest.mark.parametrize("name", ["v9_mor_bucket", "v9_mor_commit_time", "v9_mor_types_parquet"])
def test_a_known_outcome_reads_no_keys(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's log blocks name positions, unless the index is of buckets: nothing else is asked."""
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    read: list[str] = []
    inner = BaseFileReader.pieces

    def noted(self: BaseFileReader, columns: list[str], *rest: object) -> object:
        read.extend(columns)
        return inner(self, columns, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(BaseFileReader, "pieces", noted)
    column = table.schema.names[-1]
    first = table.read([column])
    assert (RECORD_KEY in read) == (name == "v9_mor_bucket")
    read.clear()
    assert table.read([column]).equals(first)
    assert set(read) == {column}
