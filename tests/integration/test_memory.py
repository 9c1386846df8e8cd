"""The memory cap of a task, and what metrics say of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import StorageError
from hoodie_ds.sink.file_groups.bucket_writer import BucketWriter
from hoodie_ds.sink.file_groups.buffers import RowBuffer
from hoodie_ds.sink.messages import METRICS_KEY, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.timeline.loading import read_commit
from tests.tables import TRIPS, TYPE, TYPES, coordinator, trips

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "peak_memory.py"
ROWS = trips(*((f"k{i}", f"c{i % 2}", 1, float(i)) for i in range(20_000)))


@pytest.mark.slow
def test_four_times_the_cap_passes_within_it(tmp_path: Path) -> None:
    """The whole process, interpreter and libraries included, takes 350 MB more at most."""
    command = [sys.executable, str(BENCHMARK), str(tmp_path / "t"), "--cap", "64"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=400).stdout
    peaks = {line["work"]: line["seconds"] for line in map(json.loads, out.splitlines())}
    assert len(peaks) == 3
    assert max(peaks.values()) <= 64 + 350, peaks


@pytest.mark.parametrize("kind", TYPES)
def test_mini_batches_are_counted_in_the_commit(tmp_path: Path, kind: str) -> None:
    cap = 200_000
    more = {TYPE.replace(".", "__"): kind, "write__task__max__size": f"{cap}b"}
    writer = coordinator(tmp_path, **more)
    batch = writer.begin(ROWS.schema)
    message = write_task(batch, TaskId(), None, ROWS.to_batches(500), sole_writer=True)
    writer.commit([message])
    table = HoodieTable(str(tmp_path))
    assert table.read().num_rows == ROWS.num_rows
    (instant,) = table.timeline.commits
    metrics = json.loads(read_commit(writer.storage, instant).extra[METRICS_KEY])
    assert metrics["num_flushes"] == message.metrics.num_flushes > 4
    assert 0 < metrics["max_buffered_bytes"] <= cap
    assert metrics["flushed_bytes"] > ROWS.nbytes // 2


def test_a_buffer_is_held_until_its_flush_succeeded_and_a_failure_fails_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def fail(self: BucketWriter, rows: pa.Table) -> None:
        threads.append(threading.current_thread().name)
        raise StorageError("the disk is gone")

    monkeypatch.setattr(BucketWriter, "flush", fail)
    writer = coordinator(tmp_path, write__task__max__size="200000b")
    batch = writer.begin(ROWS.schema)
    with pytest.raises(StorageError, match="the disk is gone"):
        write_task(batch, TaskId(), None, ROWS.to_batches(500), sole_writer=True)
    assert threads[0].startswith("hoodie-flush")


def test_a_task_does_not_ask_all_of_its_buffers_for_each_file_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    class Counting(RowBuffer):
        def __getattribute__(self, name: str) -> object:
            nonlocal asked
            asked += name == "nbytes"
            return super().__getattribute__(name)

    monkeypatch.setattr("hoodie_ds.sink.file_groups.bucket_writer.RowBuffer", Counting)
    counts = []
    for number in (20, 40):
        asked = 0
        rows = trips(*((f"k{n}", f"c{n}", 1, 0.0) for n in range(number)))
        HoodieTable(str(tmp_path / str(number)), TRIPS).upsert(rows)
        counts.append(asked)
    assert counts[0]
    assert counts[1] <= 2 * counts[0]
