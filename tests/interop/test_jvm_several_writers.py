"""Apache Hudi on the JVM and ours at work on one table at once, under Hudi's own lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import WriteConflictError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.timeline.paths import FILE_LOCK
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi, JvmHudiError
from tests.rows import assert_same_rows
from tests.tables import TRIPS, TYPE, TYPES, found, trips

pytestmark = pytest.mark.jvm

SHARED = {
    **TRIPS,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
}
OF_THE_JVM = {
    "hoodie.index.type": "BUCKET",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
}


class Table:
    """A table, and its writers here and there."""

    def __init__(self, jvm: JvmHudi, path: Path, kind: str, version: str) -> None:
        self.options = {**SHARED, TYPE: kind, TABLE_VERSION: version}
        self._jvm = jvm
        self.path = path

    def ours(self) -> Coordinator:
        return Coordinator.of(WriteOptions.parse({**self.options, "path": str(self.path)}))

    def theirs(self, rows: pa.Table, **more: str) -> None:
        named = {key.replace("__", "."): value for key, value in more.items()}
        self._jvm.write(self.path, rows, {**self.options, **OF_THE_JVM, **named})

    def rows(self) -> list[tuple[str, str, int, float]]:
        table = HoodieTable(str(self.path))
        assert_same_rows(self._jvm.read(self.path), table.read())
        assert_same_rows(read_with_hudi_rs(self.path), table.read())
        return found(table)


@pytest.fixture(params=[*((kind, "6") for kind in TYPES), (TYPES[1], "9")], ids="-".join)
def table(request: pytest.FixtureRequest, jvm_hudi: JvmHudi, tmp_path: Path) -> Table:
    place = Table(jvm_hudi, tmp_path / "t", *request.param)
    write(place.ours(), trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))()
    return place


def write(writer: Coordinator, rows: pa.Table) -> Callable[[], WriteResult]:
    """Write rows, and return their commit."""
    batch = writer.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    return partial(writer.commit, [message])


def test_the_jvm_leaves_our_unfinished_write_alone_and_both_commit(table: Table) -> None:
    commit = write(table.ours(), trips(("a", "x", 2, 2.0)))
    table.theirs(trips(("b", "y", 2, 2.0)))
    commit()
    assert table.rows() == [("a", "x", 2, 2.0), ("b", "y", 2, 2.0)]
    assert not (table.path / FILE_LOCK).exists()


def test_a_file_group_that_the_jvm_changed_meanwhile_is_a_conflict(table: Table) -> None:
    commit = write(table.ours(), trips(("a", "x", 2, 2.0)))
    table.theirs(trips(("a", "x", 3, 3.0)))
    with pytest.raises(WriteConflictError, match="changed file group"):
        commit()
    assert table.rows() == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]
    write(table.ours(), trips(("a", "x", 4, 4.0)))()
    assert table.rows() == [("a", "x", 4, 4.0), ("b", "y", 1, 1.0)]


def test_the_jvm_waits_for_the_lock_that_ours_takes(table: Table) -> None:
    lock = table.path / FILE_LOCK
    lock.write_text("{}")
    impatient = {
        "hoodie__write__lock__num_retries": "1",
        "hoodie__write__lock__client__num_retries": "1",
        "hoodie__write__lock__client__wait_time_ms_between_retry": "50",
    }
    with pytest.raises(JvmHudiError, match="lock"):
        table.theirs(trips(("b", "y", 2, 2.0)), **impatient)
    lock.unlink(missing_ok=True)
    table.theirs(trips(("b", "y", 3, 3.0)))
    assert table.rows() == [("a", "x", 1, 1.0), ("b", "y", 3, 3.0)]
