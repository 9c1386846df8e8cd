"""However rows come (one task or several, large buffers or tiny ones), the table is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import (
    CorruptFileError,
    RecordKeyError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.index.bucket_identifier import file_id
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import instant_path
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, coordinator, found, trips

_NONE: Mapping[str, str] = {}
FIRST = trips(*((f"k{i}", f"c{i % 2}", 5, float(i)) for i in range(40)))
# Late and newer versions, several of a key, in an order that decides ties.
SECOND = trips(
    *((f"k{i % 30}", f"c{i % 2}", 4 + (i + i // 30) % 3, 100.0 + i) for i in range(120)),
    *((f"n{i % 6}", f"c{i % 2}", i % 4, 500.0 + i) for i in range(40)),
)


def split(rows: pa.Table, tasks: int) -> list[pa.Table]:
    size = -(-rows.num_rows // tasks)
    return [rows.slice(number * size, size) for number in range(tasks)]


LITTLE = Limits(chunk_bytes=500)


def write_tasks(
    path: Path,
    rows: pa.Table,
    tasks: int,
    options: Mapping[str, str] = _NONE,
    chunk: int = 1000,
    limits: Limits | None = None,
) -> None:
    """One batch by so many tasks, each of which gets its rows in chunks."""
    writer = coordinator(path, limits, **options)
    batch = writer.begin(rows.schema)
    parts = split(rows, tasks)
    writer.commit(
        [
            write_task(batch, TaskId(number, 1, number), None, part.to_batches(chunk), tasks == 1)
            for number, part in enumerate(parts)
        ]
    )


def expected(*batches: pa.Table) -> list[tuple[str, str, int, float]]:
    """The rows by event time: the last of those with the largest value of ts."""
    rows: dict[str, tuple[str, str, int, float]] = {}
    for row in (tuple(row.values()) for batch in batches for row in batch.to_pylist()):
        if row[0] not in rows or row[2] >= rows[row[0]][2]:
            rows[row[0]] = row
    return sorted(rows.values())


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("task_bytes", ["1g", "2k"])
def test_tasks_and_buffers_do_not_show(
    tmp_path: Path, table_type: str, tasks: int, task_bytes: str
) -> None:
    options = {TYPE.replace(".", "__"): table_type}
    write_tasks(tmp_path, FIRST, tasks, options, limits=LITTLE)
    assert found(HoodieTable(str(tmp_path))) == expected(FIRST)
    sizes = {"write__task__max__size": task_bytes}
    write_tasks(tmp_path, SECOND, tasks, {**options, **sizes}, chunk=10, limits=LITTLE)
    table = HoodieTable(str(tmp_path))
    assert found(table) == expected(FIRST, SECOND)
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


@pytest.mark.parametrize("table_type", TYPES)
def test_a_tiny_buffer_is_flushed_from_the_first_batch_on(tmp_path: Path, table_type: str) -> None:
    options = {TYPE.replace(".", "__"): table_type, "write__task__max__size": "1k"}
    write_tasks(tmp_path, SECOND, 1, options, chunk=10, limits=LITTLE)
    table = HoodieTable(str(tmp_path))
    assert found(table) == expected(SECOND)
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


def test_copy_on_write_has_one_new_base_file_per_group(tmp_path: Path) -> None:
    write_tasks(tmp_path, FIRST, 1)
    write_tasks(tmp_path, SECOND, 3)
    storage = coordinator(tmp_path).storage
    stats = read_commit(storage, load_timeline(storage, 1).commits[-1]).stats
    groups = [(stat.partition_path, stat.file_id) for stat in stats]
    assert len(groups) == len(set(groups)) == 4
    assert sum(s.num_inserts for s in stats) == 6
    assert sum(s.num_update_writes for s in stats) == 30


def _shuffled(batch: Batch, task: int, told: int) -> TaskCommitMessage:
    rows = FIRST.append_column(TASK_COLUMN, pa.array([told] * FIRST.num_rows, pa.int32()))
    return write_task(batch, TaskId(task, 1, task), None, rows.to_batches())


def test_a_task_with_all_rows_of_its_groups_writes_base_files_itself(tmp_path: Path) -> None:
    writer = coordinator(tmp_path)
    schema = FIRST.schema.append(pa.field(TASK_COLUMN, pa.int32()))
    message = _shuffled(writer.begin(schema), 3, 3)
    assert message.staged == ()
    writer.commit([message])
    table = HoodieTable(str(tmp_path))
    assert found(table) == expected(FIRST)
    assert TASK_COLUMN not in table.schema.names


def test_rows_that_were_moved_after_the_shuffle_are_staged(tmp_path: Path) -> None:
    writer = coordinator(tmp_path)
    schema = FIRST.schema.append(pa.field(TASK_COLUMN, pa.int32()))
    message = _shuffled(writer.begin(schema), 3, 4)
    assert message.statuses == ()
    writer.commit([message])
    assert found(HoodieTable(str(tmp_path))) == expected(FIRST)


def test_two_base_files_of_one_group_are_refused(tmp_path: Path) -> None:
    writer = coordinator(tmp_path)
    schema = FIRST.schema.append(pa.field(TASK_COLUMN, pa.int32()))
    batch = writer.begin(schema)
    messages = [_shuffled(batch, task, task) for task in (1, 2)]
    with pytest.raises(WriteConflictError, match="without another repartition"):
        writer.commit(messages)
    assert HoodieTable(str(tmp_path)).read().num_rows == 0


@pytest.mark.parametrize("table_type", TYPES)
def test_a_null_key_in_a_later_chunk_fails_the_batch_and_leaves_no_row(
    tmp_path: Path, table_type: str
) -> None:
    options = {TYPE.replace(".", "__"): table_type}
    write_tasks(tmp_path, FIRST, 1, options)
    rows = pa.concat_tables([SECOND, trips((None, "c0", 9, 9.0))])  # type: ignore[arg-type]
    with pytest.raises(RecordKeyError):
        write_tasks(tmp_path, rows, 1, options, chunk=50, limits=Limits(chunk_bytes=1))
    assert found(HoodieTable(str(tmp_path))) == expected(FIRST)
    write_tasks(tmp_path, SECOND, 1, options)
    assert found(HoodieTable(str(tmp_path))) == expected(FIRST, SECOND)


def test_a_bucket_with_two_live_groups_is_refused_with_both_names(tmp_path: Path) -> None:
    write_tasks(tmp_path, FIRST, 1)
    storage = coordinator(tmp_path).storage
    first = load_timeline(storage, 1).commits[-1]
    # A second group of a bucket, as a writer with ids of its own would have made it.
    later = Instant("29991231235959000", Action.COMMIT, State.COMPLETED)
    stat = next(s for s in read_commit(storage, first).stats if s.file_id == file_id(0))
    twin = f"{stat.partition_path}/{BaseFileName(file_id(0, 7), '0-1-1', later.time)}"
    storage.put_if_absent(twin, storage.read(stat.path))
    named = replace(stat, file_id=file_id(0, 7), path=twin)
    storage.put_if_absent(instant_path(later), CommitMetadata((named,)).to_bytes(1))
    with pytest.raises(CorruptFileError) as caught:
        write_tasks(tmp_path, SECOND, 1)
    assert f"{stat.partition_path}/{file_id(0)}" in str(caught.value)
    assert f"{stat.partition_path}/{file_id(0, 7)}" in str(caught.value)


def test_a_file_group_of_no_bucket_in_the_partition_is_refused(tmp_path: Path) -> None:
    """Another index put rows where no bucket is; a key of theirs could be one of ours."""
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(trips(*((f"k{i}", "x", 1, 1.0) for i in range(9))))
    (path, *_) = sorted((tmp_path / "x").glob("*.parquet"))
    foreign = path.name.replace("00000000-0000-0000", "3f9c1d22-0000-0000")
    path.rename(path.with_name(foreign))
    (commit,) = (tmp_path / ".hoodie").glob("*.commit")
    commit.write_text(
        commit.read_text().replace("_hoodie_ds_", "_theirs_").replace(path.name, foreign)
    )
    table.upsert(trips(("k1", "y", 1, 1.0)))
    with pytest.raises(UnsupportedTableError, match="3f9c1d22"):
        table.upsert(trips(("k1", "x", 2, 1.0)))


def unrecorded(path: Path, rows: pa.Table, kind: str = TYPES[0]) -> HoodieTable:
    """A table as Hudi's Spark writer leaves it: only options say how many buckets there are."""
    table = HoodieTable(str(path), {**TRIPS, TYPE: kind})
    table.upsert(rows)
    file = path / ".hoodie/hoodie.properties"
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(BUCKETS)]
    assert len(kept) < len(lines)
    file.write_text("\n".join(kept))
    return table


