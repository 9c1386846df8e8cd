"""A commit was decided that no process could complete: a row had no entry in an index of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, RecordKeyError
from hoodie_ds.formats.hfile.writer import KEY_BYTES_MAX
from tests.golden.test_metadata_tables import unzipped
from tests.golden.test_secondary_indexes import COPIED, OPTIONS, rows_of
from tests.integration.test_record_lookup import RECORDS
from tests.tables import trips


def test_a_key_that_was_too_long_for_the_record_index(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), RECORDS)
    too_long = trips(("é" * (KEY_BYTES_MAX // 2 + 1), "x", 1, 1.0))
    for key in ("a", "k" * KEY_BYTES_MAX):
        with pytest.raises(RecordKeyError, match=f"record_index, which can have {KEY_BYTES_MAX};"):
            table.upsert(too_long)
        table.upsert(trips((key, "x", 1, 1.0)))
    assert table.count() == 2
    assert table.read(filter="id = a").num_rows == 1


def test_a_value_that_was_too_long_for_a_secondary_index(tmp_path: Path) -> None:
    table = HoodieTable(unzipped(COPIED, tmp_path), OPTIONS)
    rows = rows_of(table, ts=10)
    at = rows.schema.get_field_index("name")
    fits = KEY_BYTES_MAX - 99
    for name in ("n" * (KEY_BYTES_MAX + 1), "$" * (fits // 2 + 50)):
        with pytest.raises(RecordKeyError, match=r"secondary_index_.*; shorten them"):
            table.upsert(rows.set_column(at, "name", pa.array([name] * len(rows))))
    table.upsert(rows.set_column(at, "name", pa.array(["n" * fits] * len(rows))))
    assert table.read(filter=("name", "=", "n" * fits)).num_rows == len(rows)
