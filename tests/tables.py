"""Small tables for the suites: options, rows, and everything that a folder holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.timeline import Timeline

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
TYPE = "hoodie.datasource.write.table.type"
KEY = "hoodie.datasource.write.recordkey.field"
PARTITION = "hoodie.datasource.write.partitionpath.field"
ORDERING = "hoodie.datasource.write.precombine.field"
VERSION = "hoodie.write.table.version"
BUCKETS = "hoodie.bucket.index.num.buckets"
TRIPS = {
    "hoodie.table.name": "trips",
    KEY: "id",
    PARTITION: "city",
    ORDERING: "ts",
    BUCKETS: "2",
}


def trips(*rows: tuple[str, str | None, int, float | None]) -> pa.Table:
    """Rows of a table with `TRIPS`: id, city, ts, fare."""
    kinds = {"id": pa.string(), "city": pa.string(), "ts": pa.int64(), "fare": pa.float64()}
    return pa.Table.from_pylist(
        [dict(zip(kinds, row, strict=True)) for row in rows], schema=pa.schema(kinds)
    )


def found(table: HoodieTable) -> list[tuple[str, str, int, float]]:
    """The rows that a table with `TRIPS` reads as, sorted."""
    rows = table.read(columns=["id", "city", "ts", "fare"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def timeline_of(storage: object) -> Timeline:
    """The active timeline of a table, in whatever layout it has."""
    given = cast(Storage, storage)
    return HoodieTable(given.root, storage=given).timeline


def limited(path: Path, options: Mapping[str, str], limits: Limits | None) -> Coordinator:
    """A writer that keeps to other limits than users have."""
    parsed = WriteOptions.parse({**options, "path": str(path)})
    return Coordinator.of(replace(parsed, limits=limits or Limits()))


def upsert(coordinator: Coordinator, rows: pa.Table) -> None:
    """Write a batch of one task."""
    batch = coordinator.begin(rows.schema)
    coordinator.commit([write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)])


def coordinator(path: Path, limits: Limits | None = None, /, **options: str) -> Coordinator:
    """A writer of the table at a path; options by name, with ``__`` for a dot."""
    more = {key.replace("__", "."): value for key, value in options.items()}
    return limited(path, {**TRIPS, **more}, limits)


def tree(path: Path) -> dict[str, bytes | None]:
    """Every folder (None) and file (its content) at and under a path."""
    paths = [path, *path.rglob("*")] if path.exists() else []
    return {str(p): p.read_bytes() if p.is_file() else None for p in paths}
