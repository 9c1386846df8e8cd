"""Large files as memory maps, which need not fit into memory."""

from __future__ import annotations

import io
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Final

from hoodie_ds.errors import StorageError
from hoodie_ds.storage.protocol import Storage

_CHUNK_BYTES: Final = 8 << 20


def memory_map(storage: Storage, path: str) -> memoryview:
    """Return a file's bytes, which must not change, as a memory map; of a remote file, a copy."""
    with storage.open_input(path) as source:
        if isinstance(source, io.BufferedReader):
            return _map(source)
        return mapped_copy(path, lambda copy: shutil.copyfileobj(source, copy, _CHUNK_BYTES))


def mapped_copy(name: str, write: Callable[[IO[bytes]], object]) -> memoryview:
    """Return a memory map of a file on the local disk, into which `write` copies what `name` is.

    The file has no name and disappears with the last view of it.
    """
    with tempfile.TemporaryFile() as copy:
        try:
            write(copy)
            copy.flush()
        except OSError as error:
            raise StorageError(
                f"{name} cannot be copied to {tempfile.gettempdir()}, where it is read from: "
                f"{error}; make room there, or let TMPDIR name another folder"
            ) from error
        return _map(copy)


def _map(file: IO[bytes]) -> memoryview:
    descriptor = file.fileno()
    if not os.fstat(descriptor).st_size:
        return memoryview(b"")
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


def pieces(data: bytes | memoryview) -> Iterator[memoryview]:
    """Yield bytes in order, some megabytes at a time; no more of a map stays in memory."""
    view = memoryview(data)
    for start in range(0, len(view), _CHUNK_BYTES):
        yield view[start : start + _CHUNK_BYTES]
        release(data)


def release(data: bytes | memoryview) -> None:
    """Free the memory of the bytes if they are part of a map; later accesses read them again."""
    source = data.obj if isinstance(data, memoryview) else None
    if isinstance(source, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        source.madvise(mmap.MADV_DONTNEED)
