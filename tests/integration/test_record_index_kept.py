"""Writes and services of a table keep the indexes of its rows in the metadata table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from string import ascii_lowercase

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.properties import keys
from hoodie_ds.errors import HoodieError, OptionError
from hoodie_ds.metadata_table.follower import MetadataFollower
from hoodie_ds.metadata_table.record_index import Places, group_of, places_of
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.upkeep import look_after
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId, group_of_file
from hoodie_ds.table.index_definitions import define_index
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.table import Table, open_table, update_properties
from hoodie_ds.testing import Effect, Fault, FaultyStorage, SimulatedCrash
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import METADATA_TABLE
from tests.golden.test_metadata_tables import unzipped
from tests.integration.test_metadata_table import RETAINED, in_folders, listed
from tests.integration.test_metadata_table_kept import KINDS
from tests.integration.test_metadata_table_kept import assert_kept as assert_listed
from tests.merge_hooks import HOOK
from tests.metadata_tables import Recorder
from tests.rows import without_meta
from tests.tables import BUCKETS, PARTITION, TRIPS, TYPE, VERSION, found, trips
from tests.tiers import by_day

GLOBAL = {
    BUCKETS: "",
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.index.bloom.num_entries": "100",  # filters of the default size take long
    RETAINED: "1",
}
RECORDS = {
    **GLOBAL,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
}
UNPARTITIONED = {PARTITION: "", RETAINED: "1"}
VERSIONS = ("6", "9")
OF_PARTITIONS = "9 of partitions"
"""Version 9 with a record index of each partition by itself."""
BOTH = [
    pytest.param(kind, version, marks=[pytest.mark.slow] * (kind == slow))
    for version, slow in zip((*VERSIONS, OF_PARTITIONS), (*KINDS, KINDS[0]), strict=True)
    for kind in KINDS
]


def given(version: str, kind: str, options: Mapping[str, str] = GLOBAL) -> dict[str, str]:
    number, _, of_partitions = version.partition(" ")
    all_of_them = {**TRIPS, VERSION: number, TYPE: kind, **options}
    if of_partitions:
        all_of_them["hoodie.metadata.record.level.index.enable"] = "true"
        all_of_them["hoodie.metadata.record.level.index.min.filegroup.count"] = "2"
        if options is RECORDS:
            all_of_them["hoodie.index.type"] = "RECORD_LEVEL_INDEX"
    return {key: text for key, text in all_of_them.items() if text}


def begun(path: Path, version: str, kind: str, options: Mapping[str, str] = GLOBAL) -> HoodieTable:
    """A table that is empty again, with indexes of two file groups each."""
    table = HoodieTable(str(path), given(version, kind, options))
    table.upsert(trips(("gone", "x", 0, 1.0)))
    table.delete(trips(("gone", "x", 1, None)))
    if version != OF_PARTITIONS:
        index(path).catch_up()
    return table


def index(path: Path) -> Recorder:
    """Give a table a metadata table with empty indexes of keys and, from version 8 on, of `ts`."""
    recorder = Recorder(open_storage(str(path)))
    recorder.begin()
    recorder.add(record_index=["record-index-0000-0", "record-index-0001-0"])
    if (version := recorder.table.properties.version) > 6:
        recorder.add(secondary_index_by_ts=[f"secondary-index-by-ts-000{n}-0" for n in range(2)])
        recorder.define(secondary_index_by_ts=("ts", "V2" if version > 8 else "V1"))
    return recorder


def assert_indexed(storage: Storage) -> None:
    """Compare the indexes with the keys of all rows, where these are, and the values of rows."""
    table = open_table(storage)
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    assert_values_indexed(table, metadata)
    is_of_partitions = record_index(table) == "partition"
    pinned = PinnedTable.latest(storage)
    reader = pinned.reader()
    there: dict[str, dict[str, FileGroupId]] = {}
    for slice_ in pinned.slices():
        path = slice_.group.partition_path
        index = there.setdefault(f"record_index/{path}" if is_of_partitions else "record_index", {})
        for rows in reader.read(slice_, [RECORD_KEY]):
            index |= dict.fromkeys(rows.column(RECORD_KEY).to_pylist(), slice_.group)
    records = sum(len(group) for group in metadata.records("record_index"))
    assert records == sum(map(len, there.values()))
    for name, places in there.items():
        asked = {*places, *ascii_lowercase}  # those of rows that are gone too
        found = {key: group_of(one) for key, one in metadata.by_key(name, asked).items()}
        assert found == places
        known = places_of(metadata, pa.array([*asked, *asked]), name)  # a key may come twice
        assert known.by_key() == places
        assert known.numbers[: len(asked)].tolist() == known.numbers[len(asked) :].tolist()
        assert {group: set(some.to_pylist()) for group, some in known.by_group()} == {
            group: {key for key in places if places[key] == group} for group in places.values()
        }


def assert_values_indexed(table: Table, metadata: MetadataTable) -> None:
    """Compare each secondary index with the values of a column, which have nothing to escape."""
    by_folders = {"hoodie.metadata.enable": "false"}
    rows = HoodieTable(table.storage.root, by_folders, storage=table.storage).read()
    for name in (one for one in metadata.partitions if one.startswith("secondary_index_")):
        column = name.rpartition("_")[2]
        there = zip(*(rows.column(one).to_pylist() for one in (column, RECORD_KEY)), strict=True)
        assert metadata.by_key(name).keys() == {f"{value}${key}" for value, key in there}


def assert_kept(path: Path) -> None:
    assert_indexed(open_storage(str(path)))
    assert_listed(path)


@pytest.mark.parametrize(("kind", "version"), BOTH)
def test_keys_are_where_writes_and_services_leave_them(
    tmp_path: Path, kind: str, version: str
) -> None:
    storage = open_storage(str(tmp_path))
    table = begun(tmp_path, version, kind)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    assert_indexed(storage)
    table.upsert(trips(("a", "y", 2, 2.0), ("b", "x", 2, 2.0), ("d", "z", 2, 2.0)))
    assert_indexed(storage)
    table.delete(trips(("b", "x", 3, None), ("c", "y", 0, None)))
    assert_indexed(storage)
    if kind == "MERGE_ON_READ":
        assert table.compact()
        assert_indexed(storage)
    table.overwrite(trips(("e", "y", 4, 4.0), ("a", "y", 4, 4.0)), partitions_only=True)
    assert_indexed(storage)
    table.upsert(trips(("b", "x", 5, 5.0), ("c", "x", 5, 5.0)))
    assert table.cluster()
    assert_indexed(storage)
    table.delete_partitions(["z"])
    table.clean()
    assert_indexed(storage)
    table.overwrite(trips(("f", "w", 6, 6.0), ("e", "w", 6, 6.0)))
    assert_kept(tmp_path)


@pytest.mark.parametrize(("kind", "version"), BOTH)
def test_keys_are_back_after_a_rollback_and_a_restore(
    tmp_path: Path, kind: str, version: str
) -> None:
    storage = open_storage(str(tmp_path))
    table = begun(tmp_path, version, kind)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.savepoint()
    kept = table.timeline.savepoints[-1].time
    table.upsert(trips(("a", "y", 2, 2.0), ("b", "x", 2, 2.0), ("undone", "z", 2, 2.0)))
    table.rollback()
    assert_indexed(storage)
    for ts in (3, 4):
        table.upsert(trips(("a", "y", ts, 2.0), (f"undone{ts}", "z", ts, 2.0)))
        table.delete(trips(("b", "x", ts, None)))
    table.restore(kept)
    assert_indexed(storage)
    table.upsert(trips(("a", "y", 9, 2.0), ("new", "z", 9, 2.0)))
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", [*VERSIONS, OF_PARTITIONS])
def test_keys_are_back_where_a_compaction_has_included_the_write(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = begun(tmp_path, version, "COPY_ON_WRITE")
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("a", "y", 2, 2.0), ("undone", "z", 2, 2.0)))
    monkeypatch.setattr("hoodie_ds.metadata_table.compaction._DELTA_COMMITS", 1)
    table.clean()
    look_after(open_table(open_storage(str(tmp_path))))
    table.rollback()
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_undone_that_was_there_before_the_index_is_compared_with_all_rows(
    tmp_path: Path, version: str
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, VERSION: version, PARTITION: "", RETAINED: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 2, 1.0)))
    index(tmp_path)
    table.rollback()
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("version", [*VERSIONS, OF_PARTITIONS])
def test_a_dead_write_that_is_in_the_index_goes_with_its_rollback(
    tmp_path: Path, version: str
) -> None:
    """Hudi's writers record a write there first, and may die before they complete it."""
    table = begun(tmp_path, version, "COPY_ON_WRITE")
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    dies = Fault(Effect.CRASH_BEFORE, path="*/manifest_*")
    killed = FaultyStorage(open_storage(str(tmp_path)), [dies])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(tmp_path), given(version, "COPY_ON_WRITE"), storage=killed).upsert(
            trips(("a", "y", 2, 2.0), ("dead", "x", 2, 2.0))
        )
    opened = open_table(open_storage(str(tmp_path)))
    (dead,) = opened.load_timeline().pending
    added = {
        path: WriteStat(
            group_of_file(path).file_id,
            path,
            group_of_file(path).partition_path,
            file_size_bytes=(tmp_path / path).stat().st_size,
        )
        for path in in_folders(tmp_path) - listed(tmp_path)
    }
    done = dead.completed("" if version == "6" else following(dead.time))
    MetadataFollower().before(opened, done, FileChanges(added=added, named=frozenset(added)))
    table.upsert(trips(("c", "x", 10, 1.0)))
    assert table.timeline.rollbacks
    assert_kept(tmp_path)


