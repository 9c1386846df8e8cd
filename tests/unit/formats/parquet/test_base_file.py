from __future__ import annotations

import gc
import io
import itertools
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_ds.config.enums import BloomFilterType
from hoodie_ds.errors import CorruptFileError, SchemaError, StorageError
from hoodie_ds.formats.avro.schema import arrow_to_avro, avro_to_arrow
from hoodie_ds.formats.parquet.base_file import BaseFileWriter, KeyRange
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader, read_base_file
from hoodie_ds.formats.parquet.bloom_filter import BloomParams

META = ["commit_time", "commit_seqno", "record_key", "partition_path", "file_name"]
SCHEMA = pa.schema(
    [(f"_hoodie_{name}", pa.string()) for name in META]
    + [("city", pa.string()), ("tags", pa.list_(pa.string())), ("fare", pa.float64())]
)
AVRO = arrow_to_avro(SCHEMA, "trips")


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    constant = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["20250101000000000"])
    columns = [
        constant,
        pa.array([f"20250101000000000_0_{i}" for i in numbers]),
        pa.array([f"key-{i:06}" for i in numbers]),
        constant,
        constant,
        pa.array([["sf", "ny", None][i % 3] for i in numbers], pa.string()),
        pa.array([[str(i % 3), None] for i in numbers], pa.list_(pa.string())),
        pa.array([i / 2 for i in numbers], pa.float64()),
    ]
    return pa.Table.from_arrays(columns, names=SCHEMA.names)


def written(*tables: pa.Table, row_group_bytes: int = 1 << 30) -> io.BytesIO:
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, SCHEMA, AVRO, "snappy", row_group_bytes)
    for table in tables:
        writer.write(table)
    writer.close()
    return sink


def test_a_file_reads_back_as_it_was_written() -> None:
    table = rows(0, 1000)
    assert read_base_file(written(table), SCHEMA, None, "f") == table.cast(SCHEMA)


def test_any_parquet_reader_sees_plain_optional_columns() -> None:
    file = pq.ParquetFile(written(rows(0, 3)))
    assert file.schema_arrow.equals(SCHEMA)
    assert "required" not in str(file.schema).partition("{")[2]
    assert file.read() == rows(0, 3).cast(SCHEMA)


def test_footers_are_those_of_hudis_avro_writer() -> None:
    metadata = pq.read_metadata(written(rows(5, 20), rows(2, 2))).metadata
    assert metadata == {
        b"parquet.avro.schema": AVRO.encode(),
        b"writer.model.name": b"avro",
        b"org.apache.spark.version": b"3.5.0",
        b"hoodie_min_record_key": b"key-000002",
        b"hoodie_max_record_key": b"key-000024",
    }


def test_close_returns_the_number_of_rows() -> None:
    writer = BaseFileWriter(io.BytesIO(), SCHEMA, AVRO, "zstd", 1)
    writer.write(rows(5, 20))
    writer.write(rows(2, 2))
    assert writer.close() == 22


def test_an_empty_file_has_no_key_range() -> None:
    sink = written(rows(0, 0))
    assert not {b"hoodie_min_record_key", b"hoodie_max_record_key"} & {
        *pq.read_metadata(sink).metadata
    }
    assert read_base_file(sink, SCHEMA, None, "f").num_rows == 0
    assert list(BaseFileReader(sink, SCHEMA, "f").pieces()) == []


def test_small_tables_share_row_groups() -> None:
    tables = [rows(i * 100, 100) for i in range(50)]
    limit = sum(table.nbytes for table in tables) // 5
    sink = written(*tables, row_group_bytes=limit)
    metadata = pq.read_metadata(sink)
    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(counts) == 5000
    assert 4 <= len(counts) <= 6
    assert min(counts[:-1]) >= 900
    pieces = BaseFileReader(sink, SCHEMA, "f").pieces()
    assert pa.concat_tables(pieces) == pa.concat_tables(tables).cast(SCHEMA)


def test_a_large_file_comes_in_pieces_and_strings_that_repeat_as_dictionaries() -> None:
    table = rows(0, 300_000)
    reader = BaseFileReader(written(table), SCHEMA, "f", keep_dictionaries=True)
    assert reader.num_rows == 300_000
    constant = {f"_hoodie_{name}" for name in ("commit_time", "partition_path", "file_name")}
    assert reader.dictionaries == {*constant, "city"}
    pieces = list(reader.pieces(["city", "_hoodie_record_key"]))
    assert [piece.num_rows for piece in pieces] == [131_072, 131_072, 37_856]
    found = pa.concat_tables(pieces)
    assert pa.types.is_dictionary(found.schema.field("city").type)
    assert found.cast(pa.schema([SCHEMA.field("city"), SCHEMA.field("_hoodie_record_key")])) == (
        table.select(["city", "_hoodie_record_key"])
    )
    again = io.BytesIO()
    writer = BaseFileWriter(again, SCHEMA, AVRO, "snappy", 1 << 20, reader.dictionaries)
    for piece in reader.pieces():
        writer.write(piece)
    writer.write(rows(300_000, 10))  # plain strings among the dictionaries
    writer.close()
    assert read_base_file(again, SCHEMA, None, "f") == rows(0, 300_010).cast(SCHEMA)


