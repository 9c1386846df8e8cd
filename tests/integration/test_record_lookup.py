"""Writes find keys by the record index of the metadata table, wherever that can be right."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.limits import Limits
from hoodie_ds.config.properties import keys
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, UnsupportedTableError, WriteConflictError
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.metadata_table.record_index import trusted_index
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.sink.write_checks import _warn_once
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.metadata_table import not_kept
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.testing import FaultyStorage, Recorder
from hoodie_ds.testing.fault import Kind
from hoodie_ds.timeline.paths import INDEX_DEFINITIONS, METADATA_TABLE
from tests.integration.test_record_index_kept import assert_indexed
from tests.integration.test_several_batches import SPAN, stream, writer
from tests.merge_hooks import HOOK
from tests.tables import BUCKETS, PARTITION, TRIPS, TYPE, TYPES, VERSION, found, trips

INDEX = "hoodie.index.type"
MADE = "hoodie.metadata.record.index.enable"
EACH = "hoodie.metadata.record.level.index.enable"
GROUPS = "hoodie.metadata.record.index.min.filegroup.count"
MOVES = "hoodie.record.index.update.partition.path"
POLICY = "hoodie.datasource.insert.dup.policy"
LOOKUP = {
    **{key: text for key, text in TRIPS.items() if key != BUCKETS},
    "hoodie.index.bloom.num_entries": "100",  # filters of the default size take long
    "hoodie.parquet.small.file.limit": "0",
    GROUPS: "2",
}
RECORDS = {**LOOKUP, INDEX: "RECORD_INDEX", MOVES: "true"}
ADDING = {keys.MERGE_MODE: "CUSTOM", HOOK: "tests.merge_hooks:add"}
ONE = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))
TWO = trips(("a", "y", 2, 2.0), ("c", "x", 2, 2.0))
BOTH = [("a", "y", 2, 2.0), ("b", "y", 1, 1.0), ("c", "x", 2, 2.0)]


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are looked up in no data file."""

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("a data file is asked for keys")

    monkeypatch.setattr(FileLookup, "find", refuse)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[pa.Array]:
    """The keys that are looked up in data files."""
    calls: list[pa.Array] = []
    find = FileLookup.find

    def noted(self: FileLookup, slices: Any, keys: pa.Array, live_only: bool = False) -> Any:
        calls.append(keys)
        return find(self, slices, keys, live_only)

    monkeypatch.setattr(FileLookup, "find", noted)
    return calls


def begun(path: Path, **options: str) -> HoodieTable:
    """A table with two rows, and a record index of two file groups."""
    table = HoodieTable(str(path), {**RECORDS, **options})
    table.upsert(ONE)
    return table


@pytest.mark.parametrize(("kind", "version"), [*zip(TYPES, "69", strict=True)])
def test_a_new_table_has_the_index_from_its_first_write_on(
    tmp_path: Path, kind: str, version: str, no_files: None
) -> None:
    table = begun(tmp_path, **{TYPE: kind, VERSION: version})
    assert table.properties.metadata_partitions == ("files", "record_index")
    definition = json.loads((tmp_path / INDEX_DEFINITIONS).read_text())["indexDefinitions"]
    assert definition["record_index"] == {
        "indexName": "record_index",
        "indexType": "record_index",
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": "false"},
        "version": "V1",
    }
    groups = {one.name[1:20] for one in (tmp_path / METADATA_TABLE / "record_index").glob(".r*")}
    assert groups == {"record-index-0000-0", "record-index-0001-0"}
    HoodieTable(str(tmp_path), {MOVES: "true"}).upsert(TWO)  # the table says which index it has
    assert found(table) == BOTH
    table.delete(trips(("a", "x", 3, None)))
    table.upsert(trips(("a", "x", 2, 2.0)))  # a deleted key is free again
    assert found(table) == [("a", "x", 2, 2.0), *BOTH[1:]]
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("kind", TYPES)
def test_an_index_of_each_partition_finds_keys_there_alone(
    tmp_path: Path, kind: str, no_files: None
) -> None:
    table = HoodieTable(
        str(tmp_path), {**LOOKUP, VERSION: "9", INDEX: "RECORD_LEVEL_INDEX", TYPE: kind}
    )
    table.upsert(trips(("a", "x-y_z", 1, 1.0), ("b", "y", 1, 1.0)))
    assert table.properties.metadata_partitions == ("files", "record_index")
    definition = json.loads((tmp_path / INDEX_DEFINITIONS).read_text())["indexDefinitions"]
    assert definition["record_index"]["indexOptions"] == {"isPartitioned": "true"}
    HoodieTable(str(tmp_path)).upsert(trips(("a", "y", 2, 2.0), ("a", "x-y_z", 2, 2.0)))
    table.upsert(trips(("a", "new", 3, 3.0)))
    assert found(table) == [
        ("a", "new", 3, 3.0),
        ("a", "x-y_z", 2, 2.0),
        ("a", "y", 2, 2.0),
        ("b", "y", 1, 1.0),
    ]
    begun = (tmp_path / METADATA_TABLE / "record_index").glob(".r*.log.1_0-0-0")
    assert {one.name.partition("_")[0] for one in begun} == {
        ".record-index-new-0000-0",
        ".record-index-x%2Dy%5Fz-0000-0",
        ".record-index-y-0000-0",
    }
    assert_indexed(open_storage(str(tmp_path)))
    assert table.read(filter="id = 'b'").num_rows == 1
    assert table.inspect.verify()


