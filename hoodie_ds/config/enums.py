"""The closed sets that options and table properties choose from.

Each member's value is the string that Hudi stores or accepts for it, so a member can be written
to a file as it is. Names and values are those of the Hudi 1.2 configuration reference.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

_KEYGEN_PACKAGE = "org.apache.hudi.keygen."


class TableType(str, Enum):
    """How updates reach storage (``hoodie.table.type``); fixed when the table is created."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(str, Enum):
    """Which of two rows with one key survives (``hoodie.record.merge.mode``)."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class KeyGeneratorType(str, Enum):
    """How record keys and partition paths are made (``hoodie.table.keygenerator.type``)."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"

    @property
    def java_class(self) -> str:
        """The Java class that tables up to version 6 name in their properties."""
        return _KEYGEN_PACKAGE + _KEYGEN_STEMS[self] + "KeyGenerator"

    @classmethod
    def from_java_class(cls, name: str) -> KeyGeneratorType | None:
        """Return the type that a Java class implements; ``None`` for a class unknown here.

        Hudi ships two classes per type, one for Spark rows and one (``...AvroKeyGenerator``,
        which Flink names) for Avro records; both make the same keys and paths.
        """
        return _KEYGEN_BY_CLASS.get(name.strip())


_KEYGEN_STEMS = {
    KeyGeneratorType.SIMPLE: "Simple",
    KeyGeneratorType.COMPLEX: "Complex",
    KeyGeneratorType.NON_PARTITION: "Nonpartitioned",
    KeyGeneratorType.TIMESTAMP: "TimestampBased",
    KeyGeneratorType.CUSTOM: "Custom",
}
_KEYGEN_BY_CLASS = {
    f"{_KEYGEN_PACKAGE}{stem}{flavour}KeyGenerator": kind
    for kind, stem in _KEYGEN_STEMS.items()
    for flavour in ("", "Avro")
}


class IndexType(str, Enum):
    """How the file group of a record key is found (``hoodie.index.type``)."""

    BUCKET = "BUCKET"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    FLINK_STATE = "FLINK_STATE"
    INMEMORY = "INMEMORY"
    HBASE = "HBASE"
    RECORD_INDEX = "RECORD_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"

    @property
    def is_record_index(self) -> bool:
        """Whether it is a record index; that of the whole table has had two names."""
        of_table = IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX
        return self in (IndexType.RECORD_LEVEL_INDEX, *of_table)


class Operation(str, Enum):
    """What a write does with its rows (``hoodie.datasource.write.operation``)."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @property
    def replaces(self) -> bool:
        """Whether whole file groups make way (a replace commit)."""
        return self in (
            Operation.INSERT_OVERWRITE,
            Operation.INSERT_OVERWRITE_TABLE,
            Operation.DELETE_PARTITION,
        )

    @property
    def merges(self) -> bool:
        """Whether rows meet stored rows of the same key."""
        return self in (Operation.UPSERT, Operation.DELETE)

    @property
    def fills_small_files(self) -> bool:
        """Whether new rows join file groups that are not full."""
        return self in (Operation.UPSERT, Operation.INSERT)


class SortMode(str, Enum):
    """In which order appended rows reach files (``hoodie.bulkinsert.sort.mode``)."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"


class DuplicatePolicy(str, Enum):
    """What an insert does with rows whose key is stored already."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class ConcurrencyMode(str, Enum):
    """Whether a table has several writers (``hoodie.write.concurrency.mode``)."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"


class Isolation(str, Enum):
    """What a change by a filter and a merge have read (``hoodie.py.change.isolation``)."""

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"


class FailedWritesPolicy(str, Enum):
    """When unfinished writes are undone (``hoodie.clean.failed.writes.policy``)."""

    EAGER = "EAGER"
    LAZY = "LAZY"


class CleaningPolicy(str, Enum):
    """Which old files a clean keeps (``hoodie.clean.policy``)."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class LockProvider(str, Enum):
    """What keeps commits of several writers apart, by Hudi's classes."""

    STORAGE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
    FILE_SYSTEM = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"