def test_a_large_table_is_cut_into_row_groups() -> None:
    table = rows(0, 10_000)
    metadata = pq.read_metadata(written(table, row_group_bytes=table.nbytes // 4))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [2500] * 4


def test_only_columns_that_repeat_have_dictionaries() -> None:
    constant_changes = rows(0, 500).set_column(
        0, SCHEMA.names[0], pa.DictionaryArray.from_arrays(np.zeros(500, np.int8), ["other"])
    )
    group = pq.read_metadata(written(rows(0, 500), constant_changes)).row_group(0)
    has_dictionary = {
        group.column(i).path_in_schema: group.column(i).has_dictionary_page
        for i in range(group.num_columns)
    }
    unique = {"_hoodie_commit_seqno", "_hoodie_record_key"}
    assert {name for name, has in has_dictionary.items() if not has} == unique
    # Two writes with dictionaries of their own stay encoded, without a plain fallback page.
    assert group.column(0).total_uncompressed_size < 500
    assert (group.column(0).statistics.min, group.column(0).statistics.max) == (
        "20250101000000000",
        "other",
    )


@pytest.mark.parametrize("index_type", [pa.int8(), pa.int32(), pa.int64()])
def test_meta_columns_may_be_plain_or_dictionaries_of_any_index(index_type: pa.DataType) -> None:
    encoded = rows(0, 4).cast(SCHEMA)
    for at in (0, 3, 4):
        column = encoded.column(at).cast(pa.dictionary(index_type, pa.string()))
        encoded = encoded.set_column(at, SCHEMA.names[at], column)
    sink = written(rows(0, 4).cast(SCHEMA), encoded)
    assert read_base_file(sink, SCHEMA, None, "f") == pa.concat_tables(
        [rows(0, 4).cast(SCHEMA)] * 2
    )


def test_null_keys_make_no_range() -> None:
    table = rows(0, 3).set_column(2, SCHEMA.names[2], pa.nulls(3, pa.string()))
    assert b"hoodie_min_record_key" not in pq.read_metadata(written(table)).metadata


def test_a_batch_that_does_not_fit_is_refused_by_its_column() -> None:
    table = rows(0, 3)
    with pytest.raises(SchemaError, match="'fare'"):
        written(table.set_column(7, "fare", pa.array(["a", "b", "c"])))


def test_a_bloom_filter_without_keys_is_refused() -> None:
    schema = pa.schema({"id": pa.string()})
    params = BloomParams(100, 0.01, BloomFilterType.SIMPLE, 100)
    with pytest.raises(SchemaError, match="_hoodie_record_key"):
        BaseFileWriter(io.BytesIO(), schema, "{}", "snappy", 1 << 20, bloom=params)


def test_a_writer_may_be_dropped_after_its_sink() -> None:
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, SCHEMA, AVRO, "snappy", 1)
    writer.write(rows(0, 10))
    sink.close()  # as a failing task's file is
    del writer
    gc.collect()


def test_columns_are_read_in_the_order_asked_for() -> None:
    table = read_base_file(written(rows(0, 2)), SCHEMA, ["fare", "_hoodie_record_key"], "f")
    assert table.to_pydict() == {
        "fare": [0.0, 0.5],
        "_hoodie_record_key": ["key-000000", "key-000001"],
    }


def test_an_older_file_is_read_into_todays_schema() -> None:
    old = pa.table(
        {
            "n": pa.array([1, None], pa.int32()),
            "f": pa.array([1.5, None], pa.float32()),
            "s": pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())])),
            "d": pa.array([Decimal("1.5"), None], pa.decimal128(5, 2)),
        }
    )
    sink = io.BytesIO()
    pq.write_table(old, sink)
    new_struct = pa.struct([("b", pa.string()), ("a", pa.int64())])
    today = pa.schema(
        {"d": pa.decimal128(9, 2), "s": new_struct, "new": pa.date32(), "f": pa.float64()}
        | {"n": pa.int64()}
    )
    assert read_base_file(sink, today, None, "f").to_pylist() == [
        {"d": Decimal("1.50"), "s": {"b": None, "a": 1}, "new": None, "f": 1.5, "n": 1},
        {"d": None, "s": None, "new": None, "f": None, "n": None},
    ]


