"""Hudi's VECTOR, BLOB and VARIANT columns: read and written as what they mean, and kept as said."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from hoodie_ds import HoodieTable
from hoodie_ds.columns.vectors import bytes_of
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.native_files import natively_readable
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.log.log_block import HeaderKey, read_blocks
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import read_base_file
from hoodie_ds.formats.schema_conversion import conform_column
from hoodie_ds.reader.declared_schema import as_declared
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.loading import read_commit
from tests.avro_columns import KEPT, made
from tests.faults.writers import Place
from tests.tables import TYPE, TYPES, VERSION
from tests.tiers import by_day

COW, MOR = TYPES
GOLDEN = Path(__file__).parents[1] / "golden" / "types"
FLOATS = pa.list_(pa.float32(), 3)
DUE = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}


def vector(element: str, dimension: int, width: int) -> dict[str, Any]:
    """The Avro type of a VECTOR as Hudi writes it."""
    return {
        "type": "fixed",
        "name": f"vector_{element.lower()}_{dimension}",
        "namespace": "",
        "size": dimension * width,
        "logicalType": "vector",
        "dimension": dimension,
        "elementType": element,
        "storageBacking": "FIXED_BYTES",
    }


VARIANT = {
    "type": "record",
    "name": "variant",
    "logicalType": "variant",
    "fields": [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": ["null", "long"], "default": None},
        {"name": "v", "type": ["null", vector("FLOAT", 3, 4)], "default": None},
        {"name": "d", "type": ["null", vector("DOUBLE", 2, 8)], "default": None},
        {"name": "i", "type": vector("INT8", 4, 1)},
        {"name": "again", "type": ["null", "vector_float_3"], "default": None},
        {"name": "any", "type": ["null", VARIANT], "default": None},
    ],
}
COLUMNS = pa.schema(
    {
        "id": pa.string(),
        "ts": pa.int64(),
        "v": FLOATS,
        "d": pa.list_(pa.float64(), 2),
        "i": pa.list_(pa.int8(), 4),
        "again": FLOATS,
        "any": pa.struct({"metadata": pa.binary(), "value": pa.binary()}),
    }
)
COLUMNS_OF_VARIANTS = pa.schema([COLUMNS.field(name) for name in ("id", "ts", "any")])
FULL: dict[str, Any] = {
    "v": [0.5, -1.5, 2.5],
    "d": [0.1, -2.0],
    "i": [1, -2, 127, -128],
    "again": [1.0, 2.0, 3.0],
    "any": {"metadata": b"\1\0\0", "value": b"\x0c\7"},
}
BARE: dict[str, Any] = {**dict.fromkeys(FULL), "i": [0, 0, 0, 0]}
OTHER: dict[str, Any] = {**FULL, "v": [7.0, 8.0, 9.0], "i": [4, 3, 2, 1], "again": None}
BYTES = {"v": "<3f", "d": "<2d", "i": "<4b"}
"""How Hudi stores the vectors, in the notation of `struct`."""


def item(key: str, ts: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"id": key, "ts": ts, **values}


def items(*rows: dict[str, Any], as_lists: bool = False) -> pa.Table:
    """Rows in the table's types; with `as_lists`, as Spark gives them."""
    kinds = [
        f.with_type(pa.list_(f.type.value_type)) if pa.types.is_fixed_size_list(f.type) else f
        for f in COLUMNS
    ]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(kinds) if as_lists else COLUMNS)


@cache
def _written(kind: str, version: str, block: str) -> Place:
    options = {**KEPT, TYPE: kind, VERSION: version, "hoodie.index.type": "SIMPLE"}
    options["hoodie.logfile.data.block.format"] = block
    new = Place(options)
    made(new.storage, {**options, "hoodie.table.cdc.enabled": "true"}, json.dumps(SCHEMA))
    new.table.upsert(items(item("1", 1, FULL), item("2", 1, BARE)))
    return new


VARIANTS = {" ".join(variant) for variant in product(TYPES, "69", ["avro", "parquet"])}
BY_DAY = {f"{COW} 9 parquet", f"{MOR} 6 avro", f"{MOR} 9 parquet"}


