"""In which catalog a table is registered, and as what; and the Delta log over its files.

Names are those of Hudi's own sync (``HiveSyncConfigHolder``, ``HoodieSyncConfig`` and
``GlueCatalogSyncClientConfig`` of Hudi 1.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hoodie_ds.config.enums import PartitionExtractor, SyncedTables, SyncMode
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import BOOLEAN, NAMES, POSITIVE_INT, TEXT, Kind, Option, choice
from hoodie_ds.errors import OptionError

if TYPE_CHECKING:
    from typing import Self

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

_TOOL: Final = "hoodie.meta.sync.client.tool.class"


@dataclass(frozen=True, kw_only=True)
class CatalogOptions(OptionGroup):
    """What a sync writes into a catalog."""

    enabled: Option[bool] = Option(
        f"{_HIVE}enable",
        BOOLEAN,
        "Whether each commit is followed by a sync of the table into a catalog. A sync that fails "
        "does not fail the batch: it is reported, and the next sync does the rest.",
        False,
        aliases=(f"{_META}enable", "hive_sync.enabled", "hive_sync.enable"),
    )
    mode: Option[SyncMode] = Option(
        f"{_HIVE}mode",
        choice(SyncMode),
        "The catalog: a Hive metastore, by Thrift, or AWS Glue.",
        SyncMode.HMS,
        aliases=("hive_sync.mode",),
    )
    uris: Option[tuple[str, ...]] = Option(
        f"{_HIVE}metastore.uris",
        Kind("one address thrift://host:port or more, with commas between them", _uris),
        "Where the Hive metastore listens; of several the first that answers is used.",
        ("thrift://localhost:9083",),
        aliases=("hive_sync.metastore.uris",),
    )
    database: Option[str] = Option(
        f"{_HIVE}database",
        TEXT,
        "Database of the catalog.",
        "default",
        aliases=("hive_sync.db", f"{_META}glue.database_name"),
    )
    table: Option[str | None] = Option(
        f"{_HIVE}table",
        TEXT,
        "Name of the table in the catalog; the table's own by default.",
        aliases=("hive_sync.table", f"{_META}glue.table_name"),
    )
    partition_fields: Option[tuple[str, ...] | None] = Option(
        f"{_HIVE}partition_fields",
        NAMES,
        "Partition columns in the catalog; the table's partition fields by default.",
        aliases=("hive_sync.partition_fields",),
    )
    extractor: Option[PartitionExtractor | None] = Option(
        f"{_HIVE}partition_extractor_class",
        Kind("one of " + ", ".join(one.value for one in PartitionExtractor), _extractor),
        "Hudi's class that turns a partition path into the values of the partition columns, with "
        "or without its package. By default it follows from the number of fields and the style of "
        "the paths.",
        aliases=("hive_sync.partition_extractor_class",),
    )
    base_path: Option[str | None] = Option(
        f"{_META}base.path",
        TEXT,
        "The table's base path as readers of the catalog see it, such as an s3a:// URL; that of "
        "the writer by default.",
        aliases=(f"{_HIVE}base_path",),
    )
    tables: Option[SyncedTables] = Option(
        f"{_HIVE}table.strategy",
        choice(SyncedTables),
        "Which tables a merge-on-read table becomes: that of the base files (RO), that of all rows "
        "(RT), or all of them, with the suffixes _ro and _rt and without one.",
        SyncedTables.ALL,
        aliases=("hive_sync.table.strategy",),
    )
    with_table_name: Option[bool] = Option(
        "hoodie.meta.sync.sync_snapshot_with_table_name",
        BOOLEAN,
        "Whether a merge-on-read table is registered under its name without a suffix too.",
        True,
    )
    skip_ro_suffix: Option[bool] = Option(
        f"{_HIVE}skip_ro_suffix",
        BOOLEAN,
        "Whether the table of the base files has no suffix; the table of all rows then has _rt "
        "alone.",
        False,
        aliases=("hive_sync.skip_ro_suffix",),
    )
    support_timestamp: Option[bool] = Option(
        f"{_HIVE}support_timestamp",
        BOOLEAN,
        "Whether timestamps are timestamps in the catalog's columns, rather than bigint. Spark "
        "reads the properties of the table and sees timestamps either way.",
        False,
        aliases=("hive_sync.support_timestamp",),
    )
    table_properties: Option[tuple[tuple[str, str], ...]] = Option(
        f"{_HIVE}table_properties",
        _PAIRS,
        "Further properties of the table in the catalog.",
        (),
        aliases=("hive_sync.table_properties",),
    )
    serde_properties: Option[tuple[tuple[str, str], ...]] = Option(
        f"{_HIVE}serde_properties",
        _PAIRS,
        "Further properties of the table's serde in the catalog.",
        (),
        aliases=("hive_sync.serde_properties",),
    )
    as_datasource: Option[bool] = Option(
        f"{_HIVE}sync_as_datasource",
        BOOLEAN,
        "Whether Spark reads the table of the catalog as a Hudi table.",
        True,
    )
    schema_length: Option[int] = Option(
        f"{_HIVE}schema_string_length_thresh",
        POSITIVE_INT,
        "Most characters of Spark's schema in one property of the table.",
        4000,
    )
    managed: Option[bool] = Option(
        f"{_HIVE}create_managed_table",
        BOOLEAN,
        "Whether the catalog owns the files, so that dropping the table there deletes them.",
        False,
    )
    creates_database: Option[bool] = Option(
        f"{_HIVE}auto_create_database",
        BOOLEAN,
        "Whether the database is created where there is none.",
        True,
    )
    comments: Option[bool] = Option(
        f"{_HIVE}sync_comment",
        BOOLEAN,
        "Whether columns have the comments that the table's schema has for them.",
        False,
    )
    omit_meta_fields: Option[bool] = Option(
        f"{_HIVE}omit_metadata_fields",
        BOOLEAN,
        "Whether the catalog leaves out the columns _hoodie_*.",
        False,
    )
    partitions_at_once: Option[int] = Option(
        f"{_HIVE}batch_num",
        POSITIVE_INT,
        "Most partitions in one request to a Hive metastore.",
        1000,
    )
    incremental: Option[bool] = Option(
        "hoodie.meta.sync.incremental",
        BOOLEAN,
        "Whether a sync considers only the partitions of the commits since the last sync, rather "
        "than all.",
        True,
    )
    conditional: Option[bool] = Option(
        "hoodie.datasource.meta_sync.condition.sync",
        BOOLEAN,
        "Whether the catalog is written to only where columns, properties or partitions change.",
        False,
    )
    spark_version: Option[str | None] = Option(
        "hoodie.meta_sync.spark.version",
        TEXT,
        "The version of Spark that the catalog names as the creator of the table; none by default.",
    )
    glue_catalog: Option[str | None] = Option(
        f"{_META}glue.catalogId",
        TEXT,
        "Id of the Glue catalog; that of the caller's account by default.",
    )
    glue_skips_archive: Option[bool] = Option(
        f"{_META}glue.skip_table_archive",
        BOOLEAN,
        "Whether Glue keeps no earlier version of the table.",
        True,
    )
    glue_region: Option[str | None] = Option(
        "hoodie.aws.glue.region",
        TEXT,
        "AWS region of Glue; that of the environment by default.",
    )
    glue_endpoint: Option[str | None] = Option(
        "hoodie.aws.glue.endpoint",
        Kind("a URL, http:// or https://", lambda text: text if _URL.fullmatch(text) else None),
        "Address of Glue, where it is not that of the region.",
    )
    delta_sync: Option[bool] = Option(
        "hoodie.py.delta.sync",
        BOOLEAN,
        "Whether each commit and each table service is followed by a version of a Delta log of "
        "the table, over the same base files: what Hudi's read-optimised query reads. A sync that "
        "fails does not fail the write: it is reported, and the next sync does the rest.",
        False,
    )

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        options, tool = super().of(given), given.text(_TOOL) or ""
        asks_glue = tool.endswith("AwsGlueCatalogSyncTool")
        if options.enabled and asks_glue and options.mode is not SyncMode.GLUE:
            remedy = f"a class is not needed here; set {cls.mode.key}={SyncMode.GLUE.value}"
            given.refuse(OptionError(_TOOL, tool, remedy))
        return options
