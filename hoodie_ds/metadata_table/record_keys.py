"""Keys of a metadata table's records, and the file groups that hold them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import xxhash

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.java_hash import string_hashes
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.record.keys.partition_path import escape

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
    return key_codes(keys) % groups


def key_codes(keys: pa.Array) -> Numbers:
    """Return the number of each key (string) of which `file_groups_of` is the remainder."""
    return abs(string_hashes(keys).view(np.int32).astype(np.int64))


def index_of(path: str) -> str:
    """Return what the record index of one partition of the table is called in place of its own.

    Where an index is of each partition by itself, all of them are in the folder `RECORD_INDEX`.
    """
    return f"{RECORD_INDEX}/{path}"


def folder_of(partition: str) -> str:
    """Return the folder of a partition, or of an `index_of` one."""
    return partition.partition("/")[0]


def file_id(partition: str, number: int) -> str:
    """Return the file id of a file group of a partition, or of an `index_of` one."""
    folder, slash, path = partition.partition("/")
    prefix = _PREFIXES.get(folder, folder.replace("_", "-"))
    of_path = slash and "-" + escape(path).replace("-", "%2D").replace("_", "%5F")
    return f"{prefix}{of_path}-{number:04d}-0"


def groups_among(names: Iterable[str], partition: str) -> int:
    """Return how many file groups a partition, or an `index_of` one, has by names of files."""
    there = {name.lstrip(".").partition("_")[0] for name in names}
    return sum(file_id(partition, number) in there for number in range(len(there)))


def indexed_path(file_id: str) -> str:
    """Return the path of the partition whose record index has a file group; see `index_of`."""
    return unquote(file_id.split("-")[-3])
