"""A data file being written: announced by a marker, counted, hashed, durable when it is closed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

import xxhash

from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.timeline.paths import PARTITION_METAFILE, in_partition, marker_path


class HashingOutput(io.RawIOBase):
    """Forwards bytes and tracks their number and xxh64, and the xxh64 of a footer alone."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._hash = xxhash.xxh64()
        self._footer: xxhash.xxh64 | None = None
        self.size = 0

    def writable(self) -> bool:
        """True: it is an output."""
        return True

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write all of `data`."""
        self._target.write(data)
        self._hash.update(data)
        if self._footer is not None:
            self._footer.update(data)
        length = memoryview(data).nbytes
        self.size += length
        return length

    def tell(self) -> int:
        """Number of bytes written so far."""
        return self.size

    def begin_footer(self) -> None:
        """Take what follows as the file's footer."""
        self._footer = xxhash.xxh64()

    @property
    def file(self) -> BinaryIO:
        """The output as the binary file that it is."""
        return cast(BinaryIO, self)

    @property
    def checksum(self) -> str:
        """xxh64 of what was written, 16 hexadecimal digits."""
        return str(self._hash.hexdigest())

    @property
    def footer(self) -> str | None:
        """xxh64 of the footer, if it has begun."""
        return None if self._footer is None else str(self._footer.hexdigest())


@contextmanager
def open_data_file(context: WriteContext, path: str, kind: str) -> Iterator[HashingOutput]:
    """Open a new data file after putting its marker, of kind ``CREATE``, ``MERGE`` or ``APPEND``.

    Rollback finds the file by the marker whatever happens later. The marker names the attempt,
    which shows that no other writer can have or take the file's name; markers of Hudi on the JVM
    are empty.
    """
    # A task that is retried in place finds its own marker, with the same content.
    marker = marker_path(context.instant_time, path, kind)
    with suppress(AlreadyExistsError):
        context.storage.put_if_absent(marker, context.batch_attempt.encode())
    context.files.append(path)
    with context.storage.open_output(path) as file, HashingOutput(file) as output:
        yield output


def ensure_partition_metafile(context: WriteContext, partition_path: str) -> None:
    """Mark a folder as a partition, for readers that discover partitions by listing.

    Hudi writes the file with the first commit to a partition and never again.
    """
    depth = len(partition_path.split("/")) if partition_path else 0
    body = f"#partition metadata\ncommitTime={context.instant_time}\npartitionDepth={depth}\n"
    with suppress(AlreadyExistsError):
        context.storage.put_if_absent(
            in_partition(partition_path, PARTITION_METAFILE), body.encode()
        )
