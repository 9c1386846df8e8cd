"""Followers: what is kept up to date beside a table, and the two lists of it.

A table has followers of its own, which are part of it: whoever opens the table finds them by its
properties. Others follow since the options of a writer say so.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource
from hoodie_ds.sync.delta.follower import DeltaLog
from hoodie_ds.sync.run import CatalogEntries
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


class Follower(Protocol):
    """What is kept up to date beside a table.

    Every method raises `HoodieError` where it cannot do its work, and may be called again by
    another process after it was killed anywhere.
    """

    @property
    def service(self) -> Service:
        """What it is called where it fails, and its place among the services after a commit."""
        ...

    @property
    def names_files(self) -> bool:
        """Whether it names data files: then services by hand are followed too, and cleans wait."""
        ...

    def check(self, columns: pa.Schema) -> None:
        """Refuse a write, before it begins, that cannot be followed.

        Parameters
        ----------
        columns : pyarrow.Schema
            What the table is to have, without Hudi's own columns.
        """
        ...

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        """Take an instant in, of whatever action, that is about to become visible.

        Called of the table's own followers, once it is decided that the instant is completed, by
        whoever completes it: a recovery has no options of the writer. An error leaves the instant
        to the next process. What is written here must not count without the instant, which others
        may have ended and taken back while this process was stopped.

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
        """Come to where the table is, as far as its commits tell what is missing.

        Called by whoever made something visible, which stays whatever comes of this; not for each
        instant: what a dead process has left out is made up for.

        Parameters
        ----------
        table : Table
            The table.
        timeline : Timeline, optional
            As far as the caller has it in hand.
        """
        ...

    def repair(self, table: Table, *, dry: bool = False) -> object:
        """Come to where the table is, from whatever state; returns what was done, or would be.

        Parameters
        ----------
        table : Table
            The table.
        dry : bool
            Whether only to say what would be done.
        """
        ...


def own_followers(table: Table) -> tuple[Follower, ...]:
    """Return the followers that a table has by its properties, whoever opens it and why."""
    return ()


def followers(
    table: Table, options: WriteOptions, clock: Clock, ids: IdSource
) -> tuple[Follower, ...]:
    """Return all that follows a table: its own, and what the options of a writer ask for."""
    delta = (DeltaLog(clock, ids),) if options.catalog.delta_sync else ()
    catalogs = (CatalogEntries(options.catalog),) if options.catalog.enabled else ()
    return (*own_followers(table), *delta, *catalogs)
