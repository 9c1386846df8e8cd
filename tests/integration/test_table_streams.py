"""A stream out of a table: what commits wrote, once each, from wherever it begins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.query_options import IncrementalOptions, StreamOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.datasource.compat import ReadAllAvailable, ReadMaxFiles
from hoodie_ds.datasource.source import HoodieDataSource
from hoodie_ds.datasource.stream_reader import HoodieStreamReader
from hoodie_ds.errors import OptionError, SchemaError, TimelineError
from hoodie_ds.reader.table_stream import TableStream
from hoodie_ds.storage.local import LocalStorage
from tests.faults.writers import MODE, SEVERAL, Place
from tests.tables import TRIPS, TYPE, TYPES, VERSION, trips

TYPE_OF_QUERY = "hoodie.datasource.query.type"
CDC = {
    TYPE_OF_QUERY: "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
Row = tuple[Any, ...]


class Source:
    """A table and the streams out of it."""

    def __init__(self, path: Path, **options: str) -> None:
        self.path = str(path / "table")
        self.table = HoodieTable(self.path, {**TRIPS, **options})

    def write(self, *keys: str, fare: float = 0.0) -> None:
        """One commit."""
        self.table.upsert(trips(*((key, "x", int(fare), fare) for key in keys)))

    def reader(self, **options: str) -> HoodieStreamReader:
        """As Spark makes one when a query begins."""
        source = HoodieDataSource({"path": self.path, **options})
        found = source.streamReader(source.schema())
        assert isinstance(found, HoodieStreamReader)
        return found

    def options(self, **options: str) -> ReadOptions:
        return ReadOptions.parse({"path": self.path, **options}, is_stream=True)


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    """What comes back of an offset that Spark has written down."""
    return cast(dict[str, Any], json.loads(json.dumps(offset)))


def rows_of(
    reader: HoodieStreamReader, start: dict[str, Any], end: dict[str, Any], *columns: str
) -> list[Row]:
    """The rows of a batch, by the split."""
    found: list[Row] = []
    for split in reader.partitions(through_json(start), through_json(end)):
        for batch in reader.read(split):
            picked = batch.select(columns or ["id", "fare"])
            found += zip(*(column.to_pylist() for column in picked.columns), strict=True)
    return sorted(found)


def batches(
    reader: HoodieStreamReader, start: dict[str, Any] | None = None, *columns: str
) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """End and rows of each batch until there is no news."""
    at = start or reader.initialOffset()
    while True:
        end = reader.latestOffset(through_json(at), reader.getDefaultReadLimit())
        if end == at:
            return
        yield end, rows_of(reader, at, end, *columns)
        reader.commit(end)
        at = end


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_each_commit_comes_once(kind: str, version: str, tmp_path: Path) -> None:
    source = Source(tmp_path, **{TYPE: kind, VERSION: version})
    source.write("a", "b", fare=1.0)
    source.write("a", fare=2.0)
    reader = source.reader(**{StreamOptions.max_commits.key: "1"})
    found = list(batches(reader))
    assert [rows for _, rows in found] == [[("a", 1.0), ("b", 1.0)], [("a", 2.0)]]
    source.write("c", fare=3.0)
    source.write("c", "d", fare=4.0)
    (last, rows), *rest = batches(source.reader(), found[-1][0])  # in another process
    assert (rows, rest) == ([("c", 4.0), ("d", 4.0)], [])
    assert not list(batches(source.reader(), last))
    assert not rows_of(reader, last, last)


@pytest.mark.parametrize("kind", TYPES)
def test_a_query_ends_where_a_column_is_renamed(kind: str, tmp_path: Path) -> None:
    source = Source(tmp_path, **{TYPE: kind})
    source.write("a")
    reader = source.reader()
    ((end, _),) = batches(reader)
    source.table.alter().rename("fare", "cost").execute()
    source.table.update({"cost": 1.0, "ts": 9})
    with pytest.raises(SchemaError, match=r"\(fare\); start it again"):
        list(batches(reader, end))
    ((_, rows),) = batches(source.reader(), end, "id", "cost")
    assert rows == [("a", 1.0)]


def test_the_newest_commit_is_reported_whatever_a_batch_takes(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a")
    source.write("b")
    reader = source.reader(**{StreamOptions.max_commits.key: "1"})
    assert reader.reportLatestOffset() is None
    (first, _), (second, _) = batches(reader)
    assert reader.reportLatestOffset() == second
    again = source.reader(**{StreamOptions.max_commits.key: "1"})
    assert again.latestOffset(again.initialOffset(), again.getDefaultReadLimit())
    assert again.reportLatestOffset() == second
    assert through_json(first) != second


def test_a_batch_that_comes_again_is_the_same(tmp_path: Path) -> None:
    """Also the first one: Spark asks for the beginning anew, and `latest` is another one then."""
    source = Source(tmp_path)
    source.write("a")
    reader = source.reader(**{StreamOptions.start.key: "latest"})
    start = reader.initialOffset()
    source.write("b")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert rows_of(reader, start, end) == [("b", 0.0)]
    source.write("c")
    again = source.reader(**{StreamOptions.start.key: "latest"})
    assert rows_of(again, again.initialOffset(), end) == [("b", 0.0)]
    assert [rows for _, rows in batches(again, end)] == [[("c", 0.0)]]


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_spark_before_4_2_asks_for_ends_alone(start: str, tmp_path: Path) -> None:
    """It names neither the begin of a batch nor a limit, and asks for the first begin later."""
    source = Source(tmp_path)
    source.write("a")
    reader = source.reader(**{StreamOptions.start.key: start})
    first = reader.latestOffset()
    source.write("b")
    expected = [("a", 0.0)] if start == "earliest" else []
    assert rows_of(reader, reader.initialOffset(), first) == expected
    second = reader.latestOffset()
    assert rows_of(reader, first, second) == [("b", 0.0)]
    assert reader.latestOffset() == second
    source.write("c")
    again = source.reader(**{StreamOptions.start.key: start})
    assert rows_of(again, second, again.latestOffset()) == [("c", 0.0)]


def test_where_a_stream_begins(tmp_path: Path) -> None:
    source = Source(tmp_path)
    assert source.table.upsert(trips(("a", "x", 1, 1.0)))
    first = source.table.timeline.commits[0].time
    source.write("b")
    for start, keys in (("earliest", "ab"), ("000", "ab"), (first, "b"), ("LATEST", "")):
        found = [rows for _, rows in batches(source.reader(**{StreamOptions.start.key: start}))]
        assert [key for rows in found for key, _ in rows] == list(keys)
    with pytest.raises(OptionError, match="allowed is earliest, latest, or an instant time"):
        source.reader(**{StreamOptions.start.key: "yesterday"})


def test_a_table_without_commits_is_waited_for(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.table.upsert(trips().slice(0, 0))
    reader = source.reader(**{StreamOptions.start.key: "latest"})
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start


def test_limits_of_a_batch(tmp_path: Path) -> None:
    source = Source(tmp_path)
    for number in range(5):
        source.write("a", fare=float(number))
    for options, sizes in (
        ({}, [1]),
        ({StreamOptions.max_commits.key: "2"}, [2, 2, 1]),
        ({StreamOptions.max_files.key: "3"}, [3, 2]),
        ({StreamOptions.max_files.key: "3", StreamOptions.max_commits.key: "2"}, [2, 2, 1]),
    ):
        reader = source.reader(**options)
        limit = reader.getDefaultReadLimit()
        assert isinstance(limit, ReadMaxFiles if options else ReadAllAvailable)
        found = list(batches(reader))
        assert len(found) == len(sizes)
        everything = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        assert everything["instant"] == found[-1][0]["instant"]


def test_a_commit_of_many_files_is_a_batch_of_its_own(tmp_path: Path) -> None:
    source = Source(tmp_path, **{"hoodie.bucket.index.num.buckets": "8"})
    for number in range(2):
        source.table.upsert(trips(*((f"k{n}", "x", number, 0.0) for n in range(40))))
    found = list(batches(source.reader(**{StreamOptions.max_files.key: "2"})))
    assert [len(rows) for _, rows in found] == [40, 40]


def test_a_query_that_takes_what_is_there_ends_there(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a")
    reader = source.reader(**{StreamOptions.max_commits.key: "1"})
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    source.write("b")
    assert [rows for _, rows in batches(reader, start)] == [[("a", 0.0)]]


def test_releases_of_spark_that_tell_no_start(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a")
    reader = source.reader(**{StreamOptions.start.key: "latest"})
    start = reader.initialOffset()
    source.write("b")
    end = reader.latestOffset()
    assert rows_of(reader, start, end) == [("b", 0.0)]
    assert reader.latestOffset() == end
    source.write("c")
    assert rows_of(reader, end, reader.latestOffset()) == [("c", 0.0)]


@pytest.mark.parametrize("version", ["6", "9"])
def test_compactions_and_clusterings_are_no_news(version: str, tmp_path: Path) -> None:
    source = Source(tmp_path, **{TYPE: "MERGE_ON_READ", VERSION: version})
    source.write("a", "b", fare=1.0)
    source.write("a", fare=2.0)
    assert source.table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    source.write("b", fare=3.0)
    found = [
        row
        for _, rows in batches(source.reader(**{StreamOptions.max_commits.key: "1"}))
        for row in rows
    ]
    assert found == [("a", 1.0), ("b", 1.0), ("a", 2.0), ("b", 3.0)]


def test_what_changed(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a", "b", fare=1.0)
    source.write("a", fare=2.0)
    source.table.delete(trips(("b", "x", 9, 9.0)))
    reader = source.reader(**CDC, **{StreamOptions.max_commits.key: "1"})
    found = [[op for (op,) in rows] for _, rows in batches(reader, None, "op")]
    assert found == [["i", "i"], ["u"], ["d"]]


def test_the_cleaner_was_faster(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a", "b", fare=1.0)
    reader = source.reader(**{StreamOptions.max_commits.key: "1"})
    ((first, _),) = batches(reader)
    for number in range(2, 8):
        source.write("a", fare=float(number))
    assert source.table.clean({"hoodie.clean.commits.retained": "1"})
    with pytest.raises(TimelineError, match="reaches back too far"):
        list(batches(reader, first))
    left = source.reader(**{IncrementalOptions.full_scan.key: "true"})
    assert [rows for _, rows in batches(left, first)] == [[("a", 7.0)]]
    # From the first commit on a reader of rows can ask for no more than is there.
    assert [rows for _, rows in batches(source.reader())] == [[("a", 7.0), ("b", 1.0)]]
    with pytest.raises(TimelineError):
        list(batches(source.reader(**CDC), None, "op"))


def test_a_commit_behind_an_incomplete_one_waits_in_version_6(tmp_path: Path) -> None:
    place = Place({**TRIPS, MODE: SEVERAL})
    options = ReadOptions.parse({"path": "memory://t"}, is_stream=True)
    stream = TableStream(place.storage, options)
    place.table.upsert(trips(("a", "x", 1, 1.0)))
    first = stream.next(stream.initial())
    slow = place.begin(trips(("b", "y", 1, 1.0)))
    message = slow.write()
    place.table.upsert(trips(("c", "z", 1, 1.0)))
    assert stream.next(first) == first
    slow.writer.commit([message])
    end = stream.next(first)
    assert end == place.table.timeline.commits[-1].time


def test_a_commit_that_comes_before_those_that_have_passed(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a")
    source.write("b")
    storage = LocalStorage(source.path)
    stream = TableStream(storage, source.options())
    passed = stream.next(stream.initial())
    early = source.table.timeline.commits[0]
    time = str(int(early.time) + 1)  # as of a writer whose clock is behind
    for name in ("commit.requested", "inflight", "commit"):
        body = storage.read(f".hoodie/{early.time}.{name}")
        storage.put_if_absent(f".hoodie/{time}.{name}", body)
    with pytest.raises(TimelineError, match=f"commit {time} was begun before {passed}"):
        stream.next(passed)
    fresh = TableStream(storage, source.options())
    assert fresh.next(passed) == passed


def test_options_of_other_queries_are_refused(tmp_path: Path) -> None:
    source = Source(tmp_path)
    source.write("a")
    for options, what in (
        (
            {IncrementalOptions.begin.key: "000", TYPE_OF_QUERY: "incremental"},
            "a stream has no end",
        ),
        ({"as.of.instant": "20260101000000"}, "a stream has no end"),
        ({TYPE_OF_QUERY: "read_optimized"}, "a stream returns what commits wrote"),
    ):
        with pytest.raises(OptionError, match=what):
            source.reader(**options)
    with pytest.raises(OptionError, match="say where the incremental query begins"):
        HoodieDataSource({"path": source.path, TYPE_OF_QUERY: "incremental"}).reader(
            HoodieDataSource({"path": source.path}).schema()
        )
    change_data = {"path": source.path, "hoodie.datasource.query.incremental.format": "cdc"}
    with pytest.raises(OptionError, match=r"set hoodie.datasource.query.type=incremental"):
        HoodieDataSource(change_data).reader(HoodieDataSource(change_data).schema())
    data_source = HoodieDataSource({"path": source.path})
    schema = replace_name(data_source.schema(), "id", "missing")
    with pytest.raises(SchemaError, match="'missing'"):
        data_source.streamReader(schema)


def replace_name(schema: Any, old: str, new: str) -> Any:
    """A schema of Spark's with a column under another name."""
    fields = [f for f in schema.fields if f.name != old]
    return type(schema)(fields).add(new, "string")
