"""A stream in a process of its own that may be killed, and the model of what it writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds import HoodieTable
from hoodie_ds.testing import check_table
from hoodie_ds.timeline.instant import Action
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.spark.applications import Application
from tests.store_server import StoreServer

KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
BLOOM = {"hoodie.index.type": "BLOOM"}
VERSION_9 = {"hoodie.write.table.version": "9"}
TABLES = {
    "cow": {**KEYED, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
    "mor": {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "append": {},
}
TABLES |= {
    f"{kind} {word}": {**TABLES[kind], **options}
    for kind in ("cow", "mor")
    for word, options in (("bloom", BLOOM), ("9", VERSION_9))
}

COUNTED = 30
"""Batches up to which each one's commit is still on the timeline."""

Rows = dict[int, tuple[int, str]]


class Job(Application):
    """A stream of files into one table; each file is one micro-batch."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.extra: dict[str, object] = {}
        self.options: dict[str, str] = {}
        self.files, self.rows = 5, 400
        self.server: StoreServer | None = None
        super().__init__(folder, "stream_job", {})

    @property
    def path(self) -> str:
        return self.server.url(self.folder) if self.server else str(self.folder / "table")

    @property
    def table(self) -> HoodieTable:
        return HoodieTable(self.path, self.server.table_options if self.server else None)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it with the options and settings as they are now."""
        options = {"path": self.path, "hoodie.table.name": "events", **TABLES[self.kind]}
        options |= self.server.table_options if self.server else {}
        # A long stream cleans and archives, after which nobody can count its commits.
        services = {"hoodie.table.services.enabled": "false"} if self.files > COUNTED else {}
        self.job = {"options": {**options, **services, **self.options}, **self.extra}
        return super().start()

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

    def check(self) -> None:
        """Whether each batch is in the table once: our reader, hudi-rs and the model agree."""
        assert self.actual() == self.expected()
        timeline, mor = self.table.timeline, self.kind.startswith("mor")
        compactions = timeline.pending_compactions
        assert set(timeline.pending) == set(compactions)
        commits = [i for i in timeline.commits if not mor or i.action is Action.DELTA_COMMIT]
        assert len(commits) == self.files
        remote = self.server.rust_options if self.server else {}
        if remote is not None:
            assert_same_rows(read_with_hudi_rs(self.path, remote), self.table.read())
        if self.server is None:
            root = Path(self.path)
            paths = [path for path in root.rglob("*") if path.is_file()]
            bodies = {str(path.relative_to(root)): path.read_bytes() for path in paths}
            assert check_table(bodies, buckets=self.kind.removesuffix(" 9") in ("cow", "mor")) == []
