"""CDC queries without Hudi: where changes come from, what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import CorruptFileError, HoodieError, TimelineError
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.reader.query import open_query
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.timeline.paths import claim_path, instant_path
from tests.golden.golden_tables import CDC_QUERY, unzip_table
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

CDC = {"hoodie.table.cdc.enabled": "true"}


def told(changes: pa.Table) -> list[tuple[str, str, float | None, float | None]]:
    """What happened to whom: operation, key, fare before and after."""
    found = []
    for row in changes.to_pylist():
        images = [json.loads(row[side] or "null") for side in ("before", "after")]
        key = next(image["id"] for image in images if image)
        old, new = (image and image["fare"] for image in images)
        found.append((row["op"], key, old, new))
    return sorted(found)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("logged", [{}, CDC])
def test_changes_of_every_kind(
    logged: dict[str, str], kind: str, version: str, tmp_path: Path
) -> None:
    given = {**TRIPS, **logged, BUCKETS: "1", TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), given)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 2, 2.0), ("c", "x", 2, 2.0), ("a", "x", 0, 0.5)))
    table.delete(trips(("a", "x", 9, 9.0)).select(["id", "city"]))
    ends = [i.completion_time or i.time for i in table.timeline.completed]
    assert told(table.read_changes("000", ends[0])) == [
        ("i", "a", None, 1.0),
        ("i", "b", None, 1.0),
    ]
    assert told(table.read_changes(ends[0], ends[1])) == [
        ("i", "c", None, 2.0),
        ("u", "b", 1.0, 2.0),
    ]
    assert told(table.read_changes(ends[1])) == [("d", "a", 1.0, None)]
    table.delete_partitions("x")
    assert told(table.read_changes(ends[2])) == [("d", "b", 2.0, None), ("d", "c", 2.0, None)]
    assert table.read_changes(table.timeline.completed[-1].ended).num_rows == 0


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_row_that_an_older_one_brings_back_is_a_change(version: str, tmp_path: Path) -> None:
    """A delete without an ordering value hides the stored row, until an older one follows it."""
    given = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: version}
    table = HoodieTable(str(tmp_path), {**given, **CDC})
    table.upsert(trips(("a", "x", 5, 1.0), ("b", "x", 5, 1.0)))
    table.compact()
    table.delete(trips(("a", "x", 9, 9.0)).select(["id", "city"]))
    hidden = table.timeline.completed[-1].ended
    table.upsert(trips(("a", "x", 0, 0.5), ("c", "x", 5, 2.0)))
    rows = {row["id"]: row["fare"] for row in table.read(["id", "fare"]).to_pylist()}
    assert rows == {"a": 1.0, "b": 1.0, "c": 2.0}
    assert told(table.read_changes(hidden)) == [("i", "a", None, 1.0), ("i", "c", None, 2.0)]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_range_that_begins_at_the_last_change_has_none_twice(
    version: str, tmp_path: Path
) -> None:
    """What a change tells of its commit is the requested time, by which Hudi's range goes."""
    table = HoodieTable(str(tmp_path), {**TRIPS, VERSION: version})
    seen, after = [], "000"
    for key in "abc":
        table.upsert(trips((key, "x", 1, 1.0)))
        found = table.read_changes(after)
        seen += told(found)
        (after,) = found.column("ts_ms").to_pylist()
        assert after == table.timeline.completed[-1].time
        assert told(table.read_changes("000", after)) == seen
    assert seen == [("i", key, None, 1.0) for key in "abc"]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_that_overlaps_is_not_passed_over(version: str, tmp_path: Path) -> None:
    """It was begun before a commit of the range, and completed after the query."""
    table = HoodieTable(str(tmp_path), {**TRIPS, VERSION: version})
    for key in "abc":
        table.upsert(trips((key, "x", 1, 1.0)))
    slow, newest = table.timeline.completed[-2:]
    done = tmp_path / instant_path(slow)
    done.rename(tmp_path / "aside")
    open_storage(str(tmp_path)).put_if_absent(claim_path(slow.time), b"")  # its writer's
    with pytest.raises(TimelineError, match=f"{slow.time}.* may still be completed"):
        table.read_changes("000")
    waiting = {"hoodie.read.timeline.holes.resolution.policy": "BLOCK"}
    found = HoodieTable(str(tmp_path), waiting).read_changes("000")
    assert told(found) == [("i", "a", None, 1.0)]
    (tmp_path / "aside").rename(done)
    assert told(table.read_changes(found.column("ts_ms")[0].as_py(), newest)) == [
        ("i", "b", None, 1.0),
        ("i", "c", None, 1.0),
    ]


