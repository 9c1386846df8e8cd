"""How the file group of a key is found, and how many buckets there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.bucket_rules import BUCKETS_MAX, BucketRules
from hoodie_ds.config.enums import BloomFilterType, IndexType
from hoodie_ds.config.given_options import OptionGroup
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    ONE_OR_MORE_NAMES,
    POSITIVE_INT,
    Kind,
    Option,
    choice,
    whole,
)

_LEAST_SHARE: Final = 1e-18
"""87 bits and 60 hashes for a key. Hudi has no bound; 5e-324 would be 1,550 and 1,075."""


def _share(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if _LEAST_SHARE <= number < 1 else None


_SUPPORTED: Final = {
    kind.value: kind for kind in IndexType if kind not in (IndexType.INMEMORY, IndexType.HBASE)
}


@dataclass(frozen=True, kw_only=True)
class IndexOptions(OptionGroup):
    """How keys are found; the properties of an existing table name its index."""

    index_type: Option[IndexType | None] = Option(
        "hoodie.index.type",
        Kind(
            f"one of {', '.join(_SUPPORTED)} (others are not supported yet)",
            lambda text: _SUPPORTED.get(text.upper()),
        ),
        "How a key's file group is found; BUCKET for a new table with record keys, or RECORD_INDEX "
        "if hoodie.metadata.record.index.enable is true and no number of buckets is given, or "
        "RECORD_LEVEL_INDEX if hoodie.metadata.record.level.index.enable is.",
        aliases=("index.type",),
    )
    num_buckets: Option[int | None] = Option(
        "hoodie.bucket.index.num.buckets",
        whole(f"a whole number from 1 to {BUCKETS_MAX}", least=1, most=BUCKETS_MAX),
        "Buckets per partition, changed by a rewrite only; 4 for a new table.",
    )
    bucket_rules: Option[BucketRules | None] = Option(
        "hoodie.bucket.index.partition.expressions",
        Kind(
            "regex,number;regex,number, each regular expression without look-around",
            BucketRules.parse,
        ),
        "Buckets of the partitions whose path matches an expression; the first match counts. "
        "Changed by a rewrite only.",
    )
    bucket_hash_fields: Option[tuple[str, ...] | None] = Option(
        "hoodie.bucket.index.hash.field",
        ONE_OR_MORE_NAMES,
        "Record key fields that choose the bucket; all of them by default.",
        aliases=("hoodie.index.bucket.hash.field",),
    )
    bloom_num_entries: Option[int] = Option(
        "hoodie.index.bloom.num_entries",
        POSITIVE_INT,
        "Record keys that a bloom filter is sized for.",
        60_000,
    )
    bloom_false_positives: Option[float] = Option(
        "hoodie.index.bloom.fpp",
        Kind(f"a number from {_LEAST_SHARE} to less than 1", _share),
        "False positive rate of a bloom filter.",
        1e-9,
    )
    bloom_filter_type: Option[BloomFilterType] = Option(
        "hoodie.bloom.index.filter.type",
        choice(BloomFilterType),
        "Whether bloom filters grow with the number of their keys (DYNAMIC_V0) or not (SIMPLE).",
        BloomFilterType.DYNAMIC_V0,
    )
    bloom_max_entries: Option[int] = Option(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        POSITIVE_INT,
        "Record keys up to which a dynamic bloom filter grows.",
        100_000,
    )
    bloom_moves_records: Option[bool] = Option(
        "hoodie.bloom.index.update.partition.path",
        BOOLEAN,
        "Whether, with GLOBAL_BLOOM, a record moves to the partition that its new row says; "
        "otherwise it is updated where it is.",
        True,
    )
    simple_moves_records: Option[bool] = Option(
        "hoodie.simple.index.update.partition.path",
        BOOLEAN,
        "Whether, with GLOBAL_SIMPLE, a record moves to the partition that its new row says; "
        "otherwise it is updated where it is.",
        True,
    )
    record_moves_records: Option[bool] = Option(
        "hoodie.record.index.update.partition.path",
        BOOLEAN,
        "Whether, with RECORD_INDEX, a record moves to the partition that its new row says; "
        "otherwise it is updated where it is.",
        False,
    )
    state_is_global: Option[bool] = Option(
        "index.global.enabled",
        BOOLEAN,
        "Whether, with FLINK_STATE, a record key is unique in the whole table, and its record "
        "moves; otherwise it is unique in its partition.",
        True,
    )
    state_max_bytes: Option[int] = Option(
        "hoodie.py.index.state.max.size",
        BYTES,
        "Memory for the record keys that the FLINK_STATE index keeps in each worker process.",
        512 << 20,
    )
