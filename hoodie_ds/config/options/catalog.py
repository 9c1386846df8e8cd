"""The options that say in which catalog a table is registered, and as what.

Names are those of Hudi's own sync (``HiveSyncConfigHolder``, ``HoodieSyncConfig`` and
``GlueCatalogSyncClientConfig`` of Hudi 1.2).
"""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.enums import PartitionExtractor, SyncedTables, SyncMode
from hoodie_ds.config.option import BOOLEAN, NAMES, POSITIVE_INT, TEXT, Kind, Option, choice

_URL: Final = re.compile(r"https?://[^\s/]+/?")
_HIVE: Final = "hoodie.datasource.hive_sync."
_META: Final = "hoodie.datasource.meta.sync."


def _pairs(text: str) -> tuple[tuple[str, str], ...] | None:
    lines = (line.partition("=") for line in text.splitlines() if line.strip())
    pairs = [(key.strip(), value.strip(), found) for key, found, value in lines]
    if all(key and found for key, _, found in pairs):
        return tuple((key, value) for key, value, _ in pairs)
    return None


def _uris(text: str) -> tuple[str, ...] | None:
    uris = tuple(part.strip() for part in text.split(",") if part.strip())
    return uris if uris and all(_is_address(uri) for uri in uris) else None


def _is_address(uri: str) -> bool:
    host, colon, port = uri.removeprefix("thrift://").rpartition(":")
    return uri.startswith("thrift://") and bool(host and colon) and port.isdecimal()


def _extractor(text: str) -> PartitionExtractor | None:
    name = text.rpartition(".")[2]
    return next((one for one in PartitionExtractor if one.value == name), None)


_PAIRS: Final = Kind("a line ``key=value`` for each property", _pairs)

