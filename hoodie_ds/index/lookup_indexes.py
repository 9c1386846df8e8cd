"""The indexes that look keys up: BLOOM, SIMPLE, FLINK_STATE, RECORD_INDEX and the global ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import KeyLookup, LookupContext, LookupIndex
from hoodie_ds.index.record_lookup import RecordLookup


class BloomIndex(LookupIndex):
    """Reads a file if its key range and bloom filter allow a key; keeps keys for one write."""

    @classmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> BloomIndex:
        """See `LookupIndex.of`."""
        is_global = kind is IndexType.GLOBAL_BLOOM and bool(properties.partition_fields)
        return cls(kind, properties.record_key_fields, is_global, options.bloom_moves_records)

    def lookup(self, context: LookupContext) -> KeyLookup:
        """See `LookupIndex.lookup`."""
        return FileLookup(context, KeyCache(context.memory_bytes), use_bloom=True)


class SimpleIndex(LookupIndex):
    """Reads a file if its key range allows a key; keeps keys for one write."""

    @classmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> SimpleIndex:
        """See `LookupIndex.of`."""
        is_global = kind is IndexType.GLOBAL_SIMPLE and bool(properties.partition_fields)
        return cls(kind, properties.record_key_fields, is_global, options.simple_moves_records)

    def lookup(self, context: LookupContext) -> KeyLookup:
        """See `LookupIndex.lookup`."""
        return FileLookup(context, KeyCache(context.memory_bytes), use_bloom=False)


class RecordIndex(LookupIndex):
    """Asks the record index of the metadata table, of the whole table or of each partition."""

    @property
    def assigns_rows(self) -> bool:
        """See `LookupIndex.assigns_rows`."""
        return True

    @classmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> RecordIndex:
        """See `LookupIndex.of`."""
        is_global = kind is not IndexType.RECORD_LEVEL_INDEX and bool(properties.partition_fields)
        return cls(kind, properties.record_key_fields, is_global, options.record_moves_records)

    def lookup(self, context: LookupContext) -> KeyLookup:
        """See `LookupIndex.lookup`."""
        is_of_partitions = self.kind is IndexType.RECORD_LEVEL_INDEX
        return RecordLookup(context, "partition" if is_of_partitions else "table")


@dataclass(frozen=True)
class StateIndex(LookupIndex):
    """Flink's state index (RFC-24): keeps `max_bytes` of keys in each worker, batch after batch.

    The table is the truth and the state a cache of it, so no process has to restore it.
    """

    max_bytes: int

    @classmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> StateIndex:
        """See `LookupIndex.of`."""
        is_global = options.state_is_global and bool(properties.partition_fields)
        return cls(kind, properties.record_key_fields, is_global, True, options.state_max_bytes)

    def lookup(self, context: LookupContext) -> KeyLookup:
        """See `LookupIndex.lookup`."""
        return FileLookup(context, shared_keys(self.max_bytes), use_bloom=True)


@lru_cache(maxsize=1)
def shared_keys(max_bytes: int) -> KeyCache:
    """Return the cache of keys that all tasks of this process share."""
    return KeyCache(max_bytes)
