"""The archived timeline of table version 6: ``.hoodie/<folder>/.commits_.archive.<n>_1-0-1``.

Each file is a log of Avro blocks. A run of an archiver puts one file, whole and under the next
number, before it deletes anything from the active timeline. An archiver that was killed in between
archives the same instants again: of entries for one state of one instant, one counts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Final

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError
from hoodie_ds.formats.avro.decoder import DatumReader
from hoodie_ds.formats.avro.tree import parse_avro
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block, read_blocks
from hoodie_ds.hints import COPY
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.timeline.archive.each_file import each_file
from hoodie_ds.timeline.archive.entry import ArchivedEntry, entry_schema, parse_entry
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.instant_time import padded

_NAME: Final = re.compile(r"\.commits_\.archive\.([0-9]{1,9})(_[0-9]+-[0-9]+-[0-9]+)?")
_CONTENT_VERSION: Final = 3
_TWO_INTS: Final = struct.Struct(">ii")
_INT: Final = struct.Struct(">i")


def put_archive_file(
    storage: Storage, folder: str, entries: Iterable[ArchivedEntry], entries_per_block: int
) -> str:
    """Put entries into the archive, whole and durable; returns the path of the new file.

    The oldest instants come first, the states of each in their order. Raises `CorruptFileError` if
    a file had something that Hudi's schema does not have.
    """
    body = _encoded(entries, entries_per_block)
    while True:
        path = _path(folder, max(archive_files(storage, folder), default=0) + 1)
        with suppress(AlreadyExistsError):  # another archiver's
            storage.put_if_absent(path, body)
            return path


def archive_files(storage: Storage, folder: str) -> dict[int, str]:
    """Return the files of the archive by their numbers, the oldest first."""
    return {number: status.path for number, status in sorted(_listed(storage, folder).items())}


def gaps(storage: Storage, folder: str) -> list[str]:
    """Return the paths of files of the archive that are not there, though later ones are.

    They are lost, or Hudi has merged them into others.
    """
    numbers = archive_files(storage, folder)
    return [_path(folder, n) for n in range(1, max(numbers, default=0)) if n not in numbers]


def _path(folder: str, number: int) -> str:
    return f"{folder}/.commits_.archive.{number}_1-0-1"


def _listed(storage: Storage, folder: str) -> dict[int, FileStatus]:
    found = {}
    for status in storage.list(folder):
        match = _NAME.fullmatch(status.path.rpartition("/")[2])
        if match is not None:
            found[int(match.group(1))] = status
    return found


def read_archive_file(storage: Storage, path: str) -> Iterator[ArchivedEntry]:
    """Read a file of the archive, and return an iterator over its entries.

    A block that is cut off at the end is skipped: Hudi appends to its files on some storages, and
    archives nothing before the block is whole.
    """
    return _entries(storage.read(path), path)


def each_archive_file(
    storage: Storage, folder: str, *, backwards: bool = False
) -> Iterator[tuple[str, Iterator[ArchivedEntry]]]:
    """Yield the files of the archive and their entries, though Hudi may merge small files."""

    def listed() -> list[str]:
        paths = list(archive_files(storage, folder).values())
        return paths[::-1] if backwards else paths

    return each_file(storage, listed, read_archive_file)


def _entries(data: bytes, path: str) -> Iterator[ArchivedEntry]:
    for block in read_blocks(data, path, lenient=True):
        if block.block_type is BlockType.AVRO_DATA:
            schema = parse_avro(block.header[HeaderKey.SCHEMA], path)
            reader = DatumReader(schema, path, plain=True)
            for datum in _data(memoryview(block.content), path):
                yield parse_entry(reader.read(datum), path)


def archived_instants(storage: Storage, folder: str) -> tuple[Instant, ...]:
    """Return the completed instants that the archive has, by time."""
    found = {
        entry.instant
        for _, entries in each_archive_file(storage, folder)
        for entry in entries
        if entry.instant.state is State.COMPLETED
    }
    return tuple(sorted(found, key=lambda instant: padded(instant.time)))


def find_archived(storage: Storage, folder: str, instant: Instant) -> ArchivedEntry | None:
    """Return what the archive has of an instant's state; None if it has nothing.

    The newest files are read first: callers have just seen the instant on the timeline.
    """
    files = each_archive_file(storage, folder, backwards=True)
    return next((e for _, entries in files for e in entries if e.instant == instant), None)


def has_completed(storage: Storage, folder: str, time: str) -> bool:
    """Whether the archive has a completed instant of a time; a process reads each file once."""

    def listed() -> list[FileStatus]:
        return [status for _, status in sorted(_listed(storage, folder).items(), reverse=True)]

    return any(time in times for _, times in each_file(storage, listed, _completed))


@lru_cache(maxsize=64)
def _completed(storage: Storage, status: FileStatus) -> frozenset[str]:
    """Times of the completed instants in a file, to which Hudi may append."""
    entries = read_archive_file(storage, status.path)
    return frozenset(e.instant.time for e in entries if e.instant.state is State.COMPLETED)


def _encoded(entries: Iterable[ArchivedEntry], entries_per_block: int) -> bytes:
    header: dict[int, str] = {HeaderKey.SCHEMA: entry_schema()}
    remaining, blocks = iter(entries), []
    while data := [entry.to_bytes() for entry in islice(remaining, entries_per_block)]:
        counted = b"".join(_INT.pack(len(datum)) + datum for datum in data)
        content = _TWO_INTS.pack(_CONTENT_VERSION, len(data)) + counted
        blocks.append(encode_block(BlockType.AVRO_DATA, header, content))
    return b"".join(blocks)


def _data(content: memoryview, path: str) -> Iterator[memoryview]:
    """The Avro binary of each entry of a block."""
    try:
        _, count = _TWO_INTS.unpack_from(content)
        at = _TWO_INTS.size
        for _ in range(count):
            (size,) = _INT.unpack_from(content, at)
            at += _INT.size
            if not 0 <= size <= len(content) - at:
                raise CorruptFileError(f"{path}: an entry runs past the end of its block", COPY)
            yield content[at : at + size]
            at += size
    except struct.error as error:
        raise CorruptFileError(
            f"{path}: a block of the archive is cut off ({error})",
            COPY,
        ) from error
