"""Apache Hudi on the JVM and ours at work on one table at once, under Hudi's own lock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, WriteConflictError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.timeline.paths import FILE_LOCK
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi, JvmHudiError
from tests.rows import assert_same_rows
from tests.tables import TRIPS, TYPE, found, trips

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
        self.jvm = jvm
        self.path = path

    def ours(self) -> Coordinator:
        return Coordinator.of(WriteOptions.parse({**self.options, "path": str(self.path)}))

    def theirs(self, rows: pa.Table, **more: str) -> None:
        named = {key.replace("__", "."): value for key, value in more.items()}
        self.jvm.write(self.path, rows, {**self.options, **OF_THE_JVM, **named})

    def rows(self) -> list[tuple[str, str, int, float]]:
        table = HoodieTable(str(self.path))
        assert_same_rows(self.jvm.read(self.path), table.read())
        assert_same_rows(read_with_hudi_rs(self.path), table.read())
        return found(table)


@pytest.fixture(params=[("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9")], ids="-".join)
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


METADATA = "hoodie.metadata.enable"
PATIENT = {
    "hoodie__write__lock__client__num_retries": "300",
    "hoodie__write__lock__num_retries": "300",
    "hoodie__write__lock__client__wait_time_ms_between_retry": "100",
}


def _begun(table: Table) -> set[Path]:
    return set((table.path / ".hoodie").rglob("2*.inflight")) - set(
        (table.path / ".hoodie/metadata").rglob("*")
    )


@contextmanager
def stopped_before_its_commit(table: Table, rows: pa.Table, **more: str) -> Iterator[None]:
    """A writer on the JVM, which waits for the lock until the block is left."""
    before, failed = _begun(table), []

    def run() -> None:
        try:
            table.theirs(rows, **PATIENT, **more)
        except JvmHudiError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not _begun(table) - before:
        time.sleep(0.002)
    lock = table.path / FILE_LOCK
    held = False
    while not held:
        with suppress(FileExistsError):
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            held = True
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        thread.join()
    assert not failed, failed[0]


def test_the_metadata_table_stays_while_the_jvm_is_at_work(table: Table) -> None:
    """Dropped then, it came back without our rows, and default queries of the JVM missed them."""
    on = {"hoodie__metadata__enable": "true"}
    table.theirs(trips(("b", "y", 2, 2.0)), **on)
    assert (table.path / ".hoodie/metadata").is_dir()
    mine = trips(("a", "x", 3, 3.0), ("d", "x", 3, 3.0))
    table.options[METADATA] = "false"
    with stopped_before_its_commit(table, trips(("c", "y", 3, 3.0)), **on):
        with pytest.raises(WriteConflictError, match=r"metadata table.*cannot be dropped"):
            write(table.ours(), mine)
        assert (table.path / ".hoodie/metadata").is_dir()
    write(table.ours(), mine)()
    assert not (table.path / ".hoodie/metadata").exists()
    expected = [("a", 3), ("b", 2), ("c", 3), ("d", 3)]
    assert [(key, ts) for key, _, ts, _ in table.rows()] == expected
    # A job that leaves the option out builds it again, with our rows.
    table.theirs(trips(("b", "y", 4, 4.0)), **on)
    seen = table.jvm.read(table.path, {METADATA: "true", "hoodie.enable.data.skipping": "true"})
    rows = sorted((row["id"], row["ts"]) for row in seen.to_pylist())
    assert rows == [("a", 3), ("b", 4), ("c", 3), ("d", 3)]


def test_a_metadata_table_that_the_jvm_builds_meanwhile_is_a_conflict(table: Table) -> None:
    """In version 6 Hudi builds none beside a pending write, and only says where it would be."""
    commit = write(table.ours(), trips(("a", "x", 2, 2.0)))
    table.theirs(trips(("b", "y", 2, 2.0)), hoodie__metadata__enable="true")
    with pytest.raises(WriteConflictError, match=r"metadata\.partitions|index\.defs\.path"):
        commit()
    assert table.rows() == [("a", "x", 1, 1.0), ("b", "y", 2, 2.0)]


def test_the_default_lock_is_refused_beside_theirs(table: Table) -> None:
    """No writer of theirs takes it, so it stops none."""
    del table.options["hoodie.write.lock.provider"]
    commit = write(table.ours(), trips(("a", "x", 2, 2.0)))
    theirs = {"hoodie__write__lock__provider": SHARED["hoodie.write.lock.provider"]}
    table.theirs(trips(("b", "y", 2, 2.0)), **theirs)
    with pytest.raises(OptionError, match=r"another engine's.*FileSystemBasedLockProvider"):
        commit()
    with pytest.raises(OptionError, match=r"another engine's.*FileSystemBasedLockProvider"):
        table.ours().begin(trips(("a", "x", 2, 2.0)).schema)
    assert table.rows() == [("a", "x", 1, 1.0), ("b", "y", 2, 2.0)]
