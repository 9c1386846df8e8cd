"""A stream of upserts into a table on an object store or HDFS: batches replayed, a death in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import cast

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.store_server import StoreServer
from tests.tables import TRIPS, TYPE, TYPES, found, trips
from tests.tiers import by_day
from tests.unit.transaction.failed_tables import DyingStorage, KilledError

Row = tuple[str, str, int, float]

# Each key moves on from batch to batch; some are new, some updated, some stay.
BATCHES: list[list[Row]] = [
    [(f"k{i}", f"c{i % 2}", batch, float(10 * batch + i)) for i in range(batch, batch + 12)]
    for batch in range(5)
]


@dataclass
class Stream:
    """The sink as Spark calls it, on one table."""

    path: str
    opts: Mapping[str, str]
    storage: Storage

    def run(self, number: int, stage: int) -> None:
        options = WriteOptions.parse({**self.opts, "path": self.path})
        coordinator = Coordinator(options, self.storage, SystemClock(), RandomIds())
        rows: pa.Table = trips(*BATCHES[number])
        batch = coordinator.begin(rows.schema)
        half = rows.num_rows // 2
        coordinator.commit(
            [
                write_task(
                    batch,
                    TaskId(task, stage, 10 * stage + task),
                    BatchId("q", number),
                    rows.slice(task * half, half).to_batches(),
                    sole_writer=False,
                )
                for task in range(2)
            ]
        )


DEATHS = [(9, False), (18, False), (25, True)]
PLACES = [*product(("s3", "versitygw", "gcs", "azurite", "hdfs"), TYPES, DEATHS)]
# HDFS closes a file in half a second.
BY_DAY = {p for p in PLACES if p[0] != "hdfs"} | {("hdfs", "MERGE_ON_READ", DEATHS[1])}


@pytest.mark.slow
@pytest.mark.parametrize(("server", "kind", "death"), by_day(PLACES, BY_DAY), indirect=["server"])
def test_a_stream_on_an_object_store_equals_the_model(
    server: StoreServer, tmp_path: object, kind: str, death: tuple[int, bool]
) -> None:
    path = server.url(tmp_path)
    opts = {**TRIPS, **server.table_options, TYPE: kind}
    real = open_storage(path, server.options)
    table = HoodieTable(path, opts)
    model: dict[str, Row] = {}
    deaths = 0
    for number, rows in enumerate(BATCHES):
        if number == 2:
            dying = cast(Storage, DyingStorage(real, death[0], after=death[1]))
            try:
                Stream(path, opts, dying).run(number, stage=90)
            except KilledError:
                deaths += 1
        Stream(path, opts, real).run(number, stage=number)
        Stream(path, opts, real).run(number, stage=50 + number)  # replayed
        model |= {row[0]: row for row in rows}
        assert found(table) == sorted(model.values())
    assert deaths == 1
    assert len(table.timeline.commits) == len(BATCHES)
    assert not table.timeline.pending
    if server.rust_options is not None:
        assert_same_rows(read_with_hudi_rs(path, server.rust_options), table.read())
