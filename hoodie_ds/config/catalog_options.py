"""In which catalog a table is registered, and as what, as the user said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.enums import PartitionExtractor, SyncedTables, SyncMode
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import catalog as keys
from hoodie_ds.errors import OptionError

_TOOL: Final = "hoodie.meta.sync.client.tool.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """What a sync tells a catalog.

    Parameters
    ----------
    enabled : bool
        Whether each commit is followed by a sync.
    mode : SyncMode
        Which catalog it is.
    uris : tuple of str
        Addresses of a Hive metastore.
    database : str
        Database of the catalog.
    table : str or None
        Name of the table there; None for the table's own.
    partition_fields : tuple of str or None
        Partition columns there; None for the table's partition fields.
    extractor : PartitionExtractor or None
        From partition path to values; None for what follows from the table.
    base_path : str or None
        As readers of the catalog see it; None for that of the writer.
    tables : SyncedTables
        What a merge-on-read table becomes.
    with_table_name, skip_ro_suffix : bool
        Whether there is one without a suffix too, and whether it is that of the base files.
    support_timestamp, as_datasource, omit_meta_fields, comments : bool
        What columns and properties say.
    table_properties, serde_properties : tuple of (str, str)
        Further ones.
    schema_length : int
        Characters of Spark's schema in one property.
    managed, creates_database : bool
        Whether the catalog owns the files, and whether a missing database is created.
    partitions_at_once : int
        How many partitions one request is about.
    incremental, conditional : bool
        Whether commits say what is looked at, and whether only changes are told.
    spark_version : str or None
        What the table is said to be created by.
    glue_catalog, glue_region, glue_endpoint : str or None
        Where Glue is; None for what the environment says.
    glue_skips_archive : bool
        Whether Glue keeps no earlier version of the table.
    """

    enabled: bool = False
    mode: SyncMode = SyncMode.HMS
    uris: tuple[str, ...] = ("thrift://localhost:9083",)
    database: str = "default"
    table: str | None = None
    partition_fields: tuple[str, ...] | None = None
    extractor: PartitionExtractor | None = None
    base_path: str | None = None
    tables: SyncedTables = SyncedTables.ALL
    with_table_name: bool = True
    skip_ro_suffix: bool = False
    support_timestamp: bool = False
    as_datasource: bool = True
    omit_meta_fields: bool = False
    comments: bool = False
    table_properties: tuple[tuple[str, str], ...] = ()
    serde_properties: tuple[tuple[str, str], ...] = ()
    schema_length: int = 4000
    managed: bool = False
    creates_database: bool = True
    partitions_at_once: int = 1000
    incremental: bool = True
    conditional: bool = False
    spark_version: str | None = None
    glue_catalog: str | None = None
    glue_region: str | None = None
    glue_endpoint: str | None = None
    glue_skips_archive: bool = True

    @classmethod
    def of(cls, given: GivenOptions) -> CatalogOptions:
        """Take the options out of those given, which note what is wrong."""
        enabled = given.get_or_default(keys.SYNC_ENABLED)
        mode = given.get_or_default(keys.SYNC_MODE)
        tool = given.text(_TOOL) or ""
        if enabled and tool.endswith("AwsGlueCatalogSyncTool") and mode is not SyncMode.GLUE:
            remedy = f"a class is not needed here; set {keys.SYNC_MODE.key}={SyncMode.GLUE.value}"
            given.refuse(OptionError(_TOOL, tool, remedy))
        return cls(
            enabled=enabled,
            mode=mode,
            uris=given.get_or_default(keys.METASTORE_URIS),
            database=given.get_or_default(keys.SYNC_DATABASE),
            table=given.get(keys.SYNC_TABLE),
            partition_fields=given.get(keys.SYNC_PARTITION_FIELDS),
            extractor=given.get(keys.SYNC_EXTRACTOR),
            base_path=given.get(keys.SYNC_BASE_PATH),
            tables=given.get_or_default(keys.SYNC_TABLES),
            with_table_name=given.get_or_default(keys.SNAPSHOT_WITH_TABLE_NAME),
            skip_ro_suffix=given.get_or_default(keys.SKIP_RO_SUFFIX),
            support_timestamp=given.get_or_default(keys.SUPPORT_TIMESTAMP),
            as_datasource=given.get_or_default(keys.AS_DATASOURCE),
            omit_meta_fields=given.get_or_default(keys.OMIT_META_FIELDS),
            comments=given.get_or_default(keys.SYNC_COMMENT),
            table_properties=given.get(keys.TABLE_PROPERTIES) or (),
            serde_properties=given.get(keys.SERDE_PROPERTIES) or (),
            schema_length=given.get_or_default(keys.SCHEMA_LENGTH),
            managed=given.get_or_default(keys.CREATE_MANAGED),
            creates_database=given.get_or_default(keys.AUTO_CREATE_DATABASE),
            partitions_at_once=given.get_or_default(keys.PARTITIONS_AT_ONCE),
            incremental=given.get_or_default(keys.INCREMENTAL_SYNC),
            conditional=given.get_or_default(keys.CONDITIONAL_SYNC),
            spark_version=given.get(keys.SYNC_SPARK_VERSION),
            glue_catalog=given.get(keys.GLUE_CATALOG),
            glue_region=given.get(keys.GLUE_REGION),
            glue_endpoint=given.get(keys.GLUE_ENDPOINT),
            glue_skips_archive=given.get_or_default(keys.GLUE_SKIP_ARCHIVE),
        )
