"""What follows the commit of a batch: the table services that are due, one after the other.

The batch is in the table by then, so nothing that goes wrong here is its failure: `attempted` is
the one boundary between the two. What failed is due again after the next batch. Whether a service
is due is decided by the timeline that the commit has in hand, without a look at the storage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import HoodieError
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.timeline.timeline import Timeline

_log = logging.getLogger("hoodie_ds")

FollowUp = Callable[[ServiceContext, Timeline], None]
"""Takes the table and its timeline with the commit; does what is due."""


@dataclass(frozen=True, slots=True)
class ServiceFailure:
    """A table service that failed beside a batch, and is tried again with a later one.

    Parameters
    ----------
    service : Service
        Which it was.
    instant : str
        The instant that it was about; that of the batch where it has none yet.
    reason : str
        What went wrong.
    """

    service: Service
    instant: str
    reason: str

    def __str__(self) -> str:
        return f"{self.service.value} at instant {self.instant} failed: {self.reason}"


def attempted(
    service: Service, root: str, instant: str, work: Callable[[], object]
) -> ServiceFailure | None:
    """Do a part of a service beside a batch, which goes on whatever becomes of it.

    Parameters
    ----------
    service : Service
        Which it is.
    root : str
        The table's base path, for the log.
    instant : str
        The instant that it is about.
    work : callable
        Does it.

    Returns
    -------
    ServiceFailure or None
        What went wrong, which is logged; None if nothing did.
    """
    try:
        work()
    except (HoodieError, OSError, pa.ArrowException) as error:
        failure = ServiceFailure(service, instant, f"{type(error).__name__}: {error}")
        _log.warning("%s: %s; a later batch tries again", root, failure)
        return failure
    return None


def follow_up(
    context: ServiceContext,
    wanted: Collection[Service],
    timeline: Timeline,
    services: Mapping[Service, FollowUp],
) -> tuple[ServiceFailure, ...]:
    """Do what is due after a commit.

    Parameters
    ----------
    context : ServiceContext
        The table.
    wanted : collection of Service
        What the batch brings along.
    timeline : Timeline
        With the commit.
    services : mapping of Service to callable
        What does each of them.

    Returns
    -------
    tuple of ServiceFailure
        What went wrong.
    """
    root, instant = context.storage.root, timeline.latest_time or ""
    tried = (
        attempted(service, root, instant, partial(services[service], context, timeline))
        for service in Service
        if service in wanted and service in services
    )
    return tuple(failure for failure in tried if failure is not None)
