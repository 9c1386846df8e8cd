"""File groups that a batch begins where no bucket names them."""

from __future__ import annotations

import xxhash

from hoodie_ds.handles.context import WriteContext
from hoodie_ds.table.file_slice import FileGroupId


def new_group(context: WriteContext, partition_path: str, number: int) -> FileGroupId:
    """Return a new file group, the same when a second attempt does the same work again.

    Parameters
    ----------
    context : WriteContext
        Task and instant.
    partition_path : str
        Partition of the group.
    number : int
        Number of the group among those that the task begins in the partition.
    """
    identity = (context.instant_time, partition_path, str(context.writer), str(number))
    digits = xxhash.xxh3_128_hexdigest("\0".join(identity).encode())
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return FileGroupId(partition_path, "-".join(parts) + "-0")