@pytest.mark.parametrize("version", ["6", "9"])
def test_changes_in_several_log_files_of_a_commit_come_once(version: str, tmp_path: Path) -> None:
    many = [(f"k{number:03}", "x", 1, 1.0) for number in range(300)]
    given = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: version}
    table = HoodieTable(str(tmp_path), {**given, "hoodie.logfile.max.size": "1000"})
    table.upsert(trips(*many))
    small = {"hoodie.logfile.max.size": "1000", "hoodie.logfile.data.block.max.size": "2000"}
    table = HoodieTable(str(tmp_path), {**given, **small})
    table.upsert(trips(*((key, city, 2, 2.0) for key, city, *_ in many)))
    assert len([*tmp_path.rglob(".*.log.*")]) > 1
    first = table.timeline.completed[0]
    assert told(table.read_changes(first.ended)) == [("u", key, 1.0, 2.0) for key, *_ in many]


@pytest.mark.parametrize("version", ["6", "9"])
def test_damaged_change_data_is_an_error(version: str, tmp_path: Path) -> None:
    given = {**TRIPS, **CDC, BUCKETS: "1", VERSION: version}
    table = HoodieTable(str(tmp_path), given)
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.5)))
    (file,) = tmp_path.rglob("*.cdc")
    whole, path = file.read_bytes(), str(file.relative_to(tmp_path))
    for damaged in (whole.replace(b"2.5", b"9.5"), whole.replace(b"a", b"b"), b"", whole[:-1]):
        if damaged == whole:
            continue
        file.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=path):
            HoodieTable(str(tmp_path)).read_changes("000")
        found = HoodieTable(str(tmp_path)).inspect.verify().damage
        assert [(one.kind, one.where) for one in found] == [(Kind.DAMAGED_FILE, path)]
    file.unlink()
    (missed,) = HoodieTable(str(tmp_path)).inspect.verify().damage
    assert (missed.kind, missed.where) == (Kind.MISSING_FILE, path)
    file.write_bytes(whole)
    assert HoodieTable(str(tmp_path)).inspect.verify()


def test_a_changes_query_can_be_pickled(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    asked = {**CDC_QUERY, "path": str(tmp_path)}
    asked["hoodie.datasource.read.begin.instanttime"] = "000"
    query = open_query(open_storage(str(tmp_path)), ReadOptions.parse(asked))
    (task,) = pickle.loads(pickle.dumps(list(query.plan().tasks)))
    assert (task.is_base_only, task.size > 0) == (False, True)
    (rows, *_) = pickle.loads(pickle.dumps(query)).plan().executor.read(task, ["ts_ms", "op"])
    assert rows.to_pylist() == [{"ts_ms": table.timeline.completed[0].time, "op": "i"}]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_was_before_is_gone(kind: str, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1", TYPE: kind})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)))
    first = table.timeline.completed[0]
    (old,) = tmp_path.glob(f"x/*_{first.time}.parquet")
    old.unlink()
    with pytest.raises(HoodieError, match=r"not known any more|is missing"):
        table.read_changes(first.ended)


def test_a_replaced_file_group_is_gone(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.delete_partitions("x")
    for file in tmp_path.glob("x/*.parquet"):
        file.unlink()
    with pytest.raises(TimelineError, match="not known any more"):
        table.read_changes(table.timeline.completed[0].ended)


def test_archived_changes_are_refused(tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table("v9_cow_archived", tmp_path)))
    with pytest.raises(TimelineError, match="has been archived"):
        table.read_changes("000")
