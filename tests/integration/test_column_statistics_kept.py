"""Writes and services of a table keep the statistics of its columns in the metadata table."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.filters.bounds import sortable
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.metadata_table.column_changes import stored_ranges
from hoodie_ds.metadata_table.column_index import ColumnIndex
from hoodie_ds.metadata_table.column_records import file_statistics
from hoodie_ds.metadata_table.payload import STATS, Record
from hoodie_ds.metadata_table.statistics import PARTITION_STATS, partition_bounds
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table
from hoodie_ds.table.table_schema import declared_avro
from hoodie_ds.testing import FaultyStorage, Kind
from tests.golden.test_metadata_tables import unzipped
from tests.integration.test_metadata_table import RETAINED, make
from tests.integration.test_metadata_table_kept import KINDS, METADATA
from tests.metadata_tables import Recorder
from tests.rows import without_meta
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips
from tests.tiers import by_day

INDEXED = ("_hoodie_commit_time", "_hoodie_record_key", "id", "city", "ts", "fare")
INDEX = {"6": "V1", "9": "V2"}
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
}


def begun(path: Path, version: str, kind: str, **options: str) -> HoodieTable:
    """A table of one partition that is empty again, with statistics of columns."""
    given = {**TRIPS, RETAINED: "1", VERSION: version, TYPE: kind, **options}
    table = HoodieTable(str(path), given)
    table.upsert(trips(("a", "gone", 0, 1.0)))
    table.delete_partitions(["gone"])
    recorder = Recorder(open_storage(str(path)))
    recorder.begin()
    recorder.index(INDEXED, INDEX[version])
    recorder.catch_up()
    return table


def records(path: Path, partition: str) -> dict[str, Record]:
    table = open_table(LocalStorage(str(path)))
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    return {key: one for group in metadata.records(partition) for key, one in group.items()}


def assert_kept(path: Path) -> None:
    """Compare the records of live files with their rows, and those of partitions with theirs."""
    table = open_table(LocalStorage(str(path)))
    timeline = table.load_timeline()
    schema = declared_avro(table, timeline)
    assert schema is not None
    index = ColumnIndex.of(table, schema)
    ours = records(path, "column_stats")
    for found in PinnedTable.latest(table.storage).slices():
        bases = [] if found.base is None else [found.base.path]
        for file in (*bases, *(log.path for log in found.logs)):
            ranges = stored_ranges(table, file, schema, index.of_files)
            if not any(known.rows for known in ranges.values()):
                continue  # deletes or a rollback
            folder, _, name = file.rpartition("/")
            expected = file_statistics(folder, name, ranges, index.version)
            assert expected.keys() <= ours.keys()
            for key, record in expected.items():
                assert repr(ours[key][STATS]) == repr(record[STATS])  # NaN is not itself
    if PARTITION_STATS in table.properties.metadata_partitions:
        assert_partitions_hold_their_rows(path)


def assert_partitions_hold_their_rows(path: Path) -> None:
    table = open_table(LocalStorage(str(path)))
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    rows = HoodieTable(str(path), {METADATA: "false"}).read()
    partitions = rows.column("_hoodie_partition_path").unique().to_pylist()
    known = partition_bounds(metadata, partitions, rows.schema)
    for partition in partitions:
        within = rows.filter(pc.field("_hoodie_partition_path") == partition)
        assert known[partition].keys() >= {"id", "ts"}
        for column, bounds in known[partition].items():
            values = within.column(column).drop_null()
            if pa.types.is_floating(values.type):
                values = values.filter(pc.is_finite(values))
            for value in values:
                assert bounds.low <= sortable(value) <= bounds.high  # type: ignore[operator]


def assert_filters_find_the_same(path: Path) -> None:
    rows = HoodieTable(str(path), {METADATA: "false"}).read()
    for column in ("id", "city", "ts", "fare"):
        values = rows.column(column).drop_null().unique().to_pylist()
        for value in [value for value in values if value == value]:
            for compare in (pc.equal, pc.greater, pc.less_equal):
                wanted = compare(pc.field(column), value)
                found = HoodieTable(str(path)).read(filter=wanted)
                expected = rows.filter(wanted)
                key = "_hoodie_record_key"
                assert sorted(found[key].to_pylist()) == sorted(expected[key].to_pylist())


@pytest.mark.parametrize(
    ("kind", "version"),
    by_day(product(KINDS, INDEX), [(TYPES[0], "6"), (TYPES[1], "9")]),
)
def test_records_are_those_of_the_files_that_writes_and_services_leave(
    tmp_path: Path, version: str, kind: str
) -> None:
    table = begun(tmp_path, version, kind)
    make(tmp_path, version, kind)
    assert_kept(tmp_path)
    assert_filters_find_the_same(tmp_path)
    table.upsert(trips(("undone", "x", 9, 9.0), ("undone too", "new", 9, 9.0)))
    table.rollback()
    assert_kept(tmp_path)
    table.savepoint()
    kept = table.timeline.savepoints[-1].time
    for ts in (20, 21):
        table.upsert(trips(("later", "x", ts, math.nan), ("new", "u", ts, None)))
    assert_kept(tmp_path)
    table.clean()
    table.restore(kept)
    table.delete_partitions(["z"])
    table.upsert(trips(("a", "x", 30, 1.0), ("z1", "z", 31, -1.0)))
    table.clean()
    assert_kept(tmp_path)
    assert_filters_find_the_same(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_writer_that_ends_after_a_later_one_is_found_too(tmp_path: Path, version: str) -> None:
    several = {**SEVERAL, BUCKETS: "8"}
    table = begun(tmp_path, version, KINDS[0], **several)
    table.upsert(trips(("first", "x", 0, 0.0)))
    given = WriteOptions.parse({**TRIPS, **several, "path": str(tmp_path)})
    rows = [trips((name, "x", ts, float(ts))) for name, ts in (("wide", 5_000), ("b", 2_000))]
    writers = [Coordinator.of(replace(given, operation=Operation.INSERT)) for _ in rows]
    batches = [writer.begin(one.schema) for writer, one in zip(writers, rows, strict=True)]
    written = [
        write_task(batch, TaskId(), batch.given_id, one.to_batches(), sole_writer=True)
        for batch, one in zip(batches, rows, strict=True)
    ]
    for writer, message in reversed([*zip(writers, written, strict=True)]):
        writer.commit([message])
    assert_filters_find_the_same(tmp_path)
    assert HoodieTable(str(tmp_path)).read(["id"], filter="ts > 2500")["id"].to_pylist() == ["wide"]


def test_a_clean_takes_the_records_of_its_files_away(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    for ts in range(4):
        table.upsert(trips(("a", "x", ts, 1.0)))
    table.clean()
    recorded = [one[STATS] for one in records(tmp_path, "column_stats").values()]
    there = {path.name for path in tmp_path.glob("x/*.parquet")}
    assert {one["fileName"] for one in recorded if not one["isDeleted"]} == there
    assert any(one["isDeleted"] for one in recorded)


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_is_read_again_for_its_statistics(tmp_path: Path, kind: str) -> None:
    begun(tmp_path, "9", kind)
    storage = FaultyStorage(LocalStorage(str(tmp_path)))
    table = HoodieTable(str(tmp_path), TRIPS, storage=storage)
    for ts in range(2):
        table.upsert(trips(("a", "x", ts, 1.0), ("b", "y", ts, 1.0)))
    written = {path.name for folder in "xy" for path in tmp_path.glob(f"{folder}/*_*")}
    latest = table.timeline.completed[-1].time
    opened = [
        one.path
        for one in storage.recorder.operations
        if one.kind in (Kind.READ, Kind.OPEN) and latest in one.path.rpartition("/")[2]
    ]
    assert written
    assert not [path for path in opened if path[0] in "xy"]
    assert_kept(tmp_path)


def test_a_partition_is_as_wide_as_both_types_of_a_column(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    rows = trips(("a", "x", 5, 1.0), ("b", "y", 5, 1.0))
    narrow = rows.set_column(2, "ts", rows["ts"].cast(pa.int32()))
    HoodieTable(str(tmp_path)).upsert(narrow)
    table.upsert(trips(("c", "x", 7, 1.0)))
    assert_kept(tmp_path)


@pytest.mark.parametrize("name", ["v8_cow_files_cs", "v8_cow_files_cs__logs"])
def test_statistics_of_hudi_are_kept(tmp_path: Path, name: str) -> None:
    path = Path(unzipped(name, tmp_path))
    table = HoodieTable(str(path), {RETAINED: "1"})
    rows = without_meta(table.read())
    for start in range(3):
        table.upsert(rows.slice(start, 4))
    table.clean()
    assert_kept(path)


SCHEMA = pa.schema(
    [("id", pa.string()), ("tags", pa.list_(pa.string())), ("raw", pa.binary())]
    + [(f"c{number}", pa.int32()) for number in range(40)]
)


@pytest.mark.parametrize(
    ("named", "version", "chosen"),
    [
        (["id", "raw", "c0"], "V2", ["id", "raw", *[f"c{number}" for number in range(30)]]),
        (["id", "c0"], "V1", ["id", "raw", *[f"c{number}" for number in range(31)]]),
        (["c1", "c0"], "V2", ["c1", "c0"]),
        (["id", "nested.field"], "V2", ["id", "nested.field"]),
    ],
)
def test_columns_that_a_table_gets_later_are_indexed_as_hudi_does(
    tmp_path: Path, named: list[str], version: str, chosen: list[str]
) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    Recorder(open_storage(str(tmp_path))).index(["_hoodie_record_key", *named], version)
    schema = arrow_to_avro(SCHEMA, "t")
    found = ColumnIndex.of(open_table(LocalStorage(str(tmp_path))), schema)
    always = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"]
    assert sorted(found.of_files) == sorted([*always, *chosen])
    assert found.defined == {"_hoodie_record_key", *named}
    assert table.timeline.completed
