"""Reading a base file piece by piece: all rows in order, and never the whole file in memory."""

from __future__ import annotations

import io
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader

ROWS, GROUPS = 10_000, 16


def _file() -> tuple[bytes, pa.Table]:
    """A file of row groups that hardly compress, some 800 KB each."""
    draw = np.random.default_rng(1)
    count = ROWS * GROUPS
    text = draw.integers(0, 256, count * 20, dtype=np.uint8).tobytes().hex()
    columns = {
        "id": pa.array(np.arange(count)),
        "text": pa.array([text[at : at + 40] for at in range(0, count * 40, 40)]),
        "number": pa.array(draw.random(count)),
    }
    rows, sink = pa.table(columns), io.BytesIO()
    pq.write_table(rows, sink, row_group_size=ROWS, compression="none", use_dictionary=False)
    return sink.getvalue(), rows


def test_pieces_hold_no_more_than_a_few_row_groups_of_the_file() -> None:
    content, rows = _file()
    row_group = len(content) / GROUPS
    source = io.BytesIO(content)
    reader = BaseFileReader(source, rows.schema, "f.parquet", trusted=True)
    tracemalloc.start()
    try:
        found = sum(piece.num_rows for piece in reader.pieces())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == rows.num_rows
    assert peak < 4 * row_group


def test_pieces_of_wide_rows_have_few_of_them() -> None:
    draw = np.random.default_rng(0)
    texts = [draw.bytes(10_000).hex() for _ in range(3_000)]
    content = io.BytesIO()
    pq.write_table(pa.table({"text": texts}), content, use_dictionary=False)
    reader = BaseFileReader(content, pa.schema({"text": pa.string()}), "f.parquet", trusted=True)
    sizes = [piece.num_rows for piece in reader.pieces()]
    assert sum(sizes) == len(texts)
    assert max(sizes) == 1_024


def test_pieces_are_all_rows_in_their_order() -> None:
    content, rows = _file()
    reader = BaseFileReader(io.BytesIO(content), rows.schema, "f.parquet", trusted=True)
    assert pa.concat_tables(reader.pieces(["text", "id"])).equals(rows.select(["text", "id"]))


def test_bounds_of_floats_are_those_of_the_doubles_they_are_read_as() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": pa.array([0.1, 0.7], pa.float32())}), sink)
    reader = BaseFileReader(sink, pa.schema([("v", pa.float64())]), "f")
    bounds = reader.bounds(0, pa.field("v", pa.float64()))
    assert bounds is not None
    assert (bounds.low, bounds.high) == (0.1, 0.7)
