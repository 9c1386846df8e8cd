"""Clustering by hand: the rows stay, in fewer files, and in the order that was asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import FILE_NAME, RECORD_KEY
from hoodie_ds.errors import (
    ClusteringConflictError,
    SchemaError,
    StorageError,
    UnsupportedTableError,
)
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind
from hoodie_ds.testing.checker import check_table
from hoodie_ds.timeline.bodies.clustering_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
)
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline, read_commit
from tests.faults import foreign
from tests.faults.writers import Place
from tests.golden.golden_tables import assert_rows_equal, expected_rows, notation, unzip_table
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.tables import BUCKETS, PARTITION, TRIPS, TYPE, TYPES, VERSION, trips

PLAN = "hoodie.clustering.plan.strategy."
INDEX = "hoodie.index.type"
BY_KEY = {**TRIPS, INDEX: "BLOOM"}
ALONE = {"hoodie.parquet.small.file.limit": "0"}
"""Each insert begins a file group of its own."""
EACH = {f"{PLAN}single.group.clustering.enabled": "true"}
SORTED = {f"{PLAN}sort.columns": "fare"}
ROWS = [("a", "x", 1, 3.0), ("b", "x", 2, 1.0), ("c", "x", 3, 2.0), ("d", "y", 4, 0.0)]
GOLDEN = "v6_cow_clustering_requested"


def _place(rows: list[tuple[str, str, int, float]] = ROWS, /, **options: str) -> Place:
    """Each row comes with a commit of its own."""
    place = Place({**BY_KEY, **ALONE, **EACH, **options})
    for row in rows:
        place.table.insert(trips(row))
        place.clock.advance(10)
    return place


def _rows(table: HoodieTable) -> list[dict[str, Any]]:
    """All columns but the name of the file."""
    return sorted(table.read().drop_columns([FILE_NAME]).to_pylist(), key=str)


def _fares(place: Place, partition: str = "x") -> list[list[float]]:
    """The column ``fare`` of each visible base file."""
    visible = set(place.table.read()[FILE_NAME].to_pylist())
    files = sorted(p for p in place.storage.files if p.startswith(f"{partition}/"))
    data = (place.storage.files[p] for p in files if p.rpartition("/")[2] in visible)
    return [pq.read_table(io.BytesIO(d))["fare"].to_pylist() for d in data]


@pytest.mark.parametrize("kind", TYPES)
def test_rows_stay_as_they_are_in_fewer_files(kind: str) -> None:
    place = _place(**{TYPE: kind})
    before = _rows(place.table)
    (done,) = place.table.cluster()
    assert [len(group.slices) for group in done.plan.groups] == [3, 1]
    assert _rows(place.table) == before
    assert sorted(map(len, _fares(place) + _fares(place, "y"))) == [1, 3]
    assert not check_table(dict(place.storage.files), buckets=False)


def test_the_commit_is_one_as_hudi_makes_it() -> None:
    """Facts of Apache Hudi 1.2: a replacecommit; its rows are inserts, its files have no past."""
    place = _place()
    old = {stat.file_id for i in place.table.timeline.commits for stat in _stats(place, i.time)}
    (done,) = place.table.cluster()
    instant = place.table.timeline.commits[-1]
    assert (instant.time, instant.action) == (done.instant_time, Action.REPLACE_COMMIT)
    commit = read_commit(place.storage, instant)
    assert (commit.operation_type, commit.compacted) == ("CLUSTER", False)
    replaced = {path: len(ids) for path, ids in commit.replaced.items()}
    assert replaced == {"x": 3, "y": 1}
    assert {file_id for ids in commit.replaced.values() for file_id in ids} == old
    assert sorted((s.num_inserts, s.num_writes, s.num_update_writes) for s in commit.stats) == [
        (1, 1, 0),
        (3, 3, 0),
    ]
    for stat in commit.stats:
        name = BaseFileName.parse(stat.path.rpartition("/")[2])
        assert name is not None
        assert (name.file_id, name.instant_time) == (stat.file_id, instant.time)
        assert (stat.prev_commit, stat.file_id in old) == ("null", False)
        assert stat.file_size_bytes == len(place.storage.files[stat.path])
    files = commit.file_paths
    assert set(commit.checksums) == files | {path + "#footer" for path in files}
    time = instant.time
    assert place.storage.files[f".hoodie/{time}.replacecommit.inflight"] == b""
    assert not [p for p in place.storage.files if p.startswith(".hoodie/.temp/")]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("by_restore", [False, True])
def test_a_clustering_that_is_taken_back_is_not_pending(version: str, by_restore: bool) -> None:
    place = _place(**{VERSION: version})
    before, kept = _rows(place.table), place.table.timeline.commits[-1].time
    (done,) = place.table.cluster()
    if by_restore:
        place.table.restore(kept)
    else:
        place.table.rollback()
    assert place.table.timeline.pending == ()
    named = {path for path in place.storage.files if f"/{done.instant_time}" in path}
    assert not {path for path in named if not path.startswith(".hoodie/.locks/")}
    assert _rows(place.table) == before
    place.table.rollback()
    assert place.table.read().num_rows == len(ROWS) - 1


def _stats(place: Place, time: str) -> tuple[Any, ...]:
    commit = place.table.timeline.commit_at(time)
    assert commit is not None
    return read_commit(place.storage, commit).stats


def test_rows_are_sorted_by_columns() -> None:
    place = _place(**SORTED)
    place.table.cluster()
    assert _fares(place) == [[1.0, 2.0, 3.0]]


def test_rows_are_sorted_along_a_curve() -> None:
    cells = [(str(n), "x", n // 4, float(n % 4)) for n in (5, 0, 3, 12, 10, 1, 4)]
    order = {"hoodie.layout.optimize.strategy": "Z-ORDER", f"{PLAN}sort.columns": "ts,fare"}
    place = _place(cells, **order)
    (done,) = place.table.cluster()
    assert done.plan.strategy_params["hoodie.layout.optimize.strategy"] == "z-order"
    # Cells (0,0) (0,1) (1,0) (1,1) | (0,3) | (3,0) | (2,2), ranks as they are
    assert _fares(place) == [[0.0, 1.0, 0.0, 1.0, 3.0, 0.0, 2.0]]


def test_without_sort_columns_the_largest_file_group_comes_first() -> None:
    place = Place({**BY_KEY, **ALONE})
    place.table.insert(trips(("a", "x", 1, 1.0)))
    place.table.insert(trips(*((f"long key {n}", "x", n, float(n)) for n in range(5, 105))))
    place.table.cluster()
    assert _fares(place) == [[*map(float, range(5, 105)), 1.0]]


def test_a_file_group_ends_at_its_size() -> None:
    rows = [(f"key {n}", "x", n, float(n)) for n in range(3)]
    place = _place(rows, **{f"{PLAN}target.file.max.bytes": "100"}, **SORTED)
    (done,) = place.table.cluster()
    assert done.plan.groups[0].num_output_groups > 1
    assert sorted(fare for file in _fares(place) for fare in file) == [0.0, 1.0, 2.0]
    assert len(_fares(place)) > 1


def test_log_files_are_merged() -> None:
    place = _place(**{TYPE: "MERGE_ON_READ"})
    place.table.upsert(trips(("a", "x", 5, 9.0), ("b", "x", 0, 0.0)))
    place.table.delete(trips(("c", "x", 9, None)).select(["id", "city"]))
    before = _rows(place.table)
    place.table.cluster()
    assert _rows(place.table) == before
    assert place.rows() == [("a", "x", 5, 9.0), ("b", "x", 2, 1.0), ("d", "y", 4, 0.0)]
    logs = {name for name in place.table.read()[FILE_NAME].to_pylist() if not name}
    assert not logs
    place.table.upsert(trips(("a", "x", 6, 1.0)))
    place.table.compact()
    assert place.rows()[0] == ("a", "x", 6, 1.0)


def test_file_groups_without_rows_leave_none_behind() -> None:
    place = _place(**{TYPE: "MERGE_ON_READ"})
    place.table.delete(trips(*ROWS).select(["id", "city"]))
    (done,) = place.table.cluster({f"{PLAN}sort.columns": "fare"})
    assert len(done.plan.groups) == 2
    assert place.rows() == []
    place.table.upsert(trips(("a", "x", 1, 1.0)))
    assert place.rows() == [("a", "x", 1, 1.0)]


def test_a_table_without_record_keys_is_clustered_too() -> None:
    place = Place({"hoodie.table.name": "log", PARTITION: "city"})
    for row in ROWS:
        place.table.insert(trips(row))
    before = _rows(place.table)
    place.table.cluster(SORTED)
    assert _rows(place.table) == before
    assert _fares(place) == [[1.0, 2.0, 3.0]]
    place.table.insert(trips(("e", "x", 5, 5.0)))
    assert len(place.rows()) == 5


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_SIMPLE"])
def test_keys_are_found_where_they_are_now(index: str) -> None:
    place = _place(**{INDEX: index})
    place.table.cluster()
    result = place.table.upsert(trips(("b", "x", 9, 9.0), ("z", "x", 9, 9.0)))
    assert (result.updated, result.inserted) == (1, 1)
    assert place.rows()[1:3] == [("b", "x", 9, 9.0), ("c", "x", 3, 2.0)]


def test_a_bloom_filter_is_where_an_index_looks_for_it() -> None:
    place = _place()
    place.table.cluster()
    for stat in _stats(place, place.table.timeline.commits[-1].time):
        source = io.BytesIO(place.storage.files[stat.path])
        keys = pa.schema([pa.field(RECORD_KEY, pa.string())])
        assert BaseFileReader(source, keys, stat.path).bloom_filter() is not None


def test_a_dry_run_changes_nothing_and_tells_the_plan() -> None:
    place = _place()
    before = dict(place.storage.files)
    (told,) = place.table.cluster(dry=True)
    assert dict(place.storage.files) == before
    (done,) = place.table.cluster()
    assert (told.instant_time, told.plan) == (None, done.plan)


def test_nothing_to_do_is_nothing_done() -> None:
    place = Place({**BY_KEY, **ALONE})
    place.table.insert(trips(ROWS[0]))
    before = dict(place.storage.files)
    few = {f"{PLAN}single.group.clustering.enabled": "false"}
    for options in (few, None):
        assert not place.table.cluster(options)
        assert not place.table.cluster(options, dry=True)
        assert dict(place.storage.files) == before
    assert [len(one.plan.groups) for one in place.table.cluster(EACH)] == [1]


def test_a_file_group_with_log_files_is_rewritten_alone_once() -> None:
    place = Place({**BY_KEY, INDEX: "SIMPLE", TYPE: "MERGE_ON_READ"})
    for row in (("a", "x", 1, 3.0), ("a", "x", 2, 1.0)):
        place.table.upsert(trips(row))
        place.clock.advance(10)
    (done,) = place.table.cluster()
    assert [len(group.slices) for group in done.plan.groups] == [1]
    assert not place.table.cluster()
    assert place.rows() == [("a", "x", 2, 1.0)]


def test_a_plan_of_another_engine_is_carried_out_and_new_small_files_after_it() -> None:
    place = _place()
    time = following(str(place.table.timeline.latest_time))
    foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x")[:2])
    assert [c.instant_time for c in place.table.cluster(dry=True)] == [time, None]
    first, second = place.table.cluster()
    assert first.instant_time == time
    assert [len(group.slices) for group in second.plan.groups] == [2, 1]
    assert place.rows() == ROWS
    assert [len(file) for file in _fares(place)] == [3]
    assert place.table.timeline.pending == ()


def test_files_that_another_engine_left_of_a_plan_do_not_count() -> None:
    """It was killed; readers that list folders would take them for the clustering's."""
    place = _place()
    time = following(str(place.table.timeline.latest_time))
    foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
    place.storage.put_if_absent(f".hoodie/{time}.replacecommit.inflight", b"")
    left = f"x/11111111-1111-1111-1111-111111111111-0_9-9-9_{time}.parquet"
    place.storage.put_if_absent(left, b"half")
    place.table.cluster()
    assert left not in place.storage.files
    assert not check_table(dict(place.storage.files), buckets=False)


