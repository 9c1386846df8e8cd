"""Manifests of the archive of layout 2, beside those that Apache Hudi wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive.lsm_snapshot import (
    HISTORY,
    VERSION,
    ArchiveFile,
    Snapshot,
    manifest_path,
    newest_snapshot,
    point_to_newest,
    put_manifest,
    read_manifest,
)
from tests.golden.golden_tables import unzip_table
from tests.unit.timeline.archive.test_lsm_timeline import T

OLD = ArchiveFile(f"{T[1]}_{T[2]}_1.parquet", 20)
NEW = ArchiveFile(f"{T[3]}_{T[3]}_0.parquet", 10)


def with_manifests(**listed: tuple[ArchiveFile, ...]) -> MemoryStorage:
    """Manifests by name, as any JSON writer would put them, and no version file."""
    storage = MemoryStorage()
    for name, files in listed.items():
        content = {"files": [{"fileName": file.name, "fileLen": file.size} for file in files]}
        storage.replace(f"{HISTORY}/{name}", json.dumps(content).encode())
    return storage


@pytest.fixture
def storage() -> MemoryStorage:
    storage = with_manifests(manifest_9=(OLD,), manifest_10=(OLD, NEW))
    storage.replace(VERSION, b"10")
    for file in (OLD, NEW):
        storage.replace(file.path, b"")
    return storage


@pytest.mark.parametrize("name", ["v9_cow_archived", "v9_upgraded"])
def test_manifests_are_written_byte_for_byte_as_by_hudi(name: str, tmp_path: Path) -> None:
    theirs, ours = LocalStorage(str(unzip_table(name, tmp_path))), MemoryStorage()
    newest = newest_snapshot(theirs)
    assert str(newest.number).encode() == theirs.read(VERSION)
    for number in newest.manifests:
        names = frozenset([f"manifest_{number - 1}"])
        assert put_manifest(ours, Snapshot(names=names), read_manifest(theirs, number))
        assert ours.read(manifest_path(number)) == theirs.read(manifest_path(number))
    for file in newest.files:
        ours.replace(file.path, b"")
    point_to_newest(ours)
    assert ours.read(VERSION) == theirs.read(VERSION)


def test_the_newest_manifest_counts(storage: MemoryStorage) -> None:
    found = newest_snapshot(storage)
    assert (found.number, found.files, found.manifests) == (10, (OLD, NEW), [10, 9])
    assert newest_snapshot(MemoryStorage()) == Snapshot()


@pytest.mark.parametrize("version", [b"9", b"", b"one", b"9" * 5000, None])
def test_a_version_that_is_behind_or_cut_off_does_not(
    storage: MemoryStorage, version: bytes | None
) -> None:
    """Nothing leaves the active timeline before it is put; Hudi's, too, lists the manifests."""
    storage.delete(VERSION)
    if version is not None:
        storage.replace(VERSION, version)
    assert newest_snapshot(storage).files == (OLD, NEW)
    point_to_newest(storage)
    assert storage.read(VERSION) == b"10"


@pytest.mark.parametrize("content", [b"", b'{"files" : [ {'])
def test_a_manifest_that_was_cut_off_before_it_counted(
    storage: MemoryStorage, content: bytes
) -> None:
    storage.replace(manifest_path(11), content)
    found = newest_snapshot(storage)
    assert (found.number, found.files, found.next_number) == (10, (OLD, NEW), 12)
    first = MemoryStorage(files={manifest_path(1): content})
    assert (newest_snapshot(first).number, newest_snapshot(first).next_number) == (0, 2)


@pytest.mark.parametrize(
    ("number", "content"),
    [
        (10, b"{"),
        (10, b"[]"),
        (10, b'{"files": [{}]}'),
        (10, b'{"files": [{"fileName": "../hoodie.properties", "fileLen": 1}]}'),
        (10, b'{"files": [{"fileName": "%s", "fileLen": "long"}]}' % NEW.name.encode()),
        (10, b"[" * 100_000),
        (9, b"{"),
    ],
)
def test_damage_is_named(storage: MemoryStorage, number: int, content: bytes) -> None:
    storage.replace(manifest_path(number), content)
    if number == 9:
        storage.replace(manifest_path(10), content)
        storage.replace(VERSION, b"8")
    with pytest.raises(CorruptFileError, match=f"manifest_{number} does not list the files"):
        newest_snapshot(storage)


def test_a_manifest_that_is_gone_is_named(storage: MemoryStorage) -> None:
    storage.replace(VERSION, b"12")
    with pytest.raises(CorruptFileError, match=r"manifest_12 is missing, which .*_version_ names"):
        newest_snapshot(storage)


def test_a_file_that_is_lost_is_named(storage: MemoryStorage) -> None:
    storage.delete(OLD.path)
    with pytest.raises(CorruptFileError, match=rf"{OLD.path} is missing, which .*10 lists; rest"):
        newest_snapshot(storage)


class Archiving(MemoryStorage):
    """A storage on which an archiver puts a newer manifest and deletes the old one."""

    def read(self, path: str) -> bytes:
        if path == manifest_path(10) and path in self.files:
            self.replace(manifest_path(11), super().read(path))
            self.delete(path)
        return super().read(path)


class Merging(MemoryStorage):
    """A storage on which an archiver puts a manifest without the old file meanwhile."""

    def read(self, path: str) -> bytes:
        if path == manifest_path(10):
            self.replace(manifest_path(11), with_manifests(new=(NEW,)).read(f"{HISTORY}/new"))
        return super().read(path)


def test_a_file_that_was_merged_while_the_folder_was_listed_is_not_lost(
    storage: MemoryStorage,
) -> None:
    storage.delete(OLD.path)
    found = newest_snapshot(Merging(files=storage.files))
    assert (found.number, found.files) == (11, (NEW,))


def test_a_manifest_that_goes_while_it_is_read_for(storage: MemoryStorage) -> None:
    found = newest_snapshot(Archiving(files=storage.files))
    assert (found.number, found.files) == (11, (OLD, NEW))


def test_one_of_two_archivers_puts_a_manifest(storage: MemoryStorage) -> None:
    before = newest_snapshot(storage)
    assert put_manifest(storage, before, [OLD])
    assert not put_manifest(storage, before, [NEW])
    assert newest_snapshot(storage).files == (OLD,)


class Overtaken(MemoryStorage):
    """A storage on which another archiver names a newer manifest before this one's put arrives."""

    def replace(self, path: str, data: bytes) -> None:
        if path == VERSION and manifest_path(11) not in self.files:
            super().replace(manifest_path(11), self.files[manifest_path(10)])
            super().replace(VERSION, b"11")
        super().replace(path, data)


def test_a_late_version_does_not_stay(storage: MemoryStorage) -> None:
    storage.replace(VERSION, b"9")
    overtaken = Overtaken(files=storage.files)
    point_to_newest(overtaken)
    assert overtaken.read(VERSION) == b"11"


def test_where_an_instant_may_be() -> None:
    assert [OLD.may_hold(time) for time in (T[0], T[1], T[2], T[3])] == [False, True, True, False]
    upgraded = ArchiveFile(f"{T[3]}_{T[2]}_0.parquet", 1)
    assert upgraded.may_hold(T[1])
    assert ArchiveFile.named(T[1], T[2], 1, 20) == OLD
    assert (OLD.level, NEW.level) == (1, 0)
