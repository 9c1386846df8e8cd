"""Queries of ranges and of earlier moments: what they open, what they refuse, how they pickle."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import CorruptFileError, OptionError, TimelineError, UnsupportedTableError
from hoodie_ds.reader.changes import changes
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.query import open_query
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import forget_process
from hoodie_ds.timeline.paths import claim_path, instant_path
from tests.golden.golden_tables import unzip_table
from tests.partial_updates import without_columns
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

READ = "hoodie.datasource.read."
QUERY = "hoodie.datasource.query.type"
Row = tuple[str, str]


def written(path: Path, version: str = "9", kind: str = "MERGE_ON_READ") -> HoodieTable:
    """A table of three commits: two rows, then one of them again, then a third."""
    table = HoodieTable(str(path), {**TRIPS, BUCKETS: "1", TYPE: kind, VERSION: version})
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 2, 2.0)))
    table.upsert(trips(("c", "y", 3, 3.0)))
    return table


def keys(rows: object) -> list[tuple[str, float]]:
    found = rows.select(["id", "fare"]).to_pylist()  # type: ignore[attr-defined]
    return sorted((row["id"], row["fare"]) for row in found)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_ranges_and_moments(version: str, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path, version, kind)
    first, second, third = table.timeline.completed
    ends = [i.completion_time or i.time for i in (first, second, third)]
    assert keys(table.read(as_of=first.time)) == [("a", 1.0), ("b", 1.0)]
    assert keys(table.read(as_of=second.time)) == [("a", 1.0), ("b", 2.0)]
    assert keys(table.read(as_of="2000-01-01")) == []
    assert keys(table.read_incremental("000", ends[0])) == [("a", 1.0), ("b", 1.0)]
    assert keys(table.read_incremental(ends[0], ends[1])) == [("b", 2.0)]
    assert keys(table.read_incremental(ends[0])) == [("b", 2.0), ("c", 3.0)]
    assert keys(table.read_incremental(ends[2])) == []
    assert keys(table.read_incremental("earliest")) == []
    assert table.read_incremental("000", columns=["fare"]).column_names == ["fare"]


def test_base_files_alone(tmp_path: Path) -> None:
    table = written(tmp_path)
    old = HoodieTable(str(tmp_path), {QUERY: "read_optimized"})
    assert keys(old.read()) == [("a", 1.0), ("b", 1.0), ("c", 3.0)]
    assert keys(old.read(as_of=table.timeline.completed[0].time)) == [("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("/x/*", ["a", "b"]),
        ("/{y,z}/*", ["c"]),
        ("/[!x]/????????-*", ["c"]),  # no folder of the path to the table
        ("/?/*[.]parquet", ["a", "b", "c"]),
        ("/[xy]/*.orc", []),
        (r"/\x/*", ["a", "b"]),
    ],
)
def test_a_glob_chooses_files(glob: str, found: list[str], tmp_path: Path) -> None:
    written(tmp_path, kind="COPY_ON_WRITE")
    table = HoodieTable(str(tmp_path), {f"{READ}incr.path.glob": glob})
    assert [key for key, _ in keys(table.read_incremental("000"))] == found


def test_columns_at_the_end_of_a_range(tmp_path: Path) -> None:
    table = written(tmp_path)
    end = table.timeline.completed[-1].ended
    more = trips(("d", "y", 4, 4.0))
    table.upsert(more.append_column("tip", more["fare"]))
    assert "tip" in table.read_incremental("000", end).column_names
    assert "tip" not in table.read(as_of=table.timeline.completed[-2].time).column_names
    then = HoodieTable(str(tmp_path), {f"{READ}schema.use.end.instanttime": "true"})
    assert "tip" not in then.read_incremental("000", end).column_names


def test_an_incremental_query_can_be_pickled(tmp_path: Path) -> None:
    written(tmp_path)
    asked = {QUERY: "incremental", f"{READ}begin.instanttime": "000", "path": str(tmp_path)}
    query = open_query(open_storage(str(tmp_path)), ReadOptions.parse(asked))
    tasks = pickle.loads(pickle.dumps(list(query.plan().tasks)))
    assert not any(task.is_base_only for task in tasks)
    executor = pickle.loads(pickle.dumps(query)).plan().executor
    rows = [rows for task in tasks for rows in executor.read(task, ["id"])]
    assert sum(part.num_rows for part in rows) == 3


def test_an_incomplete_commit_before_others(tmp_path: Path) -> None:
    table = written(tmp_path, "6")
    first, second, third = (i.time for i in table.timeline.completed)
    (tmp_path / ".hoodie" / f"{second}.deltacommit").unlink()
    open_storage(str(tmp_path)).put_if_absent(claim_path(second), b"")  # its writer's
    with pytest.raises(TimelineError, match=f"{second} deltacommit inflight is older than commits"):
        table.read_incremental("000")
    assert keys(table.read_incremental("000", first)) == [("a", 1.0), ("b", 1.0)]
    blocked = {"hoodie.read.timeline.holes.resolution.policy": "block"}
    assert keys(HoodieTable(str(tmp_path), blocked).read_incremental("000")) == [
        ("a", 1.0),
        ("b", 1.0),
    ]
    with pytest.raises(TimelineError, match="may change the answer"):
        table.read(as_of=third)


@pytest.mark.parametrize(("version", "scans"), [("6", False), ("9", True)])
def test_files_that_are_gone(version: str, scans: bool, tmp_path: Path) -> None:
    """Rows that later commits wrote again are not in the answer of a scan of the whole table."""
    table = written(tmp_path, version, "COPY_ON_WRITE")
    first = table.timeline.completed[0]
    (old,) = tmp_path.glob(f"x/*_{first.time}.parquet")
    old.unlink()
    scan = f"{READ}incr.fallback.fulltablescan.enable"
    found = [("a", 1.0)]
    for option in ("true", "false", None):
        asked = HoodieTable(str(tmp_path), {} if option is None else {scan: option})
        if option == "true" or (option is None and scans):
            assert keys(asked.read_incremental("000", first.ended)) == found
        else:
            with pytest.raises(TimelineError, match=rf"{first.time}\.parquet has been cleaned"):
                asked.read_incremental("000", first.ended)
    with pytest.raises(Exception, match="is missing"):
        table.read(as_of=first.time)


@pytest.mark.parametrize(("blocks", "is_hidden"), [("avro", True), ("parquet", False)])
def test_a_scan_of_the_whole_table_merges_what_came_later_as_hudi_does(
    blocks: str, is_hidden: bool, tmp_path: Path
) -> None:
    """Hudi leaves out later rows as it reads blocks of Parquet, and neither others nor deletes."""
    path, block_format = str(tmp_path), {"hoodie.logfile.data.block.format": blocks}
    table = written(tmp_path)
    first, second, _ = table.timeline.completed
    table.compact()
    table.upsert(trips(("b", "x", 4, 4.0)), block_format)
    (old,) = tmp_path.glob(f"x/*_{first.time}.parquet")
    old.unlink()
    found = [("a", 1.0)] if is_hidden else [("a", 1.0), ("b", 2.0)]
    assert keys(HoodieTable(path).read_incremental("000", second.ended)) == found
    assert keys(table.read_incremental("000")) == [("a", 1.0), ("b", 4.0), ("c", 3.0)]
    table.delete(trips(("a", "x", 5, 5.0)))
    assert keys(table.read_incremental("000", second.ended)) == found[1:]


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_of_some_columns_are_whole(version: str, blocks: str, tmp_path: Path) -> None:
    """They are those of the end of the range; Hudi 1.2 reads them as if nothing were lacking.

    Of a row that loses nothing is seen, whichever columns are asked for.
    """
    table = written(tmp_path, version)
    some = {"hoodie.logfile.data.block.format": blocks}
    with without_columns("id", "city", "fare"):
        table.upsert(trips(("b", "x", 4, None), ("c", "y", 0, None)), some)
    ends = [i.ended if version != "6" else i.time for i in table.timeline.completed]
    assert keys(table.read_incremental(ends[2], ends[3])) == [("b", 2.0)]
    assert table.read_incremental(ends[2], columns=["ts"])["ts"].to_pylist() == [4]
    table.upsert(trips(("b", "x", 5, 5.0)))
    table.compact()
    assert keys(table.read_incremental(ends[2], ends[3])) == [("b", 2.0)]
    assert keys(table.read_incremental(ends[1], ends[3])) == [("b", 2.0), ("c", 3.0)]
    assert keys(table.read_incremental("000", ends[3])) == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert keys(table.read_incremental(ends[3])) == [("b", 5.0)]
    first = table.timeline.completed[0].time
    next(tmp_path.glob(f"x/*_{first}.parquet")).unlink()
    with pytest.raises(CorruptFileError, match=rf"{first}\.parquet is missing"):
        table.read_incremental(ends[2], ends[3])


def test_a_scan_of_the_whole_table_has_whole_rows(tmp_path: Path) -> None:
    table = written(tmp_path)
    first, second, _ = table.timeline.commits
    table.compact()
    with without_columns("id", "city", "fare"):
        table.upsert(trips(("a", "x", 4, None)))
    next(tmp_path.glob(f"x/.*_{second.time}.log.*")).unlink()
    assert keys(table.read_incremental(first.ended)) == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_many_files_are_looked_up_at_once(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "64"})
    rows = trips(*((str(n), "x", 1, 1.0) for n in range(200)))
    table.upsert(rows)
    assert table.read_incremental("000").num_rows == 200
    next(iter(tmp_path.glob("x/*.parquet"))).unlink()
    with pytest.raises(TimelineError, match="has been cleaned"):
        table.read_incremental("000")


def test_archived_commits(tmp_path: Path) -> None:
    for name in ("v6_cow_archived", "v9_cow_archived"):
        path = unzip_table(name, tmp_path)
        strict = HoodieTable(str(path), {f"{READ}incr.fallback.fulltablescan.enable": "false"})
        with pytest.raises(TimelineError, match=r"has been archived|has been cleaned"):
            strict.read_incremental("000")
        loose = HoodieTable(str(path))
        assert keys_of(loose.read_incremental("000")) == keys_of(loose.read())
        cleans = [i for i in loose.timeline.completed if i.action.value == "clean"]
        for clean in cleans:
            for file in path.glob(f".hoodie/**/{clean.time}*"):
                file.unlink()
        first = loose.timeline.completed[0].time
        with pytest.raises(TimelineError, match="its commits have been archived"):
            loose.read(as_of=str(int(first) - 1))


@pytest.mark.parametrize(
    ("version", "kind"), [("6", "COPY_ON_WRITE"), ("6", "MERGE_ON_READ"), ("9", "MERGE_ON_READ")]
)
def test_a_range_that_reaches_into_the_archive_ends_where_it_ends(
    version: str, kind: str, tmp_path: Path
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, VERSION: version})
    moments = [dict[str, float]()]
    for number in range(1, 8):
        key = "abc"[number % 3]
        table.upsert(trips((key, "xyx"[number % 3], number, float(number))))
        moments.append({**moments[-1], key: float(number)})
    keep = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    assert table.archive({**keep, "hoodie.clean.commits.retained": "1"})
    left = table.timeline.commits
    for commit, rows in zip(left, moments[-len(left) :], strict=True):
        assert keys(table.read_incremental("000", commit.ended)) == sorted(rows.items())
    assert table.clean({"hoodie.clean.commits.retained": "1"}) or kind == "MERGE_ON_READ"
    if version == "6" and kind == "COPY_ON_WRITE":
        with pytest.raises(TimelineError, match="reaches back too far"):
            table.read_incremental("000", left[0].ended)


@pytest.mark.parametrize("is_news", [True, False])
def test_a_commit_that_took_long_is_archived(is_news: bool, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: "9"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    if not is_news:
        table.upsert(trips(("a", "x", 2, 2.0)))
        assert table.compact()
    for number in range(2, 8):
        table.upsert(trips(("b", "x", number, float(number))))
    slow, passed, last = (table.timeline.commits[i] for i in (0 if is_news else 2, -2, -1))
    folder = tmp_path / ".hoodie/timeline"
    (file,) = folder.glob(f"{slow.time}_*")
    file.rename(folder / f"{slow.time}_{int(last.ended) + 1}{file.suffix}")
    found = [("a", 1.0), ("b", 7.0)] if is_news else [("b", 7.0)]
    assert keys(table.read_incremental(passed.ended)) == found
    keep = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    assert table.archive({**keep, "hoodie.clean.commits.retained": "1"})
    assert slow.time not in {i.time for i in table.timeline.commits}
    assert keys(table.read_incremental(passed.ended)) == found
    assert table.read_changes(passed.ended).num_rows == 1  # by when commits were begun
    of_stream = IncrementalOptions(begin=passed.ended)
    pinned = PinnedTable.latest(open_storage(str(tmp_path)))
    if is_news:
        with pytest.raises(TimelineError, match=f"{slow.time} has been archived"):
            changes(pinned, of_stream)
    else:
        assert [i.time for i in changes(pinned, of_stream).commits] == [last.time]


def test_who_asks_from_earliest_on_is_told_what_hudi_makes_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0)))
    assert table.read_incremental("earliest").num_rows == 0
    assert "000 begins with the first commit" in caplog.text


def keys_of(rows: object) -> list[str]:
    return sorted(rows["_hoodie_record_key"].to_pylist())  # type: ignore[index]


def test_rows_without_a_commit_time_are_refused(tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table("v9_mor_virtual_keys", tmp_path)))
    with pytest.raises(UnsupportedTableError, match="which commit wrote them"):
        table.read_incremental("000")


def test_a_string_that_is_no_instant_time(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="allowed is an instant time"):
        written(tmp_path).read(as_of="yesterday")


def test_blocks_of_later_commits_in_a_log_file_of_the_range_do_not_count(tmp_path: Path) -> None:
    """Where the storage can append, Hudi writes several commits into one log file of version 6."""
    options = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: "6"}
    table = HoodieTable(tmp_path, {**options, "hoodie.logfile.data.block.format": "avro"})
    for order in range(1, 4):
        table.upsert(trips(("a", "x", order, float(order))))
    first, second, third = table.timeline.commits
    one, other = sorted(tmp_path.glob("x/.*.log.*"))
    one.write_bytes(one.read_bytes() + other.read_bytes())
    other.unlink()
    said = tmp_path / instant_path(third)
    body = json.loads(said.read_text().replace(other.name, one.name))
    body["extraMetadata"] = {"schema": body["extraMetadata"]["schema"]}  # nothing of ours
    said.write_text(json.dumps(body))
    forget_process()
    appended = HoodieTable(tmp_path)
    assert keys(appended.read_incremental(first.time, second.time)) == [("a", 2.0)]
    assert keys(appended.read_incremental(first.time)) == [("a", 3.0)]
