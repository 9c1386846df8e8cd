"""Flink's FLINK_STATE (RFC-24): the keys of a table stay in memory from batch to batch.

The table is the truth and the state a cache of it (`KeyCache`), so no process has to restore it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import KeyLookup, LookupContext, LookupIndex


@dataclass(frozen=True)
class StateIndex(LookupIndex):
    """Keeps `max_bytes` of keys in each worker process, and asks the bloom filters of the rest."""

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
    """Return the keys that all tasks of this process share, batch after batch."""
    return KeyCache(max_bytes)
