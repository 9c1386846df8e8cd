"""Tables without record keys: every row is kept, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import OptionError, StorageError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows, without_meta
from tests.tables import limited

OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.partitionpath.field": "day",
}


def events(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"n": pa.array(numbers), "day": [f"d{n % 3}" for n in numbers]})


def writer(path: Path, limits: Limits | None = None, /, **options: str) -> Coordinator:
    return limited(path, {**OPTIONS, **options}, limits)


def test_appended_rows_have_unique_keys(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), OPTIONS)
    table.insert(events(10))
    table.insert(events(10))
    rows = table.read()
    assert_same_rows(without_meta(rows), pa.concat_tables([events(10), events(10)]), ["n"])
    assert len(set(rows["_hoodie_record_key"].to_pylist())) == 20
    assert_same_rows(read_with_hudi_rs(tmp_path), rows)


def test_a_retry_writes_the_file_groups_of_the_first_attempt(tmp_path: Path) -> None:
    batch = writer(tmp_path).begin(events(1).schema)

    def write(task: TaskId) -> TaskCommitMessage:
        return write_task(batch, task, BatchId("q", 0), events(9).to_batches())

    def ids(message: TaskCommitMessage) -> set[str]:
        return {status.stat.file_id for status in message.statuses}

    one, other, retry = (write(TaskId(*numbers)) for numbers in [(0, 0, 1), (1, 0, 2), (0, 0, 3)])
    assert not ids(one) & ids(other)
    assert ids(one) == ids(retry)
    writer(tmp_path).commit([other, retry])
    assert HoodieTable(str(tmp_path)).read().num_rows == 18


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    size = {"hoodie.parquet.max.file.size": "1k", "hoodie.parquet.block.size": "1k"}
    coordinator = writer(tmp_path, Limits(chunk_bytes=1000), **size)
    message = write_task(
        coordinator.begin(events(1).schema), TaskId(), None, events(2000).to_batches(200)
    )
    assert len(message.statuses) > 3
    coordinator.commit([message])
    assert sorted(HoodieTable(str(tmp_path)).read()["n"].to_pylist()) == list(range(2000))


def test_an_error_in_the_encoder_reaches_the_task(tmp_path: Path) -> None:
    batch = writer(tmp_path).begin(events(1).schema)
    write_task(batch, TaskId(), None, events(1).to_batches())
    with pytest.raises(StorageError):  # the same attempt again finds its own file's name taken
        write_task(batch, TaskId(), None, events(1).to_batches())


def test_a_failed_task_leaves_no_open_files(tmp_path: Path) -> None:

    def rows() -> Iterator[pa.RecordBatch]:
        yield from events(60).to_batches(10)
        raise RuntimeError("the source is gone")

    coordinator = writer(tmp_path, Limits(chunk_bytes=1))
    batch = coordinator.begin(events(1).schema)
    with pytest.raises(RuntimeError, match="the source is gone"):
        write_task(batch, TaskId(), None, rows())
    files = [path for path in tmp_path.rglob("*") if path.is_file() and ".hoodie" not in path.parts]
    assert {path.name for path in files} == {".hoodie_partition_metadata"}  # the files were open
    HoodieTable(str(tmp_path), OPTIONS).insert(events(3))
    assert HoodieTable(str(tmp_path)).read().num_rows == 3


def test_an_upsert_without_keys_is_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), OPTIONS).insert(events(1))
    with pytest.raises(OptionError, match="has no record keys"):
        HoodieTable(str(tmp_path)).upsert(events(1))


def test_chunks_of_one_task_share_a_file_in_each_partition(tmp_path: Path) -> None:
    coordinator = writer(tmp_path, Limits(chunk_bytes=1))
    batch = coordinator.begin(events(1).schema)
    message = write_task(batch, TaskId(), None, events(60).to_batches(10))
    paths = [status.stat.partition_path for status in message.statuses]
    assert sorted(paths) == ["d0", "d1", "d2"]
    coordinator.commit([message])
    assert sorted(HoodieTable(str(tmp_path)).read()["n"].to_pylist()) == list(range(60))


def test_row_groups_of_all_open_files_stay_within_the_cap_of_a_task(tmp_path: Path) -> None:
    cap = 100_000
    coordinator = writer(tmp_path, **{"write.task.max.size": f"{cap}b"})
    rows = events(20_000).set_column(1, "day", pa.array([f"d{n % 20}" for n in range(20_000)]))
    batch = coordinator.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(200))
    assert len(message.statuses) == 20
    assert 0 < message.metrics.max_buffered_bytes <= cap
    coordinator.commit([message])
    assert sorted(HoodieTable(str(tmp_path)).read()["n"].to_pylist()) == list(range(20_000))
