"""A batch that comes again: with the same rows it is done, with others it is refused (S13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, ReplayMismatchError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.timeline.bodies.commit_metadata import INPUTS_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import commit_path, instant_path
from tests.tables import KEY, TRIPS, TYPE, coordinator, found, tree, trips

ROWS = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0))
OTHER = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("d", "y", 1, 1.0))
TABLES = {
    "cow": {TYPE: "COPY_ON_WRITE"},
    "mor": {TYPE: "MERGE_ON_READ"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "no keys": {KEY: ""},
    "shared": {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"},
}


def rows(number: int) -> pa.Table:
    return trips((f"k{number}", "x", number, 0.0))


class Stream:
    """A query that writes batches as Spark has it done."""

    def __init__(self, path: Path, options: Mapping[str, str] | None = None) -> None:
        merged = {**TRIPS, **(options or {})}
        if "hoodie.index.type" in merged or not merged[KEY]:
            del merged["hoodie.bucket.index.num.buckets"]
        self.path = path
        self.options = {k: v for k, v in merged.items() if v}
        self.stage = 0

    @property
    def table(self) -> HoodieTable:
        return HoodieTable(str(self.path), self.options)

    def write(
        self, number: int, batch: pa.Table, query: str = "q", tasks: int = 1, size: int = 100
    ) -> None:
        writer = Coordinator.of(WriteOptions.parse({**self.options, "path": str(self.path)}))
        begun = writer.begin(batch.schema)
        self.stage += 1
        step = -(-batch.num_rows // tasks)
        messages = [
            write_task(
                begun,
                TaskId(task, self.stage, task),
                BatchId(query, number),
                batch.slice(task * step, step).to_batches(size),
                sole_writer=tasks == 1,
            )
            for task in range(tasks)
        ]
        writer.commit(messages)

    def refuses(self, number: int, batch: pa.Table, query: str = "q") -> str:
        before = tree(self.path)
        with pytest.raises(ReplayMismatchError) as raised:
            self.write(number, batch, query)
        assert tree(self.path) == before
        return str(raised.value)

    def passes_over(self, number: int, batch: pa.Table, query: str = "q") -> None:
        before = tree(self.path)
        self.write(number, batch, query)
        assert tree(self.path) == before


@pytest.fixture(params=TABLES)
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Stream:
    return Stream(tmp_path, TABLES[request.param])


def test_a_replay_of_the_same_rows_changes_nothing_and_of_others_is_refused(stream: Stream) -> None:
    stream.write(0, ROWS)
    stream.passes_over(0, ROWS)
    text = stream.refuses(0, OTHER)
    assert "batch 0 of query q is in the table with 3 rows with checksum" in text
    assert text.count("3 rows with checksum") == 2
    assert "hoodie.py.replay.accept.different=true" in text
    assert "Continue from the newest checkpoint of the query" in text
    assert "number greater" not in text
    stream.refuses(0, ROWS.slice(0, 2))
    stream.refuses(0, ROWS.slice(0, 0))
    stream.refuses(0, pa.concat_tables([ROWS, ROWS.slice(0, 1)]))
    stream.options["hoodie.py.replay.accept.different"] = "true"
    stream.passes_over(0, OTHER)
    stream.write(1, OTHER)
    assert len(stream.table.timeline.commits) == 2


def test_a_replay_may_differ_in_order_tasks_and_batch_sizes(stream: Stream) -> None:
    stream.options["write.task.max.size"] = "0.0005"  # several chunks in a task
    stream.write(0, ROWS, size=1)
    stream.options.pop("write.task.max.size")
    before = tree(stream.path)
    stream.write(0, ROWS.take([2, 0, 1]), tasks=2, size=1)
    stream.write(0, ROWS, tasks=3)
    stream.write(0, ROWS.take([1, 0, 2]))
    assert tree(stream.path) == before
    stream.refuses(0, OTHER)


def test_in_a_table_without_keys_every_column_counts(tmp_path: Path) -> None:
    stream = Stream(tmp_path, TABLES["no keys"])
    stream.write(0, ROWS)
    stream.refuses(0, trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.5)))


def test_a_replay_may_lack_columns_that_others_added(stream: Stream) -> None:
    stream.write(0, ROWS)
    stream.write(0, OTHER.append_column("tip", pa.array([0.5, None, 1.0])), query="other")
    stream.passes_over(0, ROWS)
    stream.refuses(0, OTHER)
    stream.write(1, OTHER.append_column("note", pa.array(["x", "y", "z"])))
    stream.passes_over(0, ROWS)
    stream.refuses(1, OTHER)
    stream.write(2, ROWS)
    stream.passes_over(2, ROWS)


@pytest.mark.parametrize("fares", [(7.0, 8.0, 9.0), (1.0, 1.0, None)])
def test_with_keys_the_values_count_too(stream: Stream, fares: tuple[float | None, ...]) -> None:
    stream.write(0, ROWS)
    stream.refuses(0, ROWS.set_column(3, "fare", pa.array(fares, pa.float64())))
    stream.passes_over(0, ROWS)


def test_swapped_values_are_other_rows(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    first, swapped = (
        (("a", "x", 1, 1.0), ("b", "x", 2, 2.0)),
        (("a", "x", 2, 2.0), ("b", "x", 1, 1.0)),
    )
    stream.write(0, trips(*first))
    stream.refuses(0, trips(*swapped))


def test_a_batch_without_rows_is_recorded(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {"hoodie.allow.empty.commit": "true"})
    stream.write(0, ROWS.slice(0, 0))
    stream.passes_over(0, ROWS.slice(0, 0))
    assert "with 0 rows" in stream.refuses(0, ROWS)


def test_a_batch_without_a_commit_had_no_rows(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.write(0, ROWS)
    stream.write(1, ROWS.slice(0, 0))
    stream.write(2, ROWS)
    stream.passes_over(1, ROWS.slice(0, 0))
    stream.options["hoodie.py.replay.accept.different"] = "true"
    text = stream.refuses(1, ROWS)
    assert "batch 1 of query q came with 3 rows after a later one, and no rows were ever" in text
    assert "the table has batches 0, 2 of the query" in text
    assert "Continue from the newest checkpoint of the query" in text


def test_an_old_checkpoint_is_detected_ten_batches_back(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    for number in range(12):
        stream.write(number, rows(number))
    for number in (0, 1):  # too long ago to know
        assert "up to 11, and knows the rows of only 2 to 11" in stream.refuses(number, rows(99))
        assert "may or may not be in the table" in stream.refuses(number, rows(number))
        stream.passes_over(number, rows(0).slice(0, 0))
    for number in range(2, 12):
        stream.passes_over(number, rows(number))
        stream.refuses(number, rows(99))


def test_batches_of_one_instant_are_distinguished(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {"hoodie.streaming.batches.per.commit": "3"})
    for number in range(3):
        stream.write(number, rows(number))
        for earlier in range(number + 1):
            stream.passes_over(earlier, rows(earlier))
            stream.refuses(earlier, rows(99))
    assert len(stream.table.timeline.commits) == 1


def test_a_batch_that_another_run_committed_meanwhile_is_compared_too(tmp_path: Path) -> None:
    """Two drivers with one checkpoint: the slower one's commit finds the batch in the table."""
    stream = Stream(tmp_path)
    stream.write(0, rows(0))
    writer = coordinator(tmp_path)
    begun = writer.begin(ROWS.schema)
    slower = {
        name: [write_task(begun, TaskId(0, stage), BatchId("q", 1), some.to_batches(), True)]
        for stage, (name, some) in enumerate({"same": ROWS, "other": OTHER}.items(), 100)
    }
    stream.write(1, ROWS)
    expected = found(stream.table)
    writer.commit(slower["same"])
    with pytest.raises(ReplayMismatchError):
        writer.commit(slower["other"])
    assert found(stream.table) == expected