def test_deletes_of_unknown_keys_leave_the_index_alone(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", "MERGE_ON_READ", UNPARTITIONED)
    table.upsert(trips(("a", "x", 1, 1.0)))
    logs = tmp_path / METADATA_TABLE / "record_index"
    before = set(logs.iterdir())
    table.delete(trips(("unknown", "x", 1, None)))
    table.upsert(trips(("a", "x", 2, 2.0)))
    assert set(logs.iterdir()) == before
    assert_indexed(open_storage(str(tmp_path)))


def test_a_commit_looks_up_no_key_that_a_base_file_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[pa.Array] = []

    def looked_up(metadata: MetadataTable, keys: pa.Array, name: str) -> Places:
        asked.append(keys)
        return places_of(metadata, keys, name)

    monkeypatch.setattr("hoodie_ds.metadata_table.record_changes.places_of", looked_up)
    table = begun(tmp_path, "9", "COPY_ON_WRITE")
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 2, 1.0), ("c", "x", 2, 1.0)))
    table.delete(trips(("a", "x", 3, None)))
    assert pa.chunked_array(asked, pa.string()).to_pylist() == ["a"]
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_of_buckets_with_inserts_in_log_files(tmp_path: Path, version: str) -> None:
    table = begun(tmp_path, version, "MERGE_ON_READ", UNPARTITIONED)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 2, 1.0), ("c", "x", 2, 1.0)))
    assert_indexed(open_storage(str(tmp_path)))
    table.delete(trips(("a", "x", 0, None), ("c", "x", 3, None)))  # the first is too late
    assert len(found(table)) == 2
    assert_indexed(open_storage(str(tmp_path)))
    assert table.compact()
    table.delete(trips(("a", "x", 0, None), ("b", "x", 3, None)))
    assert len(found(table)) == 1
    assert_indexed(open_storage(str(tmp_path)))
    table.upsert(trips(("b", "x", 2, 1.0)))  # older than its delete
    assert_indexed(open_storage(str(tmp_path)))


