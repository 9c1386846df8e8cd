"""The buckets of a table: their number, their hash, and the file group of each.

The invariant: a bucket of a partition has at most one live file group (RFC-29). An existing one is
used, whichever writer made it; two are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.java_hash import string_hashes
from hoodie_ds.config.bucket_rules import BucketRules
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie_ds.hints import TWO_GROUPS
from hoodie_ds.index.bucket_identifier import BucketIds, Counts, bucket_ids
from hoodie_ds.table.file_name import bucket_of
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.hashing_config import HashingConfig


@dataclass(frozen=True, slots=True)
class Buckets:
    """From record keys to buckets."""

    num_buckets: int  # in each partition that no rule matches
    hash_fields: tuple[str, ...]  # a subset of `record_key_fields`, in their order
    record_key_fields: tuple[str, ...]
    rules: BucketRules | None = None

    @classmethod
    def of(
        cls, properties: TableProperties, options: WriteOptions, stored: HashingConfig | None
    ) -> Buckets:
        """Take the buckets from the table, and from the options what it does not record.

        Stored rules take precedence over table properties, as engines change them. `OptionError` if
        the number is unknown, or options contradict the table.
        """
        num_buckets = properties.num_buckets or options.num_buckets
        rules = options.bucket_rules
        if stored is not None:
            num_buckets = stored.default_buckets
            rules = _stored_rules(stored.expressions) if stored.expressions else None
        elif properties.num_buckets is not None:
            rules = _stored_rules(properties.bucket_rules) if properties.bucket_rules else None
        if num_buckets is None:
            raise OptionError(
                IndexOptions.num_buckets.key,
                None,
                f"table {properties.name!r} does not record its number of buckets; give the one "
                "that its writers use",
            )
        _check_given(
            properties.name, IndexOptions.num_buckets.key, options.num_buckets, num_buckets
        )
        _check_given(properties.name, IndexOptions.bucket_rules.key, options.bucket_rules, rules)
        keys = properties.record_key_fields
        hashed = properties.bucket_hash_fields or options.bucket_hash_fields or keys
        return cls(num_buckets, hashed, keys, rules)

    @classmethod
    def recorded(cls, properties: TableProperties, stored: HashingConfig | None) -> Buckets | None:
        """Take the buckets from the table alone; None if it does not record them."""
        num_buckets, expressions = properties.num_buckets, properties.bucket_rules
        if stored is not None:
            num_buckets, expressions = stored.default_buckets, stored.expressions
        if num_buckets is None:
            return None
        keys = properties.record_key_fields
        hashed = properties.bucket_hash_fields or keys
        rules = _stored_rules(expressions) if expressions else None
        return cls(num_buckets, hashed, keys, rules)

    def num_buckets_in(self, partition_path: str) -> int:
        """Return the number of buckets of a partition."""
        ruled = self.rules.num_buckets(partition_path) if self.rules else None
        return self.num_buckets if ruled is None else ruled

    def ids(self, record_keys: pa.ChunkedArray, paths: pa.DictionaryArray) -> BucketIds:
        """Return the bucket of each record key in the partition of each path."""
        if self.rules is None:
            return self.ids_by_key(record_keys)
        ruled = [self.num_buckets_in(path) for path in paths.dictionary.to_pylist()]
        codes = paths.indices.to_numpy(zero_copy_only=False)
        return self.hashed(record_keys, np.array(ruled, np.int64)[codes])

    def ids_by_key(self, record_keys: pa.ChunkedArray) -> BucketIds:
        """Return the bucket of each record key in a partition that no rule matches."""
        return self.hashed(record_keys, self.num_buckets)

    def hashed(self, record_keys: pa.ChunkedArray, num_buckets: int | Counts) -> BucketIds:
        """Return the bucket of each record key, given the number of buckets in its partition."""
        return bucket_ids(record_keys, num_buckets, self.hash_fields, self.record_key_fields)

    def check_name(self, group: FileGroupId) -> int:
        """Return the bucket that a file group is named after; refuse a group of another index."""
        bucket = bucket_of(group.file_id)
        num_buckets = self.num_buckets_in(group.partition_path)
        if bucket is None or bucket >= num_buckets:
            raise UnsupportedTableError(
                f"file group {group} belongs to no bucket of {num_buckets}: the table has "
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
        num_buckets = self.num_buckets_in(slice_.group.partition_path)
        found = np.unique(self.hashed(record_keys, num_buckets))
        if len(found) and (len(found) > 1 or int(found[0]) != expected):
            raise UnsupportedTableError(
                f"file group {slice_.group} is named after bucket {expected}, but its keys hash to "
                f"{found[:5].tolist()} of {num_buckets}; the table was written with another "
                f"{IndexOptions.num_buckets.key}, {IndexOptions.bucket_rules.key} or "
                f"{IndexOptions.bucket_hash_fields.key}"
            )


def only_slice(buckets: Buckets, slices: Sequence[FileSlice]) -> FileSlice | None:
    """Return the only live file group among those of a bucket; None if there is none.

    `CorruptFileError` names two live file groups of the bucket.
    """
    for slice_ in slices:
        buckets.check_name(slice_.group)
    if len(slices) > 1:
        one, other = slices[0].group, slices[1].group
        raise CorruptFileError(
            f"bucket {bucket_of(one.file_id)} has two live file groups, {one} and {other}",
            TWO_GROUPS,
        )
    return slices[0] if slices else None


def _stored_rules(expressions: str) -> BucketRules:
    rules = BucketRules.parse(expressions)
    if rules is None:
        raise UnsupportedTableError(
            f"the table has {IndexOptions.bucket_rules.key} = {expressions[:200]!r}, which is not "
            "read here as Java reads it, or not in bounded time (look-around, back references); "
            "the table can be read here, and upserted into by the engine that wrote it"
        )
    return rules


def _check_given(table: str, key: str, given: object, stored: object) -> None:
    if given is not None and given != stored:
        raise OptionError(
            key,
            str(given),
            f"table {table!r} has {'none' if stored is None else str(stored)!r}; leave the option "
            "out or write to another table",
        )


def first_task(partition_path: str, num_tasks: int, num_groups: int = 1) -> int:
    """Return the task of a partition's file group 0; the others follow round-robin.

    As Hudi's Flink writer does. Consecutive paths, such as days, have consecutive hashes, so a
    partition's file groups begin where the previous one's end: ten days of two buckets each keep
    ten tasks busy. `num_groups` is the number of the partition's file groups, if it is known.
    """
    (hashed,) = string_hashes(pa.array([partition_path])).tolist()
    return int((hashed & 0x7FFFFFFF) % num_tasks * num_groups % num_tasks)
