"""The options that a write obeys, one `Option` each; the option table is made from `WRITE_OPTIONS`.

Names and aliases are those of the Hudi 1.2 configuration reference (Spark and Flink); the keys
that begin with ``hoodie.py.`` are this library's own.
"""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.base_path import BASE_PATH
from hoodie_ds.config.enums import (
    DuplicatePolicy,
    KeyGeneratorType,
    LogBlockFormat,
    MergeMode,
    Operation,
    ParquetCodec,
    PartialUpdateMode,
    SortMode,
    TableType,
)
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    MEGABYTES,
    NAMES,
    ONE_OR_MORE_NAMES,
    POSITIVE_INT,
    TEXT,
    Kind,
    Option,
    choice,
)
from hoodie_ds.config.options.archiving import ARCHIVING_OPTIONS
from hoodie_ds.config.options.catalog import CATALOG_OPTIONS
from hoodie_ds.config.options.changes import CHANGE_OPTIONS
from hoodie_ds.config.options.cleaning import CLEANING_OPTIONS
from hoodie_ds.config.options.clustering import CLUSTERING_OPTIONS
from hoodie_ds.config.options.compaction import COMPACTION_OPTIONS
from hoodie_ds.config.options.concurrency import CONCURRENCY_OPTIONS
from hoodie_ds.config.options.deletes import DELETE_OPTIONS
from hoodie_ds.config.options.delta import DELTA_OPTIONS
from hoodie_ds.config.options.files import SMALL_FILE_OPTIONS
from hoodie_ds.config.options.index import INDEX_OPTIONS
from hoodie_ds.config.options.services import SERVICE_OPTIONS
from hoodie_ds.config.options.storage import STORAGE_OPTIONS
from hoodie_ds.config.options.stream import STREAM_OPTIONS

_MB: Final = 1 << 20
_PAYLOAD_PACKAGE: Final = "org.apache.hudi.common.model."

OVERWRITE_PAYLOAD: Final = _PAYLOAD_PACKAGE + "OverwriteWithLatestAvroPayload"
"""Java payload class that stands for commit-time ordering."""

DEFAULT_PAYLOAD: Final = _PAYLOAD_PACKAGE + "DefaultHoodieRecordPayload"
"""Java payload class that stands for event-time ordering."""

PARTIAL_UPDATE_PAYLOAD: Final = _PAYLOAD_PACKAGE + "PartialUpdateAvroPayload"
"""Java payload class that fills nulls of the row with the greater ordering value."""

NON_DEFAULTS_PAYLOAD: Final = _PAYLOAD_PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload"
"""Java payload class that fills nulls of the later row."""

PAYLOAD_MODES: Final = {
    PARTIAL_UPDATE_PAYLOAD: MergeMode.CUSTOM,
    NON_DEFAULTS_PAYLOAD: MergeMode.CUSTOM,
    OVERWRITE_PAYLOAD: MergeMode.COMMIT_TIME_ORDERING,
    DEFAULT_PAYLOAD: MergeMode.EVENT_TIME_ORDERING,
    _PAYLOAD_PACKAGE + "EventTimeAvroPayload": MergeMode.EVENT_TIME_ORDERING,
}
"""What the payload classes of the Hudi tech spec mean; any other is a custom merge."""

_TYPES: Final = {
    kind.value + flavour: kind for kind in KeyGeneratorType for flavour in ("", "_AVRO")
}

_IMPORT_PATH: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def _codec(text: str) -> ParquetCodec | None:
    return choice(ParquetCodec).parse("none" if text.lower() == "uncompressed" else text)


def _import_path(text: str) -> str | None:
    return text if _IMPORT_PATH.fullmatch(text) else None


