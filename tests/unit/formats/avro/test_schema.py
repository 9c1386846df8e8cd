from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.errors import CorruptFileError, SchemaError
from hoodie_ds.formats.avro.schema import (
    arrow_to_avro,
    avro_to_arrow,
    decimal_bytes,
    normalise_schema,
)

UTC = pa.timestamp("us", tz="UTC")
NESTED = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("price", pa.decimal128(10, 5)),
        ("tags", pa.list_(pa.struct([("label", pa.string()), ("cost", pa.decimal128(15, 2))]))),
        ("by_name", pa.map_(pa.string(), pa.struct([("x", pa.float64())]))),
        ("outer", pa.struct([("inner", pa.struct([("price", pa.decimal128(38, 0))]))])),
        ("deep", pa.list_(pa.list_(pa.map_(pa.string(), pa.date32())))),
    ]
)


def avro_record(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def named_types(avro: object, namespace: str = "") -> list[str]:
    if isinstance(avro, list):
        return [name for part in avro for name in named_types(part, namespace)]
    if not isinstance(avro, dict):
        return []
    own = []
    if "name" in avro and avro.get("type") in ("record", "fixed"):
        namespace = avro.get("namespace", namespace)
        own = [f"{namespace}.{avro['name']}"]
    inner = [avro.get("type"), avro.get("items"), avro.get("values"), avro.get("fields")]
    return own + named_types(inner, namespace)


def test_a_table_of_every_golden_footer_gives_back_its_avro_schema_byte_for_byte(
    golden: Callable[[str], list[Path]],
) -> None:
    checked = 0
    for path in golden(""):
        if path.suffix != ".parquet" or ".hoodie" in path.parts:
            continue
        avro = (pq.read_metadata(path).metadata or {}).get(b"parquet.avro.schema")
        if avro is not None:
            table_name = json.loads(avro)["name"].removesuffix("_record")
            assert arrow_to_avro(avro_to_arrow(avro.decode()), table_name) == avro.decode()
            checked += 1
    assert checked > 10


def test_simple_columns_are_optional_with_default_null() -> None:
    schema = pa.schema([("flag", pa.bool_()), ("at", UTC), ("local", pa.timestamp("us"))])
    fields = json.loads(arrow_to_avro(schema, "trips"))["fields"]
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    local = {"type": "long", "logicalType": "local-timestamp-micros"}
    assert fields == [
        {"name": "flag", "type": ["null", "boolean"], "default": None},
        {"name": "at", "type": ["null", micros], "default": None},
        {"name": "local", "type": ["null", local], "default": None},
    ]


def test_named_types_have_hudis_namespaces_and_are_defined_once() -> None:
    avro = json.loads(arrow_to_avro(NESTED, "t"))
    names = named_types(avro)
    record = "hoodie.t.t_record"
    assert names == [
        record,
        f"{record}.price.fixed",
        f"{record}.tags",
        f"{record}.tags.cost.fixed",
        f"{record}.by_name",
        f"{record}.outer",
        f"{record}.outer.inner",
        f"{record}.outer.inner.price.fixed",
    ]
    fastavro.parse_schema(avro)


def test_a_nested_schema_survives_the_way_through_avro() -> None:
    assert avro_to_arrow(arrow_to_avro(NESTED, "t")) == NESTED


@pytest.mark.parametrize(
    ("table_name", "record"),
    [
        ("trips", "hoodie.trips.trips_record"),
        ("my-trips 2", "hoodie.my_trips_2.my_trips_2_record"),
        ("9lives", "hoodie._lives._lives_record"),
        ("café", "hoodie.caf_.caf__record"),
    ],
)
def test_characters_illegal_in_avro_become_underscores(table_name: str, record: Any) -> None:
    avro = json.loads(arrow_to_avro(pa.schema([("a", pa.int32())]), table_name))
    assert f"{avro['namespace']}.{avro['name']}" == record


@pytest.mark.parametrize(
    ("digits", "size"),
    [
        (1, 1),
        (2, 1),
        (4, 2),
        (6, 3),
        (9, 4),
        (11, 5),
        (14, 6),
        (16, 7),
        (18, 8),
        (21, 9),
        (23, 10),
        (26, 11),
        (28, 12),
        (31, 13),
        (33, 14),
        (35, 15),
        (38, 16),
        (10, 5),
        (15, 7),
    ],
)
def test_decimals_take_the_fewest_bytes(digits: int, size: int) -> None:
    assert decimal_bytes(digits) == size


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns", tz="Europe/Paris"), UTC),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.decimal256(20, 3), pa.decimal128(20, 3)),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.large_list(pa.int8()), pa.list_(pa.int32())),
        (pa.list_(pa.int64(), 3), pa.list_(pa.int64())),
        (pa.list_view(pa.int64()), pa.list_(pa.int64())),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([pa.field("a", pa.int8(), nullable=False)]), pa.struct([("a", pa.int32())])),
    ],
)
def test_types_become_those_that_a_table_stores(given: pa.DataType, stored: pa.DataType) -> None:
    schema = pa.schema([pa.field("c", given, nullable=False)], metadata={"pandas": "{}"})
    normal = normalise_schema(schema)
    assert normal == pa.schema([("c", stored)])
    assert normal.metadata is None
    assert normalise_schema(normal) == normal


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (pa.duration("us"), "c"),
        (pa.month_day_nano_interval(), "c"),
        (pa.dense_union([pa.field("a", pa.int32())]), "c"),
        (pa.time64("ns"), "c"),
        (pa.null(), "c"),
        (pa.uint64(), "c"),
        (pa.decimal256(39, 0), "c"),
        (pa.decimal128(5, -2), "c"),
        (pa.struct([]), "c"),
        (pa.map_(pa.int32(), pa.int32()), "c"),
        (pa.run_end_encoded(pa.int32(), pa.int32()), "c"),
        (pa.list_(pa.struct([("t", pa.time32("s"))])), "c.element.t"),
        (pa.map_(pa.string(), pa.null()), "c.value"),
        (
            pa.struct(
                [
                    (
                        "v",
                        pa.struct(
                            [pa.field("metadata", pa.binary(), metadata={"variant": "true"})]
                        ),
                    )
                ]
            ),
            "c.v",
        ),
    ],
)
def test_a_type_that_no_table_holds_is_refused_by_its_path(bad: pa.DataType, path: str) -> None:
    with pytest.raises(SchemaError, match=f"'{path}' is of type"):
        normalise_schema(pa.schema([("c", bad)]))
    with pytest.raises(SchemaError, match=f"'{path}' is of type"):
        arrow_to_avro(pa.schema([("c", bad)]), "t")


