"""The bucket layout of a table: how many buckets, hashed how, and which file group each one is.

The invariant: a bucket of a partition has at most one live file group (RFC-29). One that is there,
whoever wrote it, is used; two are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_ds.config.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie_ds.index.bucket import BucketIds, KeyParsing, bucket_ids, bucket_of
from hoodie_ds.table.file_slice import FileGroupId, FileSlice

_NUM_BUCKETS = "hoodie.bucket.index.num.buckets"


@dataclass(frozen=True, slots=True)
class BucketLayout:
    """From record keys to buckets.

    Parameters
    ----------
    num_buckets : int
        Buckets in each partition.
    hash_fields : tuple of str
        Fields whose values are hashed; a subset of `record_key_fields`, in their order.
    record_key_fields : tuple of str
        Fields of the record key.
    parsing : KeyParsing
        How values are taken out of a record key.
    """

    num_buckets: int
    hash_fields: tuple[str, ...]
    record_key_fields: tuple[str, ...]
    parsing: KeyParsing

    @classmethod
    def of(cls, properties: TableProperties, options: WriteOptions) -> BucketLayout:
        """Take the layout from the table, and from the options what it does not record.

        Raises
        ------
        OptionError
            Neither the table nor an option says how many buckets there are.
        """
        num_buckets = properties.num_buckets or options.num_buckets
        if num_buckets is None:
            raise OptionError(
                _NUM_BUCKETS,
                None,
                f"table {properties.name!r} does not record its number of buckets; give the one "
                "that its writers use",
            )
        keys = properties.record_key_fields
        hashed = properties.bucket_hash_fields or options.bucket_hash_fields or keys
        return cls(num_buckets, hashed, keys, KeyParsing.LAST_COMMA_BEFORE_COLON)

    def buckets(self, record_keys: pa.ChunkedArray) -> BucketIds:
        """Return the bucket of each record key."""
        return bucket_ids(
            record_keys, self.num_buckets, self.hash_fields, self.record_key_fields, self.parsing
        )

    def check_name(self, group: FileGroupId) -> int:
        """Return the bucket that a file group is named after.

        Raises
        ------
        UnsupportedTableError
            It is named after none: the table has another index.
        """
        bucket = bucket_of(group.file_id)
        if bucket is None or bucket >= self.num_buckets:
            raise UnsupportedTableError(
                f"file group {group} belongs to no bucket of {self.num_buckets}: the table has "
                "another index, or another number of buckets; it can be read here, and upserted "
                "into by the engine that wrote it"
            )
        return bucket

    def check(self, slice_: FileSlice, record_keys: pa.ChunkedArray) -> None:
        """Refuse a file group whose rows hash to another bucket than its name says.

        Other writers may hash other fields, or into another number of buckets; adding rows by our
        hash would then split keys over two groups.
        """
        expected = bucket_of(slice_.group.file_id)
        found = np.unique(self.buckets(record_keys))
        if len(found) and (len(found) > 1 or int(found[0]) != expected):
            raise UnsupportedTableError(
                f"file group {slice_.group} is named after bucket {expected}, but its keys hash to "
                f"{found[:5].tolist()} of {self.num_buckets}; the table was written with another "
                f"{_NUM_BUCKETS} or hoodie.bucket.index.hash.field"
            )


def by_bucket(layout: BucketLayout, slices: Iterable[FileSlice]) -> dict[int, FileSlice]:
    """Map the live file groups of one partition to their buckets.

    Raises
    ------
    UnsupportedTableError
        A file group is not named after a bucket: the table has another index.
    CorruptFileError
        Two file groups are live in one bucket; names both.
    """
    found: dict[int, FileSlice] = {}
    for slice_ in slices:
        bucket = layout.check_name(slice_.group)
        twin = found.get(bucket)
        if twin is not None:
            raise CorruptFileError(_two_groups(bucket, twin.group, slice_.group))
        found[bucket] = slice_
    return found


def _two_groups(bucket: int, one: FileGroupId, other: FileGroupId) -> str:
    return (
        f"bucket {bucket} has two live file groups, {one} and {other}; rows of one key may be in "
        "both: remove one after moving its rows"
    )
