"""Followers: what is kept up to date with a table, and the two lists of them.

A table's own followers are part of it: every process that opens the table finds them by its
properties. Others follow because a writer's options ask for them.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from hoodie_ds.config.properties.table_properties import expression_indexes, is_kept
from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource
from hoodie_ds.metadata_table.follower import MetadataFollower
from hoodie_ds.sync.delta.follower import DeltaLog
from hoodie_ds.sync.run import CatalogEntries
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


class Follower(Protocol):
    """Something that is kept up to date with a table.

    Every method raises `HoodieError` if it cannot do its work, and may be called again by another
    process after the first one was killed at any point.
    """

    @property
    def service(self) -> Service:
        """Its name in reports of failures, and its place among the services after a commit."""
        ...

    @property
    def names_files(self) -> bool:
        """Whether it names data files: then cleans wait for it, and it follows services by hand."""
        ...

    def check(self, columns: pa.Schema) -> None:
        """Refuse a write that cannot be followed, before it begins.

        Parameters
        ----------
        columns : pyarrow.Schema
            The table's columns after the write, without Hudi's own.
        """
        ...

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        """Apply an instant of any action that is about to become visible.

        Called for the table's own followers, once the decision to complete the instant is logged,
        by the process that completes it: a recovery does not have the writer's options. An error
        leaves the instant to the next process. What is written here must not count without the
        instant, which others may have ended and rolled back while this process was stopped.

        Parameters
        ----------
        table : Table
            The table.
        completed : Instant
            The instant as it is completed.
        changes : FileChanges
            What it does to the table's files.
        """
        ...

    def after(self, table: Table, timeline: Timeline | None = None) -> None:
        """Apply the commits that are missing.

        Called by a process after it made an instant visible, which stays if this fails. One call
        covers all instants since the last one, also those of a process that died.

        Parameters
        ----------
        table : Table
            The table.
        timeline : Timeline, optional
            If the caller has loaded it.
        """
        ...

    def repair(self, table: Table, *, dry: bool = False) -> object:
        """Bring it up to date from any state; returns what was done, or would be.

        Parameters
        ----------
        table : Table
            The table.
        dry : bool
            Whether only to say what would be done.
        """
        ...


def own_followers(table: Table) -> tuple[Follower, ...]:
    """Return the followers that a table has by its properties, in every process."""
    # A write drops those, but first a recovery completes what came before.
    others = expression_indexes(table.properties)
    return (MetadataFollower(),) if is_kept(table.properties, others) else ()


def followers(
    table: Table, options: WriteOptions, clock: Clock, ids: IdSource
) -> tuple[Follower, ...]:
    """Return all followers of a table: its own, and those that a writer's options ask for."""
    delta = (DeltaLog(clock, ids),) if options.catalog.delta_sync else ()
    catalogs = (CatalogEntries(options.catalog),) if options.catalog.enabled else ()
    return (*own_followers(table), *delta, *catalogs)
