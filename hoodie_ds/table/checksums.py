"""Comparing the bytes of data files with what the commits that wrote them say.

Parquet's footer and Hudi's log blocks carry no checksum, so damage to them may read as other rows.
Our commits name the xxh64 of every file, and of the footers of base files, which rule out rows that
are not read then. Files of other writers have none and pass.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import BinaryIO, Final

import xxhash

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.log.log_block import Bytes
from hoodie_ds.hints import COPY
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.memory_map import pieces
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import BaseFile, LogFile
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat

_CHUNK_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 20
"""Files up to this size are compared each time: it costs little."""
_TAIL_BYTES: Final = 8
"""Bytes behind a Parquet footer: its length, and four of magic."""
HELD_BYTES: Final = 32 << 20
"""Files up to this size are compared each time; of larger ones often little is needed."""


@contextmanager
def open_base_file(storage: Storage, base: BaseFile) -> Iterator[BinaryIO]:
    """Open a base file for reading, once all of its bytes are found to be as written.

    A large one, which no process changes after its commit, is compared the first time that this
    process opens it; later, Parquet's own page checksums cover the pages that are read. One of a
    local disk is not held: to read a few columns again costs less than memory for all. Raises
    `CorruptFileError`.
    """
    is_small = base.size <= HELD_BYTES
    if base.checksum is not None and is_small and not isinstance(storage, LocalStorage):
        content = storage.read(base.path)  # an input would ask for the size first
        _compare(base.path, base.checksum, xxhash.xxh64_hexdigest(content))
        yield io.BytesIO(content)
        return
    with storage.open_input(base.path) as source:
        if base.checksum is not None and is_small:
            _compare(base.path, base.checksum, _xxh64(source))
            source.seek(0)
        elif base.checksum is not None:
            check_once(storage, base.path, base.checksum)
        yield source


@contextmanager
def open_footer(storage: Storage, base: BaseFile) -> Iterator[tuple[BinaryIO, Callable[[], None]]]:
    """Open a base file of which the footer is as written, with what compares all other bytes.

    That is to be called before they are read. All are compared at once if the footer has no
    checksum, or the file is small and remote: one request for all is less than two for parts.
    Raises `CorruptFileError`.
    """
    is_large = base.size > HELD_BYTES
    is_cheap = is_large or isinstance(storage, LocalStorage)
    if is_cheap and base.checksum is not None and base.footer is not None:
        with storage.open_input(base.path) as source:
            _compare(base.path, base.footer, xxhash.xxh64_hexdigest(_footer(source)))
            check = check_once if is_large else check_file
            yield source, partial(check, storage, base.path, base.checksum)
        return
    with open_base_file(storage, base) as source:
        yield source, lambda: None


@contextmanager
def open_checked(storage: Storage, path: str, checksum: str, remedy: str) -> Iterator[BinaryIO]:
    """Open a file that may be opened repeatedly.

    A small one is compared with its checksum every time, a larger one as `check_once` does. Raises
    `CorruptFileError` with the remedy.
    """
    with storage.open_input(path) as source:
        content = source.read(_SMALL_BYTES + 1)
        if len(content) <= _SMALL_BYTES:
            _compare(path, checksum, xxhash.xxh64_hexdigest(content), remedy)
            yield io.BytesIO(content)
            return
        check_once(storage, path, checksum, remedy)
        source.seek(0)
        yield source


def check_file(storage: Storage, path: str, checksum: str, remedy: str = COPY) -> None:
    """Compare a file's bytes; raises `CorruptFileError` with the remedy."""
    with storage.open_input(path) as source:
        _compare(path, checksum, _xxh64(source), remedy)


@lru_cache(maxsize=4096)
def check_once(storage: Storage, path: str, checksum: str, remedy: str = COPY) -> None:
    """Compare a file's bytes once in this process; see `check_file`.

    For large files, of which little is read each time.
    """
    check_file(storage, path, checksum, remedy)


def check_size(path: str, size: int, stat: WriteStat) -> None:
    """Compare the size of a file with that in its commit.

    Raises `CorruptFileError`. A log file may be larger: other writers may append to it.
    """
    written = stat.file_size_bytes
    if size < written or (stat.log is None and 0 < written != size):
        raise CorruptFileError(
            f"{path} has {size} bytes, and {written} when it was written", COPY, path
        )


def check_log_bytes(log: LogFile, data: Bytes, stat: WriteStat, checksum: str | None) -> None:
    """Compare the bytes of a log file that its commit wrote with their checksum."""
    check_size(log.path, len(data), stat)
    if checksum is not None:
        digest = xxhash.xxh64()
        for piece in pieces(memoryview(data)[: stat.file_size_bytes]):
            digest.update(piece)
        _compare(log.path, checksum, digest.hexdigest())


def check_change_file(path: str, data: bytes, size: int, checksum: str | None) -> None:
    """Compare the bytes of a file of change data with what its commit says.

    `size` is 0 and `checksum` None if they are not known.
    """
    if 0 < size != len(data):
        raise CorruptFileError(
            f"{path} has {len(data)} bytes, and {size} when it was written", COPY, path
        )
    if checksum is not None:
        _compare(path, checksum, xxhash.xxh64_hexdigest(data))


def _footer(source: BinaryIO) -> bytes:
    """The footer of a Parquet file with its length and magic; all if it cannot be as long."""
    size = source.seek(0, os.SEEK_END)
    source.seek(max(0, size - _TAIL_BYTES))
    length = int.from_bytes(source.read(4), "little")
    source.seek(max(0, size - _TAIL_BYTES - length))
    return source.read()


def _xxh64(source: BinaryIO) -> str:
    digest = xxhash.xxh64()
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
    return str(digest.hexdigest())


def _compare(path: str, expected: str, found: str, remedy: str = COPY) -> None:
    if found != expected:
        raise CorruptFileError(
            f"{path} was damaged: its xxh64 is {found}, and {expected} when it was written",
            remedy,
            path,
        )
