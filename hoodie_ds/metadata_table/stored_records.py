"""Records in the files of a metadata table, of which a process keeps small ones.

Until it is compacted each batch looks into the same files again, which delta commits have written
for it or for those before it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.environment import forget_at_fork
from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.avro.decoder import damage_in
from hoodie_ds.formats.hfile.reader import Entry, HFile
from hoodie_ds.formats.log.delete_block import decode_delete_block
from hoodie_ds.formats.log.log_block import BlockType, Bytes, HeaderKey, LogBlock, read_blocks
from hoodie_ds.metadata_table.payload import Record, record_reader
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.checksums import check_log_bytes, open_base_file
from hoodie_ds.table.file_slice import BaseFile, LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant

REBUILD: Final = "let Hudi on the JVM rebuild the metadata table"
SMALL: Final = 32 << 10
"""Bytes of a file that may be kept: an HFile reads as many at once, and later no more."""
_FILES: Final = 1_024
T = TypeVar("T")
Numbered: TypeAlias = tuple[pa.Array, Numbers]
"""Keys (binary), and the number of what is made of the record of each, -1 of one deleted."""
Select: TypeAlias = Callable[[HFile], Iterator[Entry]]
"""Reads all entries of a file, or some."""


@contextmanager
def base_records(view: FileSystemView, base: BaseFile) -> Iterator[Records]:
    """Open a base file for its records, which may be kept; see `logged_blocks`."""
    written = _written(view, base, base.name.instant_time)
    if written is not None:
        yield _kept_base(view.storage, base, written)
        return
    with open_base_file(view.storage, base) as source:
        yield Records.of(HFile(source, base.path), base)


def logged_blocks(view: FileSystemView, log: LogFile) -> Iterator[LoggedBlock]:
    """Yield the blocks of a log file, by what this process knows of it if it is small.

    In layout 2 a delta commit names each file after itself, and what it has written stays as it is;
    with its completion time it is no other one of the same time. In layout 1 others append to logs.
    """
    written = _written(view, log, log.name.base_instant)
    if written is None:
        yield from _decodable(view.read_log(log), log.path)
    else:
        yield from _kept_log(view.storage, log, written)


def _written(view: FileSystemView, file: BaseFile | LogFile, time: str) -> Instant | None:
    """The commit that has written a file, if that may be kept."""
    commit = view.timeline.commit_at(time)
    if commit is None or not commit.completion_time or file.size > SMALL:
        return None
    return commit if file.path in file_changes(view.storage, commit).added else None


@lru_cache(maxsize=_FILES)
def _kept_base(storage: Storage, base: BaseFile, written: Instant) -> Records:
    with open_base_file(storage, base) as source:
        return Records.of(HFile(io.BytesIO(source.read()), base.path), base)


@lru_cache(maxsize=_FILES)
def _kept_log(storage: Storage, log: LogFile, written: Instant) -> Sequence[LoggedBlock]:
    changes, data = file_changes(storage, written), storage.read(log.path)
    check_log_bytes(log, data, changes.added[log.path], changes.checksums.get(log.path))
    return [*_decodable(data, log.path)]


def forget_files() -> None:
    """Forget what is kept, where others of the same times may take the place of files."""
    _kept_base.cache_clear()
    _kept_log.cache_clear()


forget_at_fork(forget_files)


def _decodable(data: Bytes, path: str) -> Iterator[LoggedBlock]:
    return (LoggedBlock(block, path) for block in read_blocks(data, path))


class LoggedBlock:
    """A block of a log file, which is decoded when it is needed first."""

    def __init__(self, block: LogBlock, path: str) -> None:
        self.block = block
        self._path = path

    @cached_property
    def change(self) -> Records | pa.Array:
        """Records that are new, or keys (string) that are deleted."""
        if self.block.block_type is BlockType.DELETE:
            deletes = decode_delete_block(self.block, self._path)
            return deletes.column("record_key").combine_chunks()
        if self.block.block_type is not BlockType.HFILE_DATA:
            raise UnsupportedTableError(
                f"{self._path} holds a block of kind {self.block.block_type}, which metadata "
                f"tables do not have; {REBUILD}"
            )
        file = HFile(io.BytesIO(self.block.content), self._path)
        size = len(self.block.content)
        return Records(file, self.block.header.get(HeaderKey.SCHEMA), self._path, size)

    def find(self, keys: pa.Array, made: Made[T]) -> Iterator[Numbered]:
        """Yield what it says of some sorted keys, as `Records.find`, and maybe of others."""
        change = self.change
        if not isinstance(change, Records):
            yield change.cast(pa.binary()), np.full(len(change), -1)
        else:
            yield from change.find(keys, made)


class Records:
    """The records of an HFile of so many bytes, all of which have the same schema."""

    def __init__(self, file: HFile, schema: str | bytes | None, path: str, size: int) -> None:
        self._file = file
        self._schema = schema
        self._path = path
        self._is_small = size <= SMALL
        self._made: dict[Callable[[Record], Any], list[Any]] = {}

    @classmethod
    def of(cls, file: HFile, base: BaseFile) -> Records:
        """Return those of a base file, which says itself what their schema is."""
        return cls(file, file.info.get("schema"), base.path, base.size)

    def selected(self, select: Select) -> Iterator[tuple[str, Record]]:
        """Yield the records that are selected, and their keys."""
        read = self._reader()
        with damage_in(self._path):
            for raw, value in select(self._file):
                key = raw.decode()
                yield key, read(key, value)

    def find(self, keys: pa.Array, made: Made[T]) -> Iterator[Numbered]:
        """Yield those of some sorted keys that are there, with numbers of what is made of them.

        Or all keys, if there are few.
        """
        if self._is_small:
            there, codes, known = self._entries
            if made.make not in self._made:
                self._made[made.make] = [*made.of(known, self)]
            yield there, made.numbers(self._made[made.make])[codes]
            return
        for at, values in self._file.find(keys):
            encoded = values.dictionary_encode()
            numbers = made.numbers(made.of(encoded.dictionary, self))
            yield keys.take(pa.array(at)), numbers[as_numpy(encoded.indices)]

    @cached_property
    def _entries(self) -> tuple[pa.Array, Numbers, pa.Array]:
        """All keys, the number of the value of each, and the values."""
        keys, values = (pa.array(part, pa.binary()) for part in self._file.columns())
        encoded = values.dictionary_encode()
        return keys, as_numpy(encoded.indices), encoded.dictionary

    def read(self, values: pa.Array) -> Iterator[Record]:
        """Yield records without their keys."""
        read = self._reader()
        with damage_in(self._path):
            yield from (read("", value) for value in values.to_pylist())

    def _reader(self) -> Callable[[str, bytes], Record]:
        return record_reader(schema_of(self._schema, self._path), self._path)


class Made(Generic[T]):
    """What is made of records, of each once, and its numbers."""

    def __init__(self, make: Callable[[Record], T]) -> None:
        self.make = make
        self._numbers: dict[T, int] = {}

    def of(self, values: pa.Array, records: Records) -> Iterator[T]:
        """Yield what is made of the records of some values (binary)."""
        return map(self.make, records.read(values))

    def numbers(self, made: Iterable[T]) -> Numbers:
        """Return the numbers of what was made."""
        known = self._numbers
        return np.array([known.setdefault(one, len(known)) for one in made], np.int64)

    def only(self, numbers: Numbers) -> tuple[Numbers, list[T]]:
        """Return what some numbers, or -1, are of, and its numbers without others."""
        used = np.flatnonzero(np.bincount(numbers + 1, minlength=1)[1:])
        renumbered = np.full(len(self._numbers) + 1, -1)
        renumbered[used] = np.arange(len(used))
        every = [*self._numbers]
        return renumbered[numbers], [every[number] for number in used.tolist()]


def schema_of(schema: str | bytes | None, path: str) -> str | bytes:
    """Return the schema that a file has for its records; refuse one without."""
    if schema is None:
        raise CorruptFileError(f"{path} does not say which schema its records have", REBUILD)
    return schema