def test_buckets_are_left_as_they_are() -> None:
    place = Place({**TRIPS, BUCKETS: "1"})
    place.table.upsert(trips(*ROWS))
    for dry in (True, False):
        with pytest.raises(UnsupportedTableError, match="'trips' has a bucket index"):
            place.table.cluster(dry=dry)
    time = following(str(place.table.timeline.latest_time))
    foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
    remedy = f"give it up with `hoodie-py rollback {place.storage.root} {time}`"
    for dry in (True, False):
        with pytest.raises(UnsupportedTableError, match=f"clustering {time} .*; {remedy}"):
            place.table.cluster(dry=dry)
    (pending,) = place.table.inspect.plans()
    assert pending.remedy == f"it would move rows out of their buckets; {remedy}"
    with pytest.raises(ClusteringConflictError) as refused:
        place.table.upsert(trips(("a", "x", 5, 5.0)))
    assert remedy.partition("`")[2] in str(refused.value)
    assert "hoodie-py cluster" not in str(refused.value)
    place.table.rollback(time)
    assert place.table.upsert(trips(("a", "x", 5, 5.0))).updated == 1


@pytest.mark.parametrize("how", ["class", "extra"])
def test_a_plan_that_splits_buckets_is_left_to_its_engine(how: str) -> None:
    place = _place()
    package = "org.apache.hudi.client.clustering.run.strategy."
    name = "SparkConsistentBucketClusteringExecutionStrategy" if how == "class" else "Other"
    extra = {"clustering.group.sequence.no": "0"} if how == "extra" else {}
    group = ClusteringGroup((ClusteringSlice("x", "f-0", ""),), extra_metadata=extra)
    plan = ClusteringPlan((group,), package + name)
    time = following(str(place.table.timeline.latest_time))
    path = f".hoodie/{time}.replacecommit.requested"
    place.storage.put_if_absent(path, plan.to_bytes("/t"))
    with pytest.raises(UnsupportedTableError, match=f"clustering {time} .* splits or merges"):
        place.table.cluster()


