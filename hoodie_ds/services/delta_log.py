"""The Delta log beside a table, as table services keep it up to date.

A service by hand is followed by a sync as a batch is: it has done its work by then, so a sync that
fails is reported and made up for by the next one. A clean alone waits for its sync: the log must
not name files that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hoodie_ds.config.service_switches import Service
from hoodie_ds.services.boundary import attempted
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.sync.delta.sync import DeltaSync, sync
from hoodie_ds.table.table import Table, open_table

T = TypeVar("T")


def sync_delta(
    context: ServiceContext, table: Table | None = None, *, whole: bool = False, dry: bool = False
) -> DeltaSync:
    """Bring the Delta log of a table to where the table is.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    table : Table, optional
        The table; is opened if it is not given.
    whole : bool
        Whether to compare all files with all that the log has.
    dry : bool
        Whether only to say what would be done.

    Raises
    ------
    HoodieError
        As `hoodie_ds.sync.delta.sync.sync`.
    """
    if table is None:
        table = open_table(context.storage)
        table.properties.check_version()
    return sync(table, context.clock, context.ids, whole=whole, dry=dry)


def wants_delta(context: ServiceContext) -> bool:
    """Whether the options ask for a Delta log."""
    return Service.DELTA in context.options.services.of_writes


def followed_by_sync(context: ServiceContext, work: Callable[[], T], *, dry: bool) -> T:
    """Do what a service does, and bring the Delta log up to date where there is to be one.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    work : callable
        The service.
    dry : bool
        Whether it only says what it would do.

    Returns
    -------
    object
        What the service returns. A sync that fails is logged.
    """
    done = work()
    if wants_delta(context) and not dry:
        attempted(Service.DELTA, context.storage.root, "", lambda: sync_delta(context))
    return done
