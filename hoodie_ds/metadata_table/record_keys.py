"""Keys of a metadata table's records, and the file groups that hold them."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.java_hash import string_hashes

UNPARTITIONED: Final = "."
"""The partition path of a table without partitions, in keys."""

_SEED: Final = 0xFFFFFFFF_DABADABA
_PREFIXES: Final = {"column_stats": "col-stats", "expr_index": "expr-index"}


def hashed(name: str) -> str:
    """Return a column or partition as it is in keys."""
    return base64.b64encode(xxhash.xxh64_digest(name.encode(), seed=_SEED)).decode()


def digest(name: str) -> str:
    """Return a file as it is in keys."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def file_groups_of(keys: pa.Array, groups: int) -> Numbers:
    """Return the number of the file group of each key (string): Java's hash code decides."""
    codes = string_hashes(keys).view(np.int32).astype(np.int64)
    return abs(codes) % groups


def file_id(partition: str, number: int) -> str:
    """Return the file id of a file group of a partition."""
    prefix = _PREFIXES.get(partition, partition.replace("_", "-"))
    return f"{prefix}-{number:04d}-0"
