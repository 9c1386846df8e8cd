"""File objects of storages that read in ranges, and write whole files or parts of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from hoodie_ds.errors import StorageError
from hoodie_ds.storage.protocol import Upload

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LEAST_READ: Final = 1 << 20
"""Smaller reads of an input share a request."""

PART_BYTES: Final = 16 << 20
"""Of a file that is larger, no more is in memory. S3 takes 10,000 parts of 5 MiB or more."""


class GuardedInput(io.RawIOBase):
    """A file for reading, each read of which goes through `guard`, which may repeat it."""

    def __init__(self, file: BinaryIO, guard: Callable[[Callable[[], bytes]], bytes]) -> None:
        self._file = file
        self._guard = guard

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes, by default all that are left."""
        position = self._file.tell()

        def once() -> bytes:
            self._file.seek(position)
            return self._file.read(-1 if size is None else size)

        return self._guard(once)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position and return it."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def ranges_input(size: int, fetch: Callable[[int, int], Any]) -> BinaryIO:
    """Return a file for reading; `fetch` returns its bytes from one position to another."""
    return cast(BinaryIO, io.BufferedReader(_Ranges(size, fetch), _LEAST_READ))


@contextlib.contextmanager
def whole_output(store: Callable[[bytes], object]) -> Iterator[BinaryIO]:
    """Collect a file in memory, and store it if the block is left normally."""
    content = _Buffer()
    yield cast(BinaryIO, content)
    store(content.getvalue())


@contextlib.contextmanager
def output_in_parts(
    store: Callable[[bytes], object], begin: Callable[[], Upload]
) -> Iterator[BinaryIO]:
    """Send a large file in parts while it is written, and store a small one at the end."""
    output = _Parts(begin)
    try:
        yield cast(BinaryIO, output)
        output.finish(store)
    except BaseException:
        output.abort()
        raise


class _Ranges(io.RawIOBase):
    """A remote file, each read of which is a request."""

    def __init__(self, size: int, fetch: Callable[[int, int], Any]) -> None:
        self._size = size
        self._fetch = fetch
        self._position = 0

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer, as far as the object goes."""
        view = memoryview(buffer)
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """Return what is left, with one request."""
        return bytes(self._read(self._size))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def _read(self, size: int) -> memoryview:
        end = min(self._position + size, self._size)
        data = memoryview(self._fetch(self._position, end) if self._position < end else b"")
        self._position += len(data)
        return data


class _Parts(io.RawIOBase):
    """A file that is sent in parts; it keeps its content when a writer closes it."""

    def __init__(self, begin: Callable[[], Upload]) -> None:
        self._begin = begin
        self._upload: Upload | None = None
        self._sent = 0  # parts
        self._rest = bytearray()

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), PART_BYTES):
            self._rest += view[start : start + PART_BYTES]
            if len(self._rest) > PART_BYTES:
                self._send(PART_BYTES)
        return len(view)

    def finish(self, store: Callable[[bytes], object]) -> None:
        """Let the file appear."""
        if self._upload is None:
            store(bytes(self._rest))
        else:
            self._send(len(self._rest))
            self._upload.complete()

    def abort(self) -> None:
        """Delete what was sent, if that is possible."""
        if self._upload is not None:
            with contextlib.suppress(StorageError):
                self._upload.abort()

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._sent * PART_BYTES + len(self._rest)

    def writable(self) -> bool:
        """Return true."""
        return True

    def close(self) -> None:
        """Do nothing: the storage still needs the content."""

    def _send(self, size: int) -> None:
        if self._upload is None:
            self._upload = self._begin()
        self._sent += 1
        self._upload.put(self._sent, bytes(memoryview(self._rest)[:size]))
        del self._rest[:size]


class _Buffer(io.BytesIO):
    """A file in memory that keeps its content when a writer closes it."""

    def close(self) -> None:
        """Do nothing: the storage still needs the content."""
