"""What a batch of 1,000 rows and a read cost after 50, 500, 5,000 and 20,000 commits.

    .venv/bin/python benchmarks/timeline_length.py WORK

Tables of 4 file groups that were rewritten by every commit, with the older files cleaned; nothing
was archived. Their histories are put in place as files, in the form in which commits of this
library are. Each step is measured in a process that has worked on the table before, and in one
that knows nothing of it, as Spark begins one for each batch. Beside the seconds stands the number
of the requests that an object store would get: one for each file that is read or put, and for each
thousand names that are listed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from results import emit
from spark_side import session

import hoodie_ds
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.live_files import save_live_files
from hoodie_ds.timeline.bodies.commit_metadata import CHECKSUMS_KEY
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import V1

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
ROWS = 1_000
BETWEEN = timedelta(seconds=10)
TIME = "%Y%m%d%H%M%S%f"
AT_ONCE = 64
MICRO_BATCHES = 12
WARM_UP = 2
GOAL = 1.3
PAGE = 1_000


class Counting:
    """A storage that counts the requests that an object store would get.

    Parameters
    ----------
    inner : Storage
        Does the work.
    """

    def __init__(self, inner: Storage) -> None:
        self.requests = 0
        for name in ("read", "open_input", "open_output", "put_if_absent", "replace", "delete"):
            setattr(self, name, self._counted(getattr(inner, name)))
        self._inner = inner
        self.root = inner.root

    def _counted(self, operation: Callable[..., object]) -> Callable[..., object]:
        def once(*args: object, **named: object) -> object:
            self.requests += 1
            return operation(*args, **named)

        return once

    def list(self, path: str, recursive: bool = False, *, folders: bool = False) -> list[Any]:
        """Return the files in a folder, a page for each request."""
        found = self._inner.list(path, recursive, folders=folders)
        self.requests += 1 + len(found) // PAGE
        return found


def rows_of(number: int) -> pa.RecordBatch:
    """Return the rows of a batch; all batches have the same keys."""
    keys = pc.cast(pa.array(np.arange(ROWS)), pa.string())
    values = np.random.default_rng(number).random(ROWS)
    return pa.record_batch({"id": keys, "ts": np.full(ROWS, number), "fare": values})


@dataclass(frozen=True)
class SlowClock(SystemClock):
    """A clock that is behind.

    Parameters
    ----------
    behind : timedelta
        How far.
    """

    behind: timedelta = timedelta()

    def now_ms(self) -> int:
        """Return the time in milliseconds since the Unix epoch."""
        return super().now_ms() - self.behind // timedelta(milliseconds=1)


def write(
    options: dict[str, str], storage: Storage, number: int, behind: timedelta = timedelta()
) -> None:
    """Write a micro-batch."""
    coordinator = Coordinator(WriteOptions.parse(options), storage, SlowClock(behind), RandomIds())
    rows = rows_of(number)
    batch = coordinator.begin(rows.schema, "bench")
    message = write_task(batch, TaskId(), BatchId("bench", number), [rows], sole_writer=True)
    coordinator.commit([message])


def read(storage: Storage) -> None:
    """Read the table."""
    assert Scanner(SnapshotQuery(PinnedTable.latest(storage))).to_table().num_rows == ROWS


def later(time: str, number: int) -> str:
    """Return the instant time of a batch so many batches later."""
    began = datetime.strptime(f"{time}000", TIME) + number * BETWEEN
    return began.strftime(TIME)[:17]


def grow(path: Path, storage: Storage, length: int) -> None:
    """Let a table with one commit look as if its file groups had been rewritten so often."""
    (first,) = load_timeline(storage, 1).commits
    commit = read_commit(storage, first)
    action = Action.DELTA_COMMIT if first.action is Action.DELTA_COMMIT else Action.COMMIT
    for number in range(1, length + 1):
        newest = later(first.time, number)
        renamed = {
            stat.path: stat.path.replace(f"_{first.time}", f"_{newest}") for stat in commit.stats
        }
        body = replace(
            commit,
            stats=tuple(replace(s, path=renamed[s.path], log=None) for s in commit.stats),
        ).with_extra(
            {CHECKSUMS_KEY: json.dumps({renamed[p]: c for p, c in commit.checksums.items()})}
        )
        instant = Instant(newest, action, State.COMPLETED)
        for step, data in (
            (State.REQUESTED, b""),
            (State.INFLIGHT, b""),
            (State.COMPLETED, body.to_bytes()),
        ):
            (path / ".hoodie" / V1.file_name(instant.at(step))).write_bytes(data)
        if number == length:
            for old, new in renamed.items():
                os.rename(path / old, path / new)


def load(table_type: str, path: Path, length: int) -> dict[str, str]:
    """Make a table with so many commits; returns the options of its writes."""
    options = {**TABLE, "path": str(path), "hoodie.datasource.write.table.type": table_type}
    with patch.object(os, "fsync"):
        write(options, LocalStorage(str(path)), 0, behind=length * BETWEEN)
        grow(path, LocalStorage(str(path)), length - 2)
        local = LocalStorage(str(path))
        for _ in range(2 + length // AT_ONCE):  # as commits of this library leave a table
            save_live_files(local, load_timeline(local, 1))
        write(options, local, 1)
    return options


def timed(work: Callable[[], None]) -> float:
    """Return the seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Worker:
    """A process of its own that works on one table."""

    def __init__(self, options: dict[str, str]) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=self._serve, args=(options, theirs), daemon=True
        )
        self._process.start()

    def __call__(self, step: str, number: int) -> tuple[float, int]:
        """Return the seconds that a step takes, and the requests of one like it."""
        self._pipe.send((step, number))
        seconds, requests = self._pipe.recv()
        return float(seconds), int(requests)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    @staticmethod
    def _serve(options: dict[str, str], pipe: Connection) -> None:
        local = LocalStorage(options["path"])
        counting = Counting(local)
        while True:
            step, number = pipe.recv()
            work = read if step == "read" else partial(write, options, number=number)
            seconds = timed(partial(work, local))
            counting.requests = 0
            work = read if step == "read" else partial(write, options, number=number + 1)
            work(counting)
            pipe.send((seconds, counting.requests))