def test_a_record_index_has_no_more_file_groups_than_options_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.metadata_table.creation._KEYS_IN_A_GROUP", 1)
    most = "hoodie.metadata.record.index.max.filegroup.count"
    table = HoodieTable(str(tmp_path), {**LOOKUP, INDEX: "GLOBAL_SIMPLE"})
    table.upsert(trips(*((f"k{number}", "x", 1, 1.0) for number in range(5))))
    table.create_metadata_table({INDEX: "RECORD_INDEX", GROUPS: "1", most: "3"})
    assert len([*(tmp_path / METADATA_TABLE / "record_index").glob(".r*.log.1_0-0-0")]) == 3
    assert_indexed(open_storage(str(tmp_path)))


def test_each_partition_gets_as_many_file_groups_as_the_index_was_made_with(
    tmp_path: Path, no_files: None
) -> None:
    """The table keeps the number, as a recovery has no options."""
    least = {"hoodie.metadata.record.level.index.min.filegroup.count": "3"}
    options = {**LOOKUP, VERSION: "9", INDEX: "RECORD_LEVEL_INDEX"}
    HoodieTable(str(tmp_path), {**options, **least}).upsert(ONE)
    table = HoodieTable(str(tmp_path), options)
    table.upsert(trips(("a", "new", 3, 3.0), ("b", "new", 3, 3.0)))
    groups = (tmp_path / METADATA_TABLE / "record_index").glob(".r*.log.1_0-0-0")
    places = Counter(one.name.rpartition("-0_")[0].rpartition("-")[0] for one in groups)
    assert set(places.values()) == {3}
    assert ".record-index-new" in places
    assert_indexed(open_storage(str(tmp_path)))


def test_an_index_of_each_partition_is_made_dropped_and_repaired(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, VERSION: "9", INDEX: "BLOOM"})
    table.upsert(ONE)
    table.upsert(TWO)
    assert table.create_metadata_table({EACH: "true"}).made == ("files", "record_index")
    assert_indexed(open_storage(str(tmp_path)))
    for other in ({MADE: "true"}, {INDEX: "RECORD_INDEX"}):
        with pytest.raises(OptionError, match="has a record index of each partition"):
            HoodieTable(str(tmp_path), other).upsert(TWO)
    HoodieTable(str(tmp_path), {MADE: "false"}).upsert(trips(("a", "new", 3, 3.0)))
    assert_indexed(open_storage(str(tmp_path)))
    for log in (tmp_path / METADATA_TABLE / "record_index").glob(".record-index-new-*"):
        log.unlink()
    assert not table.inspect.verify()
    assert "record_index" in table.repair_metadata_table().made
    assert_indexed(open_storage(str(tmp_path)))
    assert table.inspect.verify()
    HoodieTable(str(tmp_path), {EACH: "false"}).upsert(TWO)
    assert table.properties.metadata_partitions == ("files",)


