"""Keys of a metadata table's records, and the file groups that hold them."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import xxhash

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


def file_group_of(key: str, groups: int) -> int:
    """Return the number of the file group of a key: Java's hash code decides."""
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    signed = code - (code >> 31 << 32)
    return abs(signed) % groups


def file_id(partition: str, number: int) -> str:
    """Return the file id of a file group of a partition."""
    prefix = _PREFIXES.get(partition, partition.replace("_", "-"))
    return f"{prefix}-{number:04d}-0"