def test_each_checkpoint_is_a_query_of_its_own(stream: Stream) -> None:
    stream.write(0, ROWS, query="one")
    stream.write(0, OTHER, query="two")
    stream.write(1, OTHER, query="one")
    assert len(stream.table.timeline.commits) == 3
    stream.passes_over(0, OTHER, query="two")
    stream.refuses(0, ROWS, query="two")
    stream.passes_over(0, ROWS, query="one")
    stream.refuses(1, ROWS, query="one")


def archive(path: Path, keep: int) -> None:
    """Take the oldest completed instants off the timeline, as Hudi's archiver does."""
    storage = open_storage(str(path))
    for instant in load_timeline(storage, 1).commits[:-keep]:
        for step in (
            instant_path(instant.at(State.REQUESTED)),
            instant_path(instant.at(State.INFLIGHT)),
            commit_path(instant),
        ):
            storage.delete(step)


def foreign_commit(path: Path) -> None:
    """Another engine commits, and copies nothing of what our commits carry."""
    storage = open_storage(str(path))
    newest = load_timeline(storage, 1).commits[-1]
    schema = read_commit(storage, newest).extra["schema"]
    later = Instant(str(int(newest.time) + 1), Action.COMMIT, State.COMPLETED)
    storage.put_if_absent(instant_path(later), CommitMetadata(extra={"schema": schema}).to_bytes(1))