NAIVE_MS, UTC_MS, TIME_MS = pa.timestamp("ms"), pa.timestamp("ms", "UTC"), pa.time32("ms")


@pytest.mark.parametrize(
    ("arriving", "held", "stored"),
    [
        (pa.timestamp("us", "UTC"), UTC_MS, UTC_MS),
        (pa.timestamp("s", "Europe/Paris"), UTC_MS, UTC_MS),
        (pa.timestamp("ns"), NAIVE_MS, NAIVE_MS),
        (pa.timestamp("ms"), UTC_MS, pa.timestamp("us")),  # another kind of time: refused later
        (pa.timestamp("ms", "UTC"), UTC, UTC),
        (pa.time64("ns"), TIME_MS, TIME_MS),
        (pa.time32("s"), pa.time64("us"), pa.time64("us")),
        (pa.int64(), UTC_MS, pa.int64()),
        (pa.dictionary(pa.int32(), pa.timestamp("us")), NAIVE_MS, NAIVE_MS),
        (pa.large_list(pa.timestamp("us")), pa.list_(NAIVE_MS), pa.list_(NAIVE_MS)),
        (pa.list_(pa.timestamp("us")), NAIVE_MS, pa.list_(pa.timestamp("us"))),
        (
            pa.map_(pa.string(), pa.timestamp("us")),
            pa.map_(pa.string(), NAIVE_MS),
            pa.map_(pa.string(), NAIVE_MS),
        ),
        (
            pa.struct([("b", pa.timestamp("ms")), ("a", pa.timestamp("us"))]),
            pa.struct([("a", NAIVE_MS)]),
            pa.struct([("b", pa.timestamp("us")), ("a", NAIVE_MS)]),
        ),
        (pa.struct([("a", pa.timestamp("ms"))]), NAIVE_MS, pa.struct([("a", pa.timestamp("us"))])),
        (pa.map_(pa.string(), pa.int8()), NAIVE_MS, pa.map_(pa.string(), pa.int32())),
    ],
)
def test_units_of_time_are_those_of_the_table(
    arriving: pa.DataType, held: pa.DataType, stored: pa.DataType
) -> None:
    table, new = pa.schema([("c", held)]), pa.schema([("c", stored)])
    assert normalise_schema(pa.schema([("c", arriving)]), table) == new
    assert avro_to_arrow(arrow_to_avro(new, "t")) == new


