"""What `HoodieTable` tells others of itself: catalogs, and readers of Delta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.delta_log import sync_delta
from hoodie_ds.sync.delta.sync import DeltaSync
from hoodie_ds.sync.results import CatalogSync
from hoodie_ds.sync.run import sync
from hoodie_ds.table.table import open_table


class TableSyncs(ABC):
    """Methods of a table that tell others what it is now."""

    def sync_catalog(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> CatalogSync:
        """Tell a Hive metastore or AWS Glue what it lacks of the table.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.datasource.hive_sync.metastore.uris``.
        dry : bool
            Whether only to say what the catalog would be told.

        Returns
        -------
        CatalogSync
            What it was told, or would be; false if it knows all.

        Raises
        ------
        CatalogError
            The catalog cannot be reached or refuses, or partitions do not fit its columns.
        MissingPackageError
            The extra ``hive`` or ``glue`` is not installed.
        """
        context = self._services(options)
        table = open_table(context.storage)
        table.properties.check_readable()
        return sync(table, table.load_timeline(), context.options.catalog, dry=dry)

    def sync_delta(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> DeltaSync:
        """Make a Delta log beside the table, or bring it up to date.

        The whole table is compared with the whole log, so that whatever the log lacks or has too
        much is put right; a table without one is taken up as it is now.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options.
        dry : bool
            Whether to change nothing, and only say what would be done.

        Returns
        -------
        DeltaSync
            The version of the log, and what it added and removed; false if nothing was to be done.

        Raises
        ------
        SchemaError
            Delta lacks the type of a column.
        DeltaSyncError
            There is a Delta log that is not of this library's making, or is damaged.
        """
        return sync_delta(self._services(options), whole=True, dry=dry)

    @abstractmethod
    def _services(
        self, options: Mapping[str, str] | None = None, dry: bool = False
    ) -> ServiceContext:
        """Return where and how the services of the table run, with further options of a call."""
