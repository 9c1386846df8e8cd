"""How file groups are spread over the tasks of a shuffle (RFC-24's shuffle by file id)."""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds.index.java_hash import string_hashes


def first_task(partition_path: str, num_tasks: int, num_groups: int = 1) -> int:
    """Return the task of a partition's file group 0; the others follow, round the tasks.

    As Hudi's Flink writer does. Paths that count up, as days do, have hashes that do, so that
    where one partition's file groups end the next one's begin: ten days of two buckets each keep
    ten tasks busy.

    Parameters
    ----------
    partition_path : str
        The partition.
    num_tasks : int
        Number of tasks.
    num_groups : int
        File groups of the partition, as far as that is known.
    """
    (hashed,) = string_hashes(pa.array([partition_path])).tolist()
    return int((hashed & 0x7FFFFFFF) % num_tasks * num_groups % num_tasks)
