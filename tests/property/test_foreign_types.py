"""Arrow columns of any type that others make, through every kind of table, against their values.

A batch is either refused, by column and row, with the table as before; or it is read again as the
values that it had, by us and by hudi-rs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import SchemaError
from hoodie_ds.record import schema
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.tables import BUCKETS, KEY, PARTITION, TYPE, VERSION, limited, upsert

ROWS = 12
FORMS = {
    "copy-on-write": ("COPY_ON_WRITE", "parquet"),
    "Avro logs": ("MERGE_ON_READ", "avro"),
    "parquet logs": ("MERGE_ON_READ", "parquet"),
}
TEXTS = ["", "a", "é日\U0001f600", "x" * 40, "a\0b"]
NUMBERS = [0, 1, -1, 127, -128]
INSTANTS = [
    datetime(1, 1, 1, tzinfo=timezone.utc),
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=timezone.utc),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc),
]
DECIMALS = [Decimal("1.25"), Decimal("-99.99"), Decimal("0.00")]
LEAVES: list[tuple[pa.DataType, list[Any]]] = [
    *((kind, NUMBERS) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, [0, 1, 255]) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
    *((kind, [0.1, -0.25, float("inf")]) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *((kind, TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, [b"", b"\xff\xfe"]) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(2), [b"ab", b"\xff\0"]),
    (pa.bool_(), [True, False]),
    *((kind, [date(1, 1, 1), date(9999, 12, 31)]) for kind in (pa.date32(), pa.date64())),
    *((pa.timestamp(unit, "UTC"), INSTANTS) for unit in ("s", "ms", "us")),
    *((kind, DECIMALS) for kind in (pa.decimal32(4, 2), pa.decimal128(9, 2), pa.decimal256(30, 2))),
    (pa.dictionary(pa.int16(), pa.string()), TEXTS),
    (pa.dictionary(pa.int8(), pa.large_string()), TEXTS),
]


def column_of(rng: Random, depth: int) -> tuple[pa.DataType, Callable[[], Any]]:
    """A type, and what makes values of it, nulls among them."""
    shape = rng.randrange(5) if depth else 4
    if shape == 4:
        kind, values = rng.choice(LEAVES)
        return kind, lambda: rng.choice([None, *values])
    inner, make = column_of(rng, depth - 1)
    if shape == 0 and not pa.types.is_dictionary(inner):
        layout = rng.choice((pa.list_, pa.large_list, pa.list_view, pa.large_list_view))
        return layout(inner), lambda: rng.choice([None, [], [make()], [make(), make()]])
    if shape == 1:
        other, more = column_of(rng, 0)
        kind = pa.struct([("a", inner), ("b", other)])
        return kind, lambda: rng.choice([None, {"a": make(), "b": more()}])
    if shape == 2 and not pa.types.is_dictionary(inner):
        entries = lambda: [(f"k{i}", make()) for i in range(rng.randrange(3))]  # noqa: E731
        return pa.map_(pa.string(), inner), lambda: rng.choice([None, entries()])
    return inner, make


def has_inner_times(kind: pa.DataType) -> bool:
    """Whether timestamps are part of another type, which hudi-rs reads in Parquet alone."""
    return "timestamp" in str(kind) and not pa.types.is_timestamp(kind)


WIDENED: list[tuple[pa.DataType, pa.DataType, dict[Any, Any]]] = [
    (pa.int32(), pa.int64(), {-(2**31): -(2**31), 7: 7}),
    (pa.int32(), pa.float64(), {-(2**31): -(2.0**31), 7: 7.0}),
    (pa.float32(), pa.float64(), {0.1: 0.1, -3.3: -3.3, 1e-7: 1e-7, 2.5: 2.5}),
    (pa.int64(), pa.string(), {-(2**63): "-9223372036854775808", 0: "0"}),
    (pa.float32(), pa.string(), {0.1: "0.1", 1e10: "1.0E10", -1e-4: "-1.0E-4", 100.0: "100.0"}),
    (pa.float64(), pa.string(), {0.1: "0.1", 123456789.125: "1.23456789125E8", 1e-3: "0.001"}),
    (pa.date32(), pa.string(), {date(1, 1, 1): "0001-01-01", date(2020, 2, 29): "2020-02-29"}),
    (pa.decimal128(9, 2), pa.string(), {Decimal("1.50"): "1.50", Decimal("-0.05"): "-0.05"}),
    (pa.decimal128(9, 8), pa.string(), {Decimal("1.2E-7"): "1.2E-7", Decimal("0E-8"): "0E-8"}),
]
"""What a column was and became, and how Java and Spark write values of it in the newer type."""


def wrapped(rng: Random) -> tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any]]:
    """A type around another one, and what makes values of it."""
    struct = lambda kind: pa.struct([("b", pa.string()), ("a", kind)])  # noqa: E731
    return rng.choice(
        [
            (lambda kind: kind, lambda value: value),
            (struct, lambda value: {"b": "x", "a": value}),
            (pa.list_, lambda value: [value, None, value]),
            (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)]),
            (lambda kind: pa.list_(struct(kind)), lambda value: [None, {"b": "", "a": value}]),
        ]
    )


def batch_of(rng: Random) -> pa.Table:
    """Rows with a column of some type, maybe a slice of more rows, maybe cut into chunks."""
    kind, make = column_of(rng, 2)
    before = rng.randrange(4)
    values = pa.array([make() for _ in range(ROWS + before)], kind).slice(before)
    cut = rng.randrange(ROWS)
    chunks = pa.chunked_array([values.slice(0, cut), values.slice(cut)])
    return pa.table({"id": [f"{i:02d}" for i in range(ROWS)], "c": chunks})


def poisoned(kind: pa.DataType) -> pa.DataType:
    """A type with binary in place of text, through which bytes become text that is none."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, poisoned(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(poisoned(kind.value_type))
    return pa.binary() if pa.types.is_string(kind) else kind


