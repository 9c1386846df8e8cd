"""A batch that comes again is known, whatever types others gave the table's columns meanwhile."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import ReplayMismatchError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.timeline.bodies.commit_metadata import INPUTS_KEY
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import commit_path
from tests.tables import KEY, TYPE, TYPES, VERSION, tree, trips
from tests.tiers import in_turn
from tests.unit.sink.replay.test_replay import Stream

OPERATION = "hoodie.datasource.write.operation"
WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
NUMBER = "hoodie.datasource.write.batch.identifier"
KINDS = {
    "buckets": {},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "no keys": {KEY: ""},
    "insert": {OPERATION: "insert"},
    "bulk insert": {OPERATION: "bulk_insert"},
    "overwrite": {OPERATION: "insert_overwrite"},
}
INTS, FLOATS, DECIMALS = [3, -(2**31), None], [0.1, -1e30, None], [Decimal("1.25"), None, 3]
WIDENED = {  # the values, their type, and the one that another batch brings
    "int_long": ([3, -(2**31), None], pa.int32(), pa.int64()),
    "int_double": ([3, 2**31 - 1, None], pa.int32(), pa.float64()),
    "float_double": (FLOATS, pa.float32(), pa.float64()),
    "byte_double": ([3, -128, None], pa.int8(), pa.float64()),
    "short_long": ([3, None, -1], pa.int16(), pa.int64()),
    "half_double": (np.array([0.1, -2, 0], np.float16), pa.float16(), pa.float64()),
    "list": ([[1, None], [], None], pa.list_(pa.int32()), pa.list_(pa.float64())),
    "map": (
        [[("k", 0.1)], [], None],
        pa.map_(pa.string(), pa.float32()),
        pa.map_(pa.string(), pa.float64()),
    ),
    "struct": (
        [{"i": 1, "f": 0.1}, {"i": None, "f": None}, None],
        pa.struct({"i": pa.int32(), "f": pa.float32()}),
        pa.struct({"i": pa.float64(), "f": pa.float64()}),
    ),
}
HELD = {  # of these the table keeps its own type
    "decimal": (DECIMALS, pa.decimal128(9, 2), pa.decimal128(20, 6)),
    "double": (FLOATS, pa.float32(), pa.float64()),
    "count": ([3, None, -1], pa.int32(), pa.float64()),
    "ns": ([1000, None, -5000], pa.timestamp("ns"), pa.timestamp("us")),
    "day": ([86_400_000, None, 0], pa.date64(), pa.date32()),
}
THREE = trips(("a", "x", 2, 1.0), ("b", "x", 2, 1.0), ("c", "y", 2, 1.0))


def narrow(**changed: object) -> pa.Table:
    """Three rows; `changed` columns have the first value twice."""
    rows = THREE
    for name, (values, kind, _) in {**WIDENED, **HELD}.items():
        column = pa.array(values, kind)
        rows = rows.append_column(name, column.take([0, 0, 2]) if name in changed else column)
    return rows


def wide(ts: int, names: list[str]) -> pa.Table:
    """One row without values in the columns that are `WIDENED` or `HELD`."""
    rows = trips(("d", "z", ts, 1.0))
    for name, (_, kind, wider) in {**WIDENED, **HELD}.items():
        rows = rows.append_column(name, pa.nulls(1, wider if name in names else kind))
    return rows


def widened(stream: Stream) -> Stream:
    """A table that had batch 0, and then one by which it has other types than that."""
    stream.write(0, wide(1, [*HELD]), "first")
    stream.write(0, narrow())
    stream.write(0, wide(2, [*WIDENED, *HELD]), "other")
    schema = stream.table.schema
    for name, (_, _, wider) in {**WIDENED, **HELD}.items():
        assert schema.field(name).type == wider, name
    return stream


@pytest.mark.parametrize(("name", "version"), in_turn(KINDS, ["6", "9"]))
@pytest.mark.parametrize("kind", TYPES)
def test_it_is_known_in_a_wider_table(tmp_path: Path, name: str, kind: str, version: str) -> None:
    stream = widened(Stream(tmp_path, {TYPE: kind, VERSION: version, **KINDS[name]}))
    stream.passes_over(0, narrow())
    for column in (*WIDENED, *HELD):
        stream.refuses(0, narrow(**{column: True}))
    stream.write(1, narrow())
    stream.passes_over(1, narrow())


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_numbered_write_is_known_in_a_wider_table(
    tmp_path: Path, kind: str, version: str
) -> None:
    stream = Stream(tmp_path, {TYPE: kind, VERSION: version})
    table, numbered = stream.table, {WRITER: "w", NUMBER: "7"}
    table.upsert(wide(1, [*HELD]))
    table.upsert(narrow(), numbered)
    table.upsert(wide(2, [*WIDENED, *HELD]))
    before = tree(tmp_path)
    assert table.upsert(narrow(), numbered).already_committed
    with pytest.raises(ReplayMismatchError):
        table.upsert(narrow(float_double=True), numbered)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", TYPES)
def test_a_delete_is_known_after_columns_were_added(tmp_path: Path, kind: str) -> None:
    """Of its rows only keys and their order count, whichever columns the table has."""
    writer, deletes = (
        Stream(tmp_path, {TYPE: kind, OPERATION: operation}) for operation in ("upsert", "delete")
    )
    tipped = THREE.append_column("tip", pa.array([0.5, 1.0, 1.5]))
    writer.write(0, THREE)
    deletes.write(1, tipped.slice(0, 1))
    writer.write(2, tipped)
    deletes.passes_over(1, tipped.slice(0, 1))
    deletes.refuses(1, tipped.slice(1, 1))


UNNEEDED = {  # by a delete: their types differ from the table's, or cannot be stored at all
    "wider": ("count", pa.array([2**40])),
    "string": ("count", pa.array(["many"])),
    "list": ("count", pa.array([[1]])),
    "new, of no type of Hudi": ("new", pa.array([None], pa.month_day_nano_interval())),
    "no name of Avro": ("a b", pa.array([1])),
    "same name but for case": ("COUNT", pa.array([1])),
    "mark of another type": ("_hoodie_is_deleted", pa.array(["no"])),
}


@pytest.mark.parametrize("index", ["buckets", "bloom", "global"])
@pytest.mark.parametrize("column", UNNEEDED)
def test_a_delete_takes_no_notice_of_columns_that_it_does_not_need(
    tmp_path: Path, column: str, index: str
) -> None:
    writer, deletes = (
        Stream(tmp_path, {**KINDS[index], OPERATION: operation})
        for operation in ("upsert", "delete")
    )
    writer.write(0, THREE.append_column("count", pa.array([1, 2, 3], pa.int32())))
    unneeded, values = UNNEEDED[column]
    rows = THREE.slice(0, 1).append_column(unneeded, values)
    if index != "buckets":  # as a shuffle assigns them to tasks
        options = WriteOptions.parse({**deletes.options, "path": str(tmp_path)})
        plan = Coordinator.of(options).preview(rows.schema)
        assert sum(part.num_rows for part in FileIdAssigner(plan, 4).assign(rows)) == 1
    deletes.write(1, rows)
    read = writer.table.read(columns=["id", "count"])
    assert sorted(read["id"].to_pylist()) == sorted(THREE["id"].to_pylist()[1:])
    assert read.schema.field("count").type == pa.int32()
    deletes.passes_over(1, rows)
    deletes.refuses(1, THREE.slice(1, 1).append_column(unneeded, values))


OF_BEFORE = {
    "buckets": {"narrow": "3+de05732142b646c5", "wide": "3+17b69258d5e1824e"},
    "no keys": {"narrow": "3-8cf128f9f095efc1", "wide": "3-c4861ac7df6e3a17"},
}
"""Digests that earlier releases stored of the rows, in a table of their types and a wider one."""


@pytest.mark.parametrize("types", ["narrow", "wide"])
@pytest.mark.parametrize("name", OF_BEFORE)
def test_a_batch_of_an_earlier_release_is_known(tmp_path: Path, name: str, types: str) -> None:
    """As that release knew it, whose digests were of rows in the table's types."""
    stream = Stream(tmp_path, KINDS[name])
    if types == "wide":
        stream.write(0, wide(1, [*WIDENED, *HELD]), "first")
    stream.write(0, narrow())
    storage = open_storage(str(tmp_path))
    newest = load_timeline(storage, 1).commits[-1]
    carried = json.dumps({"q": {"0": OF_BEFORE[name][types]}})
    body = read_commit(storage, newest).with_extra({INPUTS_KEY: carried}).to_bytes(1)
    storage.replace(commit_path(newest), body)
    read_commit.cache_clear()
    for _ in range(2):
        stream.passes_over(0, narrow())
        for column in (*WIDENED, *HELD):
            stream.refuses(0, narrow(**{column: True}))
        stream.write(0, wide(2, [*WIDENED]), "other")


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_without_values_has_the_type_of_the_table(tmp_path: Path, kind: str) -> None:
    """Arrow gives it the type null, as it does to columns of pandas without values."""
    stream = Stream(tmp_path, {TYPE: kind})
    stream.write(0, THREE.append_column("tip", pa.array([1, 2, 3], pa.int32())))
    nothing = THREE.append_column("tip", pa.nulls(3))
    stream.write(1, nothing)
    stream.write(0, THREE.append_column("tip", pa.array([0.5, 1.0, 1.5])), "other")
    stream.passes_over(1, nothing)
    stream.refuses(1, THREE.append_column("tip", pa.array([None, None, 1], pa.int32())))
    stream.write(2, nothing)
    read = HoodieTable(str(tmp_path)).read(columns=["tip"])
    assert read.schema.field("tip").type == pa.float64()
    assert read["tip"].null_count == 3