@pytest.fixture(params=by_day(sorted(VARIANTS), BY_DAY))
def place(request: pytest.FixtureRequest) -> Place:
    return _written(*request.param.split()).copy()


def rows(place: Place) -> list[dict[str, Any]]:
    read = place.table.read(columns=COLUMNS.names).sort_by("id")
    assert read.schema == COLUMNS
    read.validate(full=True)
    return read.to_pylist()


def said(place: Place) -> list[dict[str, Any]]:
    """The type of each column in every commit, base file and block of the table."""
    texts = [read_commit(place.storage, i).extra["schema"] for i in place.table.timeline.commits]
    for path, body in place.storage.files.items():
        if path.endswith(".parquet") and "/history/" not in path:
            texts.append(pq.read_metadata(io.BytesIO(body)).metadata[b"parquet.avro.schema"])
        elif ".log." in path and not path.endswith(".cdc"):
            headers = (block.header for block in read_blocks(body, path))
            texts += [h[HeaderKey.SCHEMA] for h in headers if HeaderKey.SCHEMA in h]
    found = [{f["name"]: f["type"] for f in json.loads(text)["fields"]} for text in texts]
    return [{name: kinds[name] for name in COLUMNS.names} for kinds in found]


def test_vectors_of_hudi_are_lists_and_stay_vectors(tmp_path: Path) -> None:
    zipfile.ZipFile(GOLDEN / "vector.zip").extractall(tmp_path)
    (before,) = tmp_path.glob("*.parquet")
    table = HoodieTable(str(tmp_path), {"hoodie.index.type": "SIMPLE"})
    kinds = {"id": pa.int32(), "v": FLOATS, "ts": pa.int64()}
    read = table.read(columns=list(kinds))
    assert (read.schema, read.to_pylist()) == (
        pa.schema(kinds),
        [{"id": 1, "v": [0.5, 1.5, 2.5], "ts": 1}],
    )
    said_before = _commit_schema(tmp_path)
    table.upsert(pa.Table.from_pylist([{"id": 1, "v": [4.0, 5.0, 6.0], "ts": 2}], read.schema))
    assert table.read(columns=["v"]).to_pylist() == [{"v": [4.0, 5.0, 6.0]}]
    assert _commit_schema(tmp_path) == said_before
    (after,) = {*tmp_path.glob("*.parquet")} - {before}
    one, other = (pq.ParquetFile(path) for path in (before, after))
    assert one.schema_arrow.field("v") == other.schema_arrow.field("v")
    footers = [file.metadata.metadata[b"hoodie.vector.columns"] for file in (one, other)]
    assert footers == [b"v:VECTOR(3)", b"v:VECTOR(3)"]
    assert other.read(["v"]).column("v").to_pylist() == [struct.pack("<3f", 4, 5, 6)]


def test_a_blob_of_hudi_is_its_struct_and_stays_a_blob(tmp_path: Path) -> None:
    zipfile.ZipFile(GOLDEN / "blob.zip").extractall(tmp_path)
    table = HoodieTable(str(tmp_path), {"hoodie.index.type": "SIMPLE"})
    read = table.read(columns=["id", "v", "ts"])
    blob = {"type": "INLINE", "data": b"hi", "reference": None}
    assert read.to_pylist() == [{"id": 1, "v": blob, "ts": 1}]
    before = _commit_schema(tmp_path)
    table.upsert(read.set_column(2, "ts", pa.array([2])))
    assert table.read(columns=["v"]).to_pylist() == [{"v": blob}]
    assert _commit_schema(tmp_path) == before
    assert '"logicalType":"blob"' in before


