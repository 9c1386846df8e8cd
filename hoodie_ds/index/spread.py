"""How file groups are spread over the tasks of a shuffle (RFC-24's shuffle by file id)."""

from __future__ import annotations

import xxhash


def first_task(partition_path: str, num_tasks: int) -> int:
    """Return the task of a partition's file group 0; the others follow, round the tasks."""
    return xxhash.xxh3_64_intdigest(partition_path.encode()) % num_tasks
