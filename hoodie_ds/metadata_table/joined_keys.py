"""Entries of the record index that tasks have made, as the delta commit of their write takes them.

A file of them counts if the commit names it and it is there as it was put, by its checksums, for
the index as it is now. The keys of all other data files are found in these, as if no task had made
entries: a process that completes the write of a dead one may find that others have deleted its
temporary files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa
import xxhash

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.log.log_block import BlockType, read_blocks
from hoodie_ds.metadata_table.record_keys import file_groups_of, file_id, folder_of
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.key_files import KeyFiles
from hoodie_ds.timeline.paths import keys_path

_PIECE_BYTES: Final = 4 << 20
_READ_AT_ONCE: Final = 8
"""Ends of files, as a write has one or more of each task."""


class LostKeysError(CorruptFileError):
    """A file of a task is gone, or damaged, since its end was read."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not as it was put", "write again")


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """The log blocks of entries for a file group in a file of a task."""

    storage: Storage
    path: str
    start: int
    size: int
    num_keys: int
    checksum: str
    num_deletes: int = 0

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes, few at a time; `LostKeysError` if they are not those that were put."""
        found, left = xxhash.xxh64(), self.size
        try:
            with self.storage.open_input(self.path) as file:
                file.seek(self.start)
                while piece := file.read(min(left, _PIECE_BYTES)):
                    found.update(piece)
                    left -= len(piece)
                    yield piece
        except NotFoundError as error:
            raise LostKeysError(self.path) from error
        if found.hexdigest() != self.checksum:
            raise LostKeysError(self.path)

    def found(self, keys: list[bytes]) -> Iterator[str]:
        """Yield those of some sorted keys that it has records of."""
        for block in read_blocks(b"".join(self.pieces()), self.path):
            if block.block_type is not BlockType.HFILE_DATA:
                continue
            for key, _ in HFile(io.BytesIO(block.content), self.path).get_many(keys):
                yield key.decode()


@dataclass(frozen=True, slots=True)
class JoinedKeys:
    """The blocks of tasks for the file groups of record indexes.

    `files` are the paths of the data files whose changes they have, all of them, by the partition
    of the metadata table, and `groups` how many file groups an index has.
    """

    blocks: Mapping[FileGroupId, list[KeyBlock]] = field(default_factory=dict)
    files: Mapping[str, Collection[str]] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        storage: Storage,
        time: str,
        named: KeyFiles,
        added: Mapping[str, object],
        num_groups: Callable[[str], int],
    ) -> JoinedKeys:
        """Return what can be used of the files that a write has named.

        `added` are the data files of the write, and `num_groups` returns how many file groups an
        index has now.
        """
        blocks: dict[FileGroupId, list[KeyBlock]] = {}
        files: dict[str, set[str]] = {}
        groups: dict[str, int] = {}
        names = sorted(named)
        paths = [keys_path(time, name) for name in names]
        with ThreadPoolExecutor(_READ_AT_ONCE, "hoodie-keys") as pool:
            ends = [*pool.map(partial(_end, storage), paths, map(named.__getitem__, names))]
        for body in ends:
            if body is None or not set().union(*body.files.values()) <= added.keys():
                continue
            groups |= {one: num_groups(one) for one in body.groups if one not in groups}
            if body.groups.items() <= groups.items():
                for partition, changed in body.files.items():
                    files.setdefault(partition, set()).update(changed)
                for group, block in body.blocks:
                    blocks.setdefault(group, []).append(block)
        return cls(blocks, files, groups)

    def placed(
        self, index: str, keys: Collection[str], hashed: Callable[[str], str] = str
    ) -> Iterator[str]:
        """Yield those of some keys that have an entry for an index here; see `by_file_group`."""
        if index not in self.groups:
            return
        asked: dict[str, list[bytes]] = {}
        numbers = file_groups_of(pa.array(map(hashed, keys), pa.string()), self.groups[index])
        for number, key in zip(numbers.tolist(), keys, strict=True):
            asked.setdefault(file_id(index, number), []).append(key.encode())
        for name, some in asked.items():
            for block in self.blocks.get(FileGroupId(folder_of(index), name), ()):
                yield from block.found(sorted(some))


@dataclass(frozen=True, slots=True)
class _Body:
    """What the end of a file says of it."""

    files: Mapping[str, Collection[str]]
    groups: Mapping[str, int]
    blocks: list[tuple[FileGroupId, KeyBlock]]


def _end(storage: Storage, path: str, put: tuple[int, str]) -> _Body | None:
    """Read what a file says of its blocks; None if it is not there as it was put."""
    start, checksum = put
    try:
        with storage.open_input(path) as file:
            file.seek(start)
            end = file.read()
    except NotFoundError:
        return None
    if xxhash.xxh64_hexdigest(end) != checksum:
        return None
    found = json.loads(end)
    blocks, at = [], 0
    for index, number, num_keys, num_deletes, length, hashed in found["blocks"]:
        block = KeyBlock(storage, path, at, length, num_keys, hashed, num_deletes)
        blocks.append((FileGroupId(folder_of(index), file_id(index, number)), block))
        at += length
    return _Body(found["files"], found["groups"], blocks)
