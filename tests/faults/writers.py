"""Writers of one table that take turns in steps: begin, write, commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from tests.tables import found

MODE = "hoodie.write.concurrency.mode"
SEVERAL = "OPTIMISTIC_CONCURRENCY_CONTROL"
BESIDE_OTHERS = {
    MODE: SEVERAL,
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
}
"""Of a writer beside those of another engine, which take no lock but this one."""
MISSING = "hoodie.write.set.null.for.missing.columns"


class NoPauses:
    """Pauses of a writer that need not wait for another."""

    def pause(self, longest_ms: int) -> int:
        return longest_ms


@dataclass
class Place:
    """A table and its writers, who take turns in steps."""

    opts: dict[str, str]
    clock: SimClock = field(default_factory=SimClock)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(clock=self.clock)
        self.ids = SimIds()

    @property
    def table(self) -> HoodieTable:
        opts = {**self.opts, MISSING: "true"}
        return HoodieTable("/t", opts, storage=self.storage, clock=self.clock, ids=self.ids)

    def copy(self) -> Place:
        """The same table, as it goes on elsewhere."""
        other = Place(dict(self.opts), self.clock)
        other.storage, other.ids = self.storage.copy(), self.ids
        return other

    def begin(self, rows: pa.Table, storage: Storage | None = None, /, **options: str) -> Begun:
        parsed = WriteOptions.parse({**self.opts, **options, "path": "/t"})
        self.clock.advance(1)
        writer = Coordinator(parsed, storage or self.storage, self.clock, self.ids, NoPauses())
        return Begun(writer, rows)

    def rows(self) -> list[tuple[str, str, int, float]]:
        return found(self.table)

    def read(self, *columns: str) -> list[tuple[Any, ...]]:
        rows = self.table.read(columns=list(columns)).to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=str)


class Begun:
    """A batch that has begun."""

    def __init__(self, writer: Coordinator, rows: pa.Table) -> None:
        self.writer, self.rows = writer, rows
        self.batch = writer.begin(rows.schema)

    def write(self, batch_id: BatchId | None = None) -> TaskCommitMessage:
        return write_task(self.batch, TaskId(), batch_id, self.rows.to_batches(), sole_writer=True)
