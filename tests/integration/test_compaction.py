"""Compaction by hand: the table is the same afterwards, row by row, in fewer files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import FILE_NAME, RECORD_KEY
from hoodie_ds.errors import (
    MergeHookError,
    OptionError,
    UnsupportedTableError,
)
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.testing.checker import check_table
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline, read_commit
from tests.faults import foreign
from tests.faults.writers import Place
from tests.golden.golden_tables import notation, unzip_table
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.merge_hooks import add, fails
from tests.tables import BUCKETS, ORDERING, PARTITION, TRIPS, TYPE, trips
from tests.tables import found as found_rows

MOR = {**TRIPS, TYPE: "MERGE_ON_READ"}
FIRST = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "x", 1, 1.0), ("d", "y", 1, 1.0))
SECOND = trips(("a", "x", 2, 2.0), ("e", "x", 2, 2.0), ("c", "x", 0, 9.0))
GONE = trips(("b", "x", 3, None)).select(["id", "city"])
AFTER = [("a", "x", 2, 2.0), ("c", "x", 1, 1.0), ("d", "y", 1, 1.0), ("e", "x", 2, 2.0)]


def _place(**options: str) -> Place:
    given = {**MOR, BUCKETS: "1", **options}
    place = Place({key: text for key, text in given.items() if text})
    place.table.upsert(FIRST)
    place.clock.advance(10)
    place.table.upsert(SECOND)
    place.clock.advance(10)
    place.table.delete(GONE)
    place.clock.advance(10)
    return place


def _rows(table: HoodieTable) -> list[dict[str, Any]]:
    """All columns but the name of the file."""
    rows = table.read().drop_columns([FILE_NAME]).to_pylist()
    return sorted(rows, key=str)


def test_rows_stay_as_they_are_with_their_commit_times() -> None:
    place = _place()
    before = _rows(place.table)
    (done,) = place.table.compact()
    assert [one.partition_path for one in done.plan.operations] == ["x"]
    assert _rows(place.table) == before
    assert place.rows() == AFTER
    (compacted,) = foreign.slices(place.storage, "x")
    assert (compacted.base_instant, compacted.logs) == (done.instant_time, ())
    assert compacted.base is not None
    names = place.table.read(columns=[FILE_NAME], filter=pc.field("city") == "x")
    assert set(names.column(0).to_pylist()) == {str(compacted.base.name)}
    assert not place.storage.list(".hoodie/.temp", recursive=True)
    assert not place.table.compact()


def test_a_dry_run_says_what_would_be_done_and_changes_nothing() -> None:
    place = _place()
    before = dict(place.storage.files)
    (would,) = place.table.compact(dry=True)
    assert dict(place.storage.files) == before
    (done,) = place.table.compact()
    assert (would.instant_time, would.plan) == (None, done.plan)
    assert not place.table.compact(dry=True)


def test_a_dry_run_names_what_is_planned_already() -> None:
    place = _place()
    time = following(str(load_timeline(place.storage, 1).latest_time))
    foreign.plan_compaction(place.storage, time, foreign.slices(place.storage, "x"))
    assert [would.instant_time for would in place.table.compact(dry=True)] == [time]


def test_nothing_new_is_planned_before_it_is_due() -> None:
    place = _place()
    assert not place.table.compact(only_if_due=True)
    three = {"hoodie.compact.inline.max.delta.commits": "3"}
    assert place.table.compact(three, dry=True, only_if_due=True)
    assert place.table.compact(three, only_if_due=True)
    assert not place.table.compact(three, only_if_due=True)


def test_a_commit_says_what_hudis_says() -> None:
    """As the commits of Apache Hudi 1.2: three keys in the logs, of which two were stored.

    The late row of `c` loses, which counts as merged and changes nothing.
    """
    place = _place()
    (old,) = foreign.slices(place.storage, "x")
    assert old.base is not None
    (done,) = place.table.compact()
    instant = load_timeline(place.storage, 1).commit_at(str(done.instant_time))
    assert instant is not None
    assert instant.action is Action.COMMIT
    commit = read_commit(place.storage, instant)
    (stat,) = commit.stats
    assert (commit.operation_type, commit.compacted) == ("COMPACT", True)
    assert commit.extra["schema"]
    assert (stat.prev_commit, stat.prev_base_file) == (old.base_instant, str(old.base.name))
    assert (stat.num_writes, stat.num_inserts) == (3, 0)
    assert (stat.num_update_writes, stat.num_deletes) == (1, 1)
    assert (stat.total_log_records, stat.total_updated_records_compacted) == (4, 4)
    assert (stat.total_log_blocks, stat.total_log_files_compacted) == (2, 2)
    assert stat.total_log_size_compacted == sum(log.size for log in old.logs)
    assert stat.file_size_bytes == len(place.storage.read(stat.path))
    assert commit.checksums.keys() == {stat.path, stat.path + "#footer"}


def test_the_timeline_has_what_hudis_has() -> None:
    place = _place()
    (done,) = place.table.compact()
    time = done.instant_time
    names = [p.rpartition("/")[2] for p in place.storage.files if f"/{time}." in p]
    assert sorted(names) == [
        f"{time}.commit", f"{time}.compaction.inflight", f"{time}.compaction.requested"
    ]  # fmt: skip
    assert place.storage.read(f".hoodie/{time}.compaction.inflight") == b""
    assert not check_table(place.storage.files, buckets=True)


def test_writes_go_on_after_a_compaction_and_it_is_compacted_again() -> None:
    place = _place()
    (done,) = place.table.compact()
    place.clock.advance(10)
    place.table.upsert(trips(("a", "x", 5, 5.0), ("d", "y", 5, 5.0)))
    (slice_,) = foreign.slices(place.storage, "x")
    assert {log.name.base_instant for log in slice_.logs} == {done.instant_time}
    place.clock.advance(10)
    (again,) = place.table.compact()
    assert sorted(one.partition_path for one in again.plan.operations) == ["x", "y"]
    assert place.rows() == [("a", "x", 5, 5.0), ("c", "x", 1, 1.0), ("d", "y", 5, 5.0), AFTER[3]]


def test_a_group_of_which_all_is_deleted_has_an_empty_base_file() -> None:
    place = _place()
    place.table.delete(trips(*(row for row in AFTER if row[1] == "x")).select(["id", "city"]))
    place.clock.advance(10)
    place.table.compact()
    (slice_,) = foreign.slices(place.storage, "x")
    assert slice_.base is not None
    assert slice_.logs == ()
    assert place.rows() == AFTER[2:3]
    place.table.upsert(trips(("b", "x", 1, 1.0)))
    assert place.rows() == [("b", "x", 1, 1.0), *AFTER[2:3]]


def test_a_group_of_log_files_alone_is_compacted() -> None:
    """It begins with tombstones: nothing is stored of their keys."""
    place = _place()
    place.table.delete(trips(("n", "z", 1, None)).select(["id", "city"]))
    (slice_,) = foreign.slices(place.storage, "z")
    assert slice_.base is None
    place.clock.advance(10)
    (done,) = place.table.compact()
    (log_only,) = (one for one in done.plan.operations if one.partition_path == "z")
    assert (log_only.base_file, log_only.base_instant) == (None, slice_.base_instant)
    (compacted,) = foreign.slices(place.storage, "z")
    assert compacted.base is not None
    assert place.rows() == AFTER


def test_added_columns_are_in_the_base_file_afterwards() -> None:
    place = _place()
    tipped = trips(("a", "x", 4, 4.0)).append_column("tip", pa.array([0.5]))
    place.table.upsert(tipped)
    before = _rows(place.table)
    place.table.compact()
    assert _rows(place.table) == before
    assert place.read("id", "tip") == [("a", 0.5), ("c", None), ("d", None), ("e", None)]


BLOOM = {BUCKETS: "", "hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "100"}


@pytest.mark.parametrize("told", [True, False], ids=["index given", "index by names"])
def test_base_files_have_the_bloom_filters_that_an_index_needs(told: bool) -> None:
    place = _place(**BLOOM)
    given = {**MOR, **BLOOM} if told else MOR
    options = {key: text for key, text in given.items() if text and key != BUCKETS}
    HoodieTable("/t", options, storage=place.storage, clock=place.clock).compact()
    for slice_ in foreign.slices(place.storage, "x"):
        assert slice_.base is not None
        with place.storage.open_input(slice_.base.path) as source:
            reader = BaseFileReader(source, place.table.schema, slice_.base.path)
            filter_, keys = reader.bloom_filter(), reader.read([RECORD_KEY]).column(0)
            assert filter_ is not None
            assert filter_.may_contain(keys.combine_chunks()).all()
            assert reader.key_range() == (min(keys.to_pylist()), max(keys.to_pylist()))
    place.table.upsert(trips(("a", "x", 7, 7.0)))
    assert place.rows()[0] == ("a", "x", 7, 7.0)
    assert len(place.rows()) == len(AFTER)


def test_buckets_need_no_bloom_filter() -> None:
    place = _place()
    place.table.compact()
    (slice_,) = foreign.slices(place.storage, "x")
    assert slice_.base is not None
    with place.storage.open_input(slice_.base.path) as source:
        assert BaseFileReader(source, place.table.schema, "f").bloom_filter() is None


def test_copy_on_write_tables_are_not_compacted() -> None:
    place = _place(**{TYPE: "COPY_ON_WRITE"})
    with pytest.raises(UnsupportedTableError, match="COPY_ON_WRITE; only MERGE_ON_READ"):
        place.table.compact()
    with pytest.raises(OptionError, match="unknown option"):
        place.table.compact({"hoodie.compaction.strategie": "x"})


GOLDENS = ["v6_mor_compaction_requested", "v6_mor_compaction_inflight"]


@pytest.mark.parametrize("name", GOLDENS)
def test_a_plan_of_apache_hudi_is_carried_out(name: str, tmp_path: Path) -> None:
    """As Hudi has carried it out, in the table whose compaction is done."""
    path = unzip_table(name, tmp_path)
    table = HoodieTable(path)
    before = _rows(table)
    (done,) = table.compact()[:1]
    assert done.instant_time == "20261122115244442"
    assert _rows(table) == before
    theirs = HoodieTable(unzip_table("v6_mor_compaction_done", tmp_path))
    assert _rows(theirs) == before
    ours_stat, their_stat = (_stat(one) for one in (table, theirs))
    same = ("num_writes", "num_update_writes", "num_deletes", "num_inserts", "total_log_records",
            "total_log_blocks", "total_log_files_compacted", "total_updated_records_compacted",
            "prev_commit", "prev_base_file", "file_id", "partition_path")  # fmt: skip
    assert [getattr(ours_stat, n) for n in same] == [getattr(their_stat, n) for n in same]
    bases = [BaseFileName.parse(p.name) for p in path.glob("*.parquet")]
    of_plan = [str(b) for b in bases if b is not None and b.instant_time == done.instant_time]
    assert of_plan == [ours_stat.path], "what a killed compaction of Hudi had left is gone"
    table.compact()
    assert _rows(table) == before
    assert notation(read_with_hudi_rs(path).num_rows) == len(before)


def _stat(table: HoodieTable) -> Any:
    storage = table._services().storage
    instant = table.timeline.commit_at("20261122115244442")
    assert instant is not None
    return read_commit(storage, instant).stats[0]


@pytest.mark.parametrize("name", ["v6_mor_history", "v6_mor_types_parquet", "v6_mor_types_avro",
                                  "v6_mor_commit_time", "v6_mor_partial_updates",
                                  "v6_mor_evolved", "v6_mor_failed_rolled_back"])  # fmt: skip
def test_tables_of_apache_hudi_read_the_same_after_a_compaction(name: str, tmp_path: Path) -> None:
    table = HoodieTable(unzip_table(name, tmp_path))
    before = _rows(table)
    assert table.compact()
    assert _rows(table) == before
    assert not table.compact()


def test_text_that_repeats_is_compared_and_kept(tmp_path: Path) -> None:
    """A base file keeps such text as a dictionary, also that of the ordering field."""
    options = {**MOR, BUCKETS: "1", ORDERING: "level", PARTITION: ""}
    table = HoodieTable(str(tmp_path), options)
    ids = [f"k{number}" for number in range(600)]

    def rows(keys: list[str], level: str | None, note: str | None) -> pa.Table:
        kinds = {"id": pa.string(), "level": pa.string(), "note": pa.string()}
        columns = {"id": keys, "level": [level] * len(keys), "note": [note] * len(keys)}
        return pa.table(columns, schema=pa.schema(kinds))

    table.upsert(rows(ids, "m", "first"))
    table.upsert(rows(ids[:100], "z", "later"))
    table.upsert(rows(ids[50:200], "a", "too early"))
    table.upsert(rows(ids[300:400], "z", None))
    assert table.compact()
    assert not list(tmp_path.glob(f"*{table.timeline.latest_time}*.log.*"))
    found = table.read(columns=["id", "level", "note"])
    assert found.schema.types == [pa.string()] * 3
    kept: tuple[str, str | None] = ("m", "first")
    expected = dict.fromkeys(ids, kept)
    expected.update((key, ("z", "later")) for key in ids[:100])
    expected.update((key, ("z", None)) for key in ids[300:400])
    assert {row["id"]: (row["level"], row["note"]) for row in found.to_pylist()} == expected


def test_a_hook_that_fails_after_the_first_rows_leaves_no_file(tmp_path: Path) -> None:
    options = {**MOR, BUCKETS: "1"}
    table = HoodieTable(str(tmp_path), options, merge_hook=add)
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 2, 1.0)))
    before = sorted(tmp_path.glob("x/*"))
    with pytest.raises(MergeHookError, match="fails"):
        HoodieTable(str(tmp_path), options, merge_hook=fails).compact()
    assert sorted(tmp_path.glob("x/*")) == before
    assert table.compact()
    assert found_rows(table) == [("a", "x", 1, 1.0), ("b", "x", 2, 1.0)]


@pytest.mark.slow
def test_keys_of_a_large_base_file_are_compared_in_several_parts(tmp_path: Path) -> None:
    """One row of each part is replaced, removed or stays, and none beside it."""
    count = 1_200_000
    numbers = pa.array(range(count))
    ids = pc.utf8_lpad(pc.cast(numbers, pa.string()), 7, "0")
    options = {
        "hoodie.table.name": "large",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        TYPE: "MERGE_ON_READ",
        BUCKETS: "1",
    }
    table = HoodieTable(str(tmp_path), options)
    table.upsert(pa.table({"id": ids, "ts": pa.repeat(5, count)}))
    newer, older, gone = [3, count - 3], [4, count - 4], [5, count - 5]
    for at, ts in ((newer, 6), (older, 4)):
        table.upsert(pa.table({"id": ids.take(pa.array(at)), "ts": [ts] * 2}))
    table.delete(pa.table({"id": ids.take(pa.array(gone)), "ts": [7] * 2}))
    expected = dict.fromkeys(ids.to_pylist(), 5)
    expected |= {ids[place].as_py(): 6 for place in newer}
    for place in gone:
        del expected[ids[place].as_py()]
    for _ in range(2):
        rows = table.read(columns=["id", "ts"])
        found = dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True))
        assert rows.num_rows == len(found)
        assert found == expected
        table.compact()
