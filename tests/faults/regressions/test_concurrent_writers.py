"""Writers that get in one another's way: what they are told, and what is tried again."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    AccessDeniedError,
    HoodieError,
    NotFoundError,
    StorageError,
    WriteConflictError,
)
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation, SimClock, SimIds, one_thread
from tests.tables import TRIPS, TYPE, TYPES, trips

MODE = "hoodie.write.concurrency.mode"
SHARED = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}
RETRIES = "hoodie.write.num.retries.on.conflict.failures"


class Beside:
    """A table in memory, and a second writer that writes before some operation of the first."""

    def __init__(self, name: str, options: dict[str, str]) -> None:
        self.storage = MemoryStorage(f"memory://beside-{name}")
        self.options = {**TRIPS, "hoodie.bucket.index.num.buckets": "1", **options}
        self.clock, self.processes, self.operations = SimClock(), 0, 0
        self.table().upsert(trips(("a", "x", 0, 0.0)))

    def table(self, before: Callable[[Operation], None] | None = None) -> HoodieTable:
        self.processes += 1
        storage: Any = self.storage if before is None else FaultyStorage(
            self.storage, before_each=before
        )  # fmt: skip
        ids = SimIds(f"process {self.processes}")
        root = self.storage.root
        return HoodieTable(
            root, self.options, storage=cast(Storage, storage), clock=self.clock, ids=ids
        )

    def other(self, number: int = 1) -> None:
        self.table().upsert(trips(("b", "x", number, float(number))))

    def write(self, at: int) -> HoodieError | None:
        """Write, and let the other one write before an operation; return what the first is told."""

        def before(operation: Operation) -> None:
            self.operations = operation.number
            if operation.number == at:
                self.other()

        try:
            self.table(before).upsert(trips(("c", "x", 1, 1.0)))
        except HoodieError as error:
            return error
        return None

    @property
    def ids(self) -> list[str]:
        return sorted(self.table().read(["id"])["id"].to_pylist())


@pytest.mark.parametrize("kind", TYPES)
def test_a_write_rolled_back_by_another_names_the_concurrency_mode(kind: str) -> None:
    """Whatever operation it is at, and whatever that operation says."""
    at, told = 1, 0
    with one_thread():
        while True:
            place = Beside(f"{kind} {at}", {TYPE: kind})
            error = place.write(at)
            if error is None:
                assert place.ids == ["a", "b", "c"] or at > place.operations
            else:
                assert MODE in str(error), f"at operation {at}: {error}"
                assert not isinstance(error, StorageError), f"at operation {at}: {error!r}"
                assert place.ids == ["a", "b"]
                told += 1
            if at > place.operations:
                break
            at += 1
    assert told > 10


def test_a_folder_that_is_filled_while_it_is_deleted_was_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, remove = LocalStorage(str(tmp_path)), os.rmdir
    storage.put_if_absent("f/g/a", b"")

    def rmdir(path: str) -> None:
        (Path(path) / "late").write_bytes(b"")
        remove(path)

    monkeypatch.setattr(os, "rmdir", rmdir)
    storage.delete("f")
    assert [status.path for status in storage.list("f", recursive=True)] == ["f/g/late", "f/late"]
    monkeypatch.setattr(os, "rmdir", remove)
    storage.delete("f")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES])
def test_another_error_of_deleting_a_folder_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put_if_absent("f/a", b"")

    def rmdir(path: str) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "rmdir", rmdir)
    if number == errno.ENOENT:  # another process was faster
        storage.delete("f")
        return
    with pytest.raises(AccessDeniedError, match="check the permissions"):
        storage.delete("f")


@pytest.mark.parametrize("call", ["link", "replace"])
def test_a_put_whose_folder_is_deleted_under_it_was_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    storage, real, left = LocalStorage(str(tmp_path)), getattr(os, call), [3]

    def late(source: str, target: str) -> None:
        if left[0]:
            left[0] -= 1
            shutil.rmtree(tmp_path / "f")
        real(source, target)

    monkeypatch.setattr(os, call, late)
    put = storage.put_if_absent if call == "link" else storage.replace
    put("f/a", b"content")
    assert storage.read("f/a") == b"content"
    left[0] = 1000
    with pytest.raises(NotFoundError):
        put("f/b", b"content")
    assert left[0] > 900


def changing(place: Beside, times: int) -> Callable[[Operation], None]:
    """Let another writer commit to the same file group while the first one writes, so often."""
    left = [times]

    def before(operation: Operation) -> None:
        if left[0] and ".marker." in operation.path:
            left[0] -= 1
            place.other(times - left[0])

    return before


@pytest.mark.parametrize(("retries", "conflicts"), [("0", 1), ("1", 1), ("2", 2), ("1", 2)])
def test_a_conflict_failed_despite_the_retry_option(retries: str, conflicts: int) -> None:
    with one_thread():
        place = Beside(f"retries {retries} {conflicts}", {**SHARED, RETRIES: retries})
        table = place.table(changing(place, conflicts))
        rows: pa.Table = trips(("c", "x", 1, 1.0))
        if int(retries) >= conflicts:
            table.upsert(rows)
            assert place.ids == ["a", "b", "c"]
            return
        with pytest.raises(WriteConflictError, match="runs again when the write is repeated"):
            table.upsert(rows)
        place.other(9)  # finds no living writer in its way, and undoes what was given up
        assert place.ids == ["a", "b"]
        assert not place.table().timeline.pending


def test_a_single_writer_that_meets_another_is_not_retried() -> None:
    with one_thread():
        place = Beside("single", {RETRIES: "5"})
        with pytest.raises(HoodieError, match=MODE):
            place.table(changing(place, 1)).upsert(trips(("c", "x", 1, 1.0)))
        assert place.ids == ["a", "b"]


@pytest.mark.parametrize("taken_over", [True, False])
def test_a_storage_error_is_raised_unchanged_unless_the_instant_was_rolled_back(
    taken_over: bool,
) -> None:
    with one_thread():
        place = Beside(f"error {taken_over}", {})

        def before(operation: Operation) -> None:
            if ".marker." in operation.path:
                if taken_over:
                    place.other()
                raise NotFoundError(f"cannot create {operation.path!r}")

        with pytest.raises(HoodieError) as raised:
            place.table(before).upsert(trips(("c", "x", 1, 1.0)))
        assert isinstance(raised.value, NotFoundError) is not taken_over
        assert (MODE in str(raised.value)) is taken_over
