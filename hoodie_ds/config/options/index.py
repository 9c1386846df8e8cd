"""The options of a write that concern its index, one `Option` each."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.bucket_rules import BUCKETS_MAX, BucketRules
from hoodie_ds.config.enums import BloomFilterType, IndexType
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    ONE_OR_MORE_NAMES,
    POSITIVE_INT,
    Kind,
    Option,
    choice,
)


def _bucket_count(text: str) -> int | None:
    number = POSITIVE_INT.parse(text)
    return number if number is not None and number <= BUCKETS_MAX else None


def _share(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < 1 else None


_SUPPORTED: Final = {
    kind.value: kind
    for kind in IndexType
    if kind.value not in ("INMEMORY", "HBASE") and "RECORD" not in kind.value
}

INDEX_TYPE: Final = Option(
    "hoodie.index.type",
    Kind(
        f"one of {', '.join(_SUPPORTED)} (others are not supported yet; GLOBAL_BLOOM or "
        "GLOBAL_SIMPLE keeps the promise of RECORD_INDEX and GLOBAL_RECORD_LEVEL_INDEX, BLOOM or "
        "SIMPLE that of RECORD_LEVEL_INDEX)",
        lambda text: _SUPPORTED.get(text.upper()),
    ),
    "How a key's file group is found; BUCKET for a new table with record keys.",
    aliases=("index.type",),
)
NUM_BUCKETS: Final = Option(
    "hoodie.bucket.index.num.buckets",
    Kind(f"a whole number from 1 to {BUCKETS_MAX}", _bucket_count),
    "Buckets per partition, changed by a rewrite only; 4 for a new table.",
)
PARTITION_BUCKETS: Final = Option(
    "hoodie.bucket.index.partition.expressions",
    Kind(
        "regex,number;regex,number, each regular expression without look-around",
        BucketRules.parse,
    ),
    "Buckets of the partitions in whose path an expression is found, the first one counting; "
    "changed by a rewrite only.",
)
BUCKET_HASH_FIELDS: Final = Option(
    "hoodie.bucket.index.hash.field",
    ONE_OR_MORE_NAMES,
    "Record key fields that choose the bucket; all of them by default.",
    aliases=("hoodie.index.bucket.hash.field",),
)
BLOOM_NUM_ENTRIES: Final = Option(
    "hoodie.index.bloom.num_entries",
    POSITIVE_INT,
    "Record keys that one bloom filter is made for.",
    60_000,
)
BLOOM_FALSE_POSITIVES: Final = Option(
    "hoodie.index.bloom.fpp",
    Kind("a number between 0 and 1", _share),
    "Share of other keys that a bloom filter does not deny.",
    1e-9,
)
BLOOM_FILTER_TYPE: Final = Option(
    "hoodie.bloom.index.filter.type",
    choice(BloomFilterType),
    "Whether bloom filters grow with their keys.",
    BloomFilterType.DYNAMIC_V0,
)
BLOOM_MAX_ENTRIES: Final = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    POSITIVE_INT,
    "Record keys from which on a dynamic bloom filter grows no more.",
    100_000,
)
BLOOM_MOVES_RECORDS: Final = Option(
    "hoodie.bloom.index.update.partition.path",
    BOOLEAN,
    "Whether, with GLOBAL_BLOOM, a record moves to the partition that its new row says; "
    "otherwise it is updated where it is.",
    True,
)
SIMPLE_MOVES_RECORDS: Final = Option(
    "hoodie.simple.index.update.partition.path",
    BOOLEAN,
    "The same with GLOBAL_SIMPLE.",
    True,
)
STATE_IS_GLOBAL: Final = Option(
    "index.global.enabled",
    BOOLEAN,
    "Whether, with FLINK_STATE, a record key is unique in the whole table, and its record moves; "
    "otherwise it is unique in its partition.",
    True,
)
STATE_MAX_BYTES: Final = Option(
    "hoodie.py.index.state.max.size",
    BYTES,
    "Record keys that the FLINK_STATE index keeps in each worker process.",
    512 << 20,
)

INDEX_OPTIONS: Final[tuple[Option[object], ...]] = (
    INDEX_TYPE,
    NUM_BUCKETS,
    PARTITION_BUCKETS,
    BUCKET_HASH_FIELDS,
    BLOOM_NUM_ENTRIES,
    BLOOM_FALSE_POSITIVES,
    BLOOM_FILTER_TYPE,
    BLOOM_MAX_ENTRIES,
    BLOOM_MOVES_RECORDS,
    SIMPLE_MOVES_RECORDS,
    STATE_IS_GLOBAL,
    STATE_MAX_BYTES,
)
"""Every option of this module, in the order of the option table."""