def options_of(form: str) -> dict[str, str]:
    kind, blocks = FORMS[form]
    options = {"hoodie.table.name": "t", KEY: "id", TYPE: kind, BUCKETS: "1"}
    return {**options, "hoodie.logfile.data.block.format": blocks}


def table(path: Path, form: str) -> HoodieTable:
    return HoodieTable(str(path), options_of(form))


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("form", FORMS)
def test_foreign_columns_are_read_as_their_values(form: str, seed: int) -> None:
    rows = batch_of(Random(seed))
    path = Path(tempfile.mkdtemp())
    try:
        there = table(path, form)
        there.upsert(rows.slice(0, ROWS // 2))
        upsert(limited(path, options_of(form), Limits(part_bytes=64)), rows)
        read = there.read(["id", "c"]).sort_by("id")
        assert read.to_pylist() == rows.to_pylist()
        read.validate(full=True)
        if form == "Avro logs" and has_inner_times(rows.schema.field("c").type):
            return  # hudi-rs 0.5.0 fails to bring their zones together
        theirs = read_with_hudi_rs(path).select(["id", "c"]).sort_by("id")
        assert theirs.to_pylist() == rows.to_pylist()
    finally:
        shutil.rmtree(path)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("form", FORMS)
def test_columns_that_other_types_were_are_read_as_their_values(form: str, seed: int) -> None:
    """Another engine lets columns become strings; its rows stay in files of the older type."""
    rng = Random(seed)
    older, newer, values = rng.choice(WIDENED)
    around, make = wrapped(rng)
    model: dict[str, Any] = {}

    def batch(kind: pa.DataType, written: dict[str, tuple[Any, Any]]) -> pa.Table:
        model.update((key, make(after)) for key, (_, after) in written.items())
        column = pa.array([make(before) for before, _ in written.values()], around(kind))
        return pa.table({"id": list(written), "p": [key[0] for key in written], "c": column})

    def some(pairs: list[tuple[Any, Any]], partitions: str) -> dict[str, tuple[Any, Any]]:
        keys = (f"{rng.choice(partitions)}{rng.randrange(4)}" for _ in range(4))
        return {key: rng.choice(pairs) for key in keys}

    options = {**options_of(form), PARTITION: "p", VERSION: rng.choice("689")}
    path = Path(tempfile.mkdtemp())
    try:
        there = HoodieTable(str(path), options)
        for _ in range(2):
            there.upsert(batch(older, some([*values.items(), (None, None)], "xy")))
        with mock.patch.object(schema, "_evolve_type", lambda _, __, arriving, ___: arriving):
            last = [(value, value) for value in values.values()]
            there.upsert(batch(newer, some(last, rng.choice(["x", "z"]))))
        for _ in range(2):
            found = there.read(["id", "c"]).to_pylist()
            assert {row["id"]: row["c"] for row in found} == model
            if around(newer) == newer:
                chosen = rng.choice([*values.values()])
                found = there.read(["id"], filter=pc.field("c") == chosen)["id"].to_pylist()
                assert sorted(found) == sorted(key for key in model if model[key] == chosen)
            if form != "copy-on-write":
                there.compact()
    finally:
        shutil.rmtree(path)


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32),
    bad=st.integers(0, ROWS - 1),
    bytes_=st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b"a\xf8b"]),
    shape=st.sampled_from(["text", "list", "struct", "list of structs", "map"]),
)
@pytest.mark.parametrize("form", FORMS)
def test_text_that_is_none_is_refused_by_its_row(
    form: str, seed: int, bad: int, bytes_: bytes, shape: str
) -> None:
    rng = Random(seed)
    wrap, kind = {
        "text": (lambda v: v, pa.string()),
        "list": (lambda v: ["a", v], pa.list_(pa.string())),
        "struct": (lambda v: {"a": v}, pa.struct([("a", pa.string())])),
        "list of structs": (lambda v: [{"a": v}], pa.list_(pa.struct([("a", pa.string())]))),
        "map": (lambda v: [{"key": v, "value": 1}], None),
    }[shape]
    binary = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.int64())]))
    texts = [rng.choice(TEXTS).encode() for _ in range(ROWS)]
    texts[bad] = bytes_
    values = pa.array([wrap(v) for v in texts], binary if kind is None else poisoned(kind))
    column = as_text(values)
    if kind is None:
        entries = column.values.flatten()
        column = pa.MapArray.from_arrays(column.offsets, entries[0], entries[1])
    rows = pa.table({"id": [f"{i:02d}" for i in range(ROWS)], "c": column})
    path = Path(tempfile.mkdtemp())
    try:
        there = table(path, form)
        with pytest.raises(SchemaError, match=f"^row {bad} of the batch: column 'c"):
            there.upsert(rows)
        others = pa.concat_tables([rows.slice(0, bad), rows.slice(bad + 1)])
        there.upsert(others)
        assert there.read(["id", "c"]).sort_by("id").to_pylist() == others.to_pylist()
    finally:
        shutil.rmtree(path)


def as_text(array: pa.Array) -> pa.Array:
    """The same buffers, with bytes called text."""
    kind = array.type
    if pa.types.is_binary(kind):
        return array.view(pa.string())
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays([as_text(part) for part in array.flatten()], names)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, as_text(array.values))
    return array