PATH: Final = Option("path", BASE_PATH, "Base path of the table.")
TABLE_NAME: Final = Option(
    "hoodie.table.name",
    TEXT,
    "Name of the table; needed when the write creates it.",
    aliases=("hoodie.datasource.write.table.name",),
)
DATABASE_NAME: Final = Option("hoodie.database.name", TEXT, "Database of the table.")
TABLE_TYPE: Final = Option(
    "hoodie.datasource.write.table.type",
    choice(TableType),
    "How updates are stored; fixed at creation. COPY_ON_WRITE for a new table.",
    aliases=("hoodie.datasource.write.storage.type", "hoodie.table.type", "table.type"),
)
OPERATION: Final = Option(
    "hoodie.datasource.write.operation",
    choice(Operation),
    "What to do with the rows; upsert with record key fields, insert without.",
    aliases=("write.operation",),
)
PARTITIONS_TO_DELETE: Final = Option(
    "hoodie.datasource.write.partitions.to.delete",
    Kind("a comma-separated list of different partition paths", ONE_OR_MORE_NAMES.parse),
    "Partition paths that delete_partition removes; * stands for any text. Without it, those of "
    "the rows, which is the way for a path that holds a comma, a star or an outer blank.",
)
COMBINE_BEFORE_INSERT: Final = Option(
    "hoodie.combine.before.insert",
    BOOLEAN,
    "Combine rows of one key in a batch for the inserting operations too.",
    False,
)
INSERT_DROP_DUPLICATES: Final = Option(
    "hoodie.datasource.write.insert.drop.duplicates",
    BOOLEAN,
    "Leave out inserted rows whose key is stored; the same as the policy drop.",
)
DUPLICATE_POLICY: Final = Option(
    "hoodie.datasource.insert.dup.policy",
    choice(DuplicatePolicy),
    "What insert does with rows whose key is stored: none (add them), drop or fail.",
)
SORT_MODE: Final = Option(
    "hoodie.bulkinsert.sort.mode",
    choice(SortMode),
    "How shuffle_by_file_group sorts rows for a table without record keys: all, within each "
    "task, or not.",
    SortMode.NONE,
)
SORT_COLUMNS: Final = Option(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    ONE_OR_MORE_NAMES,
    "Columns to sort by after those of the partition.",
)
TASKS_PER_PARTITION: Final = Option(
    "hoodie.py.append.tasks.per.partition",
    POSITIVE_INT,
    "Tasks over which shuffle_by_file_group scatters each partition of a table without record "
    "keys; by default rows stay where they are.",
)
ALLOW_EMPTY_COMMIT: Final = Option(
    "hoodie.allow.empty.commit",
    BOOLEAN,
    "Whether a batch without rows is a commit too.",
    False,
)
RECORD_KEY_FIELDS: Final = Option(
    "hoodie.datasource.write.recordkey.field",
    ONE_OR_MORE_NAMES,
    "Columns that identify a row; without them rows are only appended.",
    aliases=("hoodie.table.recordkey.fields",),
)
PARTITION_FIELDS: Final = Option(
    "hoodie.datasource.write.partitionpath.field",
    NAMES,
    "Columns that make the partition path; field:SIMPLE or field:TIMESTAMP with CUSTOM.",
    aliases=("hoodie.table.partition.fields",),
)
ORDERING_FIELDS: Final = Option(
    "hoodie.datasource.write.precombine.field",
    NAMES,
    "Columns that decide which of two rows with one key is newer.",
    aliases=(
        "hoodie.table.ordering.fields",
        "hoodie.table.precombine.field",
        "ordering.fields",
        "precombine.field",
        "hoodie.payload.ordering.field",
        "write.precombine.field",
    ),
)
KEY_GENERATOR_TYPE: Final = Option(
    "hoodie.datasource.write.keygenerator.type",
    Kind(
        "one of " + ", ".join(kind.value for kind in KeyGeneratorType),
        lambda text: _TYPES.get(text.upper()),
    ),
    "How keys and partition paths are made; inferred from the fields for a new table.",
    aliases=("hoodie.table.keygenerator.type",),
)
KEY_GENERATOR_CLASS: Final = Option(
    "hoodie.datasource.write.keygenerator.class",
    Kind(
        "one of " + ", ".join(kind.java_class for kind in KeyGeneratorType),
        KeyGeneratorType.from_java_class,
    ),
    "The same by Java class name; only Hudi's own classes have a counterpart here.",
    aliases=("hoodie.table.keygenerator.class",),
)
CONSISTENT_LOGICAL_TIMESTAMP: Final = Option(
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    BOOLEAN,
    "Timestamps in keys as text rather than as the stored number.",
)
COMPLEX_KEYGEN_NEW_ENCODING: Final = Option(
    "hoodie.write.complex.keygen.new.encoding",
    BOOLEAN,
    "COMPLEX keys of one field as the bare value (true) or as field:value (false).",
)
HIVE_STYLE: Final = Option(
    "hoodie.datasource.write.hive_style_partitioning",
    BOOLEAN,
    "Partition folders named column=value; false for a new table.",
)
URL_ENCODE: Final = Option(
    "hoodie.datasource.write.partitionpath.urlencode",
    BOOLEAN,
    "Percent-encode partition values in paths; false for a new table.",
)
POPULATE_META_FIELDS: Final = Option(
    "hoodie.populate.meta.fields",
    BOOLEAN,
    "Fill in Hudi's five meta columns in every row; true for a new table. Without, record keys are "
    "computed from the rows (virtual keys).",
)
MERGE_MODE: Final = Option(
    "hoodie.write.record.merge.mode",
    choice(MergeMode),
    "Which of two rows with one key survives; for a new table by a merge hook if there is one, by "
    "event time if it has ordering fields, else by commit time.",
    aliases=("hoodie.record.merge.mode",),
)
MERGE_HOOK: Final = Option(
    "hoodie.py.merge.hook",
    Kind("an import path, package.module:callable", _import_path),
    "The function that merges rows with one key, with merge mode CUSTOM; a table's own properties "
    "never name the code that runs, so reads of merge-on-read tables need it too.",
)
PAYLOAD_CLASS: Final = Option(
    "hoodie.datasource.write.payload.class",
    Kind(
        f"one of {', '.join(PAYLOAD_MODES)} (other payloads are not supported yet)",
        PAYLOAD_MODES.get,
    ),
    "The older way to say the merge mode; of CUSTOM the two payloads of partial updates.",
    aliases=(
        "hoodie.compaction.payload.class",
        "hoodie.table.compaction.payload.class",
        "payload.class",
        "write.payload.class",
    ),
)
PARTIAL_UPDATE_MODE: Final = Option(
    "hoodie.table.partial.update.mode",
    choice(PartialUpdateMode),
    "What a row keeps of the one it takes the place of: the values where it has null "
    "(IGNORE_DEFAULTS) or the marker (FILL_UNAVAILABLE); fixed at creation.",
)
UNAVAILABLE_VALUE: Final = Option(
    "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
    TEXT,
    "The marker of FILL_UNAVAILABLE, in columns of text and bytes; Debezium's "
    "__debezium_unavailable_value for a new table.",
    aliases=("hoodie.write.partial.update.unavailable.value",),
)
TABLE_VERSION: Final = Option(
    "hoodie.write.table.version",
    Kind("6, 8 or 9", {"6": 6, "8": 8, "9": 9}.get),
    "Table version of a new table, 6 by default; an existing table keeps its own, and another one "
    "here is refused.",
    aliases=("hoodie.table.version", "write.table.version"),
)
TIMELINE_LAYOUT: Final = Option(
    "hoodie.timeline.layout.version",
    Kind("1 or 2", {"1": 1, "2": 2}.get),
    "Follows from the table version, and must agree with it: 1 of 6, 2 of 8 and 9.",
)
METADATA_ENABLE: Final = Option(
    "hoodie.metadata.enable",
    BOOLEAN,
    "Whether the table has a metadata table; false switches an existing one off.",
    aliases=("metadata.enabled",),
)
LOG_BLOCK_FORMAT: Final = Option(
    "hoodie.logfile.data.block.format",
    choice(LogBlockFormat),
    "How rows are encoded in log files; parquet, but avro where rows are ordered by text, as Hudi "
    "1.2 on the JVM compares text in parquet blocks wrongly.",
)
PARQUET_CODEC: Final = Option(
    "hoodie.parquet.compression.codec",
    Kind(choice(ParquetCodec).allowed, _codec),
    "Compression of Parquet pages.",
    ParquetCodec.SNAPPY,
)
PARQUET_BLOCK_BYTES: Final = Option(
    "hoodie.parquet.block.size",
    BYTES,
    "Size of a Parquet row group.",
    120 * _MB,
    aliases=("write.parquet.block.size",),
    flink_kind=MEGABYTES,
)
LOGFILE_MAX_BYTES: Final = Option(
    "hoodie.logfile.max.size",
    BYTES,
    "Size at which the next log file is begun.",
    1024 * _MB,
    aliases=("write.log.max.size",),
    flink_kind=MEGABYTES,
)
LOG_BLOCK_MAX_BYTES: Final = Option(
    "hoodie.logfile.data.block.max.size",
    BYTES,
    "Size at which the next log block is begun.",
    256 * _MB,
    aliases=("write.log_block.size",),
    flink_kind=MEGABYTES,
)
BATCH_BYTES: Final = Option(
    "write.batch.size",
    MEGABYTES,
    "Buffered rows of one file group that are flushed together.",
    256 * _MB,
)
TASK_MAX_BYTES: Final = Option(
    "write.task.max.size",
    MEGABYTES,
    "Buffered rows of one task; past it the largest buffer is flushed.",
    1024 * _MB,
)
SET_NULL_FOR_MISSING_COLUMNS: Final = Option(
    "hoodie.write.set.null.for.missing.columns",
    BOOLEAN,
    "Fill nullable columns that a batch lacks with null instead of refusing it.",
    False,
)
EXTRA_METADATA_PREFIX: Final = Option(
    "hoodie.datasource.write.commitmeta.key.prefix",
    TEXT,
    "Options whose key has this prefix are stored in the commit's metadata; none by default.",
)