def test_a_record_is_missing_in_the_index_of_a_partition(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, VERSION: "9", INDEX: "RECORD_LEVEL_INDEX"})
    table.upsert(ONE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie_ds.metadata_table.follower.record_changes", lambda *_: {})
        table.upsert(trips(("a", "y", 2, 2.0)))
    (finding,) = table.inspect.verify().findings
    assert "missing or wrong: 1, such as 'a'" in finding.message


@pytest.mark.parametrize(
    ("path", "match"), [("n" * 190, "is too long"), ("1.5", "has a '.'")], ids=["long", "dot"]
)
def test_the_index_of_a_partition_has_its_path_in_names_of_files(
    tmp_path: Path, path: str, match: str
) -> None:
    """Hudi fails with a NullPointerException where it takes no file for a log file."""
    table = HoodieTable(str(tmp_path), {**LOOKUP, VERSION: "9", INDEX: "RECORD_LEVEL_INDEX"})
    table.upsert(ONE)
    with pytest.raises(UnsupportedTableError, match=match):
        table.upsert(trips(("a", path, 2, 2.0)))
    table.upsert(trips(("a", "n" * 180, 2, 2.0)))
    assert_indexed(open_storage(str(tmp_path)))
    HoodieTable(str(tmp_path), {EACH: "false"}).upsert(trips(("a", path, 2, 2.0)))
    assert table.properties.metadata_partitions == ("files",)
    with pytest.raises(UnsupportedTableError, match=match):
        table.create_metadata_table({EACH: "true"})


def test_a_record_stays_where_it_is_unless_options_move_it(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, INDEX: "GLOBAL_RECORD_LEVEL_INDEX"})
    table.upsert(ONE)
    table.upsert(TWO)
    paths = table.read(["id", "_hoodie_partition_path"]).to_pylist()
    assert {row["id"]: row["_hoodie_partition_path"] for row in paths}["a"] == "x"


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_a_table_without_partitions(tmp_path: Path, kind: str, no_files: None) -> None:
    table = HoodieTable(str(tmp_path), {**RECORDS, PARTITION: "", TYPE: kind})
    table.upsert(ONE)
    table.upsert(TWO)
    table.delete(trips(("b", "y", 2, None)))
    table.insert(trips(("a", "x", 3, 3.0), ("b", "x", 3, 3.0)), {POLICY: "drop"})
    assert found(table) == [("a", "y", 2, 2.0), ("b", "x", 3, 3.0), ("c", "x", 2, 2.0)]
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("version", ["6", "9"])
def test_an_index_that_lacks_a_write_is_not_asked(
    tmp_path: Path, version: str, asked: list[pa.Array]
) -> None:
    table = begun(tmp_path, **{VERSION: version})
    table.upsert(trips(("new", "x", 1, 1.0)))
    assert not asked
    newest = max((tmp_path / METADATA_TABLE).rglob("*.deltacommit"))
    newest.unlink()
    table.upsert(trips(("new", "y", 2, 2.0)))
    assert asked
    assert found(table) == [("a", "x", 1, 1.0), ("b", "y", 1, 1.0), ("new", "y", 2, 2.0)]


def test_an_index_of_a_later_moment_is_not_asked(tmp_path: Path) -> None:
    table = begun(tmp_path)
    opened = open_table(open_storage(str(tmp_path)))
    earlier = partial(MetadataTable.open, opened, opened.load_timeline())
    assert trusted_index(opened, earlier, "table")
    table.upsert(TWO)
    assert trusted_index(opened, earlier, "table") is None
    now = partial(MetadataTable.open, opened, opened.load_timeline())
    assert trusted_index(opened, now, "table")


def test_a_key_in_a_file_group_that_is_not_there_is_looked_up_in_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = begun(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("hoodie_ds.metadata_table.follower.record_changes", lambda *_: {})
        table.overwrite(trips(("a", "x", 1, 5.0), ("b", "y", 1, 1.0)))  # keys are elsewhere now
    table.upsert(TWO)
    assert found(table) == BOTH
    (told,) = (one.getMessage() for one in caplog.records if one.module == "record_lookup")
    assert "which is not there" in told
    assert f"`hoodie-py metadata drop {tmp_path} --partition record_index`" in told
    table.drop_metadata_table(["record_index"])
    table.upsert(trips(("b", "x", 3, 3.0)))
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("option", ["hoodie.metadata.enable", MADE])
def test_without_the_index_files_are_asked_and_a_warning_says_so(
    tmp_path: Path, option: str, asked: list[pa.Array], caplog: pytest.LogCaptureFixture
) -> None:
    _warn_once.cache_clear()
    table = HoodieTable(str(tmp_path), {**RECORDS, option: "false"})
    table.upsert(ONE)
    table.upsert(TWO)
    assert asked
    assert found(table) == BOTH
    assert "record_index" not in table.properties.metadata_partitions
    (told,) = (one.getMessage() for one in caplog.records if one.levelno == logging.WARNING)
    assert "RECORD_INDEX looks keys up in all data files" in told


def test_who_asks_for_a_record_index_gets_the_index_type(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, MADE: "true"})
    table.upsert(ONE)
    table.upsert(TWO)
    assert table.properties.index_type is IndexType.RECORD_INDEX
    assert [row[0] for row in found(table)] == ["a", "b", "c"]
    assert_indexed(open_storage(str(tmp_path)))


