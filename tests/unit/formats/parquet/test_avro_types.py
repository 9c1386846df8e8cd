"""Parquet files whose columns are as wide, and as surely there, as their Avro schema says."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from tests.avro_columns import AVRO, BARE, COLUMNS, FULL, events

ROWS = events(
    {"id": "1", "ts": 1, **FULL},
    {"id": "2", "ts": None, **BARE},
    {"id": "3", "ts": 3, **FULL, "place": None, "places": [], "named": None},
)
REQUIRED = """
  required binary id (String);
  required group states (List) {
      required binary element (String);
  required fixed_len_byte_array(4) hash;
    required binary street (String);
    required fixed_len_byte_array(4) token;
    required group more (List) {
        required fixed_len_byte_array(4) element;
    required group by_name (Map) {
        required int32 value;
    required group inner {
      required boolean sure;
"""


def stored(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, COLUMNS, AVRO, "snappy", 1 << 20)
    writer.write(rows)
    writer.close()
    return sink.getvalue()


@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(1), pa.concat_tables([ROWS, ROWS])])
def test_rows_are_read_as_they_were_written(rows: pa.Table) -> None:
    body = stored(rows)
    assert pq.read_table(io.BytesIO(body)).to_pylist() == rows.to_pylist()
    assert BaseFileReader(io.BytesIO(body), COLUMNS, "f").read().equals(rows)


def test_parquet_types_are_those_that_hudi_asks_for() -> None:
    told = str(pq.ParquetFile(io.BytesIO(stored(ROWS))).schema).replace("field_id=-1 ", "")
    for line in REQUIRED.strip().splitlines():
        assert line.strip() in told
    assert "optional binary state (String)" in told
    assert "optional group place" in told
