"""Processes that end after any change of HDFS, of which a put of a storage makes several."""

from __future__ import annotations

from itertools import product
from typing import Any, cast

import pytest

from hoodie_ds.errors import HoodieError
from hoodie_ds.storage import hdfs_storage
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.testing import FaultyStorage, MemoryStorage, SimulatedCrash, forget_process
from tests.faults.scenarios import VERSIONS
from tests.faults.swept import Sweep
from tests.faults.test_sweep_on_object_stores import MAIN, StoredFiles
from tests.hdfs_in_memory import HdfsInMemory, Reader, Writer
from tests.tally import tally
from tests.tiers import by_day

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


class Node(HdfsInMemory):
    """A NameNode, and a process that ends after a number of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0
        self.last: int | None = None

    def check_alive(self) -> None:
        if self.changes == self.last:
            raise SimulatedCrash(f"after change {self.last}")

    def change(self, do: Any, *given: object) -> Any:
        self.check_alive()
        result = do(*given)
        self.changes += 1
        self.check_alive()
        return result

    def create(self, path: str) -> Writer:
        self.change(super().create, path)
        return Sending(self, path)

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        self.change(super().rename, source, target, overwrite)

    def delete(self, path: str, recursive: bool = False) -> bool:
        return bool(self.change(super().delete, path, recursive))

    def read(self, path: str) -> Reader:
        self.check_alive()
        return super().read(path)

    def list_status(self, path: str) -> Any:
        self.check_alive()
        return super().list_status(path)


class Sending(Writer):
    """A file of which DataNodes have a half when its writer ends."""

    def write(self, data: bytes | memoryview) -> int:
        node = cast(Node, self.client)
        node.check_alive()
        size = super().write(data)
        node.changes += 1
        if node.changes == node.last:
            node.files[self.path] = (bytes(self.content[: len(self.content) // 2]), 0)
        node.check_alive()
        return size

    def close(self) -> None:
        cast(Node, self.client).change(super().close)


def opened(node: Node, start: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> StoredFiles:
    """The table as it is before the scenario, on a NameNode of its own."""
    monkeypatch.setattr(hdfs_storage, "connect", lambda place, options: node)
    storage = cast(RetryingStorage, open_storage(f"hdfs://node-{id(node)}/table"))
    for name, body in start.files.items():
        storage.put_if_absent(name, body)
    node.changes = 0
    return StoredFiles(storage.inner, storage.deadline_ms)


PLACES = by_day(
    product(MAIN, VERSIONS),
    {("first batch, cow", "9"), ("upsert, mor", "6"), ("rollback, mor", "9")},
)


@pytest.mark.parametrize(("name", "version"), PLACES)
def test_the_process_may_end_after_any_change_of_hdfs(
    name: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept, nodes = Sweep(name, version=version), [Node()]
    swept.play(FaultyStorage(opened(nodes[0], swept.start, monkeypatch)))
    for last in range(1, nodes[0].changes + 1):
        forget_process()
        nodes.append(node := Node())  # kept: their ids name them
        left = opened(node, swept.start, monkeypatch)
        node.last = last
        with pytest.raises(SimulatedCrash) as crash:
            swept.play(FaultyStorage(left))  # which is not asked whether it obeys conditions
        node.last = None
        try:
            swept.check(cast(MemoryStorage, left), crash.value)
        except (AssertionError, HoodieError) as error:
            raise AssertionError(f"{name}, after change {last}: {error}") from error
    tally("crash points on HDFS", nodes[0].changes)
