"""Writes beside a pending clustering, of another engine or our own: to other file groups alone."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import ClusteringConflictError, HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.timeline import Timeline
from tests.faults import foreign
from tests.faults.writers import BESIDE_OTHERS, MODE, SEVERAL, Place
from tests.golden.golden_tables import unzip_table
from tests.tables import TRIPS, TYPE, TYPES, trips

STRATEGY = "hoodie.clustering.updates.strategy"
_PACKAGE = "org.apache.hudi.client.clustering.update.strategy."
ALLOW = {
    STRATEGY: f"{_PACKAGE}SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
INDEX = "hoodie.index.type"
BY_KEY = {**TRIPS, INDEX: "BLOOM"}
MODES = {"single": {}, "several": BESIDE_OTHERS}
FIRST = trips(("0", "x", 0, 0.0), ("0", "y", 0, 0.0))
UPDATE = trips(("0", "x", 1, 1.0))
GOLDEN = "v6_cow_clustering_requested"


def _planned(kind: str, mode: str, **options: str) -> tuple[Place, str]:
    """A table with a clustering of the file group of partition x."""
    place = Place({**BY_KEY, TYPE: kind, **MODES[mode], **options})
    place.table.upsert(FIRST)
    time = following(_latest(place.table.timeline))
    foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
    return place, time


def _latest(timeline: Timeline) -> str:
    assert timeline.latest_time is not None
    return timeline.latest_time


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TYPES)
def test_file_groups_of_a_pending_clustering_are_not_changed(kind: str, mode: str) -> None:
    place, time = _planned(kind, mode)
    for write in (
        lambda: place.table.upsert(UPDATE),
        lambda: place.table.delete(UPDATE.select(["id", "city"])),
        lambda: place.table.delete_partitions("x"),
        lambda: place.table.overwrite(UPDATE),
    ):
        with pytest.raises(ClusteringConflictError, match=f"clustering {time} .*x/") as raised:
            write()
        assert raised.value.instant_time == time
        root = place.storage.root
        for command in (f"cluster {root}", f"rollback {root} {time}"):
            assert f"`hoodie-py {command}`" in str(raised.value)
    assert place.rows() == [("0", "x", 0, 0.0), ("0", "y", 0, 0.0)]
    assert time in {i.time for i in place.table.timeline.pending}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TYPES)
def test_other_file_groups_are_written_to(kind: str, mode: str) -> None:
    """An insert into the same partition too: it leaves the small file that is planned alone."""
    place, time = _planned(kind, mode)
    place.table.upsert(trips(("0", "y", 2, 2.0), ("1", "x", 3, 3.0)))
    place.table.insert(trips(("2", "x", 4, 4.0)))
    rows = [("0", "x", 0, 0.0), ("0", "y", 2, 2.0), ("1", "x", 3, 3.0), ("2", "x", 4, 4.0)]
    assert place.rows() == rows
    assert [i.time for i in place.table.timeline.pending] == [time]
    planned = foreign.slices(place.storage, "x")[:1]
    written = {
        FileGroupId(stat.partition_path, stat.file_id)
        for instant in place.table.timeline.commits[1:]
        for stat in read_commit(place.storage, instant).stats
    }
    first = read_commit(place.storage, place.table.timeline.commits[0]).stats
    mine = next(s.file_id for s in first if s.partition_path == "x")
    assert planned
    assert FileGroupId("x", mine) not in written


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("mode", MODES)
def test_a_clustering_gives_way_by_option(mode: str, state: State) -> None:
    place, time = _planned("COPY_ON_WRITE", mode, **ALLOW)
    if state is State.INFLIGHT:
        place.storage.put_if_absent(f".hoodie/{time}.replacecommit.inflight", b"")
    late = f"x/11111111-1111-1111-1111-111111111111-0_9-9-9_{time}.parquet"
    place.storage.put_if_absent(late, b"of the clustering")
    place.table.upsert(UPDATE)
    assert place.rows() == [("0", "x", 1, 1.0), ("0", "y", 0, 0.0)]
    timeline = load_timeline(place.storage, 1)
    assert timeline.pending == ()
    assert [i.state for i in timeline.rollbacks] == [State.COMPLETED]
    assert late not in place.storage.files


def test_an_overwrite_during_a_clustering_opens_its_own_instant() -> None:
    """The clustering's inflight file, which names no owner, is later than the batch's time."""
    place = Place({**BY_KEY, MODE: SEVERAL})
    place.table.upsert(FIRST)
    overwrite = {"hoodie.datasource.write.operation": "insert_overwrite"}
    begun = place.begin(trips(("9", "y", 9, 9.0)), **overwrite)
    time = following(begun.batch.proposed_time)
    foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
    place.storage.put_if_absent(f".hoodie/{time}.replacecommit.inflight", b"")
    begun.writer.commit([begun.write()])
    assert place.rows() == [("0", "x", 0, 0.0), ("9", "y", 9, 9.0)]
    pending = Instant(time, Action.REPLACE_COMMIT, State.INFLIGHT)
    assert load_timeline(place.storage, 1).pending == (pending,)


def test_updates_are_allowed_only_with_the_rollback() -> None:
    with pytest.raises(OptionError, match=r"rollback\.pending\.replacecommit\.on\.conflict = true"):
        WriteOptions.parse({"path": "/t", STRATEGY: ALLOW[STRATEGY]})
    assert WriteOptions.parse({"path": "/t", **ALLOW}).clustering.gives_way


def test_the_error_travels_between_processes() -> None:
    error = ClusteringConflictError("of clustering 1", "1")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.instant_time) == ("of clustering 1", "1")


def test_a_table_with_a_clustering_planned_by_hudi_is_written(tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(GOLDEN, tmp_path)))
    rows = table.read()
    planned, free = _rows_of(rows, "c32467c1"), _rows_of(rows, "67fb3cd2")
    with pytest.raises(ClusteringConflictError, match="city=ams/c32467c1"):
        table.upsert(planned)
    assert table.upsert(free).updated == free.num_rows > 0
    assert table.upsert(planned, ALLOW).updated == planned.num_rows > 0
    assert table.timeline.pending == ()
    assert table.read().num_rows == rows.num_rows


def _rows_of(rows: pa.Table, group: str) -> pa.Table:
    names = [name for name in rows.column_names if not name.startswith("_hoodie_")]
    return rows.filter(pc.starts_with(rows["_hoodie_file_name"], group)).select(names)
