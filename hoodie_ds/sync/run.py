"""Syncs into the catalog that the options name: connect, sync, close."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.enums import SyncMode
from hoodie_ds.config.service_switches import Service
from hoodie_ds.extras import remedy, require
from hoodie_ds.sync.catalog import Catalog
from hoodie_ds.sync.results import CatalogSync
from hoodie_ds.sync.tool import SyncTool
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CatalogEntries:
    """A table's entries in a catalog; see `hoodie_ds.sync.followers.Follower`."""

    service: ClassVar[Service] = Service.CATALOG
    names_files: ClassVar[bool] = False

    options: CatalogOptions

    def check(self, columns: pa.Schema) -> None:
        """Refuse if the catalog's client is not installed."""
        require_packages(self.options)

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        """Do nothing: only visible instants are synced."""

    def after(self, table: Table, timeline: Timeline | None = None) -> None:
        """Sync what commits changed since the last sync."""
        sync(table, timeline or table.load_timeline(), self.options)

    def repair(self, table: Table, *, dry: bool = False) -> CatalogSync:
        """Sync the differences, those of partitions as far as the options say."""
        return sync(table, table.load_timeline(), self.options, dry=dry)


def sync(
    table: Table, timeline: Timeline, options: CatalogOptions, *, dry: bool = False
) -> CatalogSync:
    """Bring a table's entries in a catalog up to date."""
    with closing(connect(options)) as catalog:
        return SyncTool(table, timeline, options, catalog).sync(dry=dry)


def require_packages(options: CatalogOptions) -> None:
    """Raise if the catalog's client is not installed; imports and connects nothing."""
    if options.mode is SyncMode.GLUE:
        require("The sync into AWS Glue", remedy("glue"), "boto3")
    else:
        require("The sync into a Hive metastore", remedy("hive"), "pymetastore", "thrift")


def connect(options: CatalogOptions) -> Catalog:
    """Return the catalog that the options name."""
    require_packages(options)
    if options.mode is SyncMode.GLUE:
        from hoodie_ds.sync.glue import GlueCatalog

        return GlueCatalog(options)
    from hoodie_ds.sync.hive import HiveCatalog

    return HiveCatalog(options)