def test_one_commit_of_ours_on_the_timeline_is_enough(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.write(0, rows(5), query="old")
    for number in range(3):
        stream.write(number, rows(number))
    stream.table.upsert(rows(50))  # no batch of a query
    archive(tmp_path, keep=1)
    for _ in range(3):
        foreign_commit(tmp_path)
    for query, number in (("old", 0), ("q", 0), ("q", 2)):
        stream.passes_over(number, rows(5 if query == "old" else number), query)
        stream.refuses(number, rows(99), query)
    stream.write(3, rows(3))
    archive(tmp_path, keep=1)
    stream.passes_over(0, rows(5), "old")
    stream.refuses(2, rows(99))


def test_without_our_commits_on_the_timeline_batches_are_still_known(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.write(0, rows(5), query="old")
    stream.write(0, rows(0))
    foreign_commit(tmp_path)
    writer = coordinator(tmp_path)
    write_task(writer.begin(ROWS.schema), TaskId(), BatchId("q", 1), rows(1).to_batches())
    writer.begin(ROWS.schema)  # rolls that back, by a decision of its own
    archive(tmp_path, keep=1)
    for query, first in (("old", 5), ("q", 0)):
        stream.passes_over(0, rows(first), query)
        stream.refuses(0, rows(99), query)
    stream.write(1, rows(1))
    assert coordinator(tmp_path).begin(ROWS.schema).guard.holds(BatchId("old", 0))


@pytest.mark.parametrize("entry", ["no json", "[1]", '{"q": 1}', '{"q": {"x": "1-0"}}'])
def test_a_damaged_entry_names_its_commit(tmp_path: Path, entry: str) -> None:
    stream = Stream(tmp_path)
    stream.write(0, ROWS)
    storage = open_storage(str(tmp_path))
    (instant,) = load_timeline(storage, 1).commits
    body = read_commit(storage, instant).with_extra({INPUTS_KEY: entry}).to_bytes(1)
    storage.replace(commit_path(instant), body)
    read_commit.cache_clear()
    with pytest.raises(CorruptFileError, match=r"commit.*not a JSON object of digests"):
        stream.write(1, ROWS)


def test_what_a_commit_carries_stays_small(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    for number in range(15):
        stream.write(number, rows(number))
    newest = stream.table.timeline.commits[-1]
    carried = json.loads(read_commit(open_storage(str(tmp_path)), newest).extra[INPUTS_KEY])
    assert sorted(map(int, carried["q"])) == list(range(5, 15))
