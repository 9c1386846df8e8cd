"""Processes that end after any change on an object store; the full sweep is in memory."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import cast

import pytest

from hoodie_ds.errors import HoodieError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.testing import (
    MUTATING,
    Effect,
    FaultyStorage,
    MemoryStorage,
    SimulatedCrash,
    fault_points,
    forget_process,
)
from tests.faults.scenarios import VERSIONS
from tests.faults.swept import Sweep
from tests.s3_server import find_versitygw
from tests.store_server import StoreServer
from tests.tally import tally
from tests.tiers import by_day

pytestmark = pytest.mark.usefixtures("one_thread")

MAIN = ("first batch, cow", "upsert, mor", "rollback, mor")


class StoredFiles(RetryingStorage):
    """A table that shows its files as `MemoryStorage` does."""

    @property
    def files(self) -> dict[str, bytes]:
        return {found.path: self.read(found.path) for found in self.list("", recursive=True)}


def copied(start: MemoryStorage, server: StoreServer, path: str) -> StoredFiles:
    """The table as it is before the scenario, in a folder of its own."""
    opened = cast(RetryingStorage, open_storage(server.url(path), server.options))
    for name, body in start.files.items():
        opened.put_if_absent(name, body)
    return StoredFiles(opened.inner, opened.deadline_ms)


def end_after_changes(
    server: StoreServer, name: str, version: str, folder: Path, every: int
) -> int:
    """Play a scenario up to each n-th of its changes."""
    swept = Sweep(name, version=version)
    recorded = FaultyStorage(copied(swept.start, server, f"{folder}/whole"))
    swept.play(recorded)
    changes = [done for done in recorded.recorder.operations if done.kind in MUTATING][::every]
    for operation, fault in fault_points(changes, {Effect.CRASH_AFTER}):
        forget_process()
        left = copied(swept.start, server, f"{folder}/{operation.number}")
        with pytest.raises(SimulatedCrash) as crash:
            swept.play(FaultyStorage(left, [fault]))
        try:
            swept.check(cast(MemoryStorage, left), crash.value)
        except (AssertionError, HoodieError) as error:
            raise AssertionError(f"{name}, after operation {operation}: {error}") from error
    return len(changes)


# moto takes more than twice as long: it does what is longer where there is nobody else to.
SERVERS = ("versitygw", "s3", "gcs", "azurite")
LONGER = ("versitygw" if find_versitygw() else "s3", "rollback, mor", "6")
PLACES = by_day(product(SERVERS, MAIN, VERSIONS), {LONGER})


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(("server", "name", "version"), PLACES, indirect=["server"])
def test_the_process_may_end_after_any_change(
    server: StoreServer, name: str, version: str, tmp_path: Path, every: int
) -> None:
    tried = end_after_changes(server, name, version, tmp_path, every)
    tally("crash points on object stores", tried)