Act = Callable[[HoodieTable, Random], object]


def some_rows(random: Random) -> list[tuple[str, str, int, float]]:
    keys = random.sample("abcdefghij", random.randint(1, 4))
    return [(key, random.choice("xyz"), random.randint(1, 9), 1.0) for key in keys]


def compact(table: HoodieTable, random: Random) -> object:
    is_mor = table.properties.table_type.value == "MERGE_ON_READ"
    return table.compact() if is_mor else table.cluster()


ACTS: tuple[Act, ...] = (
    *[lambda table, random: table.upsert(trips(*some_rows(random)))] * 4,
    *[lambda table, random: table.delete(trips(*some_rows(random)))] * 2,
    lambda table, random: table.overwrite(trips(*some_rows(random))),
    lambda table, random: table.overwrite(trips(("only", "w", 1, 1.0)), partitions_only=True),
    lambda table, random: table.delete_partitions([random.choice("xyz")]),
    *[compact] * 2,
    lambda table, random: table.cluster(),
    lambda table, random: table.clean(),
    lambda table, random: table.rollback(),
)


def run_history(path: Path, version: str, kind: str, seed: int, steps: int = 12) -> None:
    """Random actions, half of which end with their process at some operation."""
    random = Random(f"{version} {kind} {seed}")
    index = RECORDS if seed % 2 else GLOBAL
    options = given(version, kind, index)
    begun(path, version, kind, index if version == OF_PARTITIONS else GLOBAL)
    for _ in range(steps):
        act, doomed = random.choice(ACTS), random.random() < 0.5
        state = random.getstate()
        if doomed:
            dies = Fault(Effect.CRASH_BEFORE, at=random.randint(1, 120))
            storage = FaultyStorage(open_storage(str(path)), [dies])
            attempt(HoodieTable(str(path), options, storage=storage), act, random)
            random.setstate(state)
        attempt(HoodieTable(str(path), options), act, random)
        HoodieTable(str(path), options).upsert(trips(("z", "x", 1, 1.0)))  # recovers
        assert_indexed(open_storage(str(path)))
    assert_listed(path)


