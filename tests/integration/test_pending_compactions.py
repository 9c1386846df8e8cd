"""Writes to a table in which a compaction is planned, by another engine or by us.

In table version 6 the log files that follow a plan are named after it, and the compaction's base
file begins the slice that they are of. Golden: `20261122051722086.deltacommit` of a table that
Apache Hudi wrote beside a plan of its own says of such a log file that its commit before is the
plan's, that it has no base file, and that it is the only one of its slice.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from hoodie_ds.errors import CorruptFileError, WriteConflictError
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline, read_commit
from tests.faults import foreign
from tests.faults.writers import BESIDE_OTHERS, Place
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

FIRST = trips(("0", "x", 0, 0.0), ("0", "y", 0, 0.0))
SECOND = trips(("0", "x", 1, 1.0), ("0", "y", 1, 1.0))
THIRD = trips(("0", "x", 2, 2.0), ("0", "y", 2, 2.0))
FOURTH = trips(("0", "x", 3, 3.0), ("1", "x", 3, 3.0))
_OFTEN = "hoodie.compact.inline.max.delta.commits"
MODES = {"single": {}, "several": BESIDE_OTHERS}
BLOOM = {BUCKETS: "", "hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "100"}


def _place(**options: str) -> Place:
    given = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", **options}
    place = Place({key: text for key, text in given.items() if text})
    place.table.upsert(FIRST)
    return place


def _upsert(place: Place, rows: pa.Table) -> None:
    place.clock.advance(1)
    place.table.upsert(rows)


def _plan(place: Place, partition: str = "x") -> tuple[str, list[FileSlice]]:
    time = following(str(load_timeline(place.storage, 1).latest_time))
    planned = foreign.slices(place.storage, partition)
    foreign.plan_compaction(place.storage, time, planned)
    place.clock.advance(10)
    return time, planned


def _logs(place: Place, partition: str) -> list[tuple[str, int]]:
    names = (path.rpartition("/")[2] for path in place.storage.files if path.startswith(partition))
    logs = filter(None, map(LogFileName.parse, names))
    return sorted((log.base_instant, log.version) for log in logs)


def test_log_files_after_a_plan_are_named_after_it() -> None:
    place = _place()
    _upsert(place, SECOND)
    first = load_timeline(place.storage, 1).commits[0].time
    time, _ = _plan(place)
    _upsert(place, THIRD)
    _upsert(place, FOURTH)
    assert _logs(place, "x") == [(first, 1), (time, 1), (time, 2)]
    assert _logs(place, "y") == [(first, 1), (first, 2)]
    assert place.rows() == [("0", "x", 3, 3.0), ("0", "y", 2, 2.0), ("1", "x", 3, 3.0)]


def test_what_a_commit_says_of_such_a_log_file_is_what_hudi_says() -> None:
    place = _place()
    _upsert(place, SECOND)
    time, _ = _plan(place)
    _upsert(place, THIRD)
    commit = read_commit(place.storage, load_timeline(place.storage, 1).commits[-1])
    planned, other = commit.stats
    assert planned.log is not None
    assert (planned.prev_commit, planned.log.base_file) == (time, "")
    assert planned.log.log_files == (planned.path.rpartition("/")[2],)
    assert other.log is not None
    assert re.fullmatch(r".*\.parquet", other.log.base_file)


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_goes_on_beside_a_compaction_that_it_knows_of(mode: str) -> None:
    place = _place(**MODES[mode])
    _upsert(place, SECOND)
    time, planned = _plan(place)
    batch = place.begin(THIRD)
    message = batch.write()
    foreign.complete_compaction(place.storage, time, planned)  # of the base file, without the log
    batch.writer.commit([message])
    assert place.rows() == [("0", "x", 2, 2.0), ("0", "y", 2, 2.0)]
    _upsert(place, FOURTH)
    assert _logs(place, "x")[1:] == [(time, 1), (time, 2)]
    assert place.rows() == [("0", "x", 3, 3.0), ("0", "y", 2, 2.0), ("1", "x", 3, 3.0)]


def test_a_batch_is_not_committed_on_a_compaction_that_was_cancelled_meanwhile() -> None:
    """Its log files would begin a slice of their own, and hide the one before."""
    place = _place()
    _upsert(place, SECOND)
    time, _ = _plan(place)
    batch = place.begin(THIRD)
    message = batch.write()
    place.storage.delete(f".hoodie/{time}.compaction.requested")
    with pytest.raises(WriteConflictError, match=f"compaction {time} was cancelled"):
        batch.writer.commit([message])
    assert place.rows() == [("0", "x", 1, 1.0), ("0", "y", 1, 1.0)]


def test_new_keys_do_not_go_into_a_small_file_that_is_planned() -> None:
    place = _place(**BLOOM)
    (before,) = foreign.slices(place.storage, "x")
    time, planned = _plan(place)
    _upsert(place, trips(("new", "x", 1, 1.0)))
    foreign.complete_compaction(place.storage, time, planned)
    assert place.rows() == [("0", "x", 0, 0.0), ("0", "y", 0, 0.0), ("new", "x", 1, 1.0)]
    after = foreign.slices(place.storage, "x")
    assert len(after) == 2
    assert before.group in {found.group for found in after}


def test_updates_of_a_planned_group_find_their_keys_in_either_slice() -> None:
    place = _place(**BLOOM)
    _upsert(place, SECOND)
    time, planned = _plan(place)
    _upsert(place, trips(("0", "x", 2, 2.0), ("new", "x", 2, 2.0)))
    assert (time, 1) in _logs(place, "x")
    _upsert(place, trips(("0", "x", 3, 3.0), ("new", "x", 3, 3.0)))
    expected = [("0", "x", 3, 3.0), ("0", "y", 1, 1.0), ("new", "x", 3, 3.0)]
    assert place.rows() == expected
    foreign.complete_compaction(place.storage, time, planned)
    assert place.rows() == expected


def test_an_overwrite_hides_a_planned_group_and_what_becomes_of_it() -> None:
    place = _place()
    _upsert(place, SECOND)
    time, planned = _plan(place)
    place.clock.advance(1)
    place.table.overwrite(FOURTH, partitions_only=True)
    foreign.complete_compaction(place.storage, time, planned)
    assert place.rows() == [("0", "x", 3, 3.0), ("0", "y", 1, 1.0), ("1", "x", 3, 3.0)]


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("back", ["rollback", "restore", "as of"])
@pytest.mark.parametrize("operation", ["overwrite", "delete_partitions"])
def test_a_group_that_was_replaced_after_its_plan_comes_back_whole(
    operation: str, back: str, version: str
) -> None:
    """Its log files after the plan belong to the base file that the compaction writes."""
    place = _place(**{VERSION: version})
    planning = {"hoodie.compact.schedule.inline": "true", _OFTEN: "1"}
    place.table.upsert(trips(("0", "x", 1, 1.0), ("1", "x", 1, 1.0)), planning)
    before = place.table.upsert(trips(("0", "x", 2, 2.0)))
    rows = place.rows()
    if operation == "overwrite":
        replacing = place.table.overwrite(FOURTH, partitions_only=True)
    else:
        replacing = place.table.delete_partitions("x")
    assert place.table.compact()
    if back == "rollback":
        place.table.rollback(replacing)
    if back == "restore":
        place.table.restore(before)
    as_of = before if back == "as of" else None
    read = place.table.read(columns=["id", "city", "ts", "fare"], as_of=as_of).to_pylist()
    assert sorted(tuple(row.values()) for row in read) == rows
    assert not place.table.inspect.verify().damage


def test_an_unreadable_plan_lets_no_write_guess() -> None:
    place = _place()
    time = following(str(load_timeline(place.storage, 1).latest_time))
    place.storage.put_if_absent(f".hoodie/{time}.compaction.inflight", b"")
    place.clock.advance(10)
    with pytest.raises(CorruptFileError, match=rf"{time}\.compaction\.requested is missing"):
        place.table.upsert(SECOND)
    assert place.rows() == [("0", "x", 0, 0.0), ("0", "y", 0, 0.0)]