@pytest.mark.parametrize("table_type", TYPES)
def test_a_number_of_buckets_other_than_the_writers_before_is_found_out(
    tmp_path: Path, table_type: str
) -> None:
    """Rows would go to other file groups than the stored ones of the same keys."""
    unrecorded(tmp_path, FIRST, table_type)
    before = found(HoodieTable(str(tmp_path)))
    with pytest.raises(UnsupportedTableError, match=f"of 3; .*another {BUCKETS}"):
        HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "3"}).upsert(SECOND)
    assert found(HoodieTable(str(tmp_path))) == before
    HoodieTable(str(tmp_path), TRIPS).upsert(SECOND)
    assert found(HoodieTable(str(tmp_path))) == expected(FIRST, SECOND)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_bucket_without_stored_rows_takes_new_ones(tmp_path: Path, table_type: str) -> None:
    """Nothing is left in its base file, or it has a log file of deletes alone."""
    row = trips(("a", "x", 1, 1.0))
    stored = row if table_type == "COPY_ON_WRITE" else row.slice(1)
    table = unrecorded(tmp_path, stored, table_type)
    table.delete(row.select(["id", "city"]))
    assert found(table) == []
    table.upsert(trips(("a", "x", 2, 2.0)))
    assert found(table) == [("a", "x", 2, 2.0)]