SYNC_ENABLED: Final = Option(
    f"{_HIVE}enable",
    BOOLEAN,
    "Whether each commit is followed by a sync of the table into a catalog. A sync that fails "
    "does not fail the batch: it is reported, and the next one makes up for it.",
    False,
    aliases=(f"{_META}enable", "hive_sync.enabled", "hive_sync.enable"),
)
SYNC_MODE: Final = Option(
    f"{_HIVE}mode",
    choice(SyncMode),
    "The catalog: a Hive metastore that is asked by Thrift, or AWS Glue.",
    SyncMode.HMS,
    aliases=("hive_sync.mode",),
)
METASTORE_URIS: Final = Option(
    f"{_HIVE}metastore.uris",
    Kind("one address thrift://host:port or more, with commas between them", _uris),
    "Where the Hive metastore listens; of several the first that answers is asked.",
    ("thrift://localhost:9083",),
    aliases=("hive_sync.metastore.uris",),
)
SYNC_DATABASE: Final = Option(
    f"{_HIVE}database",
    TEXT,
    "Database of the catalog.",
    "default",
    aliases=("hive_sync.db", f"{_META}glue.database_name"),
)
SYNC_TABLE: Final = Option(
    f"{_HIVE}table",
    TEXT,
    "Name of the table in the catalog; the table's own by default.",
    aliases=("hive_sync.table", f"{_META}glue.table_name"),
)
SYNC_PARTITION_FIELDS: Final = Option(
    f"{_HIVE}partition_fields",
    NAMES,
    "Partition columns in the catalog; the table's partition fields by default.",
    aliases=("hive_sync.partition_fields",),
)
SYNC_EXTRACTOR: Final = Option(
    f"{_HIVE}partition_extractor_class",
    Kind("one of " + ", ".join(one.value for one in PartitionExtractor), _extractor),
    "How a partition path becomes the values of the partition columns; with or without its "
    "package. By default it follows from the number of fields and the style of the paths.",
    aliases=("hive_sync.partition_extractor_class",),
)
SYNC_BASE_PATH: Final = Option(
    f"{_META}base.path",
    TEXT,
    "The table's base path as readers of the catalog see it, such as an s3a:// URL; that of the "
    "writer by default.",
    aliases=(f"{_HIVE}base_path",),
)
SYNC_TABLES: Final = Option(
    f"{_HIVE}table.strategy",
    choice(SyncedTables),
    "Which tables a merge-on-read table becomes: that of the base files (RO), that of all rows "
    "(RT), or all of them, with the suffixes _ro and _rt and without one.",
    SyncedTables.ALL,
    aliases=("hive_sync.table.strategy",),
)
SNAPSHOT_WITH_TABLE_NAME: Final = Option(
    "hoodie.meta.sync.sync_snapshot_with_table_name",
    BOOLEAN,
    "Whether a merge-on-read table is registered under its name without a suffix too.",
    True,
)
SKIP_RO_SUFFIX: Final = Option(
    f"{_HIVE}skip_ro_suffix",
    BOOLEAN,
    "Whether the table of the base files has no suffix; the table of all rows then has _rt alone.",
    False,
    aliases=("hive_sync.skip_ro_suffix",),
)
SUPPORT_TIMESTAMP: Final = Option(
    f"{_HIVE}support_timestamp",
    BOOLEAN,
    "Whether timestamps are timestamps in the catalog's columns, rather than bigint. Spark goes "
    "by the properties of the table and sees them as they are.",
    False,
    aliases=("hive_sync.support_timestamp",),
)
TABLE_PROPERTIES: Final = Option(
    f"{_HIVE}table_properties",
    _PAIRS,
    "Further properties of the table in the catalog.",
    aliases=("hive_sync.table_properties",),
)
SERDE_PROPERTIES: Final = Option(
    f"{_HIVE}serde_properties",
    _PAIRS,
    "Further properties of its serde.",
    aliases=("hive_sync.serde_properties",),
)
AS_DATASOURCE: Final = Option(
    f"{_HIVE}sync_as_datasource",
    BOOLEAN,
    "Whether Spark reads the table of the catalog as a Hudi table.",
    True,
)
SCHEMA_LENGTH: Final = Option(
    f"{_HIVE}schema_string_length_thresh",
    POSITIVE_INT,
    "Characters of Spark's schema in one property of the table.",
    4000,
)
CREATE_MANAGED: Final = Option(
    f"{_HIVE}create_managed_table",
    BOOLEAN,
    "Whether the catalog owns the files, so that to drop the table there deletes them.",
    False,
)
AUTO_CREATE_DATABASE: Final = Option(
    f"{_HIVE}auto_create_database",
    BOOLEAN,
    "Whether the database is created where there is none.",
    True,
)
SYNC_COMMENT: Final = Option(
    f"{_HIVE}sync_comment",
    BOOLEAN,
    "Whether columns have the texts that the table's schema documents them with.",
    False,
)
OMIT_META_FIELDS: Final = Option(
    f"{_HIVE}omit_metadata_fields",
    BOOLEAN,
    "Whether the columns _hoodie_* are left out.",
    False,
)
PARTITIONS_AT_ONCE: Final = Option(
    f"{_HIVE}batch_num",
    POSITIVE_INT,
    "How many partitions one request to a Hive metastore is about.",
    1000,
)
INCREMENTAL_SYNC: Final = Option(
    "hoodie.meta.sync.incremental",
    BOOLEAN,
    "Whether a sync looks at the partitions of the commits since the last one alone; otherwise at "
    "all.",
    True,
)
CONDITIONAL_SYNC: Final = Option(
    "hoodie.datasource.meta_sync.condition.sync",
    BOOLEAN,
    "Whether the catalog is written to only where columns, properties or partitions change.",
    False,
)
SYNC_SPARK_VERSION: Final = Option(
    "hoodie.meta_sync.spark.version",
    TEXT,
    "The version of Spark that the table is said to be created by; none by default.",
)
GLUE_CATALOG: Final = Option(
    f"{_META}glue.catalogId",
    TEXT,
    "Id of the Glue catalog; that of the caller's account by default.",
)
GLUE_SKIP_ARCHIVE: Final = Option(
    f"{_META}glue.skip_table_archive",
    BOOLEAN,
    "Whether Glue keeps no earlier version of the table.",
    True,
)
GLUE_REGION: Final = Option(
    "hoodie.aws.glue.region",
    TEXT,
    "AWS region of Glue; that of the environment by default.",
)
GLUE_ENDPOINT: Final = Option(
    "hoodie.aws.glue.endpoint",
    Kind("a URL, http:// or https://", lambda text: text if _URL.fullmatch(text) else None),
    "Address of Glue, where it is not that of the region.",
)

CATALOG_OPTIONS: Final[tuple[Option[object], ...]] = (
    SYNC_ENABLED,
    SYNC_MODE,
    METASTORE_URIS,
    SYNC_DATABASE,
    SYNC_TABLE,
    SYNC_PARTITION_FIELDS,
    SYNC_EXTRACTOR,
    SYNC_BASE_PATH,
    SYNC_TABLES,
    SNAPSHOT_WITH_TABLE_NAME,
    SKIP_RO_SUFFIX,
    SUPPORT_TIMESTAMP,
    TABLE_PROPERTIES,
    SERDE_PROPERTIES,
    AS_DATASOURCE,
    SCHEMA_LENGTH,
    CREATE_MANAGED,
    AUTO_CREATE_DATABASE,
    SYNC_COMMENT,
    OMIT_META_FIELDS,
    PARTITIONS_AT_ONCE,
    INCREMENTAL_SYNC,
    CONDITIONAL_SYNC,
    SYNC_SPARK_VERSION,
    GLUE_CATALOG,
    GLUE_SKIP_ARCHIVE,
    GLUE_REGION,
    GLUE_ENDPOINT,
)
"""Every option of this module, in the order of the option table."""
