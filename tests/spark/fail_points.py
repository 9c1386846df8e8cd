"""Named moments of a micro-batch at which something happens to the process that comes by.

Spark gets the real data source in classes of this module, so every worker process imports it, and
with it the hooks. A test arms a point by putting a file into a folder that the processes know from
their environment; whoever renames that file is struck, so one process is, once, also over restarts.
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from hoodie_ds.datasource.source import HoodieDataSource
from hoodie_ds.datasource.stream_writer import HoodieStreamWriter
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.retrying import RetryingStorage

FOLDER = "HOODIE_TEST_FAIL_POINTS"
DRIVER = "HOODIE_TEST_DRIVER"

_DATA = r"^(?!\.hoodie/).*\.(parquet$|log\.)"
_INSTANT = r"^\.hoodie/(timeline/)?\d+(_\d+)?\."  # in either layout
_COMMIT = _INSTANT + "(commit|deltacommit|replacecommit)"

POINTS: dict[str, tuple[str, str, str]] = {
    "before begin": ("begin", "before", ""),
    "begun": ("begin", "after", ""),
    "instant requested": ("put_if_absent", "after", _COMMIT + r"\.requested$"),
    "instant open": ("put_if_absent", "after", _INSTANT + r"(\w+\.)?inflight$"),
    "data file begun": ("open_output", "before", _DATA),
    "data file in the middle": ("open_output", "within", _DATA),
    "data file whole": ("open_output", "after", _DATA),
    "task done": ("write", "after", ""),
    "before commit": ("commit", "before", ""),
    "before the manifest": ("put_if_absent", "before", r"/manifest_\d+\.json$"),
    "manifest put": ("put_if_absent", "after", r"/manifest_\d+\.json$"),
    "turn taken": ("put_if_absent", "after", r"^\.hoodie/\.locks/decisions/\d+$"),
    "before the completed file": ("put_if_absent", "before", _COMMIT + "$"),
    "completed file put": ("put_if_absent", "after", _COMMIT + "$"),
    "before the Delta version": ("put_if_absent", "before", r"^_delta_log/\d+\.json$"),
    "Delta version put": ("put_if_absent", "after", r"^_delta_log/\d+\.json$"),
    "committed": ("commit", "after", ""),
    "rollback requested": ("put_if_absent", "after", r"\.rollback\.requested$"),
    "data file rolled back": ("delete", "after", _DATA),
    "rollback completed": ("put_if_absent", "after", r"\.rollback$"),
}
"""By name: the call, when in it, and a pattern of the path it is given."""


@dataclass(frozen=True)
class Armed:
    """What is to happen at a point.

    ``kill`` the driver, ``raise``, ``wait``, ``stop`` the query, or let all processes of the
    application ``stand still``.

    Parameters
    ----------
    point : str
        One of `POINTS`.
    action : str
        What happens.
    after : int
        How many batches must be in Spark's commit log before.
    seconds : float
        How long the process waits, after ``stop`` too, unless there is a file ``go``: it then
        goes on, late.
    """

    point: str
    action: str = "kill"
    after: int = 2
    seconds: float = 1.0

    def put(self, folder: Path) -> None:
        assert self.point in POINTS
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.iterdir()))
        (folder / f"{number:03}.armed").write_text(json.dumps(asdict(self)))


def struck(folder: Path) -> list[str]:
    """The points that have struck, in the order in which they were armed."""
    return [json.loads(path.read_text())["point"] for path in sorted(folder.glob("*.struck"))]


def attempts(folder: Path) -> list[tuple[str, int, int, int]]:
    """What tasks did: (began or ended, batch, partition, number of the attempt), in order."""
    lines = (folder / "attempts").read_text().splitlines()
    return [(word, int(batch), int(task), int(n)) for word, batch, task, n in map(str.split, lines)]


def register(spark: SparkSession) -> None:
    """Put the hooked data source in the real one's place."""
    spark.dataSource.register(Source)