def test_columns_around_a_variant_are_altered() -> None:
    kept = [field for field in SCHEMA["fields"] if field["name"] in {"id", "ts", "any"}]
    options = {**KEPT, TYPE: MOR, "hoodie.index.type": "SIMPLE"}
    storage = MemoryStorage()
    made(storage, options, json.dumps({**SCHEMA, "fields": kept}))
    variants = HoodieTable("/t", options, storage=storage)
    row = {"id": "1", "ts": 1, "any": FULL["any"]}
    variants.upsert(pa.Table.from_pylist([row], COLUMNS_OF_VARIANTS))
    variants.alter().rename("any", "some").execute()
    newer = pa.Table.from_pylist([{**row, "ts": 2}], COLUMNS_OF_VARIANTS)
    variants.upsert(newer.rename_columns(["id", "ts", "some"]))
    variants.compact()
    assert variants.read(columns=["ts", "some"]).to_pylist() == [{"ts": 2, "some": FULL["any"]}]
    with pytest.raises(SchemaError, match="fields do not change"):
        variants.alter().drop("some.value").execute()


def test_a_blob_is_not_numbered_as_its_fields_get_numbers_of_other_columns(tmp_path: Path) -> None:
    zipfile.ZipFile(GOLDEN / "blob.zip").extractall(tmp_path)
    table = HoodieTable(str(tmp_path))
    before = table.timeline.commits
    with pytest.raises(SchemaError, match=r"column 'v' is blob of .*, which Hudi"):
        table.alter().rename("v", "w").execute()
    assert table.timeline.commits == before


def _commit_schema(path: Path) -> str:
    newest = HoodieTable(str(path)).timeline.completed[-1]
    return read_commit(LocalStorage(str(path)), newest).extra["schema"]


@pytest.mark.parametrize("as_lists", [True, False])
def test_every_write_and_read_has_the_lists(place: Place, as_lists: bool) -> None:
    first = [item("1", 1, FULL), item("2", 1, BARE)]
    assert rows(place) == first
    place.table.upsert(items(item("2", 2, OTHER), item("3", 2, BARE), as_lists=as_lists))
    expected = [item("1", 1, FULL), item("2", 2, OTHER), item("3", 2, BARE)]
    assert rows(place) == expected
    later = place.table.read_incremental("000", columns=COLUMNS.names).sort_by("id")
    assert (later.schema, later.to_pylist()) == (COLUMNS, expected)
    assert place.table.read(["id"], "v is null").to_pylist() == [{"id": "3"}]
    images = {
        (row := json.loads(change["after"]))["id"]: row
        for change in place.table.read_changes("000").to_pylist()
    }
    assert [[images[row["id"]][n] for n in "vdi"] for row in expected] == [
        [row[n] for n in "vdi"] for row in expected
    ]
    (place.table.cluster if place.opts[TYPE] == COW else place.table.compact)(DUE)
    assert rows(place) == expected
    kinds = {field["name"]: field["type"] for field in SCHEMA["fields"]}
    assert all(one == kinds for one in said(place))


def test_spark_gets_arrays_and_reads_no_vectors_itself(place: Place) -> None:
    kinds = from_arrow_schema(COLUMNS)
    assert kinds.simpleString().startswith(
        "struct<id:string,ts:bigint,v:array<float>,d:array<double>,i:array<tinyint>,"
    )
    declared = arrow_schema(kinds)
    read = as_declared(place.table.read(columns=COLUMNS.names).sort_by("id"), declared)
    assert (read.schema.types, read.to_pylist()) == (
        declared.types,
        [item("1", 1, FULL), item("2", 1, BARE)],
    )
    files = [
        BaseFile("", name, len(body))
        for path, body in place.storage.files.items()
        if (name := BaseFileName.parse(path)) is not None
    ]
    for columns, native in ((["id", "ts"], True), (["id", "v"], False)):
        schema = pa.schema([COLUMNS.field(name) for name in columns])
        assert bool(natively_readable(place.storage, files, schema)) is native


def test_files_have_the_bytes_of_hudi(place: Place) -> None:
    place.table.upsert(items(item("1", 2, FULL)))
    logs = [body for path, body in place.storage.files.items() if ".log." in path]
    base = [body for path, body in place.storage.files.items() if path.endswith(".parquet")]
    packed = {name: struct.pack(BYTES[name], *FULL[name]) for name in BYTES}
    if place.opts["hoodie.logfile.data.block.format"] == "avro" and place.opts[TYPE] == MOR:
        assert all(one in logs[-1] for one in packed.values())
    file = pq.ParquetFile(io.BytesIO(base[-1]))
    sizes = {name: struct.calcsize(BYTES[name]) for name in BYTES}
    assert {n: file.schema_arrow.field(n).type.byte_width for n in sizes} == sizes
    assert file.read().filter(pc.field("id") == "1").select(list(BYTES)).to_pylist() == [packed]
    assert not file.schema_arrow.field("i").nullable
    footer = b"v:VECTOR(3),d:VECTOR(2, DOUBLE),i:VECTOR(4, INT8),again:VECTOR(3)"
    assert file.metadata.metadata[b"hoodie.vector.columns"] == footer


