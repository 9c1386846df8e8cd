"""Tables with a global index: a key is stored once in the whole table, and moves as Hudi's do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.datasource.python_bucket import task_mapper
from hoodie_ds.errors import OptionError, RecordKeyError
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.record.keys.keygen import KeySpec
from hoodie_ds.record.merge.merge_hook import Merged
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from tests.integration.test_record_index_kept import assert_indexed
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.merge_hooks import MODE as CUSTOM
from tests.merge_hooks import add
from tests.rows import assert_same_rows
from tests.sent_rows import sent_by_key
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, TYPES, coordinator, found, tree, trips
from tests.tiers import by_day

INDEX = "hoodie.index.type"
MODE = "hoodie.record.merge.mode"
LOOKUP = {k: v for k, v in TRIPS.items() if k != BUCKETS}
RECORDS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
MARK = "_hoodie_is_deleted"

Row = tuple[str, str, int, float, bool]
"""id, city, ts, fare, whether it is a delete."""


@pytest.fixture(autouse=True)
def no_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tables.TRIPS", LOOKUP)


@dataclass
class Model:
    """What a table holds: of each key the row and the partition that it is in."""

    by_event_time: bool
    moves: bool

    def __post_init__(self) -> None:
        self.rows: dict[str, tuple[Row, str]] = {}

    def apply(self, rows: list[Row]) -> None:
        """Fold the rows of a batch by key, then merge what is left into what is stored."""
        newest: dict[str, Row] = {}
        for row in rows:
            if row[0] not in newest or self._wins(row, newest[row[0]]):
                newest[row[0]] = row
        for key, row in newest.items():
            old, place = self.rows.get(key, (None, row[1]))
            if old is None and row[4]:
                continue
            if old is None or self._wins(row, old):
                self.rows[key] = (row, row[1] if self.moves else place)
                if row[4]:
                    del self.rows[key]

    def _wins(self, new: Row, old: Row) -> bool:
        return not self.by_event_time or new[2] >= old[2]

    def live(self) -> list[tuple[str, str, int, float, str]]:
        return sorted((*row[:4], place) for row, place in self.rows.values())


def write(
    path: Path, rows: list[Row], opts: dict[str, str], tasks: int, shuffled: bool, marked: bool
) -> list[Row]:
    """Write rows by several tasks; returns them in the order in which they count."""
    writer = coordinator(path, **{k.replace(".", "__"): v for k, v in opts.items()})
    numbers = [
        sum(map(ord, row[0])) % tasks if shuffled else n % tasks for n, row in enumerate(rows)
    ]
    parts = [[row for row, at in zip(rows, numbers, strict=True) if at == n] for n in range(tasks)]
    tables = [arrow(part, marked) for part in parts]
    batch = writer.begin(tables[0].schema)
    messages: list[TaskCommitMessage] = []
    for number, table in enumerate(tables):
        if shuffled:
            table = sent_by_key(batch.plan, table, number, tasks)
        chunks = table.to_batches(16)
        messages.append(write_task(batch, TaskId(number, 1, number), None, chunks, tasks == 1))
    writer.commit(messages)
    return [row for part in parts for row in part]


def arrow(rows: list[Row], marked: bool) -> pa.Table:
    table = trips(*(row[:4] for row in rows))
    marks = pa.array([row[4] for row in rows], pa.bool_())
    return table.append_column(MARK, marks) if marked else table


def stored(path: Path) -> list[tuple[str, str, int, float, str]]:
    columns = ["id", "city", "ts", "fare", "_hoodie_partition_path"]
    rows = HoodieTable(str(path)).read(columns=columns).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


MOVES = [
    ("GLOBAL_BLOOM", True, 1, False, "1g", True, True),
    ("GLOBAL_BLOOM", True, 3, False, "1g", False, True),
    ("GLOBAL_BLOOM", True, 3, True, "4k", True, True),
    ("GLOBAL_BLOOM", False, 1, False, "4k", True, True),
    ("GLOBAL_BLOOM", False, 3, True, "1g", False, False),
    ("GLOBAL_SIMPLE", True, 3, False, "4k", True, True),
    ("GLOBAL_SIMPLE", True, 3, True, "1g", False, False),
    ("GLOBAL_SIMPLE", False, 3, False, "1g", True, False),
    ("FLINK_STATE", True, 1, False, "4k", False, True),
    ("FLINK_STATE", True, 3, True, "1g", True, False),
    ("RECORD_INDEX", True, 3, True, "1g", True, True),
    ("RECORD_INDEX", False, 1, False, "4k", False, False),
]


@pytest.mark.parametrize(
    ("kind", "index", "moves", "tasks", "shuffled", "memory", "marked", "by_event_time"),
    by_day(
        [(kind, *each) for each in MOVES for kind in TYPES],
        [(TYPES[(n + n // 2) % 2], *each) for n, each in enumerate(MOVES)],
    ),
)
def test_random_batches_give_the_model(
    tmp_path: Path,
    kind: str,
    index: str,
    moves: bool,
    tasks: int,
    shuffled: bool,
    memory: str,
    marked: bool,
    by_event_time: bool,
) -> None:
    draw = random.Random(11)
    mode = "EVENT_TIME_ORDERING" if by_event_time else "COMMIT_TIME_ORDERING"
    opts = {TYPE: kind, INDEX: index, MODE: mode, "write.task.max.size": memory}
    if index == "RECORD_INDEX":
        opts |= {**RECORDS, "hoodie.record.index.update.partition.path": str(moves).lower()}
    if not moves:
        opts["hoodie.bloom.index.update.partition.path"] = "false"
        opts["hoodie.simple.index.update.partition.path"] = "false"
    model = Model(by_event_time, moves)
    for number in range(5):
        deletes = not marked and number in (2, 4)
        rows: list[Row] = [
            (
                f"k{draw.randrange(25)}",
                f"c{draw.randrange(3)}",
                1 + draw.randrange(3 + 2 * number),
                100.0 * number + n,
                deletes or (marked and draw.random() < 0.2),
            )
            for n in range(10 if deletes else 45)
        ]
        more = {"hoodie.datasource.write.operation": "delete"} if deletes else {}
        model.apply(write(tmp_path, rows, {**opts, **more}, tasks, shuffled, marked))
        assert stored(tmp_path) == model.live()
        if index == "RECORD_INDEX":
            assert_indexed(open_storage(str(tmp_path)))
        assert_same_rows(read_with_hudi_rs(tmp_path), HoodieTable(str(tmp_path)).read())


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tasks", [1, 2])
def test_a_commit_that_does_not_come_about_leaves_both_partitions(
    tmp_path: Path, kind: str, tasks: int
) -> None:
    opts = {TYPE: kind, INDEX: "GLOBAL_BLOOM"}
    first: list[Row] = [("a", "x", 1, 1.0, False), ("b", "y", 1, 1.0, False)]
    write(tmp_path, first, opts, 1, False, False)
    before = stored(tmp_path)
    writer = coordinator(tmp_path)
    moved = arrow([("a", "y", 2, 2.0, False), ("b", "x", 2, 2.0, False)], False)
    batch = writer.begin(moved.schema)
    for number in range(tasks):
        part = moved.slice(number * 2 // tasks, 2 // tasks)
        write_task(batch, TaskId(number, 1, number), None, part.to_batches(), tasks == 1)
    assert stored(tmp_path) == before
    assert_same_rows(read_with_hudi_rs(tmp_path), HoodieTable(str(tmp_path)).read())
    write(tmp_path, [("a", "y", 2, 2.0, False)], opts, 1, False, False)
    assert stored(tmp_path) == [("a", "y", 2, 2.0, "y"), ("b", "y", 1, 1.0, "y")]


@pytest.mark.parametrize("kind", TYPES)
def test_a_partial_row_is_merged_before_it_is_placed(tmp_path: Path, kind: str) -> None:
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    opts = {**LOOKUP, TYPE: kind, INDEX: "GLOBAL_SIMPLE"}
    opts["hoodie.datasource.write.payload.class"] = payload
    table = HoodieTable(str(tmp_path), opts)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "x", 5, 1.0)))
    # No city, another city without a fare, another city too late: only b moves, with its fare.
    table.upsert(trips(("a", None, 2, 2.0), ("b", "y", 2, None), ("c", "y", 4, 2.0)))
    expected = [("a", "x", 2, 2.0, "x"), ("b", "y", 2, 1.0, "y"), ("c", "x", 5, 1.0, "x")]
    assert stored(tmp_path) == expected


@pytest.mark.parametrize("kind", TYPES)
def test_a_hook_sees_each_row_once_when_a_record_moves(tmp_path: Path, kind: str) -> None:
    calls: list[tuple[str, bool]] = []

    def noted(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        calls.extend(zip(new["id"].to_pylist(), no_old.to_pylist(), strict=True))
        return add(old, new, no_old)

    opts = {k: v for k, v in LOOKUP.items() if k != ORDERING}
    opts |= {TYPE: kind, INDEX: "GLOBAL_BLOOM", CUSTOM: "CUSTOM"}
    table = HoodieTable(str(tmp_path), opts, merge_hook=noted)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 5.0), ("c", "x", 1, 1.0)))
    assert sorted(calls) == [("a", True), ("b", True), ("c", True)]
    calls.clear()
    # b is merged to nothing, which leaves no row in either partition.
    table.upsert(trips(("a", "y", 1, 2.0), ("b", "y", 1, -5.0), ("a", "z", 1, 4.0)))
    assert [key for key, first in calls if first] == []
    rows = table.read(columns=["id", "fare", "_hoodie_partition_path"]).to_pylist()
    assert sorted(tuple(r.values()) for r in rows) == [("a", 7.0, "z"), ("c", 1.0, "x")]
    # A delete and a row after it: the row is none that is merged into what was there.
    mark = pa.array([True, False])
    again = trips(("c", "x", 1, 0.0), ("c", "y", 1, 3.0)).append_column(MARK, mark)
    table.upsert(again)
    rows = table.read(columns=["id", "fare", "_hoodie_partition_path"]).to_pylist()
    assert sorted(tuple(r.values()) for r in rows) == [("a", 7.0, "z"), ("c", 3.0, "y")]


def test_inserted_duplicates_are_those_of_the_whole_table(tmp_path: Path) -> None:
    policy = "hoodie.datasource.insert.dup.policy"
    table = HoodieTable(str(tmp_path), {**LOOKUP, INDEX: "GLOBAL_SIMPLE"})
    table.insert(trips(("a", "x", 1, 1.0)))
    rows = trips(("a", "y", 2, 2.0), ("b", "y", 1, 1.0), ("b", "z", 2, 2.0))
    before = tree(tmp_path / "x")
    with pytest.raises(RecordKeyError, match="'a' is stored in x/"):
        table.insert(rows, {policy: "fail"})
    table.insert(rows, {policy: "drop", "hoodie.combine.before.insert": "true"})
    assert found(table) == [("a", "x", 1, 1.0), ("b", "z", 2, 2.0)]
    assert tree(tmp_path / "x") == before
    table.insert(rows.slice(0, 1))  # without a policy a row comes beside what is there
    assert [row[0] for row in found(table)] == ["a", "a", "b"]
    table.overwrite(trips(("a", "y", 1, 1.0), ("b", "z", 3, 1.0)), partitions_only=True)
    assert found(table) == [("a", "x", 1, 1.0), ("a", "y", 1, 1.0), ("b", "z", 3, 1.0)]


@pytest.mark.parametrize("kind", TYPES)
def test_a_delete_finds_its_key_wherever_it_is(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, TYPE: kind, INDEX: "GLOBAL_BLOOM"})
    table.upsert(trips(("a", "x", 5, 1.0), ("b", "x", 5, 1.0), ("c", "y", 5, 1.0)))
    table.delete(pa.table({"id": ["a", "none"], "city": ["elsewhere", "x"]}))
    table.delete(trips(("b", "y", 4, 0.0), ("c", "z", 6, 0.0)))  # b's comes too late
    assert found(table) == [("b", "x", 5, 1.0)]
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {".hoodie", "x", "y"}


@pytest.mark.parametrize("kind", TYPES)
def test_a_record_that_came_back_is_found_by_an_index_of_partitions(
    tmp_path: Path, kind: str
) -> None:
    """In merge-on-read its first place still has it in the base file, deleted by a log file."""
    table = HoodieTable(str(tmp_path), {**LOOKUP, TYPE: kind, INDEX: "GLOBAL_BLOOM"})
    table.upsert(trips(("a", "x", 1, 1.0), ("other", "x", 1, 1.0)))
    table.upsert(trips(("a", "y", 2, 2.0)))
    table.upsert(trips(("a", "x", 3, 3.0)))
    for ts, index in enumerate(("BLOOM", "SIMPLE", "GLOBAL_SIMPLE"), start=4):
        table.upsert(trips(("a", "x", ts, 4.0)), {INDEX: index})
        assert found(table) == [("a", "x", ts, 4.0), ("other", "x", 1, 1.0)]


def test_the_state_index_may_be_one_of_partitions(tmp_path: Path) -> None:
    opts = {**LOOKUP, INDEX: "FLINK_STATE", "index.global.enabled": "false"}
    table = HoodieTable(str(tmp_path), opts)
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "y", 2, 2.0)))
    assert [row[:2] for row in found(table)] == [("a", "x"), ("a", "y")]


@pytest.mark.parametrize("index", ["GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_a_table_of_buckets_is_refused(tmp_path: Path, index: str) -> None:
    HoodieTable(str(tmp_path), {**LOOKUP, BUCKETS: "2"}).upsert(trips(("a", "x", 1, 1.0)))
    before = tree(tmp_path)
    with pytest.raises(OptionError, match=index):
        HoodieTable(str(tmp_path), {INDEX: index}).upsert(trips(("a", "y", 1, 1.0)))
    assert tree(tmp_path) == before


def test_a_row_goes_to_the_task_of_its_key_alone() -> None:
    spec = KeySpec(KeyGeneratorType.SIMPLE, ("id",), ("city",))
    buckets = Buckets(8, ("id",), ("id",))
    rows = pa.table({"id": ["a", "b", "c"] * 20, "city": [f"c{i // 3}" for i in range(60)]})
    (batch,) = list(task_mapper(buckets, spec, 8, True)(rows.to_batches()))
    tasks = batch.column(TASK_COLUMN).to_pylist()
    assert tasks == tasks[:3] * 20
    assert len(set(tasks)) > 1


@pytest.mark.parametrize("index", ["GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("num_keys", [1, 3, 25])
def test_few_keys_of_more_rows_than_a_task_holds(tmp_path: Path, index: str, num_keys: int) -> None:
    small = {"write.batch.size": "1MB", "write.task.max.size": "2MB", INDEX: index}
    table = HoodieTable(str(tmp_path), {**LOOKUP, **small})
    count = 300
    rows = trips(*((f"k{n % num_keys}", f"c{n % 2}", n, 0.0) for n in range(count)))
    rows = rows.append_column("pad", pa.array(["x" * 5_000] * count))
    table.upsert(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=5)))
    newest = {f"k{n % num_keys}": n for n in range(count)}
    read = table.read(["id", "ts"])
    assert sorted(zip(*read.to_pydict().values(), strict=True)) == sorted(newest.items())
