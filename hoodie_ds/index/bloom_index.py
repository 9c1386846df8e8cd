"""Hudi's BLOOM and GLOBAL_BLOOM: a file is read if its key range and bloom filter allow a key."""

from __future__ import annotations

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import KeyLookup, LookupContext, LookupIndex


class BloomIndex(LookupIndex):
    """Asks the bloom filters of base files; what is read of a table serves one write."""

    @classmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> BloomIndex:
        """See `LookupIndex.of`."""
        is_global = kind is IndexType.GLOBAL_BLOOM and bool(properties.partition_fields)
        return cls(kind, properties.record_key_fields, is_global, options.bloom_moves_records)

    def lookup(self, context: LookupContext) -> KeyLookup:
        """See `LookupIndex.lookup`."""
        return FileLookup(context, KeyCache(context.memory_bytes), use_bloom=True)
