"""A service by hand, and after it what names the files that it has changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hoodie_ds.errors import HoodieError
from hoodie_ds.services.boundary import attempted
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.table.table import open_table

T = TypeVar("T")

_log = logging.getLogger("hoodie_ds")


def followed(context: ServiceContext, work: Callable[[], T]) -> T:
    """Do what a service by hand does, then bring up to date what names the table's files.

    The service has done its work by then: a follower that fails is logged, and made up for by the
    next write or service. A clean needs none of this, as it waits for them itself.

    Parameters
    ----------
    context : ServiceContext
        Where and how; nothing follows a dry call.
    work : callable
        The service.
    """
    done = work()
    if not context.is_dry:
        _follow(context)
    return done


def _follow(context: ServiceContext) -> None:
    root = context.storage.root
    try:
        table = open_table(context.storage)
    except HoodieError as error:
        _log.warning("%s: what follows the table waits for the next write: %s", root, error)
        return
    for follower in context.followers(table):
        if follower.names_files:
            attempted(follower.service, root, "", partial(follower.after, table))
