"""Keys that inserts put into several file groups: upserts and deletes reach every copy.

As in Apache Hudi, whose bloom and simple indexes tag an incoming record with each stored location.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.hidden_columns import HIDDEN_COLUMNS, TASK_COLUMN
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.messages import METRICS_KEY, TaskCommitMessage, TaskId
from hoodie_ds.sink.replay.replay import total_digest
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.loading import read_commit
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, coordinator, found, trips

Row = tuple[str, str, int, float]

APART = {k: v for k, v in TRIPS.items() if k != BUCKETS} | {"hoodie.parquet.small.file.limit": "0"}
"""Every insert begins a file group."""


@pytest.fixture(autouse=True)
def no_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tables.TRIPS", APART)


def options(kind: str, index: str) -> dict[str, str]:
    return {**APART, TYPE: kind, "hoodie.index.type": index, "index.global.enabled": "false"}


def write(
    path: Path, rows: pa.Table, opts: dict[str, str], tasks: int, batch_id: BatchId | None = None
) -> list[TaskCommitMessage]:
    """Write rows in several tasks as the assigner says, or in one."""
    writer = coordinator(path, **{k.replace(".", "__"): v for k, v in opts.items()})
    owners = np.zeros(rows.num_rows)
    if tasks > 1:
        rows = pa.concat_tables(FileIdAssigner(writer.preview(rows.schema), tasks).assign(rows))
        owners = rows.column(TASK_COLUMN).to_numpy()
    batch = writer.begin(rows.schema)
    messages = [
        write_task(
            batch,
            TaskId(number, 1, number),
            batch_id,
            rows.filter(pa.array(owners == number)).to_batches(16),
            tasks == 1,
        )
        for number in range(tasks)
    ]
    writer.commit(messages)
    return messages


@pytest.mark.parametrize(
    ("kind", "index", "tasks"),
    [
        ("COPY_ON_WRITE", "BLOOM", 1),
        ("MERGE_ON_READ", "BLOOM", 3),
        ("COPY_ON_WRITE", "SIMPLE", 3),
        ("MERGE_ON_READ", "FLINK_STATE", 1),
    ],
)
def test_random_batches_change_every_copy(
    tmp_path: Path, kind: str, index: str, tasks: int
) -> None:
    draw = random.Random(f"{kind} {index} {tasks}")
    copies: dict[str, list[Row]] = {}
    for number in range(12):
        ids = sorted(set(draw.choices(range(12), k=6)))
        # A log file's late row after a delete leaves what the base file has, in Hudi too.
        begin = 9 * number if kind == "MERGE_ON_READ" else 0
        rows = [(f"k{i}", f"c{i % 2}", begin + draw.randrange(9), float(number)) for i in ids]
        operation = ("insert", "insert", "upsert", "delete")[number % 4]
        opts = options(kind, index) | {"hoodie.datasource.write.operation": operation}
        given = trips(*rows)
        if operation == "delete":  # without a time, so that it outranks no row that comes later
            rows = rows[:2]
            given = given.slice(0, 2).select(["id", "city"])
        messages = write(tmp_path, given, opts, tasks)
        if tasks > 1 and operation != "insert":
            assert not any(message.staged for message in messages)  # the commit moves no data
        for row in rows:
            stored = copies.setdefault(row[0], [])
            if operation == "insert" or (operation == "upsert" and not stored):
                stored.append(row)
            elif operation == "delete":
                stored.clear()
            else:
                stored[:] = [row if row[2] >= old[2] else old for old in stored]
        expected = sorted(row for rows in copies.values() for row in rows)
        assert found(HoodieTable(str(tmp_path))) == expected
        read = read_with_hudi_rs(tmp_path).select(trips().column_names).to_pylist()
        assert sorted(tuple(row.values()) for row in read) == expected
    assert max(Counter(row[0] for row in expected).values()) > 2


def write_assigned(writer: Coordinator, assigned: pa.Table) -> None:
    """Write rows that an assigner parted between two tasks."""
    batch = writer.begin(assigned.schema)
    owners = assigned.column(TASK_COLUMN).to_numpy()
    messages = [
        write_task(batch, TaskId(n, 1, n), None, assigned.filter(owners == n).to_batches())
        for n in range(2)
    ]
    writer.commit(messages)


def twice(path: Path, index: str = "BLOOM") -> dict[str, str]:
    """A table with two file groups that hold the same keys."""
    opts = options("COPY_ON_WRITE", index)
    for ts in (1, 2):
        HoodieTable(str(path), opts).insert(trips(*((f"k{i}", "x", ts, 0.0) for i in range(8))))
    return opts


def test_a_copy_counts_neither_as_a_row_nor_in_the_digest(tmp_path: Path) -> None:
    """So a batch is known again, however its rows are assigned when it comes a second time."""
    opts, rows = twice(tmp_path), trips(*((f"k{i}", "x", 5, 1.0) for i in range(8)))
    first = write(tmp_path, rows, opts, 4, BatchId("q", 0))
    assert sum(message.digest.num_rows for message in first) == 8
    dealt_out = write(tmp_path, rows, opts, 1, BatchId("q", 0))
    again = write(tmp_path, rows, opts, 4, BatchId("q", 0))
    assert [m.already_committed for m in [*dealt_out, *again]] == [True] * 5
    assert total_digest(first) == total_digest(dealt_out) == total_digest(again)
    assert len(HoodieTable(str(tmp_path)).timeline.commits) == 3


def test_copies_assigned_by_an_older_view_are_located_anew(tmp_path: Path) -> None:
    opts, rows = twice(tmp_path), trips(*((f"k{i}", "x", 5, 1.0) for i in range(8)))
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in opts.items()})
    assigned = pa.concat_tables(FileIdAssigner(writer.preview(rows.schema), 2).assign(rows))
    assert assigned.num_rows == 16
    plain = assigned.drop_columns(list(HIDDEN_COLUMNS))
    assert Counter(map(str, plain.to_pylist())) == Counter(map(str, rows.to_pylist() * 2))
    HoodieTable(str(tmp_path), opts).insert(trips(("k0", "x", 3, 0.0), ("new", "x", 3, 0.0)))
    write_assigned(writer, assigned)
    count = Counter(found(HoodieTable(str(tmp_path))))
    changed = {(f"k{i}", "x", 5, 1.0): 2 + (i == 0) for i in range(8)}
    assert count == {**changed, ("new", "x", 3, 0.0): 1}


@pytest.mark.parametrize(
    ("tasks", "index", "moves"),
    [
        (1, "GLOBAL_SIMPLE", True),
        (3, "GLOBAL_BLOOM", True),
        (3, "GLOBAL_SIMPLE", False),
        (1, "GLOBAL_BLOOM", False),
    ],
)
def test_to_a_global_index_each_copy_is_a_record(
    tmp_path: Path, index: str, moves: bool, tasks: int
) -> None:
    """As in Apache Hudi, but that copies that come to one partition are one record there."""
    opts = {k: v for k, v in options("COPY_ON_WRITE", index).items() if "global" not in k}
    for name in ("simple", "bloom"):
        opts[f"hoodie.{name}.index.update.partition.path"] = str(moves).lower()
    table = HoodieTable(str(tmp_path), opts)
    for city, ts in (("x", 1), ("y", 3)):
        table.insert(trips(*((key, city, ts, 0.0) for key in "abcde")))
    rows = trips(("a", "x", 5, 9.0), ("b", "y", 2, 9.0), ("c", "z", 4, 9.0))
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in opts.items()})
    batch = writer.begin(rows.schema)
    given = [rows.slice(n, 1) for n in range(3)] if tasks > 1 else [rows]
    writer.commit(
        [
            write_task(batch, TaskId(n, 1, n), None, part.to_batches(), tasks == 1)
            for n, part in enumerate(given)
        ]
    )
    table.delete(pa.table({"id": ["d"], "city": ["x"]}))
    partitions = table.read(columns=["id", "_hoodie_partition_path", "ts"]).to_pylist()
    seen = sorted(f"{id_}{path}{ts}" for id_, path, ts in (row.values() for row in partitions))
    moved, stayed = "ax5 by3 cz4 ex1 ey3", "ax5 ay5 bx2 by3 cx4 cy4 ex1 ey3"
    assert " ".join(seen) == (moved if moves else stayed)


def test_moved_copies_are_one_record_to_every_reader(tmp_path: Path) -> None:
    """Of two rows of a key in one base file, hudi-rs lets log files replace the first alone."""
    table = HoodieTable(str(tmp_path), options("MERGE_ON_READ", "GLOBAL_SIMPLE"))
    for ts in (1, 2):
        table.insert(trips(("k", "x", ts, 0.0)))
    result = table.upsert(trips(("k", "y", 3, 0.0)))
    assert (result.inserted, result.deleted) == (1, 2)
    again = table.upsert(trips(("k", "y", 4, 0.0)))
    assert (again.inserted, again.updated) == (0, 1)
    assert found(table) == [("k", "y", 4, 0.0)]
    table.delete(pa.table({"id": ["k"], "city": ["y"]}))
    assert found(table) == []
    assert read_with_hudi_rs(tmp_path).num_rows == 0


def test_a_late_row_stays_away_whichever_copies_remember_deletes(tmp_path: Path) -> None:
    """Deletes go to each slice that remembers the key, also where it is live in another one."""
    opts = options("MERGE_ON_READ", "SIMPLE") | {
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    for number in range(6):  # file ids are random
        table = HoodieTable(str(tmp_path / str(number)), opts)
        table.insert(trips(("k", "x", 10, 0.0)))
        table.insert(trips(("k", "x", 100, 0.0)))
        for ts in (50, 200):
            table.delete(trips(("k", "x", ts, 0.0)))
        table.upsert(trips(("k", "x", 150, 0.0)))
        assert found(table) == []
        table.upsert(trips(("k", "x", 250, 0.0)))
        assert found(table) == [("k", "x", 250, 0.0)]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite_table"])
def test_rows_assigned_for_another_operation_are_written_once(
    tmp_path: Path, operation: str
) -> None:
    opts, rows = twice(tmp_path), trips(("k0", "x", 5, 1.0), ("k1", "x", 5, 1.0))
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in opts.items()})
    assigned = pa.concat_tables(FileIdAssigner(writer.preview(rows.schema), 2).assign(rows))
    assert assigned.num_rows == 4
    opts["hoodie.datasource.write.operation"] = operation
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in opts.items()})
    write_assigned(writer, assigned)
    count = Counter(row[0] for row in found(HoodieTable(str(tmp_path))))
    assert (count["k0"], count["k1"]) == ((1, 1) if "overwrite" in operation else (3, 3))


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_rows_for_many_copies_are_held_within_the_cap(tmp_path: Path, index: str) -> None:
    table = HoodieTable(str(tmp_path), options("MERGE_ON_READ", index))
    small = trips(*((f"k{i}", "x", 1, 0.0) for i in range(1000)))
    for _ in range(12):
        table.insert(small)
    rows = small.drop_columns(["ts"]).append_column("ts", pa.array([2] * 1000))
    cap = 2 * rows.nbytes
    table.upsert(rows, {"write.task.max.size": f"{cap}b"})
    assert table.read(columns=["ts"])["ts"].to_pylist() == [2] * 12_000
    commit = read_commit(coordinator(tmp_path).storage, table.timeline.commits[-1])
    assert 0 < json.loads(commit.extra[METRICS_KEY])["max_buffered_bytes"] <= cap


@pytest.mark.parametrize("kind", TYPES)
def test_copies_in_one_file_group_become_one_record(tmp_path: Path, kind: str) -> None:
    """Apache Hudi changes the first of them alone, so that a deleted key is still read."""
    opts = options(kind, "BLOOM") | {"hoodie.parquet.small.file.limit": "104857600"}
    table = HoodieTable(str(tmp_path), opts)
    for ts in (1, 3):
        table.insert(trips(*((key, "x", ts, 0.0) for key in "abc")))
    (slice_,) = FileSystemView(coordinator(tmp_path).storage, table.timeline).latest_slices("x")
    assert slice_.base is not None
    result = table.upsert(trips(("a", "x", 5, 0.0), ("n", "x", 5, 0.0)))
    assert (result.inserted, result.updated) == (1, 1)
    table.delete(pa.table({"id": ["c"], "city": ["x"]}))
    expected = [("a", 5), ("b", 1), ("b", 3), ("n", 5)]
    assert [(row[0], row[2]) for row in found(table)] == expected


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("index", ["RECORD_INDEX", "RECORD_LEVEL_INDEX"])
def test_the_remedy_for_copies_takes_all_that_a_record_index_does_not_name(
    tmp_path: Path, kind: str, index: str
) -> None:
    opts = {**options(kind, index), "hoodie.write.table.version": "9"}
    table = HoodieTable(str(tmp_path), opts)
    table.upsert(trips(("k", "x", 1, 1.0), ("other", "x", 1, 1.0)))
    table.insert(trips(("k", "x", 2, 2.0)))
    finding = next(f for f in table.inspect.verify().findings if f.kind is Kind.DUPLICATE_KEY)
    (named,) = re.findall(r"hoodie\.index\.type=(\w+)", finding.remedy)
    assert table.delete(trips(("k", "x", 3, 3.0)), {"hoodie.index.type": named}).deleted == 2
    table.upsert(trips(("k", "x", 4, 4.0)))
    assert found(table) == [("k", "x", 4, 4.0), ("other", "x", 1, 1.0)]
    assert table.inspect.verify()
    assert table.inspect.verify_metadata_table()
