"""Exactly once on real Spark: replayed batches, a driver killed in the middle of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows

pytestmark = pytest.mark.spark

FILES = 5
ROWS = 400

KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
TABLES = {
    "cow": {**KEYED, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
    "mor": {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "append": {},
}


@dataclass
class Job:
    """A stream of `FILES` files into one table; each file is one micro-batch."""

    folder: Path
    kind: str
    extra: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> HoodieTable:
        return HoodieTable(str(self.folder / "table"))

    def write_source(self) -> None:
        source = self.folder / "source"
        source.mkdir()
        for number in range(FILES):
            ids = [(7 * number + i) % 1000 for i in range(ROWS)]
            rows = pa.table(
                {
                    "id": ids,
                    "city": [f"c{i % 2}" for i in ids],
                    "ts": [number * (1 if i % 3 else -1) for i in ids],
                    "v": [f"{number}" for _ in ids],
                    "filler": ["x" * 100] * ROWS,
                }
            )
            path = source / f"{number}.parquet"
            pq.write_table(rows, path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    def expected(self) -> dict[int, tuple[int, str]] | int:
        """Rows by id as (ts, v), folded in plain Python; the number of rows without keys."""
        if self.kind == "append":
            return FILES * ROWS
        rows: dict[int, tuple[int, str]] = {}
        for number in range(FILES):
            for row in pq.read_table(self.folder / "source" / f"{number}.parquet").to_pylist():
                old = rows.get(row["id"])
                if old is None or row["ts"] >= old[0]:
                    rows[row["id"]] = (row["ts"], row["v"])
        return rows

    def actual(self) -> dict[int, tuple[int, str]] | int:
        rows = self.table.read()
        if self.kind == "append":
            return rows.num_rows
        listed = [(row["id"], (row["ts"], row["v"])) for row in rows.to_pylist()]
        assert len(listed) == len(dict(listed))
        return dict(listed)

    def start(self) -> subprocess.Popen[str]:
        job = {
            "source": str(self.folder / "source"),
            "checkpoint": str(self.folder / "checkpoint"),
            "options": {
                "path": str(self.folder / "table"),
                "hoodie.table.name": "events",
                **TABLES[self.kind],
                **self.options,
            },
            **self.extra,
        }
        (self.folder / "job.json").write_text(json.dumps(job))
        root = Path(__file__).parents[2]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream_job", str(self.folder / "job.json")],
            cwd=root,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self) -> str:
        process = self.start()
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err[-4000:]
        return out


@pytest.fixture
def job(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Job]:
    job = Job(tmp_path, request.param)
    job.write_source()
    yield job
    # An orphaned JVM of a killed driver must not outlive its test.
    subprocess.run(["pkill", "-9", "-f", str(tmp_path)], check=False)


def delete_newest_commit_log_entry(checkpoint: Path) -> None:
    commits = checkpoint / "commits"
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / f"{newest}").unlink()
    (commits / f".{newest}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("job", "foreach_batch"),
    [
        ("cow", ""),
        ("mor", ""),
        ("append", ""),
        pytest.param("append", "yes", marks=pytest.mark.slow),
    ],
    indirect=["job"],
)
def test_a_replayed_batch_changes_nothing(job: Job, foreach_batch: str) -> None:
    job.extra = {"foreach_batch": foreach_batch}
    job.run()
    before = [str(instant) for instant in job.table.timeline.completed]
    assert len(before) == FILES
    assert job.actual() == job.expected()
    delete_newest_commit_log_entry(job.folder / "checkpoint")
    job.run()
    assert [str(instant) for instant in job.table.timeline.completed] == before
    assert job.actual() == job.expected()


@pytest.mark.parametrize(
    ("job", "foreach_batch"),
    [("mor", ""), ("append", ""), pytest.param("append", "yes", marks=pytest.mark.slow)],
    indirect=["job"],
)
def test_a_driver_killed_in_the_middle_of_a_batch(job: Job, foreach_batch: str) -> None:
    job.extra = {"foreach_batch": foreach_batch}
    process = job.start()
    hoodie = job.folder / "table" / ".hoodie"
    seen: set[str] = set()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        names = {path.name for path in hoodie.glob("*")} if hoodie.exists() else set()
        times = {name.split(".")[0] for name in names if name.endswith(".inflight")}
        open_times = {t for t in times if not {f"{t}.commit", f"{t}.deltacommit"} & names}
        seen |= times
        if len(seen) >= 3 and open_times:
            os.killpg(process.pid, signal.SIGKILL)
            break
        time.sleep(0.0005)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    job.run()
    assert job.actual() == job.expected()
    assert not job.table.timeline.pending
    assert_same_rows(read_with_hudi_rs(str(job.folder / "table")), job.table.read())


@pytest.mark.slow
@pytest.mark.parametrize("job", ["mor", "append"], indirect=True)
def test_an_instant_over_several_batches_and_a_driver_killed_in_it(job: Job) -> None:
    job.options = {"hoodie.streaming.batches.per.commit": "4"}
    process = job.start()
    temp = job.folder / "table" / ".hoodie" / ".temp"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if list(temp.glob("*/manifest_2.json")):  # the second batch is in, the third under way
            os.killpg(process.pid, signal.SIGKILL)
            break
        time.sleep(0.0005)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert job.table.timeline.commits == ()
    job.run()
    assert len(job.table.timeline.commits) == 1
    delete_newest_commit_log_entry(job.folder / "checkpoint")
    job.run()
    assert len(job.table.timeline.commits) == 1
    # The fifth batch waits in an instant of its own, which whoever comes next completes.
    options = {**KEYED, "hoodie.table.name": "events"} if job.kind != "append" else {}
    nothing = pq.read_schema(job.folder / "source" / "0.parquet").empty_table()
    HoodieTable(str(job.folder / "table"), options).insert(nothing)
    assert len(job.table.timeline.commits) == 2
    assert job.actual() == job.expected()
    assert_same_rows(read_with_hudi_rs(str(job.folder / "table")), job.table.read())


@pytest.mark.slow
@pytest.mark.parametrize("job", ["cow", "mor"], indirect=True)
def test_local_cluster(job: Job) -> None:
    job.extra = {"master": "local-cluster[2,1,1024]", "shuffle": "yes"}
    job.run()
    assert job.actual() == job.expected()


@pytest.mark.slow
@pytest.mark.parametrize("job", ["cow", "mor"], indirect=True)
@pytest.mark.parametrize("foreach_batch", ["", "yes"])
def test_spark_connect(job: Job, foreach_batch: str) -> None:
    job.extra = {"remote": "local[2]", "shuffle": "yes", "foreach_batch": foreach_batch}
    out = job.run()
    assert job.actual() == job.expected()
    assert int(out.split()[-1]) == len(job.expected())