@pytest.mark.parametrize("damage", ["torn", "replaced", "empty", "flipped"])
def test_damaged_staged_rows_are_named_and_commit_nothing(tmp_path: Path, damage: str) -> None:
    writer = coordinator(tmp_path)
    batch = writer.begin(FIRST.schema)
    messages = [
        write_task(batch, TaskId(n, 1, n), None, part.to_batches())
        for n, part in enumerate(split(FIRST, 2))
    ]
    path = messages[1].staged[0].path
    body = (tmp_path / path).read_bytes()
    middle = len(body) // 2
    flipped = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
    left = {"torn": body[:middle], "replaced": b"x" * len(body), "empty": b"", "flipped": flipped}
    (tmp_path / path).write_bytes(left[damage])
    with pytest.raises(CorruptFileError, match=r"damaged.*; run the batch again") as raised:
        writer.commit(messages)
    assert path in str(raised.value)
    assert HoodieTable(str(tmp_path)).read().num_rows == 0
    write_tasks(tmp_path, FIRST, 2)
    assert found(HoodieTable(str(tmp_path))) == expected(FIRST)


def test_a_full_log_file_is_followed_by_the_next_version(tmp_path: Path) -> None:
    options = {TYPE.replace(".", "__"): "MERGE_ON_READ"}
    write_tasks(tmp_path, FIRST, 1, options, limits=LITTLE)
    sizes = {"write__task__max__size": "2k", "hoodie__logfile__max__size": "1b"}
    write_tasks(tmp_path, SECOND, 1, {**options, **sizes}, chunk=10, limits=LITTLE)
    storage = coordinator(tmp_path).storage
    slices = FileSystemView(storage, load_timeline(storage, 1)).latest_slices("c0")
    versions = [[log.name.version for log in slice_.logs] for slice_ in slices]
    assert max(map(len, versions)) > 1
    assert versions == [list(range(1, len(found) + 1)) for found in versions]
    table = HoodieTable(str(tmp_path))
    assert found(table) == expected(FIRST, SECOND)
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


def test_to_delete_named_partitions_rows_need_no_partition_columns(tmp_path: Path) -> None:
    """Whatever rows come: an engine that writes has to bring some."""
    write_tasks(tmp_path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), 1)
    named = {
        "hoodie__datasource__write__operation": "delete_partition",
        "hoodie__datasource__write__partitions__to__delete": "x",
    }
    write_tasks(tmp_path, pa.table({"id": ["b"]}), 1, named)
    assert found(HoodieTable(str(tmp_path))) == [("b", "y", 1, 1.0)]
