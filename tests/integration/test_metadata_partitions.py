"""Partitions of a metadata table that are made and dropped on request."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.properties.keys import METADATA_PARTITIONS
from hoodie_ds.errors import OptionError, TimelineError, WriteConflictError
from hoodie_ds.metadata_table import creation
from hoodie_ds.metadata_table.compaction import base_file
from hoodie_ds.metadata_table.delta_commit import put_delta_commit
from hoodie_ds.metadata_table.file_ranges import Ranges
from hoodie_ds.metadata_table.payload import BLOOM_FILTER, STATS, Record
from hoodie_ds.metadata_table.record_keys import digest, hashed
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, SimulatedCrash
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import INDEX_DEFINITIONS, METADATA_TABLE, instant_path
from hoodie_ds.transaction import other_engines
from tests.integration.test_column_statistics_kept import assert_kept as assert_described
from tests.integration.test_column_statistics_kept import records
from tests.integration.test_metadata_table import RETAINED, history
from tests.integration.test_metadata_table_kept import KINDS, assert_kept
from tests.tables import TRIPS, TYPE, VERSION, trips

FOOTER = b"org.apache.hudi.bloomfilter"
COLUMNS = "hoodie.metadata.index.column.stats.enable"
PARTITIONS = "hoodie.metadata.index.partition.stats.enable"
FILTERS = "hoodie.metadata.index.bloom.filter.enable"
LIST = "hoodie.metadata.index.column.stats.column.list"
SWITCHES = {COLUMNS: "true", FILTERS: "true"}
ALL = {
    "6": ("bloom_filters", "column_stats", "files"),
    "9": ("bloom_filters", "column_stats", "files", "partition_stats"),
}


def partitions(path: Path) -> tuple[str, ...]:
    """Names of the partitions that the table's properties say it has."""
    return HoodieTable(str(path)).properties.metadata_partitions


def assert_filters_kept(path: Path) -> None:
    """Compare the records of bloom filters with the footers of base files."""
    found = records(path, "bloom_filters").items()
    kept = {key: record["BloomFilterMetadata"] for key, record in found}
    there = {key for key, one in kept.items() if not one["isDeleted"]}
    expected = {}
    for file in path.glob("?/*.parquet"):
        footer = pq.read_metadata(file).metadata.get(FOOTER)
        if footer is not None:
            expected[hashed(file.parent.name) + digest(file.name)] = footer
    assert there == expected.keys()
    assert all(kept[key]["bloomFilter"] == footer for key, footer in expected.items())


def assert_all_kept(path: Path) -> None:
    assert_kept(path)
    assert_described(path)
    assert_filters_kept(path)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_are_made_of_the_files_of_a_table(tmp_path: Path, version: str, kind: str) -> None:
    table = history(tmp_path, version, kind)
    would = table.create_metadata_table(SWITCHES, dry=True)
    assert not table.properties.metadata_partitions
    done = table.create_metadata_table(SWITCHES)
    assert done.made == would.made
    assert table.properties.metadata_partitions == tuple(sorted(done.made)) == ALL[version]
    assert not table.create_metadata_table(SWITCHES)
    assert_all_kept(tmp_path)
    for ts in range(30, 33):
        table.upsert(trips(("a", "x", ts, 1.0), (f"n{ts}", "w", ts, -1.0)))
    table.clean({RETAINED: "1"})
    assert_all_kept(tmp_path)
    assert table.read(["id"], filter="fare < 0").num_rows == 3


@pytest.mark.parametrize("version", ["6", "9"])
def test_others_are_made_beside_a_list_of_files_that_was_compacted(
    tmp_path: Path, version: str
) -> None:
    table = history(tmp_path, version)
    assert table.create_metadata_table({DELTA_COMMITS: "2"}).made == ("files",)
    for ts in range(30, 33):
        table.upsert(trips(("a", "x", ts, 1.0)))
    table.create_metadata_table({COLUMNS: "true", PARTITIONS: "false"})
    table.create_metadata_table({PARTITIONS: "true"})
    for ts in range(42, 45):
        table.upsert(trips(("a", "x", ts, -1.0)))
    table.create_metadata_table({FILTERS: "true"})
    assert table.properties.metadata_partitions == ALL[version]
    table.upsert(trips(("a", "x", 60, 1.0)))
    assert_all_kept(tmp_path)