WRITE_OPTIONS: Final[tuple[Option[object], ...]] = (
    PATH,
    TABLE_NAME,
    DATABASE_NAME,
    TABLE_TYPE,
    OPERATION,
    PARTITIONS_TO_DELETE,
    COMBINE_BEFORE_INSERT,
    INSERT_DROP_DUPLICATES,
    DUPLICATE_POLICY,
    SORT_MODE,
    SORT_COLUMNS,
    TASKS_PER_PARTITION,
    ALLOW_EMPTY_COMMIT,
    *STREAM_OPTIONS,
    RECORD_KEY_FIELDS,
    PARTITION_FIELDS,
    ORDERING_FIELDS,
    KEY_GENERATOR_TYPE,
    KEY_GENERATOR_CLASS,
    CONSISTENT_LOGICAL_TIMESTAMP,
    COMPLEX_KEYGEN_NEW_ENCODING,
    HIVE_STYLE,
    URL_ENCODE,
    POPULATE_META_FIELDS,
    MERGE_MODE,
    MERGE_HOOK,
    PAYLOAD_CLASS,
    PARTIAL_UPDATE_MODE,
    UNAVAILABLE_VALUE,
    *DELETE_OPTIONS,
    *CHANGE_OPTIONS,
    *INDEX_OPTIONS,
    TABLE_VERSION,
    TIMELINE_LAYOUT,
    METADATA_ENABLE,
    LOG_BLOCK_FORMAT,
    PARQUET_CODEC,
    PARQUET_BLOCK_BYTES,
    *SMALL_FILE_OPTIONS,
    LOGFILE_MAX_BYTES,
    LOG_BLOCK_MAX_BYTES,
    BATCH_BYTES,
    TASK_MAX_BYTES,
    SET_NULL_FOR_MISSING_COLUMNS,
    *STORAGE_OPTIONS,
    *SERVICE_OPTIONS,
    *CONCURRENCY_OPTIONS,
    *CLUSTERING_OPTIONS,
    *CLEANING_OPTIONS,
    *COMPACTION_OPTIONS,
    *ARCHIVING_OPTIONS,
    *CATALOG_OPTIONS,
    *DELTA_OPTIONS,
    EXTRA_METADATA_PREFIX,
)
"""Every option that a write obeys, in the order of the option table."""
