"""What follows the commit of a batch: the table services that are due, one after the other.

What is due is decided by the timeline that the commit has in hand: where nothing is, nothing is
listed and nothing read but commits that this process knows already. The batch is in the table by
then, so nothing that goes wrong here is its failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from hoodie_ds.config.enums import TableType
from hoodie_ds.config.service_switches import Service
from hoodie_ds.services.archiving import archive_if_due
from hoodie_ds.services.boundary import ServiceFailure, attempted
from hoodie_ds.services.cleaning import clean_if_due
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.compaction.planner import CompactionPlanner
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.timeline import Timeline

_DELETED_AFTER_A_BATCH: Final = 1000
_ARCHIVED_AFTER_A_BATCH: Final = 100


@dataclass(frozen=True)
class AfterCommit:
    """Where a table stands after the commit of a batch.

    Parameters
    ----------
    context : ServiceContext
        Where and how services run.
    table : Table
        The table.
    timeline : Timeline
        As the batch saw it, with the compaction that it completed and with its commit.
    is_stream : bool
        Whether the batch is one of a stream.
    """

    context: ServiceContext
    table: Table
    timeline: Timeline
    is_stream: bool

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table has log files."""
        return self.table.properties.table_type is TableType.MERGE_ON_READ


FollowUp = Callable[[AfterCommit], None]
"""Does what is due of a service."""


def _compact(after: AfterCommit) -> None:
    """Compact what is due after a batch write; the tasks of a stream have done it before."""
    if after.is_merge_on_read and not after.is_stream:
        Compactor(after.context).compact(only_if_due=True)


def _plan_compaction(after: AfterCommit) -> None:
    """Plan a compaction, if one is due and the last one is done."""
    if not after.is_merge_on_read or after.timeline.pending_compactions:
        return
    utc = after.table.properties.timeline_in_utc
    time = next_time(after.context.clock.now_ms(), utc, after.timeline.latest_time)
    if CompactionPlanner(after.table, after.context.options).is_due(after.timeline, time):
        Compactor(after.context).schedule(only_if_due=True)


def _clean(after: AfterCommit) -> None:
    """Delete old files, if there may be any: so many of them that the next batch can wait."""
    clean_if_due(after.context, after.table, after.timeline, most=_DELETED_AFTER_A_BATCH)


def _archive(after: AfterCommit) -> None:
    """Archive old instants, if there are too many: so many that the next batch can wait."""
    archive_if_due(after.context, after.timeline, most=_ARCHIVED_AFTER_A_BATCH)


SERVICES: Final[dict[Service, FollowUp]] = {
    Service.COMPACTION: _compact,
    Service.COMPACTION_PLAN: _plan_compaction,
    Service.CLEAN: _clean,
    Service.ARCHIVE: _archive,
}
"""What does each service, if it is due."""


def follow_up(
    after: AfterCommit,
    wanted: Collection[Service],
    services: Mapping[Service, FollowUp] = SERVICES,
) -> tuple[ServiceFailure, ...]:
    """Do what is due after a commit, and bring up to date what follows the table.

    Parameters
    ----------
    after : AfterCommit
        Where the table stands.
    wanted : collection of Service
        What the batch brings along.
    services : mapping of Service to callable
        What does each of them.

    Returns
    -------
    tuple of ServiceFailure
        What went wrong.
    """
    root, instant = after.table.storage.root, after.timeline.latest_time or ""
    work = {service: partial(services[service], after) for service in services.keys() & wanted}
    for follower in after.context.followers(after.table):
        work[follower.service] = partial(follower.after, after.table, after.timeline)
    tried = (
        attempted(service, root, instant, work[service]) for service in Service if service in work
    )
    return tuple(failure for failure in tried if failure is not None)
