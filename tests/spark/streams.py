"""A stream in a process of its own that may be killed, and the model of what it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds import HoodieTable
from hoodie_ds.testing import check_table
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.s3_server import S3Server
from tests.spark import fail_points

ROOT = Path(__file__).parents[2]

KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
BLOOM = {"hoodie.index.type": "BLOOM"}
TABLES = {
    "cow": {**KEYED, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
    "mor": {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "append": {},
}
TABLES |= {f"{kind} bloom": {**TABLES[kind], **BLOOM} for kind in ("cow", "mor")}

Rows = dict[int, tuple[int, str]]


@dataclass
class Job:
    """A stream of files into one table; each file is one micro-batch."""

    folder: Path
    kind: str
    extra: dict[str, object] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    files: int = 5
    rows: int = 400
    server: S3Server | None = None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"s3://tables{self.folder}" if self.server else str(self.folder / "table")

    @property
    def table(self) -> HoodieTable:
        return HoodieTable(self.path, self.server.table_options if self.server else None)

    @property
    def points(self) -> Path:
        """Folder of armed fail points."""
        return self.folder / "points"

    def write_source(self) -> None:
        source = self.folder / "source"
        source.mkdir(exist_ok=True)
        for number in range(self.files):
            ids = [(7 * number + i) % 1000 for i in range(self.rows)]
            rows = pa.table(
                {
                    "id": ids,
                    "city": [f"c{i % 2}" for i in ids],
                    "ts": [number * (1 if i % 3 else -1) for i in ids],
                    "v": [f"{number}" for _ in ids],
                    "filler": ["x" * 100] * self.rows,
                }
            )
            path = source / f"{number}.parquet"
            pq.write_table(rows, path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    def expected(self, files: int | None = None) -> Rows | int:
        """Rows by id as (ts, v), folded in plain Python; the number of rows without keys."""
        count = self.files if files is None else files
        if self.kind == "append":
            return count * self.rows
        rows: Rows = {}
        for number in range(count):
            for row in pq.read_table(self.folder / "source" / f"{number}.parquet").to_pylist():
                old = rows.get(row["id"])
                if old is None or row["ts"] >= old[0]:
                    rows[row["id"]] = (row["ts"], row["v"])
        return rows

    def actual(self) -> Rows | int:
        rows = self.table.read()
        if self.kind == "append":
            return rows.num_rows
        listed = [(row["id"], (row["ts"], row["v"])) for row in rows.to_pylist()]
        assert len(listed) == len(dict(listed))
        return dict(listed)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the application; what it prints goes to files."""
        job = {
            "folder": str(self.folder),
            "options": {
                "path": self.path,
                "hoodie.table.name": "events",
                **TABLES[self.kind],
                **(self.server.table_options if self.server else {}),
                **self.options,
            },
            **self.extra,
        }
        (self.folder / "job.json").write_text(json.dumps(job))
        self.points.mkdir(exist_ok=True)
        number = len(self.started)
        with self.log("out", number).open("wb") as out, self.log("err", number).open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.stream_job", str(self.folder / "job.json")],
                cwd=ROOT,
                env={
                    **os.environ,
                    # Spark's workers start elsewhere
                    "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
                    fail_points.FOLDER: str(self.points),
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def log(self, stream: str, number: int = -1) -> Path:
        return self.folder / f"{number if number >= 0 else len(self.started) - 1}.{stream}"

    def run(self, timeout: float = 600) -> str:
        """Run the stream to its end, and return what it printed."""
        process = self.start()
        process.wait(timeout)
        assert process.returncode == 0, self.log("err").read_text()[-4000:]
        return self.log("out").read_text()

    def run_until_killed(self, point: str, after: int = 2, timeout: float = 600) -> None:
        """Run the stream with a fail point that ends the driver."""
        before = fail_points.struck(self.points)
        fail_points.Armed(point, after=after).put(self.points)
        process = self.start()
        process.wait(timeout)
        assert process.returncode == -signal.SIGKILL, self.log("err").read_text()[-4000:]
        assert fail_points.struck(self.points) == [*before, point]

    def check(self) -> None:
        """Whether each batch is in the table once: our reader, hudi-rs and the model agree."""
        assert self.actual() == self.expected()
        assert not self.table.timeline.pending
        assert len(self.table.timeline.commits) == self.files
        remote = self.server.rust_options if self.server else None
        assert_same_rows(read_with_hudi_rs(self.path, remote), self.table.read())
        if self.server is None:
            root = Path(self.path)
            paths = [path for path in root.rglob("*") if path.is_file()]
            bodies = {str(path.relative_to(root)): path.read_bytes() for path in paths}
            assert check_table(bodies, buckets=self.kind in ("cow", "mor")) == []

    def end(self) -> None:
        """Kill what outlives a killed driver: Spark's workers have process groups of their own."""
        sessions = {process.pid for process in self.started}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.getsid(int(entry.name)) in sessions:
                    os.kill(int(entry.name), signal.SIGKILL)
        for process in self.started:
            process.wait(timeout=60)