class Source(HoodieDataSource):
    """The real one, whose streams have hooks."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        real = super().streamWriter(schema, overwrite)
        assert isinstance(real, HoodieStreamWriter)
        return Writer(real._options, real._batch)


class Writer(HoodieStreamWriter):
    """The real one; each attempt gets its rows in an order and in batches of its own (F12)."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = context.getLocalProperty("streaming.sql.batchId")
        attempt = f"{batch} {context.partitionId()} {context.attemptNumber()}"
        _note(f"began {attempt}")
        message = super().write(_mixed(iterator, context.taskAttemptId()))
        _reach("write", "after")
        _note(f"ended {attempt}")
        return message


def _mixed(batches: Iterator[pa.RecordBatch], seed: int) -> Iterator[pa.RecordBatch]:
    given = list(batches)
    if not given:
        return iter(given)
    rows = pa.Table.from_batches(given)
    draw = random.Random(seed)
    order = draw.sample(range(rows.num_rows), rows.num_rows)
    return iter(rows.take(pa.array(order, pa.int64())).to_batches(draw.randint(1, 200)))


def _note(line: str) -> None:
    with (Path(os.environ[FOLDER]).with_name("attempts")).open("a") as file:
        file.write(line + "\n")


def _reach(call: str, when: str, path: str = "") -> None:
    """Do what is armed for this moment, if anything is."""
    folder = Path(os.environ[FOLDER])
    for file in sorted(folder.glob("*.armed")):
        try:
            armed = Armed(**json.loads(file.read_text()))
        except FileNotFoundError:  # another process was struck
            continue
        wanted, moment, pattern = POINTS[armed.point]
        if (wanted, moment) != (call, when) or not re.search(pattern, path):
            continue
        if _committed(folder) < armed.after or _attempt() > 0:
            continue
        try:
            file.rename(file.with_suffix(".struck"))
        except FileNotFoundError:
            continue
        _act(armed, folder)


def _committed(folder: Path) -> int:
    # Spark keeps the last hundred.
    commits = (folder.parent / "checkpoint" / "commits").glob("[0-9]*")
    return 1 + max((int(file.name) for file in commits), default=-1)


def _attempt() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _act(armed: Armed, folder: Path) -> None:
    if armed.action == "kill":
        os.killpg(int(os.environ[DRIVER]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    elif armed.action == "stand still":
        _stop_all(int(os.environ[DRIVER]))
        return
    elif armed.action == "raise":
        raise OSError("as the test wants")
    elif armed.action == "stop":
        (folder.parent / "stop").touch()
    end = time.monotonic() + armed.seconds
    while time.monotonic() < end and not (folder.parent / "go").exists():
        time.sleep(0.05)


def _stop_all(session: int) -> None:
    """Stop the driver and its workers, this one last, until somebody lets them on."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and os.getsid(int(entry.name)) == session:
                os.kill(int(entry.name), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


def _hooked(owner: type, call: str) -> None:
    """Let a method whose first argument may be a path go by `_reach`."""
    real = getattr(owner, call)

    @functools.wraps(real)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        path = args[0] if args and isinstance(args[0], str) else ""
        _reach(call, "before", path)
        result = real(self, *args, **named)
        _reach(call, "after", path)
        return result

    setattr(owner, call, method)


def _hooked_output(owner: type) -> None:
    real: Callable[..., Any] = owner.open_output  # type: ignore[attr-defined]

    @contextmanager
    def open_output(self: Any, path: str) -> Iterator[BinaryIO]:
        _reach("open_output", "before", path)
        with real(self, path) as file:
            yield file
            _reach("open_output", "within", path)
        _reach("open_output", "after", path)

    owner.open_output = open_output  # type: ignore[attr-defined]


if FOLDER in os.environ:
    for storage in (LocalStorage, RetryingStorage):
        for name in ("put_if_absent", "delete"):
            _hooked(storage, name)
        _hooked_output(storage)
    for name in ("begin", "commit"):
        _hooked(Coordinator, name)