def test_columns_that_rows_cannot_be_sorted_by_are_refused_first() -> None:
    place = _place()
    before = dict(place.storage.files)
    with pytest.raises(SchemaError, match=r"sort\.columns': field 'distance' does not exist"):
        place.table.cluster({f"{PLAN}sort.columns": "distance"})
    assert load_timeline(place.storage, 1).pending == ()
    assert {p for p in place.storage.files if "/.temp/" not in p} == set(before)


def test_a_plan_that_hudi_left_is_carried_out_as_it_says(tmp_path: Path) -> None:
    path = unzip_table(GOLDEN, tmp_path)
    table = HoodieTable(str(path))
    (planned, *_) = table.cluster(dry=True)
    before = _rows(table)
    planned_ids = {one.file_id for group in planned.plan.groups for one in group.slices}
    table.cluster({f"{PLAN}small.file.limit": "1"})
    assert _rows(table) == before
    files: dict[str, list[Any]] = {}
    for row in table.read().to_pylist():
        files.setdefault(row[FILE_NAME], []).append((row["name"], row["qty"]))
    assert not [name for name in files if name.partition("_")[0] in planned_ids]
    new = [rows for name, rows in files.items() if f"_{planned.instant_time}." in name]
    assert len(new) == 1
    assert new[0] == sorted(new[0], key=_nulls_first)
    assert len(new[0]) > 1
    assert_rows_equal(read_with_hudi_rs(path), notation(table.read().to_pylist()))
    expected = expected_rows(GOLDEN)
    for row in expected:
        row.pop(FILE_NAME)
    assert_rows_equal(table.read().drop_columns([FILE_NAME]), expected)


def _nulls_first(values: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in values)


@pytest.mark.parametrize("target", ["1", "1000000"])
def test_a_clustering_whose_disk_fails_leaves_no_file_and_is_done_again(target: str) -> None:
    place = _place(**{f"{PLAN}target.file.max.bytes": target, f"{PLAN}small.file.limit": "1000000"})
    before = _rows(place.table)
    full = FaultyStorage(place.storage, [Fault(Effect.FAILED, kinds=frozenset({Kind.WRITE}))])
    files = {path for path in place.storage.files if path.endswith(".parquet")}
    with pytest.raises(StorageError):
        HoodieTable("/t", place.opts, storage=full, clock=place.clock, ids=place.ids).cluster()
    assert {path for path in place.storage.files if path.endswith(".parquet")} == files
    place.table.cluster()
    assert _rows(place.table) == before
    assert load_timeline(place.storage, 1).pending == ()
