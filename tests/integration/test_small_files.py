"""Inserts fill small base files before they begin new ones, by Hudi's rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from xxhash import xxh3_128_hexdigest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.record.merge.merge_hook import Merged
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.loading import load_timeline, read_commit
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, KEY, ORDERING, TRIPS, TYPE, TYPES, coordinator, found, trips

BLOOM = {k: v for k, v in TRIPS.items() if k != BUCKETS} | {"hoodie.index.type": "BLOOM"}
ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
LIMIT = "hoodie.parquet.small.file.limit"
MAX = "hoodie.parquet.max.file.size"


def rows(first: int, count: int, ts: int = 1) -> pa.Table:
    return trips(*((f"k{i:04}", "x", ts, float(i)) for i in range(first, first + count)))


def slices(path: Path) -> list[FileSlice]:
    storage = coordinator(path).storage
    return FileSystemView(storage, load_timeline(storage, 1)).latest_slices("x")


def num_rows(path: Path) -> list[int]:
    """Rows of each file group, the largest first."""
    sizes: dict[str, int] = {}
    for name in HoodieTable(str(path)).read(columns=["_hoodie_file_name"]).to_pylist():
        group = name["_hoodie_file_name"].partition("_")[0]
        sizes[group] = sizes.get(group, 0) + 1
    return sorted(sizes.values(), reverse=True)


@pytest.mark.parametrize("kind", TYPES)
def test_small_batches_grow_one_file_group(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**BLOOM, TYPE: kind})
    for number in range(4):
        table.upsert(rows(10 * number, 10))
    assert num_rows(tmp_path) == [40]
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tasks", [1, 3])
def test_a_file_takes_as_many_rows_as_it_has_room_for(
    tmp_path: Path, kind: str, tasks: int
) -> None:
    opts = {**BLOOM, TYPE: kind, ESTIMATE: "1000"}
    HoodieTable(str(tmp_path), opts).upsert(rows(0, 10))
    (small,) = slices(tmp_path)
    room = 7
    given = {**opts, MAX: str(small.size + 1000 * room + 999)}
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in given.items()})
    # With an update of the same file group among them, in another task than most inserts.
    batch_rows = pa.concat_tables([rows(0, 1, ts=5), rows(10, 20)])
    batch = writer.begin(batch_rows.schema)
    owners = np.arange(batch_rows.num_rows) % tasks
    parts = [batch_rows.filter(pa.array(owners == n)).to_batches() for n in range(tasks)]
    writer.commit(
        [write_task(batch, TaskId(n, 1, n), None, p, tasks == 1) for n, p in enumerate(parts)]
    )
    # Merge-on-read: what another task appended to has a log file, and takes no inserts.
    filled = tasks == 1 or kind == "COPY_ON_WRITE"
    assert num_rows(tmp_path) == ([10 + room, 20 - room] if filled else [20, 10])
    table = HoodieTable(str(tmp_path))
    assert found(table) == [(f"k{i:04}", "x", 5 if i == 0 else 1, float(i)) for i in range(30)]
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


def test_a_merge_on_read_slice_with_a_log_file_is_left_alone(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**BLOOM, TYPE: "MERGE_ON_READ"})
    table.upsert(rows(0, 10))
    table.upsert(rows(0, 1, ts=2))
    (before,) = slices(tmp_path)
    assert len(before.logs) == 1
    table.upsert(rows(10, 5))
    assert num_rows(tmp_path) == [10, 5]
    assert before in slices(tmp_path)
    # The new group has no log files and takes the next inserts, one group at a time.
    table.upsert(rows(15, 5))
    assert num_rows(tmp_path) == [10, 10]


@pytest.mark.parametrize(
    ("more", "operation"),
    [({LIMIT: "0"}, "upsert"), ({LIMIT: "-1"}, "insert"), ({}, "bulk_insert")],
)
def test_new_file_groups_where_they_are_asked_for(
    tmp_path: Path, more: dict[str, str], operation: str
) -> None:
    opts = {**BLOOM, **more, "hoodie.datasource.write.operation": operation}
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in opts.items()})
    for number in range(3):
        batch = writer.begin(rows(0, 1).schema)
        chunks = rows(10 * number, 10).to_batches()
        writer.commit([write_task(batch, TaskId(), None, chunks, sole_writer=True)])
    assert num_rows(tmp_path) == [10, 10, 10]


def test_tasks_that_only_insert_claim_a_small_file_each(tmp_path: Path) -> None:
    opts = {**BLOOM, "hoodie.datasource.write.operation": "insert"}
    for first in (0, 10):
        HoodieTable(str(tmp_path), {**opts, LIMIT: "0"}).insert(rows(first, 10))
    writer = coordinator(tmp_path, **{k.replace(".", "__"): v for k, v in opts.items()})
    batch = writer.begin(rows(0, 1).schema)
    messages = [
        write_task(batch, TaskId(n, 1, n), None, rows(20 + 5 * n, 5).to_batches()) for n in range(3)
    ]
    # A second attempt of the last task finds all files taken, and is the one that counts.
    messages[1] = write_task(batch, TaskId(1, 1, 9), None, rows(25, 5).to_batches())
    writer.commit(messages)
    assert num_rows(tmp_path) == [15, 10, 5, 5]
    assert [row[0] for row in found(HoodieTable(str(tmp_path)))] == [f"k{i:04}" for i in range(35)]


@pytest.mark.parametrize("kind", TYPES)
def test_a_hook_sees_an_insert_once(tmp_path: Path, kind: str) -> None:
    calls: list[list[str]] = []

    def noted(old: pa.Table, new: pa.Table, no_old: np.ndarray) -> Merged:
        calls.append(new.column("id").to_pylist())
        return Merged(new)

    opts = {k: v for k, v in BLOOM.items() if k != ORDERING}
    opts |= {TYPE: kind, "hoodie.record.merge.mode": "CUSTOM"}
    table = HoodieTable(str(tmp_path), opts, merge_hook=noted)
    table.upsert(rows(0, 2))
    calls.clear()
    table.upsert(pa.concat_tables([rows(0, 1), rows(2, 2)]))
    assert sorted(key for call in calls for key in call if key > "k0001") == ["k0002", "k0003"]
    names = table.read(columns=["_hoodie_file_name"]).column(0).to_pylist()
    assert len({name.partition("_")[0] for name in names}) == 1


def test_what_memory_does_not_hold_is_set_aside(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**BLOOM, "write.task.max.size": "2k"})
    table.upsert(rows(0, 10))
    table.upsert(pa.concat_tables([rows(0, 5, ts=2), rows(10, 300)]))
    assert num_rows(tmp_path) == [310]
    assert [row[2] for row in found(table)] == [2] * 5 + [1] * 305
    (commit,) = HoodieTable(str(tmp_path)).timeline.commits[1:]
    (stat,) = read_commit(coordinator(tmp_path).storage, commit).stats
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (310, 300, 5)


def test_a_table_without_keys_is_packed_by_option(tmp_path: Path) -> None:
    keyless = {k: v for k, v in BLOOM.items() if k not in (KEY, "hoodie.index.type")}
    table = HoodieTable(str(tmp_path), keyless)
    table.insert(rows(0, 10))
    table.insert(rows(10, 10))
    assert num_rows(tmp_path) == [10, 10]
    (first, second) = sorted(slices(tmp_path), key=lambda found: found.base_instant)
    stamped = "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "id"
    before = table.read(columns=list(stamped)).sort_by("id")
    table.insert(rows(20, 10), {LIMIT: "1m"})
    assert num_rows(tmp_path) == [20, 10]
    after = table.read(columns=list(stamped)).sort_by("id")
    assert after.slice(0, 20).equals(before)  # rows that were there keep what they were stamped
    assert len(set(after.column("_hoodie_record_key").to_pylist())) == 30
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())
    assert {s.group for s in slices(tmp_path)} == {first.group, second.group}


def test_several_tasks_pack_a_table_without_keys(tmp_path: Path) -> None:
    keyless = {k: v for k, v in BLOOM.items() if k not in (KEY, "hoodie.index.type")}
    HoodieTable(str(tmp_path), keyless).insert(rows(0, 10))
    writer = Coordinator.of(WriteOptions.parse({**keyless, LIMIT: "1m", "path": str(tmp_path)}))
    batch = writer.begin(rows(0, 1).schema)
    chunks = [rows(10 + 5 * n, 5).to_batches() for n in range(3)]
    writer.commit([write_task(batch, TaskId(n, 1, n), None, c) for n, c in enumerate(chunks)])
    assert num_rows(tmp_path) == [15, 5, 5]
    assert [row[0] for row in found(HoodieTable(str(tmp_path)))] == [f"k{i:04}" for i in range(25)]


@pytest.mark.parametrize("kind", TYPES)
def test_new_file_groups_are_as_large_as_they_may_be(tmp_path: Path, kind: str) -> None:
    largest = 20_000
    table = HoodieTable(str(tmp_path), {**BLOOM, TYPE: kind, MAX: str(largest)})
    # Keys that do not compress, so that a file grows with its rows.
    keys = [xxh3_128_hexdigest(str(i).encode()) for i in range(5_000)]
    table.upsert(trips(*((key, "x", 1, float(i)) for i, key in enumerate(keys))))
    sizes = sorted(found.size for found in slices(tmp_path))
    assert len(sizes) > 3
    assert sizes[1] >= largest  # all but the last one are full
    assert table.read(columns=["id"]).sort_by("id").column(0).to_pylist() == sorted(keys)