def test_columns_that_the_file_lacks_have_as_many_nulls_as_it_has_rows() -> None:
    schema = pa.schema([*SCHEMA, ("new", pa.int32())])
    table = read_base_file(written(rows(0, 7)), schema, ["new"], "f")
    assert table.column("new").null_count == table.num_rows == 7
    assert [
        t.num_rows for t in BaseFileReader(written(rows(0, 7)), schema, "f").pieces(["new"])
    ] == [7]


def test_int96_timestamps_beyond_the_range_of_nanoseconds_are_read() -> None:
    micros = [-62_135_596_800_000_000, 253_402_300_799_999_999, None]
    kind = pa.timestamp("us", tz="UTC")
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"t": pa.array(micros, kind)}), sink, use_deprecated_int96_timestamps=True
    )
    table = read_base_file(sink, pa.schema([("t", kind)]), None, "f")
    assert table.column("t").cast(pa.int64()).to_pylist() == micros


@pytest.mark.parametrize("position", [0.01, 0.1, 0.3, 0.5, 0.7])
def test_a_flipped_byte_of_a_page_is_seen(position: float) -> None:
    data = bytearray(written(rows(0, 2000)).getvalue())
    data[int(len(data) * position)] ^= 0x10
    with pytest.raises(CorruptFileError, match=r"dir/f\.parquet"):
        read_base_file(io.BytesIO(data), SCHEMA, None, "dir/f.parquet")


def test_a_truncated_file_is_corrupt() -> None:
    data = written(rows(0, 50)).getvalue()
    for length in itertools.chain(range(0, len(data), 97), range(len(data) - 12, len(data))):
        with pytest.raises(CorruptFileError, match="f:"):
            read_base_file(io.BytesIO(data[:length]), SCHEMA, None, "f")
        with pytest.raises(CorruptFileError, match="f:"):
            list(BaseFileReader(io.BytesIO(data[:length]), SCHEMA, "f").pieces())


def test_an_error_of_the_storage_is_not_taken_for_damage() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise StorageError("the network is down")

    with pytest.raises(StorageError, match="network"):
        read_base_file(Failing(written(rows(0, 5)).getvalue()), SCHEMA, None, "f")


def test_base_files_of_hudi_are_read_into_their_commits_schema(
    golden: Callable[[str], list[Path]],
) -> None:
    checked = 0
    for path in golden(""):
        if path.suffix != ".parquet" or "metadata" in path.parts:
            continue
        avro = (pq.read_metadata(path).metadata or {}).get(b"parquet.avro.schema")
        plain = pq.read_table(path, partitioning=None)
        schema = avro_to_arrow(avro.decode()) if avro else plain.schema.remove_metadata()
        with path.open("rb") as source:
            table = read_base_file(source, schema, None, path.name)
        table.validate(full=True)
        assert table.schema == schema
        assert json.dumps(table.to_pylist(), default=str) == json.dumps(
            plain.to_pylist(), default=str
        )
        checked += 1
    assert checked > 20


KEYS = st.lists(
    st.none()
    | st.text(st.sampled_from("aZé\u0000\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=3)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)


def java_units(text: str) -> list[int]:
    """What Java compares strings by: their 16-bit code units."""
    units = []
    for point in map(ord, text):
        if point < 0x10000:
            units.append(point)
        else:
            units += [0xD800 + (point - 0x10000 >> 10), 0xDC00 + (point & 0x3FF)]
    return units


@given(st.lists(KEYS, max_size=3))
@example([["\U00010000", "\uffff"]])
@example([["\U00010000"], ["\uffff"]])
@example([["a"], [], [None]])
def test_the_range_is_that_of_java(chunks: list[list[str | None]]) -> None:
    key_range = KeyRange()
    for chunk in chunks:
        key_range.add(pa.chunked_array([pa.array(chunk, pa.string())]))
    keys = [key for chunk in chunks for key in chunk if key is not None]
    assert key_range.min == min(keys, key=java_units, default=None)
    assert key_range.max == max(keys, key=java_units, default=None)


def test_a_slice_counts_only_its_own_keys() -> None:
    keys = pa.array(["a", "b", "c", "\U0001f600"])
    key_range = KeyRange()
    key_range.add(pa.chunked_array([keys.slice(1, 2)]))
    assert (key_range.min, key_range.max) == ("b", "c")
