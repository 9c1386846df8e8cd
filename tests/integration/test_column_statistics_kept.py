"""Writes and services of a table keep the statistics of its columns in the metadata table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.filters.bounds import sortable
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.metadata_table import follower
from hoodie_ds.metadata_table.column_changes import column_changes
from hoodie_ds.metadata_table.column_index import ColumnIndex
from hoodie_ds.metadata_table.column_records import (
    deleted_file_statistics,
    file_statistics,
    partition_key,
    partition_statistics,
)
from hoodie_ds.metadata_table.file_ranges import stored_ranges
from hoodie_ds.metadata_table.payload import STATS, Record, RecordType
from hoodie_ds.metadata_table.statistics import PARTITION_STATS, partition_bounds
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.touched_slices import TouchedSlices
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.file_slice import FileSlice, group_of_file
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.table.table_schema import declared_avro
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.paths import instant_path
from tests.golden.test_metadata_tables import unzipped
from tests.integration.test_metadata_table import RETAINED, make
from tests.integration.test_metadata_table_kept import KINDS, METADATA
from tests.integration.test_record_index_kept import ACTS, attempt
from tests.metadata_tables import Recorder
from tests.rows import without_meta
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips
from tests.tiers import by_day

INDEXED = ("_hoodie_commit_time", "_hoodie_record_key", "id", "city", "ts", "fare")
INDEX = {"6": "V1", "9": "V2"}
STATISTICS = {METADATA: "true", "hoodie.metadata.index.column.stats.enable": "true"}
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


def roll_back(path: Path) -> None:
    HoodieTable(str(path)).rollback()


def restore(path: Path) -> None:
    table = HoodieTable(str(path))
    table.restore(table.timeline.completed[-2].time)


def recover(path: Path) -> None:
    """Write after the process of the newest commit died before it put the completed file."""
    rows = without_meta(HoodieTable(str(path)).read(filter="id = 'k001'"))
    (path / instant_path(HoodieTable(str(path)).timeline.completed[-1])).unlink()
    HoodieTable(str(path)).upsert(rows)


@pytest.mark.parametrize("undo", [roll_back, restore, recover])
def test_statistics_that_hudi_narrowed_are_wide_again_once_it_is_undone(
    tmp_path: Path, undo: Callable[[Path], None]
) -> None:
    path = Path(unzipped("v8_cow_files_cs__logs", tmp_path))
    table = HoodieTable(str(path))
    assert not table.read(filter="id = 'k000'").num_rows
    undo(path)
    assert table.read(filter="id = 'k000'").num_rows == 1
    assert_kept(path)
    assert not [one for one in table.inspect.verify().findings if one.kind == "metadata-table"]


def narrowed(
    table: Table, instant: Instant, changes: FileChanges
) -> Mapping[str, Mapping[str, Record]]:
    """Records as Hudi's: those of a partition are of the rows that a write leaves there."""
    found = column_changes(table, instant, changes)
    if instant.action not in WRITE_ACTIONS or not found:
        return found
    schema = changes.schema or declared_avro(table, table.load_timeline())
    assert schema is not None
    index = ColumnIndex.of(table, schema)
    records: dict[str, Record] = {}
    for partition in changes.partitions:
        ranges = [
            stored_ranges(table, file.path, schema, index.defined)
            for slice_ in left(table, instant, changes, partition)
            for file in slice_.files
        ]
        nothing = deleted_file_statistics(partition, "", index.defined, index.version)
        gone = {partition_key(partition, one[STATS]["columnName"]): one for one in nothing.values()}
        records |= partition_statistics(partition, ranges, {}, index.version) or gone
    tight = {
        key: {"type": RecordType.PARTITION_STATS, STATS: {**one[STATS], "isTightBound": True}}
        for key, one in records.items()
    }
    return {**found, PARTITION_STATS: tight}


def left(
    table: Table, instant: Instant, changes: FileChanges, partition: str
) -> Iterator[FileSlice]:
    """Yield the slices of a partition that a write leaves."""
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    view = FileSystemView(table.storage, metadata.data, verify=False)
    groups = {group_of_file(status.path) for status in view.files_of(partition)}
    touched = TouchedSlices.before(table, metadata, groups, changes.schema)
    for group, slice_ in touched.after(instant.time, changes).latest.items():
        is_replaced = (partition, group.file_id) in changes.replaced_groups
        if group.partition_path == partition and not is_replaced:
            yield slice_


def restored(table: HoodieTable, random: Random) -> object:
    commits = table.timeline.commits[-3:]
    return commits and table.restore(random.choice(commits).time)


def with_statistics(path: Path, kind: str) -> HoodieTable:
    table = HoodieTable(str(path), {**TRIPS, TYPE: kind, VERSION: "9", **STATISTICS})
    for ts in range(2):  # the table has columns after the first write
        table.upsert(trips(("a", "x", ts, 1.0), ("low", "x", ts, 0.5)))
    return table


@pytest.mark.parametrize("undone", ["upsert", "overwrite"])
def test_what_hudi_narrowed_is_wide_again_once_an_older_write_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undone: str
) -> None:
    table = with_statistics(tmp_path, KINDS[0])
    if undone == "upsert":
        table.upsert(trips(("low", "x", 3, 9.0)))
    else:
        table.overwrite(trips(("other", "y", 3, 9.0)))
    with monkeypatch.context() as patched:
        patched.setattr(follower, "column_changes", narrowed)
        table.upsert(trips(("a", "x", 4, 1.0)))
    for _ in range(2):
        table.rollback()
        assert_partitions_hold_their_rows(tmp_path)
    assert table.read(["id"], filter="fare < 1")["id"].to_pylist() == ["low"]


@pytest.mark.parametrize(("kind", "seed"), by_day(product(KINDS, range(6)), [(KINDS[0], 1)]))
def test_in_random_histories_with_writes_of_hudi_no_row_is_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int
) -> None:
    random, path = Random(f"{kind} {seed}"), str(tmp_path)
    with_statistics(tmp_path, kind)
    acts = (*ACTS, *[lambda table, _: table.rollback()] * 2, *[restored] * 2)
    for _ in range(8):
        act, made = random.choice(acts), random.choice([narrowed, narrowed, column_changes])
        state = random.getstate()
        with monkeypatch.context() as patched:
            patched.setattr(follower, "column_changes", made)
            if random.random() < 0.4:
                dies = Fault(Effect.CRASH_BEFORE, at=random.randint(1, 240))
                attempt(
                    HoodieTable(path, storage=FaultyStorage(open_storage(path), [dies])),
                    act,
                    random,
                )
                random.setstate(state)
            attempt(HoodieTable(path), act, random)
        if HoodieTable(path).timeline.pending:
            HoodieTable(path).upsert(trips(("z", "w", 1, 1.0)))  # recovers
        assert_partitions_hold_their_rows(tmp_path)


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
