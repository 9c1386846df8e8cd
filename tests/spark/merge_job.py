"""A numbered merge in a process of its own, which a test may kill."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import hoodie_ds
from tests.spark.stream_job import build


def total(rows: pa.Table) -> pa.ChunkedArray:
    """A value that a merge which is made twice changes twice."""
    return pc.add(rows["target.fare"], rows["source.fare"])


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    daemon = {"spark.python.daemon.module": "tests.spark.hooked_daemon"}
    spark = build({**job, "conf": daemon})
    source = spark.read.parquet(str(Path(job["folder"]) / "source.parquet"))
    merge = hoodie_ds.merge(spark, job["path"], source, "id", job["options"])
    merge.when_matched_delete("source.ts = 9")
    merge.when_matched_update({"fare": total}).when_not_matched_insert_all()
    print(merge.execute().already_committed)


if __name__ == "__main__":
    main()
