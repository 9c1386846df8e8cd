"""Whatever a table can hold comes back from every encoding exactly as it went in."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_ds.formats.avro.schema import arrow_to_avro, avro_to_arrow, normalise_schema
from hoodie_ds.formats.log.data_block import (
    decode_data_block,
    encode_avro_block,
    encode_parquet_block,
)
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import read_base_file
from hoodie_ds.formats.schema_conversion import conform

TEXT = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from("\0\x7f\x80߿ࠀ\uffff\U00010000\U0010ffff"),
    max_size=4,
)
Column: TypeAlias = tuple[pa.DataType, st.SearchStrategy[Any]]

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


def exact_decimals(precision: int, scale: int) -> Column:
    # Built from text: the default context of Decimal rounds to 28 digits.
    bound = 10**precision - 1
    shift = st.integers(-bound, bound).map(lambda n: Decimal(f"{n}e-{scale}"))
    return pa.decimal128(precision, scale), shift


LEAVES = st.sampled_from(
    [
        (pa.bool_(), st.booleans()),
        (pa.int32(), INT32),
        (pa.int64(), INT64),
        (pa.float32(), st.floats(width=32, allow_nan=False)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.string(), TEXT),
        (pa.binary(), st.binary(max_size=5)),
        (pa.date32(), INT32),
        (pa.timestamp("us", tz="UTC"), INT64),
        (pa.timestamp("us"), INT64),
        exact_decimals(1, 0),
        exact_decimals(9, 9),
        exact_decimals(18, 2),
        exact_decimals(19, 0),
        exact_decimals(38, 10),
    ]
)


@st.composite
def columns(draw: st.DrawFn, depth: int = 3) -> Column:
    """An Arrow type and a strategy of its values, null among them."""
    shapes = ["leaf"] if depth == 0 else ["leaf", "list", "map", "struct"]
    found: Column
    match draw(st.sampled_from(shapes)):
        case "list":
            kind, values = draw(columns(depth - 1))
            found = pa.list_(kind), st.lists(values, max_size=3)
        case "map":
            kind, values = draw(columns(depth - 1))
            pairs = st.dictionaries(TEXT, values, max_size=3).map(lambda d: list(d.items()))
            found = pa.map_(pa.string(), kind), pairs
        case "struct":
            fields = {f"f{i}": draw(columns(depth - 1)) for i in range(draw(st.integers(1, 3)))}
            kind = pa.struct([(name, field[0]) for name, field in fields.items()])
            found = kind, st.fixed_dictionaries({n: field[1] for n, field in fields.items()})
        case _:
            found = draw(LEAVES)
    return found[0], st.none() | found[1]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    fields = {f"c{i}": draw(columns()) for i in range(draw(st.integers(1, 3)))}
    num_rows = draw(st.integers(0, 5))
    arrays = {
        name: pa.array(draw(st.lists(values, min_size=num_rows, max_size=num_rows)), kind)
        for name, (kind, values) in fields.items()
    }
    whole = pa.table(arrays)
    cut = draw(st.integers(0, num_rows))
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])


@settings(deadline=None)
@given(tables())
def test_a_schema_comes_back_from_avro(table: pa.Table) -> None:
    assert avro_to_arrow(arrow_to_avro(table.schema, "t")) == table.schema
    assert normalise_schema(table.schema) == table.schema


@settings(deadline=None)
@given(tables())
def test_rows_come_back_from_an_avro_block(table: pa.Table) -> None:
    (block,) = read_blocks(encode_avro_block(table, arrow_to_avro(table.schema, "t"), "1"), "f")
    decoded = decode_data_block(block, "f")
    decoded.validate(full=True)
    assert decoded == table


@settings(deadline=None)
@given(tables())
def test_rows_come_back_from_a_parquet_block(table: pa.Table) -> None:
    avro = arrow_to_avro(table.schema, "t")
    (block,) = read_blocks(encode_parquet_block(table, avro, "1", "snappy"), "f")
    assert decode_data_block(block, "f") == table


@settings(deadline=None)
@given(tables())
def test_rows_come_back_from_a_base_file(table: pa.Table) -> None:
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, table.schema, arrow_to_avro(table.schema, "t"), "zstd", 64)
    for batch in table.to_batches(max_chunksize=2):
        writer.write(pa.Table.from_batches([batch]))
    assert writer.close() == table.num_rows
    assert read_base_file(sink, table.schema, None, "f") == table


def widened(kind: pa.DataType) -> pa.DataType:
    """The same type with a new field in each struct, fields reversed, and numbers wider."""
    if pa.types.is_struct(kind):
        fields = [(kind.field(i).name, widened(kind.field(i).type)) for i in range(kind.num_fields)]
        return pa.struct([("added", pa.list_(pa.string())), *reversed(fields)])
    if pa.types.is_list(kind):
        return pa.list_(widened(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), widened(kind.item_type))
    return {pa.int32(): pa.int64(), pa.float32(): pa.float64()}.get(kind, kind)


def widen_value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        inner = {n: widen_value(value[n], kind.field(n).type) for n in reversed(names)}
        return {"added": None, **inner}
    if pa.types.is_list(kind):
        return [widen_value(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(key, widen_value(item, kind.item_type)) for key, item in value]
    if kind == pa.float32():
        return float(str(np.float32(value)))  # by way of the shortest string, as in Hudi
    return value


@settings(deadline=None)
@given(st.data())
def test_conform_changes_types_at_every_depth_and_nothing_else(data: Any) -> None:
    kind, values = data.draw(columns())
    drawn = data.draw(st.lists(values, max_size=5))
    target = pa.schema([("c", widened(kind))])
    start = data.draw(st.integers(0, len(drawn)))
    table = pa.table({"c": pa.array(drawn, kind)}).slice(start)
    conformed = conform(table, target)
    conformed.validate(full=True)
    expected = pa.array([widen_value(v, kind) for v in drawn[start:]], target.field(0).type)
    assert conformed == pa.table([expected], schema=target)