def test_a_table_of_another_index_gets_one(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, INDEX: "GLOBAL_SIMPLE"})
    table.upsert(ONE)
    table.create_metadata_table({MADE: "true"})
    assert_indexed(open_storage(str(tmp_path)))
    table.drop_metadata_table()
    HoodieTable(str(tmp_path), RECORDS).upsert(TWO)
    assert found(table) == BOTH
    assert_indexed(open_storage(str(tmp_path)))


def test_a_key_in_two_file_groups_has_no_index(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, INDEX: "BLOOM"})
    table.upsert(ONE)
    table.upsert(TWO)
    indexed = HoodieTable(str(tmp_path), RECORDS)
    match = r"record key 'a' is in x/\S+ and y/\S+, and .* writes with \S+=false go on"
    with pytest.raises(UnsupportedTableError, match=match):
        indexed.upsert(TWO)
    assert "record_index" not in table.properties.metadata_partitions
    table.upsert(TWO)  # it keeps the index that it has
    indexed.delete(where="city = y", options={MADE: "false"})
    indexed.upsert(TWO)
    assert_indexed(open_storage(str(tmp_path)))


def test_what_is_kept_is_known_without_the_timeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write asks, and only secondary indexes need the columns."""
    begun(tmp_path)
    table = open_table(open_storage(str(tmp_path)))
    monkeypatch.delattr(Table, "load_timeline")
    assert not [*not_kept(table)]


def test_several_batches_in_an_instant(tmp_path: Path) -> None:
    """The index knows none of them until the instant is complete."""
    table = begun(tmp_path)
    for number in range(4):
        rows = trips(("new", "xy"[number % 2], number, 1.0))
        stream(writer(str(tmp_path), {**RECORDS, SPAN: "2"}), number, rows)
    assert found(table)[2:] == [("new", "y", 3, 1.0)]
    assert_indexed(open_storage(str(tmp_path)))


def test_of_the_copies_of_a_key_the_index_has_the_last(tmp_path: Path) -> None:
    """An insert looks no key up."""
    table = begun(tmp_path)
    table.insert(trips(("a", "y", 2, 2.0)))
    table.upsert(trips(("a", "y", 3, 3.0)))
    assert found(table) == [("a", "x", 1, 1.0), ("a", "y", 3, 3.0), ("b", "y", 1, 1.0)]


@pytest.mark.parametrize("rows", [("new", "y", 2, 2.0), ("a", "y", 2, 2.0)])
def test_of_two_writers_that_place_one_key_the_second_is_refused(
    tmp_path: Path, rows: tuple[str, str, int, float], asked: list[pa.Array]
) -> None:
    """The index is ahead of its timeline by then, and says where the first has put the key."""
    shared = {**RECORDS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    table = HoodieTable(str(tmp_path), shared)
    table.upsert(ONE)
    second = writer(str(tmp_path), shared)
    batch = second.begin(ONE.schema)
    table.upsert(trips((rows[0], "z", 1, 1.0)))
    assert not asked
    message = write_task(batch, TaskId(0, 1, 0), None, trips(rows).to_batches(), True)
    assert asked
    with pytest.raises(WriteConflictError):
        second.commit([message])
    table.upsert(trips(rows))
    assert [row for row in found(table) if row[0] == rows[0]] == [rows]
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        pytest.param({MADE: "true", BUCKETS: "2"}, "BUCKET keeps keys unique", id="buckets"),
        pytest.param({MADE: "true", INDEX: "BLOOM"}, "say GLOBAL_BLOOM", id="bloom"),
        pytest.param({**RECORDS, TYPE: TYPES[1], **ADDING}, "by a function then", id="hook"),
        pytest.param({EACH: "true", VERSION: "6"}, f"{EACH}' = 'true'.*version 8 on", id="version"),
        pytest.param(
            {INDEX: "RECORD_LEVEL_INDEX", VERSION: "6"},
            f"{INDEX}' = 'RECORD_LEVEL_INDEX'.*version 8 on",
            id="index of version 8",
        ),
        pytest.param({**RECORDS, "hoodie.populate.meta.fields": "false"}, "SIMPLE", id="virtual"),
    ],
)
def test_an_index_that_cannot_be_is_refused(
    tmp_path: Path, options: dict[str, str], match: str
) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, **options})
    with pytest.raises((OptionError, UnsupportedTableError), match=match):
        table.upsert(ONE)
    assert not list(tmp_path.iterdir())


def test_a_table_without_record_keys_has_none(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {"hoodie.table.name": "t"})
    table.insert(ONE)
    with pytest.raises(OptionError, match="no record key fields"):
        table.create_metadata_table({MADE: "true"})


def recorded(
    path: Path, rows: pa.Table, limits: Limits, options: dict[str, str]
) -> list[tuple[Kind, str]]:
    """What a task asks the storage for as it writes a batch."""
    recorder = Recorder()
    storage = FaultyStorage(open_storage(str(path)), recorder=recorder)
    parsed = replace(WriteOptions.parse({**options, "path": str(path)}), limits=limits)
    coordinator = replace(Coordinator.of(parsed), storage=storage)
    batch = coordinator.begin(rows.schema)
    recorder.operations.clear()
    batches = rows.to_batches(max_chunksize=1)
    message = write_task(batch, TaskId(), None, batches, sole_writer=True)
    asked = [(one.kind, one.path) for one in recorder.operations]
    coordinator.commit([message])
    return asked


def test_only_partitions_with_keys_of_the_batch_are_listed(tmp_path: Path) -> None:
    table = begun(tmp_path)
    table.upsert(trips(*((f"k{n}", f"p{n}", 1, 1.0) for n in range(20))))
    rows = trips(("k3", "p3", 2, 2.0), ("k5", "moved", 2, 2.0), ("new", "p7", 2, 2.0))
    asked = recorded(tmp_path, rows, Limits(), RECORDS)
    listed = {path for kind, path in asked if kind is Kind.LIST and not path.startswith(".hoodie")}
    assert listed == {"p3", "p5", "p7", "moved"}
    changed = [("k3", "p3", 2, 2.0), ("k5", "moved", 2, 2.0), ("new", "p7", 2, 2.0)]
    assert {*changed} <= {*found(table)}
    assert len(found(table)) == 2 + 20 + 1


def test_each_of_several_look_ups_has_the_slices_of_its_partitions(
    tmp_path: Path, no_files: None
) -> None:
    """Rows of little memory are looked up by parts of their keys."""
    table = begun(tmp_path, **{"write.task.max.size": "4k"})
    places = {f"{n:0100}": f"p{n}" for n in range(12)}
    for ts in (1, 2):
        table.upsert(pa.concat_tables(trips((*place, ts, 1.0)) for place in places.items()))
    paths = table.read(["id", "_hoodie_partition_path", "ts"]).to_pylist()
    stored = {row["id"]: row["_hoodie_partition_path"] for row in paths if row["ts"] == 2}
    assert stored == places
    assert len(paths) == 2 + 12


def test_a_task_reads_the_log_files_of_the_index_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**RECORDS, PARTITION: "", TYPE: "MERGE_ON_READ"}
    table = begun(tmp_path, **{PARTITION: "", TYPE: "MERGE_ON_READ"})
    table.upsert(trips(("c", "x", 1, 1.0), ("d", "x", 1, 1.0)))
    newer = trips(*((key, "x", 2, 2.0) for key in "abcdef"))
    monkeypatch.setattr("hoodie_ds.metadata_table.stored_records.SMALL", 0)  # else a process keeps

    def reads() -> Counter[str]:
        asked = recorded(tmp_path, newer, Limits(chunk_bytes=1), options)
        return Counter(path for _, path in asked if "record_index/." in path)

    assert {*reads().values()} == {1}
    monkeypatch.setattr("hoodie_ds.metadata_table.stored._HELD_BYTES", 0)  # there is no room
    assert max(reads().values()) > 1
    assert [row[2] for row in found(table)] == [2] * 6
    assert_indexed(open_storage(str(tmp_path)))
