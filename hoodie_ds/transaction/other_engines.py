"""What may not be done beside another engine's writers: drop the metadata table, or lock alone.

A writer that is at work has read that there is a metadata table, and goes on to fill it, or builds
it again, without the commits that are made here meanwhile. Its queries trust it, and miss rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import LockProvider
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.environment import Clock
from hoodie_ds.errors import OptionError, WriteConflictError
from hoodie_ds.table.metadata_table import drop_metadata_table
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.replace_plan import is_pending_clustering
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.failed_write import is_ours
from hoodie_ds.transaction.heartbeat import ages_ms
from hoodie_ds.transaction.ownership import is_claimed

_log = logging.getLogger("hoodie_ds")

_WAITING: Final = frozenset(
    {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.INDEXING}
)
"""Actions that are planned first; nobody is at work on a plan."""


def switch_metadata_table_off(
    table: Table,
    clock: Clock,
    heartbeat_timeout_ms: int,
    ends: Callable[[Instant], bool] = lambda _: False,
) -> Table:
    """Drop a table's metadata table, unless another engine's writer is at work.

    `ends` says of a pending instant that the caller ends it, and that its writer is dead. Raises
    `WriteConflictError` if a writer is at work, or has left an instant without a heartbeat.
    """
    root, partitions = table.storage.root, ", ".join(table.properties.metadata_partitions)
    # Before the timeline: a writer's instant is there once its heart beats.
    ages = ages_ms(table.storage)
    alive = {time for time, age_ms in ages.items() if age_ms < heartbeat_timeout_ms}
    timeline = table.load_timeline()
    for instant in _of_others(table, timeline):
        if not ends(instant) and (instant.time in alive or instant.time not in ages):
            dead = table.command("rollback", instant.time)
            raise WriteConflictError(
                f"{root}: {instant} is another engine's and pending, so that its writer may be at "
                f"work with the metadata table ({partitions}), which cannot be dropped under it: "
                "its queries would miss what is written here. Run this again once that engine has "
                f"ended it; if its writer is dead, {dead} takes it off"
            )
    for time in sorted(alive):
        if not _is_known(table, timeline, time):
            raise WriteConflictError(
                f"{root}: another engine's writer begins on instant {time}, and may be at work "
                f"with the metadata table ({partitions}), which cannot be dropped under it; run "
                "this again once it has ended"
            )
    _log.warning(
        "%s: the metadata table (%s) is dropped, as %s = false says; Hudi lists folders from now "
        "on and skips no files, until a job there builds it again from all files",
        root,
        partitions,
        FileOptions.metadata_enable.key,
    )
    return drop_metadata_table(table, clock.now_ms())


def check_lock_is_shared(table: Table, timeline: Timeline, concurrency: Concurrency) -> None:
    """Refuse a lock that other engines do not take, where one of them has written last, or writes.

    Raises `OptionError`.
    """
    if has_own_lock(concurrency):
        newest = next(timeline.commits_backwards(), None)
        found = [newest] if newest and not read_commit(table.storage, newest).is_ours else []
        for instant in found + _of_others(table, timeline):
            raise unshared_lock(instant, concurrency)


def has_own_lock(concurrency: Concurrency) -> bool:
    """Whether there are several writers, and a lock that no other engine takes."""
    return concurrency.is_shared and concurrency.lock_provider is not LockProvider.FILE_SYSTEM


def unshared_lock(instant: Instant, concurrency: Concurrency) -> OptionError:
    """Return the error of a lock that the writer of an instant does not take."""
    return OptionError(
        Concurrency.lock_provider.key,
        concurrency.lock_provider.value,
        f"{instant} is another engine's, whose writers take another lock, also where theirs has "
        f"this name; let every writer, here and there, set {LockProvider.FILE_SYSTEM.value}. On an "
        "object store that locks nothing in Hudi: let one engine write at a time there",
    )


def _of_others(table: Table, timeline: Timeline) -> list[Instant]:
    """Pending instants that writers of other engines may be at work on."""
    actions = WRITE_ACTIONS | {Action.INDEXING}
    begun = [i for i in timeline.pending if i.action in actions and not _waits(table, i)]
    return [i for i in begun if not (is_claimed(table.storage, i.time) or is_ours(table, i))]


def _waits(table: Table, instant: Instant) -> bool:
    if instant.state is not State.REQUESTED:
        return False
    return instant.action in _WAITING or is_pending_clustering(table.storage, instant)


def _is_known(table: Table, timeline: Timeline, time: str) -> bool:
    """Whether a heartbeat is that of an instant that is ours, or on the timeline."""
    return bool(timeline.at(time)) or is_claimed(table.storage, time)