def test_bytes_of_vectors_are_taken(place: Place) -> None:
    given = items(item("2", 2, OTHER))
    for name, kind in BYTES.items():
        packed = pa.array([struct.pack(kind, *OTHER[name])], pa.binary())
        given = given.set_column(given.schema.get_field_index(name), name, packed)
    place.table.upsert(given)
    assert rows(place)[1] == item("2", 2, OTHER)


def test_changes_by_filter_and_merges_take_lists(place: Place) -> None:
    place.table.update({"v": pa.scalar([1.0, 2.0, 3.0], pa.list_(pa.float32()))}, "id = '2'")
    source = items(item("1", 2, OTHER), item("3", 2, FULL))
    merge = place.table.merge(source, on="id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(place) == [
        item("1", 2, OTHER),
        item("2", 1, {**BARE, "v": [1.0, 2.0, 3.0]}),
        item("3", 2, FULL),
    ]


def test_batches_add_columns_beside_them_and_no_alteration_does(place: Place) -> None:
    before = place.storage.files
    with pytest.raises(SchemaError, match=r"column 'v' is vector of .*, which Hudi"):
        place.table.alter().add("tip", pa.float64()).execute()
    assert place.storage.files == before
    place.table.upsert(items(item("2", 2, OTHER)).append_column("tip", pa.array([1.5])))
    (place.table.cluster if place.opts[TYPE] == COW else place.table.compact)(DUE)
    assert rows(place) == [item("1", 1, FULL), item("2", 2, OTHER)]
    assert sorted(place.table.read(["tip"])["tip"].to_pylist(), key=str) == [1.5, None]
    kinds = {field["name"]: field["type"] for field in SCHEMA["fields"]}
    assert all(one == kinds for one in said(place))


def test_parts_of_columns_are_converted() -> None:
    """Arrow's slices share the memory of the whole, from a row on."""
    packed = [struct.pack("<3f", n, n, n) if n % 3 else None for n in range(7)]
    lists = [[float(n)] * 3 if n % 3 else None for n in range(7)]
    vectors: tuple[pa.DataType, list[Any]] = (FLOATS, lists)
    others: list[tuple[pa.DataType, list[Any]]] = [
        (pa.list_(pa.float32()), lists),
        (pa.binary(12), packed),
        (pa.binary(), packed),
        (pa.large_binary(), packed),
    ]
    for kind in (FLOATS, pa.binary(12)):
        assert conform_column(pa.chunked_array([pa.nulls(2, kind)]), FLOATS, "v").null_count == 2
    assert bytes_of(pa.nulls(2, FLOATS), "v").null_count == 2
    pairs = [pair for other in others for pair in ((vectors, other), (other, vectors))]
    for (source, given), (target, expected) in pairs:
        for start, stop in combinations(range(8), 2):
            part = pa.chunked_array([pa.array(given, source)[start:stop]])
            found = conform_column(part, target, "v")
            found.validate(full=True)
            assert found.to_pylist() == expected[start:stop]


