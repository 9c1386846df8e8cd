"""Keys and constants of ``hoodie.properties``, as the Hudi tech spec and Hudi's releases name them.

The keys of the bucket index and the partition specs are written by this library, under the names
of the corresponding writer options; other engines keep but do not need them.
"""

from __future__ import annotations

from typing import Final

FILE_NAME: Final = "hoodie.properties"

NAME: Final = "hoodie.table.name"
DATABASE: Final = "hoodie.database.name"
TYPE: Final = "hoodie.table.type"
VERSION: Final = "hoodie.table.version"
INITIAL_VERSION: Final = "hoodie.table.initial.version"
LAYOUT: Final = "hoodie.timeline.layout.version"
TIMELINE_PATH: Final = "hoodie.timeline.path"
HISTORY_PATH: Final = "hoodie.timeline.history.path"
FORMAT: Final = "hoodie.table.format"
ARCHIVE_FOLDER: Final = "hoodie.archivelog.folder"
CHECKSUM: Final = "hoodie.table.checksum"
TIMEZONE: Final = "hoodie.table.timeline.timezone"
BASE_FORMAT: Final = "hoodie.table.base.file.format"
SEVERAL_BASE_FORMATS: Final = "hoodie.table.multiple.base.file.formats.enable"

RECORD_KEYS: Final = "hoodie.table.recordkey.fields"
PARTITION_FIELDS: Final = "hoodie.table.partition.fields"
PARTITION_SPECS: Final = "hoodie.datasource.write.partitionpath.field"
KEY_GENERATOR_CLASS: Final = "hoodie.table.keygenerator.class"
KEY_GENERATOR_TYPE: Final = "hoodie.table.keygenerator.type"
COMPLEX_ENCODING: Final = "hoodie.table.complex.keygen.encoding"
HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE: Final = "hoodie.datasource.write.partitionpath.urlencode"
PARTITION_EXTRACTOR: Final = "hoodie.table.partition_extractor_class"
METAFILE_IN_BASE_FORMAT: Final = "hoodie.partition.metafile.use.base.format"
DROP_PARTITION_COLUMNS: Final = "hoodie.datasource.write.drop.partition.columns"
POPULATE_META_FIELDS: Final = "hoodie.populate.meta.fields"

PRECOMBINE_FIELD: Final = "hoodie.table.precombine.field"
ORDERING_FIELDS: Final = "hoodie.table.ordering.fields"
MERGE_MODE: Final = "hoodie.record.merge.mode"
PAYLOAD_CLASS: Final = "hoodie.compaction.payload.class"
MERGER_STRATEGY: Final = "hoodie.compaction.record.merger.strategy"
MERGE_STRATEGY_ID: Final = "hoodie.record.merge.strategy.id"
MERGE_HOOK: Final = "hoodie.py.merge.hook"
PARTIAL_UPDATE_MODE: Final = "hoodie.table.partial.update.mode"
UNAVAILABLE_VALUE: Final = (
    "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
)

LEGACY_PAYLOAD: Final = "hoodie.table.legacy.payload.class"
"""What version 9 keeps of a payload class that a merge mode and properties stand for."""

DELETE_FIELD: Final = "hoodie.record.merge.property.hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.record.merge.property.hoodie.payload.delete.marker"

METADATA_PARTITIONS: Final = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
INDEX_DEFINITIONS: Final = "hoodie.table.index.defs.path"
METADATA_BEGINS: Final = "hoodie.py.metadata.begins"
"""Number of the first delta commit of the next metadata table: processes remember older ones."""
METADATA_DELTA_COMMITS: Final = "hoodie.metadata.compact.max.delta.commits"
"""Written by this library: a recovery, which may compact, has no options."""
METADATA_INDEX_GROUPS: Final = "hoodie.metadata.record.level.index.min.filegroup.count"
"""Written by this library: what completes a write has no options."""
KEYS_WERE_INDEXED: Final = "hoodie.py.keys.were.indexed"
"""Whether a metadata table that was dropped had a record index of the whole table."""
CREATE_SCHEMA: Final = "hoodie.table.create.schema"
CDC_ENABLED: Final = "hoodie.table.cdc.enabled"
CDC_LOGGING: Final = "hoodie.table.cdc.supplemental.logging.mode"
BOOTSTRAP: Final = ("hoodie.bootstrap.base.path", "hoodie.table.bootstrap.base.path")

INDEX_TYPE: Final = "hoodie.index.type"
NUM_BUCKETS: Final = "hoodie.bucket.index.num.buckets"
PARTITION_BUCKETS: Final = "hoodie.bucket.index.partition.expressions"
HASH_FIELDS: Final = "hoodie.bucket.index.hash.field"
KEYS_OF_BUCKETS: Final = "hoodie.datasource.write.recordkey.field"
"""Apache Hudi compares `HASH_FIELDS` with it; without it no procedure takes a table of buckets."""

COMPLEX_ENCODINGS: Final = {"FIELD_PREFIXED": True, "VALUE_ONLY": False}
"""Value of `COMPLEX_ENCODING` to whether a key of one field is ``field:value``."""

EVENT_TIME_STRATEGY: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
"""Merger of event-time ordering."""

COMMIT_TIME_STRATEGY: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
"""Merger of commit-time ordering."""

PAYLOAD_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"
"""Merger that leaves the merge to the payload class."""

HOOK_PAYLOAD: Final = "hoodie_ds.record.merge_hook.MergeHook"
"""Payload class of tables with a merge hook of the user's; no JVM has it, so that none merges."""

FILL_UNAVAILABLE_PAYLOAD: Final = "hoodie_ds.record.partial_update.FillUnavailable"
"""Payload class of tables whose rows are filled by `FILL_UNAVAILABLE`; no JVM has it either."""

STANDARD_STRATEGIES: Final = (EVENT_TIME_STRATEGY, COMMIT_TIME_STRATEGY)
"""Mergers that need no class of the user's."""