def micro_batch(spark: SparkSession, options: dict[str, str], checkpoint: Path) -> float:
    """Return the median seconds of a Spark micro-batch of as many rows, trigger to trigger."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    events = source.selectExpr(
        "cast(value % 1000 as string) as id", "value as ts", "cast(value as double) as fare"
    )
    writer = hoodie_ds.shuffle_by_file_group(events, options).writeStream.format("hoodie_py")
    query = writer.options(**options).option("checkpointLocation", str(checkpoint)).start()
    while len(query.recentProgress) < MICRO_BATCHES:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        time.sleep(0.1)
    query.stop()
    taken = [progress["durationMs"]["triggerExecution"] for progress in query.recentProgress]
    return statistics.median(taken[WARM_UP:MICRO_BATCHES]) / 1000


def report(
    kind: str, commits: int, least: int, step: str, found: tuple[float, ...], number: int
) -> None:
    """Print the figures of a step, against those of the shortest timeline."""
    for unit, figure in zip(("s", "requests"), found, strict=False):
        name, base = (f"{kind}, {n:,} commits, {step}, {unit}" for n in (commits, least))
        against = None if commits == least else base
        goal = GOAL if against else None
        warm_up = number <= WARM_UP
        emit(name, figure, against=against, goal=goal, round=number, warm_up=warm_up)


def main() -> None:
    """Make the tables, then take turns in working on them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--commits", type=int, nargs="+", default=[50, 500, 5_000, 20_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--spark", action="store_true", help="micro-batches of Spark too")
    chosen = parser.parse_args()
    for table_type, kind in (("COPY_ON_WRITE", "COW"), ("MERGE_ON_READ", "MOR")):
        shutil.rmtree(chosen.work, ignore_errors=True)
        tables = {n: load(table_type, chosen.work / kind / str(n), n) for n in chosen.commits}
        os.sync()
        known = {n: Worker(options) for n, options in tables.items()}
        numbers = count(2, 2)
        for turn in range(1, WARM_UP + chosen.rounds + 1):
            for commits, options in tables.items():
                for step in ("read", "batch"):
                    new = Worker(options)
                    for name, worker in (("new process", new), ("known table", known[commits])):
                        found = worker(step, next(numbers))
                        least = min(chosen.commits)
                        report(kind, commits, least, f"{step}, {name}", found, turn)
                    new.stop()
        for worker in known.values():
            worker.stop()
        if chosen.spark:
            spark = session(2, "2g")
            for turn in range(1, WARM_UP + 2):
                for commits, options in tables.items():
                    checkpoint = chosen.work / f"{kind}-{commits}-{turn}"
                    seconds = micro_batch(spark, options, checkpoint)
                    least = min(chosen.commits)
                    report(kind, commits, least, "micro-batch of Spark", (seconds,), turn)
            spark.stop()
    shutil.rmtree(chosen.work)


if __name__ == "__main__":
    main()