def test_older_files_count_in_the_statistics_of_a_partition(tmp_path: Path) -> None:
    """A rollback may show them again; one of Hudi widens no statistics."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: KINDS[0], VERSION: "9"})
    table.upsert(trips(("a", "x", 1, 1.0), ("low", "x", 1, -9.0)))
    table.delete(trips(("low", "x", 2, None)))
    table.create_metadata_table({COLUMNS: "true"})
    stored = [one[STATS] for one in records(tmp_path, "partition_stats").values()]
    assert [one["minValue"] for one in stored if one["columnName"] == "fare"] == [{"5": -9.0}]
    table.rollback()
    assert table.read(["id"], filter="fare < 0")["id"].to_pylist() == ["low"]


@pytest.mark.parametrize(("version", "index"), [("6", "V1"), ("9", "V2")])
def test_the_definition_names_the_columns(tmp_path: Path, version: str, index: str) -> None:
    table = history(tmp_path, version)
    table.create_metadata_table({COLUMNS: "true", LIST: "fare,id"})
    definition = json.loads((tmp_path / INDEX_DEFINITIONS).read_text())["indexDefinitions"]
    always = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"]
    assert definition["column_stats"] == {
        "indexName": "column_stats",
        "indexType": "column_stats",
        "indexFunction": "column_stats",
        "sourceFields": [*always, "fare", "id"],
        "indexOptions": {},
        "version": index,
    }
    assert table.properties.raw["hoodie.table.index.defs.path"] == INDEX_DEFINITIONS


def test_a_column_without_statistics_is_refused(tmp_path: Path) -> None:
    table = history(tmp_path, "9")
    with pytest.raises(OptionError, match=f"{LIST}.*nowhere: no column .* are id, city, ts, fare"):
        table.create_metadata_table({COLUMNS: "true", LIST: "id,nowhere"})
    assert table.properties.metadata_partitions == ("files",)


def test_statistics_of_partitions_need_those_of_files(tmp_path: Path) -> None:
    table = history(tmp_path, "9")
    with pytest.raises(OptionError, match=f"set {COLUMNS} to true too"):
        table.create_metadata_table({PARTITIONS: "true"})


def test_none_is_made_where_the_options_drop_it(tmp_path: Path) -> None:
    table = history(tmp_path, "9")
    with pytest.raises(OptionError, match="leave it out"):
        table.create_metadata_table({"hoodie.metadata.enable": "false"})


def test_one_is_dropped_without_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = history(tmp_path, "9")
    table.create_metadata_table(SWITCHES)
    assert table.drop_metadata_table(["bloom_filters"], dry=True).dropped == ("bloom_filters",)
    with caplog.at_level(logging.WARNING, "hoodie_ds"):
        assert table.drop_metadata_table(["bloom_filters"]).dropped == ("bloom_filters",)
    assert caplog.messages == [f"{tmp_path}: of its metadata table bloom_filters is dropped"]
    assert not (tmp_path / METADATA_TABLE / "bloom_filters").exists()
    table.upsert(trips(("a", "x", 50, 1.0)))
    assert_kept(tmp_path)
    assert_described(tmp_path)
    assert table.drop_metadata_table(["column_stats"]).dropped == (
        "column_stats",
        "partition_stats",
    )
    assert table.properties.metadata_partitions == ("files",)
    assert_kept(tmp_path)
    assert table.drop_metadata_table().dropped == ("files",)
    assert not (tmp_path / METADATA_TABLE).exists()
    assert not table.drop_metadata_table()


def test_what_was_done_is_a_sentence(tmp_path: Path) -> None:
    table = history(tmp_path, "6")
    would, made = table.create_metadata_table(dry=True), table.create_metadata_table()
    assert repr(would) == "<MetadataChange: metadata table: files would be made>"
    assert repr(made) == "<MetadataChange: metadata table: files made>"


def test_a_partition_that_is_not_there_cannot_be_dropped(tmp_path: Path) -> None:
    table = history(tmp_path, "9")
    table.create_metadata_table()
    with pytest.raises(OptionError, match="the metadata table has files"):
        table.drop_metadata_table(["bloom_filters"])


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_that_was_killed_does_not_miss_what_is_dropped(
    tmp_path: Path, version: str
) -> None:
    history(tmp_path, version).create_metadata_table(SWITCHES)
    table = HoodieTable(str(tmp_path), TRIPS)
    while not (planned := list((tmp_path / METADATA_TABLE).rglob("*.compaction.requested"))):
        table.upsert(trips(("a", "x", 31, 1.0)), {DELTA_COMMITS: "4"})
    time = planned[0].name.partition(".")[0]
    for name in (f"{time}*.commit", f"{time}.compaction.inflight", f"*_{time}.hfile"):
        for file in (tmp_path / METADATA_TABLE).rglob(name):
            file.unlink()
    table.drop_metadata_table(["column_stats"])
    for ts in range(40, 46):
        table.upsert(trips(("a", "x", ts, 1.0)))
    pending = list((tmp_path / METADATA_TABLE).rglob("*.compaction.requested"))
    completed = list((tmp_path / METADATA_TABLE).rglob("*[0-9].commit"))
    assert len(pending) == len(completed) > 1
    assert_kept(tmp_path)
    assert_filters_kept(tmp_path)


def test_none_is_dropped_while_a_compaction_of_all_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = history(tmp_path, "9")
    table.create_metadata_table(SWITCHES)
    waits = Instant("20991231000000000", Action.COMPACTION, State.REQUESTED, layout=2)
    (tmp_path / instant_path(waits)).write_bytes(b"")
    monkeypatch.setattr(other_engines, "finish_pending", lambda _: False)
    with pytest.raises(WriteConflictError, match=r"20991231000000000 .* is pending; run"):
        table.drop_metadata_table(["column_stats"])
    assert "column_stats" in partitions(tmp_path)


def test_nothing_is_made_while_a_write_is_pending(tmp_path: Path) -> None:
    table = history(tmp_path, "6")
    pending = Instant("20991231000000000", Action.DELTA_COMMIT, State.INFLIGHT, layout=1)
    for state in (State.REQUESTED, State.INFLIGHT):
        (tmp_path / instant_path(pending.at(state))).write_bytes(b"")
    with pytest.raises(
        WriteConflictError, match=r"20991231000000000 .* is pending.*hoodie-py rollb"
    ):
        table.create_metadata_table()
    assert not table.properties.metadata_partitions


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_partition_is_made_anew_of_what_a_dead_process_left(tmp_path: Path, version: str) -> None:
    table = history(tmp_path, version)
    table.create_metadata_table()
    dies = Fault(Effect.CRASH_BEFORE, path=f"{METADATA_TABLE}/*.deltacommit.requested")
    killed = FaultyStorage(LocalStorage(str(tmp_path)), [dies])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(tmp_path), TRIPS, storage=killed).create_metadata_table({COLUMNS: "true"})
    assert table.properties.metadata_partitions == ("files",)
    table.upsert(trips(("more", "y", 50, 1.0)))
    table.compact()
    table.create_metadata_table({COLUMNS: "true"})
    assert_kept(tmp_path)
    assert_described(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_one_is_made_after_a_drop_that_was_killed(tmp_path: Path, version: str) -> None:
    table = history(tmp_path, version)
    table.create_metadata_table(SWITCHES)
    table.upsert(trips(("a", "x", 30, 1.0)))
    dies = Fault(Effect.CRASH_BEFORE, path=METADATA_TABLE)
    killed = FaultyStorage(LocalStorage(str(tmp_path)), [dies])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(tmp_path), TRIPS, storage=killed).drop_metadata_table()
    assert not table.properties.metadata_partitions
    table.upsert(trips(("b", "x", 31, 1.0)))
    table.create_metadata_table(SWITCHES)
    table.upsert(trips(("c", "x", 32, 1.0)))
    assert_all_kept(tmp_path)


def test_a_partition_without_what_others_wrote_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = history(tmp_path, "9")
    table.create_metadata_table()

    def late(found: pa.Array, values: Iterable[bytes]) -> bytes:
        table.upsert(trips(("late", "x", 99, 99.0)))
        return base_file(found, values)

    monkeypatch.setattr("hoodie_ds.metadata_table.creation.base_file", late)
    with pytest.raises(TimelineError, match=r"others have changed the table.*run it again"):
        HoodieTable(str(tmp_path), TRIPS).create_metadata_table({COLUMNS: "true"})
    assert table.properties.metadata_partitions == ("files",)
    assert_kept(tmp_path)


def narrow(made: Callable[..., Ranges]) -> Callable[..., Ranges]:
    """Statistics of columns that leave the highest values out."""
    return lambda *given: {name: replace(one, high=one.low) for name, one in made(*given).items()}


def another(made: Callable[..., dict[str, Record]]) -> Callable[..., dict[str, Record]]:
    """Bloom filters of other files."""

    def changed(*given: object) -> dict[str, Record]:
        found = made(*given)
        for record in found.values():
            record[BLOOM_FILTER]["bloomFilter"] = b"another"
        return found

    return changed


def but_one(made: Callable[..., dict[str, int]]) -> Callable[..., dict[str, int]]:
    """Leave one file out of a listing."""
    return lambda *given: dict(sorted(made(*given).items())[1:])


WRONG: dict[str, tuple[str, Callable[..., Any], str]] = {
    "files": ("_committed", but_one, "lacks the file"),
    "column_stats": ("stored_ranges", narrow, "denies values that its column id has"),
    "partition_stats": ("stored_ranges", narrow, "denies values that its column id has"),
    "bloom_filters": ("stored_filters", another, "has another bloom filter of it"),
}


@pytest.mark.parametrize(
    ("version", "name"), [(v, n) for v in ("6", "9") for n in WRONG if n in ALL[v]]
)
def test_what_is_wrong_is_named_and_made_anew(
    tmp_path: Path, version: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = history(tmp_path, version, KINDS[0])
    function, wrong, message = WRONG[name]
    table.create_metadata_table({FILTERS: "true"})
    table.upsert(trips(("a", "x", 29, 1.0), ("y9", "y", 29, 1.0)))
    if name == "files":
        table.drop_metadata_table()
    else:
        table.create_metadata_table({COLUMNS: "true", PARTITIONS: "false", FILTERS: "true"})
        table.drop_metadata_table({name} & {"column_stats", "bloom_filters"} or ["bloom_filters"])
    with monkeypatch.context() as patched:
        made = getattr(creation, function)
        patched.setattr(creation, function, wrong(made))
        table.create_metadata_table(SWITCHES)
    found = table.inspect.verify_metadata_table()
    assert any(message in one.message for one in found.findings)
    assert f"`hoodie-py metadata check {tmp_path} --repair` mends it" in found.findings[0].remedy
    assert set(found.findings) <= set(table.inspect.verify().findings)
    others = {"files": set(ALL["9"]), "column_stats": {"column_stats", "partition_stats"}}
    anew = others.get(name, {name}) & set(ALL[version])
    assert set(table.repair_metadata_table(dry=True).made) == anew
    assert not table.inspect.verify_metadata_table()
    done = table.repair_metadata_table()
    assert set(done.made) == set(done.dropped) == anew
    assert table.properties.metadata_partitions == ALL[version]
    assert table.inspect.verify_metadata_table()
    assert not table.repair_metadata_table()
    table.upsert(trips(("a", "x", 50, 1.0)))
    assert_all_kept(tmp_path)


@pytest.mark.parametrize(
    ("function", "message"),
    [("stored_ranges", "lacks its statistics"), ("stored_filters", "lacks its bloom filter")],
)
def test_a_file_of_which_it_knows_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, message: str
) -> None:
    table = history(tmp_path, "9", KINDS[0])
    table.create_metadata_table({FILTERS: "true"})
    table.upsert(trips(("a", "x", 29, 1.0)))
    table.drop_metadata_table(["bloom_filters"])
    with monkeypatch.context() as patched:
        patched.setattr(creation, function, lambda *_: {})
        table.create_metadata_table({**SWITCHES, PARTITIONS: "false"})
    messages = {one.message for one in table.inspect.verify_metadata_table().findings}
    assert messages == {f"the metadata table {message}"}


def test_damage_of_one_partition_is_damage_of_that_one(tmp_path: Path) -> None:
    table = history(tmp_path, "9", KINDS[0])
    table.create_metadata_table(SWITCHES)
    table.upsert(trips(("a", "x", 29, 1.0)))
    for file in (tmp_path / METADATA_TABLE / "bloom_filters").glob(".*.log.1_*"):
        file.write_bytes(b"damaged")
    (found,) = table.inspect.verify_metadata_table().findings
    assert found.where == f"{METADATA_TABLE}/bloom_filters"
    assert table.repair_metadata_table().made == ("bloom_filters",)
    assert table.inspect.verify_metadata_table()


METADATA = "hoodie.metadata.enable"
DELTA_COMMITS = "hoodie.metadata.compact.max.delta.commits"
KEEPING = "hoodie.metadata.auto.delete.partitions"


def test_a_write_makes_and_drops_what_is_switched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = history(tmp_path, "9")
    rows = trips(("a", "x", 30, 1.0))
    table.upsert(rows, SWITCHES)
    assert not table.properties.metadata_partitions
    table.upsert(rows, {METADATA: "true"})
    table.upsert(rows, {FILTERS: "true"})
    assert partitions(tmp_path) == ("bloom_filters", "files")
    table.upsert(rows, {METADATA: "true", COLUMNS: "true"})
    assert partitions(tmp_path) == ALL["9"]
    assert_all_kept(tmp_path)
    off = {COLUMNS: "false", FILTERS: "false"}
    table.upsert(rows, {**off, KEEPING: "false"})
    table.upsert(rows)
    assert partitions(tmp_path) == ALL["9"]
    with caplog.at_level(logging.WARNING, "hoodie_ds"):
        table.upsert(rows, {PARTITIONS: "false"})
    assert f"{tmp_path}: of its metadata table partition_stats is dropped" in caplog.messages
    table.upsert(rows, off)
    assert partitions(tmp_path) == ("files",)
    assert_kept(tmp_path)


def test_it_is_not_dropped_where_nothing_may_be(tmp_path: Path) -> None:
    table = history(tmp_path, "9")
    neither = {METADATA: "false", KEEPING: "false"}
    table.upsert(trips(("a", "x", 30, 1.0)), neither)
    table.create_metadata_table()
    with pytest.raises(OptionError, match=f"{KEEPING}=false forbids that; leave one of them out"):
        table.upsert(trips(("a", "x", 31, 2.0)), neither)
    with pytest.raises(OptionError, match="leave one of them out"):
        table.clean(neither)
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_it_is_compacted_after_as_many_delta_commits_as_a_writer_says(
    tmp_path: Path, version: str
) -> None:
    table = history(tmp_path, version, KINDS[0])
    table.create_metadata_table()
    most = {DELTA_COMMITS: "4"}
    for given, times, compactions in ((most, 5, 1), ({}, 3, 2), ({DELTA_COMMITS: "20"}, 12, 2)):
        for _ in range(times):
            table.upsert(trips(("a", "x", 30, 1.0)), given)
        completed = list((tmp_path / METADATA_TABLE).rglob("*[0-9].commit"))
        assert len(completed) == compactions
    assert_kept(tmp_path)


def test_a_process_compacts_by_the_number_of_now(tmp_path: Path) -> None:
    table = history(tmp_path, "9", KINDS[0])
    table.create_metadata_table()
    table.upsert(trips(("a", "x", 30, 1.0)))
    before = open_table(LocalStorage(str(tmp_path)))
    table.create_metadata_table({DELTA_COMMITS: "2", FILTERS: "true"})
    later = Instant("20991231000000000", Action.COMMIT, State.COMPLETED, layout=2)
    put_delta_commit(before, later.completed(following(later.time)), {})
    assert len(list((tmp_path / METADATA_TABLE).rglob("*[0-9].commit"))) == 1


def test_options_say_how_many_file_groups_a_partition_gets(tmp_path: Path) -> None:
    counts = {"column.stats": 3, "partition.stats": 2, "bloom.filter": 1}
    given = {f"hoodie.metadata.index.{one}.file.group.count": str(n) for one, n in counts.items()}
    table = history(tmp_path, "9", KINDS[0])
    table.create_metadata_table({**SWITCHES, **given})
    folders = [tmp_path / METADATA_TABLE / name for name in table.properties.metadata_partitions]
    made = {one.name: len([*one.glob(".*.log.1_0-0-0")]) for one in folders}
    assert made == {"files": 1, "column_stats": 3, "partition_stats": 2, "bloom_filters": 1}
    table.upsert(trips(("a", "x", 30, 1.0)))
    assert_all_kept(tmp_path)


@pytest.mark.parametrize("kind", [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.slow)])
def test_a_change_of_the_layout_makes_it_again(tmp_path: Path, kind: str) -> None:
    """Hudi converts it, and drops what version 6 does not know."""
    table = history(tmp_path, "6", kind)
    table.upsert(trips(("a", "x", 30, 1.0)))
    table.create_metadata_table(SWITCHES)
    assert METADATA_PARTITIONS not in table.upgrade(9, dry=True).changed
    for to in (9, 6, 8):
        _ = table.downgrade(to) if to == 6 else table.upgrade(to)
        assert table.properties.metadata_partitions == ALL["6"]
        table.upsert(trips(("a", "x", 40, 1.0)))
        assert_all_kept(tmp_path)
    table.create_metadata_table(SWITCHES)
    assert table.downgrade(6, dry=True).changed[METADATA_PARTITIONS] == ",".join(ALL["6"])
    own = tmp_path / METADATA_TABLE / ".hoodie/timeline"
    assert min(own.glob("*_*.deltacommit")).name.startswith("00000000000000000_")


def test_a_change_of_the_version_keeps_it_where_the_timeline_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As Hudi's, which drops statistics with types where the version does not know them."""
    table = history(tmp_path, "8", KINDS[0])
    table.create_metadata_table(SWITCHES)
    table.upgrade(9)
    own = (tmp_path / METADATA_TABLE / ".hoodie/hoodie.properties").read_text()
    assert "\nhoodie.table.version=9\n" in own
    table.upsert(trips(("a", "x", 30, 1.0)))
    assert table.properties.metadata_partitions == ALL["9"]
    assert_all_kept(tmp_path)
    table.downgrade(8)
    assert table.properties.metadata_partitions == ALL["9"]
    table.upgrade(9)
    table.create_metadata_table({COLUMNS: "true", LIST: "id,ts"})
    table.drop_metadata_table(["column_stats"])
    table.create_metadata_table({COLUMNS: "true", LIST: "id,ts"})
    with caplog.at_level(logging.WARNING, "hoodie_ds"):
        table.downgrade(8)
    said = f"{tmp_path}: of its metadata table column_stats, partition_stats is dropped"
    assert said in caplog.messages
    assert table.properties.metadata_partitions == ("bloom_filters", "files")
    table.upsert(trips(("a", "x", 31, 1.0)))
    table.create_metadata_table({COLUMNS: "true"})
    definition = json.loads((tmp_path / INDEX_DEFINITIONS).read_text())["indexDefinitions"]
    assert definition["column_stats"]["version"] == "V1"
    assert_all_kept(tmp_path)