def attempt(table: HoodieTable, act: Act, random: Random) -> None:
    """Act, or not: an action may be refused."""
    with suppress(SimulatedCrash, HoodieError):
        act(table, random)


def test_an_index_of_each_partition_is_refused_beside_a_secondary_one(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", "COPY_ON_WRITE")
    define_of_partitions(tmp_path)
    with pytest.raises(OptionError, match="cannot keep secondary_index_by_ts up to date"):
        table.upsert(trips(("a", "x", 1, 1.0)))


def test_an_index_of_each_partition_is_not_taken_to_version_6(tmp_path: Path) -> None:
    begun(tmp_path, OF_PARTITIONS, "COPY_ON_WRITE")
    table = HoodieTable(str(tmp_path))
    table.downgrade(6)
    assert table.properties.metadata_partitions == ("files",)


def test_an_index_of_each_partition_is_refused_in_version_6(tmp_path: Path) -> None:
    table = begun(tmp_path, "6", "COPY_ON_WRITE")
    define_of_partitions(tmp_path)
    with pytest.raises(OptionError, match="cannot keep record_index up to date"):
        table.upsert(trips(("a", "x", 1, 1.0)))


def define_of_partitions(path: Path) -> None:
    definition = {"indexOptions": {"isPartitioned": "true"}}
    define_index(open_table(open_storage(str(path))), "record_index", definition, "", 0)


def test_an_index_of_rows_that_a_function_merges_is_refused(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", "MERGE_ON_READ", UNPARTITIONED)
    custom = {keys.MERGE_MODE: "CUSTOM"}
    update_properties(open_table(open_storage(str(tmp_path))), custom, (), 0)
    with pytest.raises(OptionError, match="cannot keep record_index, secondary_index_by_ts up"):
        table.upsert(trips(("a", "x", 1, 1.0)), {HOOK: "tests.merge_hooks:add"})


@pytest.mark.parametrize(
    "name",
    [
        "v9_cow_files_bf_ri",
        pytest.param("v6_mor_files_ri", marks=pytest.mark.slow),
        pytest.param("v9_mor_files_cs_ps_ri", marks=pytest.mark.slow),
    ],
)
def test_an_index_of_hudi_is_kept(tmp_path: Path, name: str) -> None:
    path = Path(unzipped(name, tmp_path))
    table = HoodieTable(str(path), {RETAINED: "1"})
    rows = without_meta(table.read())
    assert_indexed(open_storage(str(path)))
    for start in range(3):
        table.upsert(rows.slice(start, 3))
        table.delete(rows.slice(start + 2, 1))
        assert_indexed(open_storage(str(path)))
    table.rollback()
    assert_indexed(open_storage(str(path)))


@pytest.mark.parametrize("version", ["9", OF_PARTITIONS])
def test_a_random_history_with_kills(tmp_path: Path, version: str) -> None:
    run_history(tmp_path, version, KINDS[1], 1, steps=4)


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_partition_is_indexed_wherever_its_write_dies(
    tmp_path: Path, kind: str, every: int
) -> None:
    options, at, died = given(OF_PARTITIONS, kind, RECORDS), 0, True
    while died:
        at += every
        path = tmp_path / str(at)
        begun(path, OF_PARTITIONS, kind, RECORDS)
        dies = Fault(Effect.CRASH_BEFORE, at=at)
        killed = HoodieTable(
            str(path), options, storage=FaultyStorage(open_storage(str(path)), [dies])
        )
        died = False
        try:
            killed.upsert(trips(("a", "x", 2, 1.0), ("a", "n", 2, 1.0)))
        except SimulatedCrash:
            died = True
        table = HoodieTable(str(path), options)
        table.upsert(trips(("b", "n", 3, 1.0), ("a", "n", 3, 1.0), ("a", "o", 3, 1.0)))
        assert_kept(path)
    assert at > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", by_day(range(1, 6), {1}))
@pytest.mark.parametrize("version", ["6", "8", "9", OF_PARTITIONS])
@pytest.mark.parametrize("kind", KINDS)
def test_long_random_histories_with_kills(
    tmp_path: Path, version: str, kind: str, seed: int
) -> None:
    run_history(tmp_path, version, kind, seed, steps=25)
