"""The streamer on real Spark: under ``spark-submit``, going on from its checkpoint, refusing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable

pytestmark = pytest.mark.spark

SCRIPT = str(Path(hoodie_ds.__file__).with_name("streamer") / "job.py")
PROPERTIES = """
hoodie.table.name=t
hoodie.table.type=MERGE_ON_READ
hoodie.datasource.write.recordkey.field=id
hoodie.datasource.write.precombine.field=ts
"""


def submit(folder: Path) -> list[str]:
    """The command of Spark's script, by a link: it cannot stand in a folder with a blank."""
    home = folder / "spark"
    if not home.exists():
        home.symlink_to(Path(pyspark.__file__).parent, target_is_directory=True)
    return ["env", f"SPARK_HOME={home}", str(home / "bin/spark-submit"), "--master", "local[2]"]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "t.properties").write_text(PROPERTIES)
    arguments = [
        "--source-path", str(folder / "in"), "--source-option", "maxFilesPerTrigger=1",
        "--source-schema", "id BIGINT, ts INT, v STRING",
        "--target-base-path", str(folder / "t"), "--props", str(folder / "t.properties"),
        "--checkpoint", str(folder / "ck"),
    ]  # fmt: skip
    # The shared session of the other tests says where its gateway is.
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    return subprocess.run(
        [*command, *arguments],
        env={**environ, "PYSPARK_PYTHON": sys.executable},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def lay_down(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    rows = {"id": range(number, number + 10), "ts": [number] * 10, "v": [str(number)] * 10}
    schema = pa.schema({"id": pa.int64(), "ts": pa.int32(), "v": pa.string()})
    file = folder / "in" / f"{number}.parquet"
    pq.write_table(pa.table(rows, schema=schema), file)
    os.utime(file, (1_700_000_000 + number,) * 2)


@pytest.mark.slow
def test_spark_submit_runs_it_and_a_second_run_goes_on(tmp_path: Path) -> None:
    lay_down(tmp_path, 0)
    lay_down(tmp_path, 1)
    first = run(tmp_path, *submit(tmp_path), SCRIPT, "--source-format", "parquet")
    assert first.returncode == 0, first.stderr
    assert "batch 1: 10 rows" in first.stdout
    assert "20 in all" in first.stdout
    lay_down(tmp_path, 2)
    second = run(tmp_path, *submit(tmp_path), SCRIPT, "--source-format", "parquet")
    assert second.returncode == 0, second.stderr
    assert "batch 2: 10 rows" in second.stdout
    table = HoodieTable(str(tmp_path / "t"))
    rows = table.read(columns=["id", "v"]).sort_by("id")
    assert rows.column("id").to_pylist() == list(range(12))
    assert rows.column("v").to_pylist() == ["0", "1"] + ["2"] * 10
    assert len(table.timeline.completed) == 3
    assert all(instant.time in second.stdout for instant in table.timeline.completed)


@pytest.mark.slow
def test_what_spark_refuses_is_one_line_and_leaves_no_table(tmp_path: Path) -> None:
    lay_down(tmp_path, 0)
    command = [sys.executable, "-m", "hoodie_ds.streamer.job", "--master", "local[1]"]
    refused = run(tmp_path, *command, "--source-format", "no_such_format")
    assert refused.returncode == 1
    errors = [line for line in refused.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert "no_such_format" in errors[0]
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "t").exists()