WRONG: dict[str, tuple[pa.Array, str]] = {
    "short": (
        pa.array([[1, 2, 3], [1, 2]], pa.list_(pa.float32())),
        "row 1.*another length than 3",
    ),
    "wide": (pa.array([[1, 2]] * 2, pa.list_(pa.float32(), 2)), "row 0.*another length than 3"),
    "a null": (pa.array([[1, 2, 3], [1, None, 3]], FLOATS), "row 1.*null in it"),
    "a null in a list": (pa.array([[1, None, 3]] * 2, pa.list_(pa.float32())), "row 0.*null in it"),
    "doubles": (pa.array([[0.1, 0.2, 0.3]] * 2, pa.list_(pa.float64())), "'v.element' is double"),
    "few bytes": (pa.array([b"1" * 12, b"1" * 11]), "row 1.*binary"),
    "text": (pa.array(["1" * 12] * 2), "'v' is .* in the table and string in the batch"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_vector_is_refused(wrong: str) -> None:
    place = _written(MOR, "9", "parquet").copy()
    before = set(place.storage.files)
    column, why = WRONG[wrong]
    given = items(item("1", 2, FULL), item("4", 2, FULL))
    with pytest.raises(SchemaError, match=why):
        place.table.upsert(given.set_column(2, "v", column))
    assert [p for p in set(place.storage.files) - before if "t/." not in p] == []
    assert rows(place) == [item("1", 1, FULL), item("2", 1, BARE)]


def test_a_new_table_has_plain_lists() -> None:
    table = HoodieTable("/t", KEPT, storage=MemoryStorage())
    table.upsert(items(item("1", 1, FULL)).select(["id", "ts", "v"]))
    assert table.schema.field("v").type == pa.list_(pa.float32())
    assert table.read(["v"]).to_pylist() == [{"v": FULL["v"]}]


@pytest.mark.parametrize(
    "unknown", [{"storageBacking": "LIST"}, {"elementType": "BIT"}, {"size": 11}, {"dimension": 0}]
)
def test_an_unknown_kind_of_vector_is_refused_by_name(unknown: dict[str, Any]) -> None:
    place = Place(KEPT)
    kind = {**vector("FLOAT", 3, 4), **unknown}
    fields = [*SCHEMA["fields"][:2], {"name": "v", "type": ["null", kind], "default": None}]
    made(place.storage, KEPT, json.dumps({**SCHEMA, "fields": fields}))
    with pytest.raises(SchemaError, match=r"'v' has the Avro type fixed \(vector\)"):
        place.table.read()


def test_a_shredded_variant_is_refused_rather_than_read_without_its_values() -> None:
    sink = io.BytesIO()
    fields = [*COLUMNS.field("any").type, pa.field("typed_value", pa.int64())]
    value = pa.array([{"metadata": b"\1", "typed_value": 7}], pa.struct(fields))
    pq.write_table(pa.table({"any": value}), sink)
    schema = pa.schema([COLUMNS.field("any")])
    with pytest.raises(SchemaError, match=r"f\.parquet: column 'any' is a shredded VARIANT"):
        read_base_file(sink, schema, None, "f.parquet")
    storage = MemoryStorage()
    name = BaseFileName.parse(f"{UUID(int=1)}-0_0-1-1_20260101000000000.parquet")
    assert name is not None
    with storage.open_output(str(name)) as file:
        file.write(sink.getvalue())
    assert not natively_readable(storage, [BaseFile("", name, 0)], schema)


def test_vectors_have_no_statistics() -> None:
    statistics = "hoodie.metadata.index.column.stats.enable"
    place = Place({**KEPT, VERSION: "9", "hoodie.metadata.enable": "true", statistics: "true"})
    made(place.storage, {**KEPT, VERSION: "9"}, json.dumps(SCHEMA))
    place.table.upsert(items(item("1", 1, FULL)))
    place.table.upsert(items(item("1", 2, OTHER)))
    (path,) = (path for path in place.storage.files if path.endswith("index.json"))
    (index,) = json.loads(place.storage.files[path])["indexDefinitions"].values()
    assert index["sourceFields"][-2:] == ["id", "ts"]
    assert place.table.read(["id"], "ts = 2").to_pylist() == [{"id": "1"}]
    assert place.table.inspect.verify()


def test_the_footer_names_no_vectors_where_there_are_none() -> None:
    sink = io.BytesIO()
    schema = pa.schema({"x": pa.list_(pa.float32())})
    BaseFileWriter(sink, schema, arrow_to_avro(schema, "t"), "zstd", 1000).close()
    assert b"hoodie.vector.columns" not in pq.read_metadata(sink).metadata
