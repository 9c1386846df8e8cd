"""The files of the archive: Apache Hudi's bytes, and what is to be had of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError
from hoodie_ds.formats.log.log_block import BlockType, encode_block, read_blocks
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive.archived_timeline import (
    archive_files,
    archived_instants,
    find_archived,
    put_archive_file,
    read_archive_file,
)
from hoodie_ds.timeline.archive.entry import ArchivedEntry, entry_of
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.golden.golden_tables import unzip_table

_FOLDER = ".hoodie/history"
_OWN = ".hoodie/archived"
_DONE = [Instant(f"2026010100000000{n}", Action.COMMIT, State.COMPLETED) for n in range(4)]


def _entries(*instants: Instant) -> list[ArchivedEntry]:
    return [ArchivedEntry(i.at(state), {}, i.time) for i in instants for state in State]


@pytest.mark.parametrize("name", ["v6_cow_archived", "v6_cow_archived_beyond_savepoint"])
def test_an_archive_is_written_byte_for_byte_as_by_hudi(name: str, tmp_path: Path) -> None:
    theirs, ours = LocalStorage(str(unzip_table(name, tmp_path))), MemoryStorage()
    for number, path in archive_files(theirs, _FOLDER).items():
        put = put_archive_file(ours, _FOLDER, read_archive_file(theirs, path), 10)
        assert put == path == f"{_FOLDER}/.commits_.archive.{number}_1-0-1"
        assert ours.read(put) == theirs.read(path)


def test_blocks_have_so_many_entries_as_wished() -> None:
    storage = MemoryStorage()
    path = put_archive_file(storage, _OWN, _entries(*_DONE), 5)
    counts = [
        int.from_bytes(bytes(block.content[4:8]), "big")
        for block in read_blocks(storage.read(path), path)
    ]
    assert counts == [5, 5, 2]


def test_the_archive_lists_what_hudi_has_archived(tmp_path: Path) -> None:
    storage = LocalStorage(str(unzip_table("v6_cow_archived", tmp_path)))
    found = archived_instants(storage, _FOLDER)
    assert [i.time for i in found] == sorted(i.time for i in found)
    kinds = [i.action for i in found]
    assert (kinds.count(Action.COMMIT), kinds.count(Action.CLEAN)) == (7, 6)
    assert kinds.count(Action.REPLACE_COMMIT) == 1


def test_what_was_archived_twice_is_listed_once() -> None:
    storage = MemoryStorage()
    put_archive_file(storage, _OWN, _entries(*_DONE[:2]), 10)
    put_archive_file(storage, _OWN, _entries(*_DONE), 10)
    assert archived_instants(storage, _OWN) == tuple(_DONE)
    assert list(archive_files(storage, _OWN)) == [1, 2]


def test_a_number_that_another_archiver_takes_is_passed_over() -> None:
    class Raced(MemoryStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".1_1-0-1") and path not in self.files:
                super().put_if_absent(path, b"")
                raise AlreadyExistsError(path)
            super().put_if_absent(path, data)

    storage = Raced()
    path = put_archive_file(storage, _OWN, _entries(_DONE[0]), 10)
    assert path.endswith(".2_1-0-1")
    assert archived_instants(storage, _OWN) == (_DONE[0],)


def test_other_files_and_blocks_are_passed_over() -> None:
    storage = MemoryStorage()
    path = put_archive_file(storage, _OWN, _entries(_DONE[0]), 10)
    whole = storage.read(path)
    storage.replace(path, whole + encode_block(BlockType.COMMAND, {}, b"") + whole[:100])
    storage.replace(f"{_OWN}/.mergeArchivePlan", b"x")
    assert archived_instants(storage, _OWN) == (_DONE[0],)


@pytest.mark.parametrize("cut", [4, 60])
def test_a_damaged_block_names_the_file(cut: int) -> None:
    storage = MemoryStorage()
    path = put_archive_file(storage, _OWN, _entries(_DONE[0]), 10)
    block = next(read_blocks(storage.read(path), path))
    content = bytes(block.content[:cut])
    storage.replace(path, encode_block(BlockType.AVRO_DATA, dict(block.header), content))
    with pytest.raises(CorruptFileError, match=r"archived/\.commits_\.archive\.1_1-0-1: "):
        archived_instants(storage, _OWN)


def test_one_instant_is_found_with_what_it_did() -> None:
    storage = MemoryStorage()
    body = CommitMetadata(operation_type="UPSERT", extra={"a": "b"}).to_bytes(1)
    put_archive_file(storage, _OWN, [entry_of(_DONE[0], body, b"", "")], 10)
    put_archive_file(storage, _OWN, _entries(*_DONE[1:]), 10)
    found = find_archived(storage, _OWN, _DONE[0])
    assert found is not None
    assert found.commit("p").extra == {"a": "b"}
    other = Instant(_DONE[0].time, Action.CLEAN, State.COMPLETED)
    assert find_archived(storage, _OWN, other) is None
