"""File objects of storages that read in ranges and write whole files."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast


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


@contextlib.contextmanager
def whole_output(store: Callable[[bytes], object]) -> Iterator[BinaryIO]:
    """Collect a file in memory, and store it if the block is left normally."""
    content = _Buffer()
    yield cast(BinaryIO, content)
    store(content.getvalue())


class _Buffer(io.BytesIO):
    """A file in memory that keeps its content when a writer closes it."""

    def close(self) -> None:
        """Do nothing: the storage still needs the content."""
