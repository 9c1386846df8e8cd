"""Memory maps of large files."""

from __future__ import annotations

import mmap
import os
import shutil
from pathlib import Path

import pytest

from hoodie_ds.errors import NotFoundError, StorageError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.memory_map import memory_map, pieces, release
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage

CONTENT = os.urandom(1 << 20) * 40


@pytest.fixture(params=["local", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    storage: Storage = LocalStorage(str(tmp_path))
    if request.param == "remote":
        storage = MemoryStorage()
    storage.put_if_absent("large", CONTENT)
    storage.put_if_absent("empty", b"")
    return storage


def resident_kb() -> int:
    """Memory of this process in maps of files, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("RssFile")]
    return int(line.split()[1])


def test_a_map_outlives_its_file(storage: Storage) -> None:
    data = memory_map(storage, "large")
    storage.delete("large")
    assert isinstance(data.obj, mmap.mmap)
    assert data == CONTENT
    release(data[5:9])
    assert data[5:9] == CONTENT[5:9]


def test_a_file_without_bytes_has_none_to_map(storage: Storage) -> None:
    assert bytes(memory_map(storage, "empty")) == b""


def test_a_missing_file_is_reported(storage: Storage) -> None:
    with pytest.raises(NotFoundError, match="none"):
        memory_map(storage, "none")


def test_pieces_are_all_of_the_bytes_and_stay_in_memory_one_at_a_time(storage: Storage) -> None:
    data, before = memory_map(storage, "large"), resident_kb()
    found = []
    for piece in pieces(data[1:]):
        found.append(bytes(piece))
        assert resident_kb() - before < len(CONTENT) // 2 >> 10
    assert b"".join(found) == CONTENT[1:]


def test_pieces_of_plain_bytes() -> None:
    assert b"".join(pieces(CONTENT)) == CONTENT
    release(CONTENT)


def test_a_full_local_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, os.strerror(28))

    storage = MemoryStorage()
    storage.put_if_absent("large", CONTENT)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(StorageError, match=r"large cannot be copied to .* TMPDIR"):
        memory_map(storage, "large")
