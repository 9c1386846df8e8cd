"""Tables whose files are damaged: small ones of ours, the same bytes each time, and golden ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.environment import RandomPauses
from hoodie_ds.errors import HoodieError
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.bodies.commit_metadata import DIGEST_KEY, CommitMetadata
from tests.faults.stream import writer
from tests.golden.golden_tables import unzip_table
from tests.tables import TRIPS, TYPE, VERSION, trips

ROOT = "memory://hostile"
FORGED = "forged"
FIRST = trips(*((f"k{i}", "x", 1, float(i)) for i in range(6)))
SECOND = trips(("k1", "x", 2, 10.0), ("k7", "x", 2, 7.0))
DELETED = pa.table({"id": ["k2", "k3"], "city": ["x", "x"], "ts": pa.array([3, 0], pa.int64())})
MORE = trips(("k1", "x", 9, 1.5), ("n", "y", 9, 2.5))
"""What is written to a table whose files were damaged."""

PENDING = trips(("p", "x", 5, 5.0))

MOR = {TYPE: "MERGE_ON_READ"}
AVRO = {**MOR, "hoodie.logfile.data.block.format": "avro"}
BLOOM = {
    "hoodie.index.type": "BLOOM",
    "hoodie.index.bloom.num_entries": "4",
    "hoodie.bloom.index.filter.dynamic.max.entries": "12",
    "hoodie.index.bloom.fpp": "0.01",
}
RULES = {"hoodie.bucket.index.partition.expressions": "x,1;y.*,3"}
GOLDEN = (
    "v6_cow_complex_keys",
    "v6_cow_timestamp_keys",
    "v6_cow_types",
    "v6_mor_commit_time",
    "v6_mor_failed_rolled_back",
    "v6_mor_types_parquet",
)
"""Tables that Apache Hudi wrote, and that are damaged too."""

SPAN = {"hoodie.streaming.batches.per.commit": "3"}
KINDS: Mapping[str, Mapping[str, str]] = {
    "cow": {},
    "mor": MOR,
    "avro": AVRO,
    "bloom": BLOOM,
    "rules": RULES,
    "cow9": {VERSION: "9"},
    "mor9": {**MOR, VERSION: "9"},
}


@dataclass(frozen=True)
class Seed:
    """A file as it was written, in a table.

    Parameters
    ----------
    data : bytes
        The file's content.
    path : str
        Where it is in the table.
    files : mapping of str to bytes
        All files of the table.
    rows : str
        What the table reads as, without damage.
    ours : bool
        Whether the commits carry checksums.
    options : mapping of str to str
        Of a write to the table.
    """

    data: bytes
    path: str
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    rows: str = field(default="", repr=False)
    ours: bool = True
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def table(self, data: bytes) -> HoodieTable:
        """The table with another content of the file."""
        return opened({**self.files, self.path: data}, self.options)


def opened(files: Mapping[str, bytes], options: Mapping[str, str]) -> HoodieTable:
    """A table in memory."""
    storage = MemoryStorage(ROOT, files)
    return HoodieTable(ROOT, options, storage=storage, clock=SimClock(), ids=SimIds())


def rows_of(table: HoodieTable) -> str:
    """A table's rows as text, in an order of their own: NaN equals NaN, and 1 is not 1.0."""
    return "\n".join(sorted(repr(sorted(row.items())) for row in table.read().to_pylist()))


def options_of(kind: str) -> dict[str, str]:
    """Options of a table of ours."""
    given = {**TRIPS, **KINDS[kind]}
    return {k: v for k, v in given.items() if "bucket.index.num" not in k or kind != "bloom"}


@lru_cache
def table_files(kind: str) -> dict[str, bytes]:
    """The files of a table of ours, with updates and deletes."""
    storage = MemoryStorage(ROOT)
    for number, change in enumerate((FIRST, SECOND, DELETED)):
        ids, options = SimIds(f"{kind} {number}"), options_of(kind)
        table = HoodieTable(ROOT, options, storage=storage, clock=SimClock(), ids=ids)
        if change is DELETED:
            table.delete(change)
        else:
            table.upsert(change)
    return storage.files


@lru_cache
def rows_text(kind: str) -> str:
    """The rows of such a table."""
    return rows_of(opened(table_files(kind), {}))


def ours(kind: str, path_has: str) -> list[Seed]:
    """Files of a table of ours by a part of their path, newest first."""
    files = table_files(kind)
    chosen = sorted((path for path in files if path_has in path), reverse=True)
    options = options_of(kind)
    return [Seed(files[path], path, files, rows_text(kind), True, options) for path in chosen]


def golden(path_has: str) -> Iterator[Seed]:
    """Files of tables that Apache Hudi wrote."""
    for name in GOLDEN:
        files, rows = _golden_table(name)
        for path in sorted(files):
            if path_has in path and ".crc" not in path:
                yield Seed(files[path], path, files, rows, ours=False)


@lru_cache
def _golden_table(name: str) -> tuple[dict[str, bytes], str]:
    with TemporaryDirectory() as folder:
        root = unzip_table(name, Path(folder))
        files = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }
    return files, rows_of(opened(files, {}))


@lru_cache
def pending_files(committed: bool = False) -> dict[str, bytes]:
    """A table with an instant that waits for more micro-batches, or whose driver died."""
    options = {**options_of("mor"), **({} if committed else SPAN)}
    storage = MemoryStorage(ROOT, table_files("mor"))
    coordinator = writer(storage, options, "pending", SimClock(), RandomPauses())
    batch = coordinator.begin(PENDING.schema)
    message = write_task(
        batch,
        TaskId(0, 7, 0),
        BatchId("q", 0),
        PENDING.to_batches(),
        sole_writer=True,
        clock=coordinator.clock,
    )
    if not committed:
        coordinator.commit([message])
    return storage.files


def is_damaged(data: bytes) -> bool:
    """Whether a commit of ours was damaged, rather than forged or replaced by another writer's."""
    return b'"_hoodie_ds_' in data and FORGED.encode() not in data


def with_digest(data: bytes) -> bytes:
    """The body of a commit that was forged, digest included, as far as it can be read."""
    try:
        body: dict[str, Any] = json.loads(data)
        extra = body["extraMetadata"]
        hidden = {key: extra.pop(key) for key in list(extra) if key.startswith("_hoodie_ds_")}
        hidden.pop(DIGEST_KEY, None)
        forged = CommitMetadata.from_bytes(json.dumps(body).encode(), "forged")
        more = {key: str(value) for key, value in hidden.items() if value is not None}
        return forged.with_extra({**more, FORGED: ""}).to_bytes(1)
    except (HoodieError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return data
