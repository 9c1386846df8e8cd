"""A storage that counts what is read of each file."""

from __future__ import annotations

import io
from collections import Counter
from typing import BinaryIO

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.faulty_storage import FaultyStorage


class CountedReads(FaultyStorage):
    """Counts the bytes that are read of data files, by path; a file that is opened has a count."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.bytes: Counter[str] = Counter()

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        content = super().read(path)
        self.count(path, len(content))
        return content

    def open_input(self, path: str) -> BinaryIO:
        """Open a file whose reads count."""
        with super().open_input(path) as source:
            return _Counted(source.read(), self, path)

    def count(self, path: str, size: int) -> None:
        """Add bytes that were read."""
        if not path.startswith(".hoodie/"):
            self.bytes[path] += size


class _Counted(io.BytesIO):
    def __init__(self, content: bytes, storage: CountedReads, path: str) -> None:
        super().__init__(content)
        self._count, self._path = storage.count, path
        self._count(path, 0)

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self._count(self._path, len(found))
        return found
