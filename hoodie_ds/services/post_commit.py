"""Table services after the commit of a batch, and followers after a service called by hand.

The timeline of the commit decides what is due. If nothing is, nothing is listed, and only commits
are read that this process knows already. The batch is in the table by then, so no failure of a
service is its failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, TypeVar

from hoodie_ds.config.enums import TableType
from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import HoodieError
from hoodie_ds.log import Log
from hoodie_ds.services.archiving import archive_if_due
from hoodie_ds.services.cleaning import clean_if_due
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.compaction.planner import CompactionPlanner
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.failures import ServiceFailure, attempted
from hoodie_ds.sync.followers import Follower
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.timeline import Timeline

T = TypeVar("T")


_DELETED_AFTER_A_BATCH: Final = 1000
_ARCHIVED_AFTER_A_BATCH: Final = 100


@dataclass(frozen=True)
class AfterCommit:
    """The state of a table after the commit of a batch."""

    context: ServiceContext
    table: Table
    timeline: Timeline  # as the batch saw it, with its commit and the compaction that it completed
    is_stream: bool

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table has log files."""
        return self.table.properties.table_type is TableType.MERGE_ON_READ


FollowUp = Callable[[AfterCommit], None]
"""Runs a service if it is due."""


def _compact(after: AfterCommit) -> None:
    """Compact after a batch write, if due; the tasks of a stream compact before the commit."""
    if after.is_merge_on_read and not after.is_stream:
        Compactor(after.context).compact(only_if_due=True)


def _plan_compaction(after: AfterCommit) -> None:
    """Plan a compaction, if one is due and none is pending."""
    if not after.is_merge_on_read or after.timeline.pending_compactions:
        return
    utc = after.table.properties.timeline_in_utc
    time = next_time(after.context.clock.now_ms(), utc, after.timeline.latest_time)
    if CompactionPlanner(after.table, after.context.options).is_due(after.timeline, time):
        Compactor(after.context).schedule(only_if_due=True)


def _clean(after: AfterCommit) -> None:
    """Finish pending cleans and execute a plan: the draft, if its timeline is still the same."""
    clean_if_due(after.context, after.table, after.timeline, most=_DELETED_AFTER_A_BATCH)


def _archive(after: AfterCommit) -> None:
    """Archive the oldest instants, if due; at most so many that the next batch is not held up."""
    archive_if_due(after.context, after.timeline, most=_ARCHIVED_AFTER_A_BATCH)


SERVICES: Final[dict[Service, FollowUp]] = {
    Service.COMPACTION: _compact,
    Service.COMPACTION_PLAN: _plan_compaction,
    Service.CLEAN: _clean,
    Service.ARCHIVE: _archive,
}
"""Runs each service if it is due."""


def follow_up(
    after: AfterCommit,
    wanted: Collection[Service],
    services: Mapping[Service, FollowUp] = SERVICES,
) -> tuple[ServiceFailure, ...]:
    """Run the wanted services that are due after a commit, then update the table's followers.

    Returns the failures; none of them fails the batch.
    """
    work = {service: partial(services[service], after) for service in services.keys() & wanted}
    for follower in after.context.followers(after.table):
        work[follower.service] = partial(follower.after, after.table, after.timeline)
    return _in_turn(work, after.table.storage.root, after.timeline.latest_time or "")


def catch_up(context: ServiceContext, table: Table) -> tuple[ServiceFailure, ...]:
    """Update a table's followers for a batch that commits nothing; return the failures.

    An earlier attempt of the batch may have died between its commit and its followers.
    """
    opened = cache(partial(open_table, table.storage))  # another process may have upgraded it

    def update(follower: Follower) -> None:
        follower.after(opened())

    work = {one.service: partial(update, one) for one in context.followers(table)}
    return _in_turn(work, table.storage.root)


def followed(context: ServiceContext, work: Callable[[], T]) -> T:
    """Run a service called by hand, then update the followers that name the table's files.

    The service has done its work by then: a follower that fails is logged, and caught up by the
    next write or service. A clean needs none of this, as it updates them itself, first.
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
        Log(root).warning("what follows the table waits for the next write: %s", error)
        return
    named = [one for one in context.followers(table) if one.names_files]
    _in_turn({one.service: partial(one.after, table) for one in named}, root)


def _in_turn(
    work: Mapping[Service, Callable[[], None]], root: str, instant: str = ""
) -> tuple[ServiceFailure, ...]:
    """Run work in the order of its services; return the failures, each of which is logged."""
    tried = (attempted(one, root, instant, work[one]) for one in Service if one in work)
    return tuple(failure for failure in tried if failure is not None)