class CompactionTrigger(str, Enum):
    """By what a compaction is due (``hoodie.compact.inline.trigger.strategy``)."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


_STRATEGIES = "org.apache.hudi.table.action.compact.strategy."


class CompactionStrategy(str, Enum):
    """Which file groups are compacted (``hoodie.compaction.strategy``), by Hudi's classes.

    Those that go by the day in a partition's path are not here.
    """

    LOG_FILE_SIZE = f"{_STRATEGIES}LogFileSizeBasedCompactionStrategy"
    LOG_FILE_NUM = f"{_STRATEGIES}LogFileNumBasedCompactionStrategy"
    BOUNDED_IO = f"{_STRATEGIES}BoundedIOCompactionStrategy"
    UNBOUNDED = f"{_STRATEGIES}UnBoundedCompactionStrategy"


class PartialUpdateMode(str, Enum):
    """Which values a row takes from the other one (``hoodie.table.partial.update.mode``)."""

    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


class QueryType(str, Enum):
    """What a read returns (``hoodie.datasource.query.type``)."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class IncrementalFormat(str, Enum):
    """What an incremental query returns (``hoodie.datasource.query.incremental.format``)."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


class HollowCommits(str, Enum):
    """What to do about a commit that is older than complete ones and is not complete itself.

    See ``hoodie.read.timeline.holes.resolution.policy``.
    """

    FAIL = "FAIL"
    BLOCK = "BLOCK"


class LogBlockFormat(str, Enum):
    """How rows are encoded in a data block of a log file (``hoodie.logfile.data.block.format``)."""

    PARQUET = "parquet"
    AVRO = "avro"


class SupplementalLogging(str, Enum):
    """What is logged of a change (``hoodie.table.cdc.supplemental.logging.mode``)."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class BloomFilterType(str, Enum):
    """Form of the bloom filter in a base file's footer (``hoodie.bloom.index.filter.type``)."""

    DYNAMIC_V0 = "DYNAMIC_V0"
    SIMPLE = "SIMPLE"


class ParquetCodec(str, Enum):
    """Compression of Parquet pages (``hoodie.parquet.compression.codec``), as pyarrow spells it."""

    NONE = "none"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    ZSTD = "zstd"
    BROTLI = "brotli"


class UpdatesStrategy(str, Enum):
    """What becomes of a write to file groups that a pending clustering is to rewrite."""

    REJECT = "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy"
    ALLOW = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"


_PLANS: Final = "org.apache.hudi.client.clustering.plan.strategy."


class PlanStrategy(str, Enum):
    """By which of Hudi's classes a clustering is planned; all of them go by the sizes of files."""

    SPARK = f"{_PLANS}SparkSizeBasedClusteringPlanStrategy"
    FLINK = f"{_PLANS}FlinkSizeBasedClusteringPlanStrategy"
    RECENT_DAYS = f"{_PLANS}SparkRecentDaysClusteringPlanStrategy"
    SELECTED_PARTITIONS = f"{_PLANS}SparkSelectedPartitionsClusteringPlanStrategy"


class SortOrder(str, Enum):
    """In which order a clustering puts rows that several columns are to be found by."""

    LINEAR = "linear"
    Z_ORDER = "z-order"


class PartitionFilter(str, Enum):
    """Which partitions a clustering looks at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"


class SyncMode(str, Enum):
    """How a catalog is reached; Hudi's modes ``jdbc`` and ``hiveql`` need a JVM."""

    HMS = "hms"
    GLUE = "glue"


class SyncedTables(str, Enum):
    """Which tables of a catalog a merge-on-read table becomes (``HoodieSyncTableStrategy``)."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


class PartitionExtractor(str, Enum):
    """From a partition path to the values of a catalog's partition columns, by Hudi's classes."""

    MULTI_PART = "MultiPartKeysValueExtractor"
    HIVE_STYLE = "HiveStylePartitionValueExtractor"
    SINGLE_PART = "SinglePartPartitionValueExtractor"
    SLASHED_DAY = "SlashEncodedDayPartitionValueExtractor"
    SLASHED_HOUR = "SlashEncodedHourPartitionValueExtractor"
    NONE = "NonPartitionedExtractor"