@pytest.mark.parametrize("time", [pa.time32("ms"), pa.time64("us")])
def test_a_table_gets_no_times_of_day(time: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="'c' is of type time"):
        normalise_schema(pa.schema([("c", time)]), pa.schema([("d", time)]))


@pytest.mark.parametrize("name", ["a b", "a-b", "1a", "größe", "", "a.b", "a\n"])
def test_a_column_name_that_avro_does_not_allow_is_refused(name: str) -> None:
    schema = pa.schema([("s", pa.struct([(name, pa.int32())]))])
    with pytest.raises(SchemaError, match="rename it"):
        arrow_to_avro(schema, "t")


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"'s\.a' occurs twice"):
        normalise_schema(pa.schema([("s", pa.struct([("a", pa.int32()), ("a", pa.int32())]))]))


def test_unions_in_either_order_and_required_fields_are_read() -> None:
    avro = avro_record(
        {"name": "a", "type": ["int", "null"]},
        {"name": "b", "type": ["null", "long"]},
        {"name": "c", "type": "double"},
        {"name": "d", "type": ["string"]},
        {"name": "e", "type": {"type": "string", "avro.java.string": "String"}},
    )
    types = [pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.string()]
    assert avro_to_arrow(avro).types == types


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string()),
        ({"type": "fixed", "name": "f", "size": 16}, pa.binary()),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            pa.decimal128(9, 2),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 9}, pa.binary()),
        ({"type": {"type": "array", "items": "int"}}, pa.list_(pa.int32())),
    ],
)
def test_types_that_only_others_write_are_read(avro: Any, arrow: pa.DataType) -> None:
    schema = avro_to_arrow(avro_record({"name": "c", "type": ["null", avro]}))
    assert schema.field("c").type == arrow


def test_references_to_earlier_types_are_resolved_in_their_namespace() -> None:
    point = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}
    avro = json.dumps(
        {
            "type": "record",
            "name": "r",
            "namespace": "n.s",
            "fields": [
                {"name": "a", "type": point},
                {"name": "b", "type": ["null", "P"]},
                {"name": "c", "type": "n.s.P"},
            ],
        }
    )
    assert avro_to_arrow(avro).types == [pa.struct([("x", pa.int32())])] * 3


@pytest.mark.parametrize(
    "kind",
    [
        ["null", "int", "string"],
        {"type": "bytes", "logicalType": "decimal", "precision": 39},
        {"type": "fixed", "name": "d", "size": 12, "logicalType": "duration"},
        {"type": "long", "logicalType": "timestamp-nanos"},
    ],
)
def test_avro_that_no_table_holds_is_refused_by_its_path(kind: Any) -> None:
    with pytest.raises(SchemaError, match=r"'a\.element'"):
        avro_to_arrow(avro_record({"name": "a", "type": {"type": "array", "items": kind}}))


def _doubling(levels: int) -> str:
    fields = [
        {
            "name": "f0",
            "type": {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]},
        }
    ]
    for i in range(1, levels):
        pair = [{"name": "a", "type": f"R{i - 1}"}, {"name": "b", "type": f"R{i - 1}"}]
        fields.append(
            {"name": f"f{i}", "type": {"type": "record", "name": f"R{i}", "fields": pair}}
        )
    return avro_record(*fields)


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "[]",
        "5",
        '"int"',
        '"nothing"',
        '{"type":"record","name":"r"}',
        '{"type":"record","name":"r","fields":[]}',
        avro_record({"name": "a", "type": "null"}),
        avro_record({"name": "a", "type": "r"}),
        avro_record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}),
        avro_record({"name": "a", "type": {"type": "array", "items": "null"}}),
        avro_record({"name": "a", "type": {"type": "fixed", "name": "f", "size": 2**62}}),
        avro_record({"name": "a", "type": {"type": "fixed", "name": "f", "size": 0}}),
        avro_record({"name": "a", "type": [["int"]]}),
        '{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000,
        '{"type":"array","items":' * 150 + '"int"' + "}" * 150,
        "[" * 100_000,
        '{"type":"record","name":"r","fields":[{"name":"a","type":"int","size":'
        + "9" * 5000
        + "}]}",
        _doubling(60),
    ],
    ids=range(19),
)
def test_hostile_schemas_are_refused(hostile: str) -> None:
    with pytest.raises(CorruptFileError, match="table schema"):
        avro_to_arrow(hostile)
