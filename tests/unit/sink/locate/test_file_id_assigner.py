"""The file id assigner: rows of one file group, and of one key, meet in one task."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, WriteConflictError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.hidden_columns import HIDDEN_COLUMNS, LOCATION_COLUMN, TASK_COLUMN
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.pinned_timeline import pin_timeline
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.timeline import Timeline
from tests.tables import BUCKETS, TRIPS, coordinator, found, trips

BLOOM = {k: v for k, v in TRIPS.items() if k != BUCKETS} | {"hoodie.index.type": "BLOOM"}
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
TASKS = 8


def writer(path: Path) -> Coordinator:
    return coordinator(path, hoodie__index__type="BLOOM")


@pytest.fixture(autouse=True)
def no_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tables.TRIPS", BLOOM)


def table_of(path: Path, partitions: int, groups: int, keys: int) -> pa.Table:
    """A table of so many file groups in each partition; returns all of its rows."""
    table = HoodieTable(str(path), {**BLOOM, **NEW_FILES})
    made = []
    for group in range(groups):
        made.append(
            trips(
                *(
                    (f"{city}-{group}-{key}", f"c{city}", 1, 0.0)
                    for city in range(partitions)
                    for key in range(keys)
                )
            )
        )
        table.upsert(made[-1])
    return pa.concat_tables(made)


def assign(path: Path, rows: pa.Table, num_tasks: int) -> pa.Table:
    assigner = FileIdAssigner(writer(path).preview(rows.schema), num_tasks)
    return pa.concat_tables(assigner.assign(rows))


def write(batch: Batch, rows: pa.Table) -> list[TaskCommitMessage]:
    """Each row where its task column says."""
    owners = rows.column(TASK_COLUMN).to_numpy()
    return [
        write_task(batch, TaskId(n, 1, n), None, rows.filter(pa.array(owners == n)).to_batches(16))
        for n in sorted(set(owners.tolist()))
    ]


def test_each_file_group_has_one_task_and_all_tasks_work(tmp_path: Path) -> None:
    stored = table_of(tmp_path, partitions=10, groups=2, keys=5)
    rows = assign(tmp_path, stored, TASKS)
    assert rows.drop_columns(list(HIDDEN_COLUMNS)).equals(stored)
    tasks: dict[str, set[int]] = {}
    files = HoodieTable(str(tmp_path)).read(columns=["id", "_hoodie_file_name"]).to_pylist()
    file_of = {row["id"]: row["_hoodie_file_name"] for row in files}
    for row in rows.select(["id", TASK_COLUMN]).to_pylist():
        tasks.setdefault(file_of[row["id"]], set()).add(row[TASK_COLUMN])
    assert len(tasks) == 20
    assert {len(found) for found in tasks.values()} == {1}
    assert len(set.union(*tasks.values())) > TASKS // 2  # partitions begin where their hash says


def test_64_file_groups_of_one_partition_are_even_on_8_tasks(tmp_path: Path) -> None:
    stored = table_of(tmp_path, partitions=1, groups=64, keys=1)
    rows = assign(tmp_path, stored, TASKS)
    assert np.bincount(rows.column(TASK_COLUMN).to_numpy()).tolist() == [8] * TASKS


def test_rows_of_a_new_key_go_to_one_task(tmp_path: Path) -> None:
    stored = table_of(tmp_path, partitions=1, groups=2, keys=3)
    new = trips(*((f"new{i % 40}", "c0", 1, 0.0) for i in range(400)))
    assigner = FileIdAssigner(writer(tmp_path).preview(stored.schema), TASKS)
    rows = pa.concat_tables([*assigner.assign(new.slice(0, 150)), *assigner.assign(new.slice(150))])
    tasks: dict[str, set[int]] = {}
    for row in rows.select(["id", TASK_COLUMN]).to_pylist():
        tasks.setdefault(row["id"], set()).add(row[TASK_COLUMN])
    assert {len(found) for found in tasks.values()} == {1}
    assert len(set.union(*tasks.values())) == TASKS


def test_rows_assigned_by_an_older_view_are_merged_by_the_commit(tmp_path: Path) -> None:
    stored = table_of(tmp_path, partitions=2, groups=2, keys=5)
    changed = stored.set_column(2, "ts", pa.array(np.full(stored.num_rows, 7)))
    assigned = assign(tmp_path, changed, 3)
    HoodieTable(str(tmp_path), BLOOM).upsert(trips(("other", "c0", 1, 0.0)))
    batch = writer(tmp_path).begin(assigned.schema)
    messages = write(batch, assigned)
    assert all(message.staged for message in messages)
    writer(tmp_path).commit(messages)
    rows = found(HoodieTable(str(tmp_path)))
    assert len(rows) == stored.num_rows + 1
    assert {row[2] for row in rows if row[0] != "other"} == {7}


def test_rows_assigned_by_different_views_are_refused(tmp_path: Path) -> None:
    """One task would take a key for new that another knows, and the table would have it twice."""
    table_of(tmp_path, partitions=1, groups=1, keys=1)
    rows = trips(("new", "c0", 1, 0.0), ("old", "c0", 1, 0.0))
    before = assign(tmp_path, rows, 2)
    HoodieTable(str(tmp_path), BLOOM).upsert(trips(("new", "c0", 1, 0.0)))
    after = assign(tmp_path, rows, 2)
    mixed = pa.concat_tables([before, after])
    batch = writer(tmp_path).begin(mixed.schema)
    with pytest.raises(WriteConflictError, match="can be run again"):
        write_task(batch, TaskId(), None, mixed.to_batches())
    apart = [
        write_task(batch, TaskId(n, 1, n), None, part.to_batches())
        for n, part in enumerate([before, after])
    ]
    with pytest.raises(WriteConflictError, match="can be run again"):
        writer(tmp_path).commit(apart)
    assert len(found(HoodieTable(str(tmp_path)))) == 2


def test_a_micro_batch_keeps_the_view_that_was_pinned_first(tmp_path: Path) -> None:
    table_of(tmp_path, partitions=1, groups=1, keys=1)
    look, number = partial(load_timeline, writer(tmp_path).storage, 1), BatchId("q", 0)
    storage = writer(tmp_path).storage
    first = pin_timeline(storage, number, look)
    table = HoodieTable(str(tmp_path), BLOOM)
    table.upsert(trips(("new", "c0", 1, 0.0)))
    again = pin_timeline(storage, number, look)
    assert again == first
    assert again.digest == first.digest
    later = pin_timeline(storage, BatchId("q", 1), look)
    assert later.digest != first.digest
    assert len(later.commits) == 2
    # Once its batch is committed, a view is forgotten; that of the coming one stays.
    coming = writer(tmp_path)
    batch = coming.begin(trips().schema)
    message = write_task(
        batch, TaskId(), number, trips(("b", "c0", 1, 0.0)).to_batches(), sole_writer=True
    )
    coming.commit([message])
    coming.begin(trips().schema)
    views = sorted(p.name for p in (tmp_path / ".hoodie/.temp/hoodie_ds/views").iterdir())
    assert views == ["q_1"]


def test_a_damaged_view_is_named(tmp_path: Path) -> None:
    table_of(tmp_path, partitions=1, groups=1, keys=1)
    storage = writer(tmp_path).storage
    look = partial(load_timeline, storage, 1)
    pin_timeline(storage, BatchId("q", 1), look)
    view = tmp_path / ".hoodie/.temp/hoodie_ds/views/q_1"
    nameless = json.loads(view.read_text()) | {"instants": [[1, 0]]}
    for damaged in (b'["2026', json.dumps(nameless).encode()):
        view.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match="views/q_1"):
            pin_timeline(storage, BatchId("q", 1), look)


def test_nothing_is_pinned_before_there_is_a_table(tmp_path: Path) -> None:
    begun = writer(tmp_path / "t")
    assert not pin_timeline(
        begun.storage, BatchId("q", 0), partial(load_timeline, begun.storage, 1)
    ).commits
    assert not (tmp_path / "t").exists()


def test_the_hidden_columns_are_not_stored(tmp_path: Path) -> None:
    rows = trips(("a", "x", 1, 0.0))
    assigned = assign(tmp_path, rows, 1)
    assert LOCATION_COLUMN in assigned.column_names
    batch = writer(tmp_path).begin(assigned.schema)
    writer(tmp_path).commit(write(batch, assigned))
    assert not set(HIDDEN_COLUMNS) & set(HoodieTable(str(tmp_path)).read().column_names)


def test_the_view_of_the_faster_task_is_used(tmp_path: Path) -> None:
    table_of(tmp_path, partitions=1, groups=1, keys=1)
    storage, number = writer(tmp_path).storage, BatchId("q", 3)
    first: list[Timeline] = []

    def look() -> Timeline:
        first.append(pin_timeline(storage, number, partial(load_timeline, storage, 1)))
        HoodieTable(str(tmp_path), BLOOM).upsert(trips(("new", "c0", 1, 0.0)))
        return load_timeline(storage, 1)

    assert pin_timeline(storage, number, look) == first[0]
    assert len(first[0].commits) == 1


def test_rows_moved_after_the_shuffle_are_refused(tmp_path: Path) -> None:
    """A task that has its keys to itself writes one that another left to the commit."""
    table_of(tmp_path, partitions=1, groups=2, keys=3)
    rows = trips(*((f"new{i}", "c0", 1, 0.0) for i in range(20)))
    assigned = assign(tmp_path, rows, 2)
    owners = assigned.column(TASK_COLUMN).to_numpy()
    kept, moved = (assigned.filter(pa.array(owners == n)) for n in range(2))
    batch = writer(tmp_path).begin(assigned.schema)
    messages = [
        write_task(batch, TaskId(0, 1, 0), None, kept.to_batches()),
        write_task(batch, TaskId(5, 1, 5), None, moved.to_batches()),
    ]
    before = found(HoodieTable(str(tmp_path)))
    with pytest.raises(WriteConflictError, match="without another repartition or union"):
        writer(tmp_path).commit(messages)
    assert found(HoodieTable(str(tmp_path))) == before


def test_a_plan_uses_the_pinned_or_given_timeline(tmp_path: Path) -> None:
    stored = table_of(tmp_path, partitions=1, groups=1, keys=1)
    coordinator = writer(tmp_path)
    pin = partial(pin_timeline, coordinator.storage, BatchId("q", 0))
    pinned = coordinator.preview(stored.schema, pin=pin).timeline
    HoodieTable(str(tmp_path), BLOOM).upsert(trips(("new", "c0", 1, 0.0)))
    assert coordinator.preview(stored.schema, pin=pin).timeline == pinned
    assert coordinator.preview(stored.schema, pinned).timeline == pinned
    assert len(coordinator.preview(stored.schema).timeline.commits) == len(pinned.commits) + 1
