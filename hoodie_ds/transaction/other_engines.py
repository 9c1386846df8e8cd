"""Checks for writers of other engines: before the metadata table is dropped, and of the lock.

A running writer of another engine has read that there is a metadata table, and continues to update
it, or rebuilds it, without the commits of this library. Its queries then miss rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.properties import keys
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock
from hoodie_ds.errors import OptionError, WriteConflictError
from hoodie_ds.hints import command
from hoodie_ds.log import Log
from hoodie_ds.metadata_table.compaction import is_noted
from hoodie_ds.metadata_table.creation import create_partitions
from hoodie_ds.metadata_table.upkeep import finish_pending
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.metadata_table import drop_metadata_table, drop_partitions
from hoodie_ds.table.table import Table, update_properties
from hoodie_ds.timeline.bodies.replace_plan import is_pending_clustering
from hoodie_ds.timeline.commands import DROPPING
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.failed_write import is_ours
from hoodie_ds.transaction.heartbeat import ages_ms
from hoodie_ds.transaction.ownership import is_begun, is_claimed
from hoodie_ds.transaction.resolution import apply_pending

_WAITING: Final = frozenset(
    {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.INDEXING}
)
"""Actions that are planned first; no writer is at work while they are only requested."""


def switch_metadata_table_off(
    table: Table,
    clock: Clock,
    heartbeat_timeout_ms: int,
    ends: Callable[[Instant], bool] = lambda _: False,
) -> Table:
    """Drop a table's metadata table, unless another engine's writer is at work.

    `ends` says whether the caller ends a pending instant, whose writer is dead. Raises
    `WriteConflictError` if a writer is at work, or left an instant without a heartbeat.
    """
    _check_none_uses_it(table, heartbeat_timeout_ms, ends)
    Log(table.storage.root).warning(
        "the metadata table (%s) is dropped because of %s = false; from now on Hudi lists "
        "folders and skips no files, until one of its jobs rebuilds it from all files",
        ", ".join(table.properties.metadata_partitions),
        FileOptions.metadata_enable.key,
    )
    return drop_metadata_table(table, clock.now_ms())


def drop_metadata_partitions(
    table: Table, names: Collection[str], clock: Clock, heartbeat_timeout_ms: int
) -> Table:
    """Drop partitions of a table's metadata table on request; the list of files goes last.

    Raises `WriteConflictError` as `switch_metadata_table_off`, and if a compaction of the metadata
    table that names files of the partitions waits for a pending instant.
    """
    _check_none_uses_it(table, heartbeat_timeout_ms)
    is_whole = set(names) >= set(table.properties.metadata_partitions)
    if not is_whole and not finish_pending(table):
        raise WriteConflictError(
            f"{table.storage.root}: a compaction of its metadata table is pending, and waits for "
            f"instants of the table: {table.load_timeline().pending[0]} is pending; run this again "
            "once it has ended"
        )
    listed = ", ".join(sorted(names))
    Log(table.storage.root).warning("of its metadata table %s is dropped", listed)
    return drop_partitions(table, names, clock.now_ms())


def _check_none_uses_it(
    table: Table, heartbeat_timeout_ms: int, ends: Callable[[Instant], bool] = lambda _: False
) -> None:
    """Refuse while another engine's writer may be using the metadata table."""
    root, partitions = table.storage.root, ", ".join(table.properties.metadata_partitions)
    # Before the timeline, as a writer begins its heartbeat before its instant.
    ages = ages_ms(table.storage)
    alive = {time for time, age_ms in ages.items() if age_ms < heartbeat_timeout_ms}
    timeline = table.load_timeline()
    for instant in _of_others(table, timeline):
        if not ends(instant) and (instant.time in alive or instant.time not in ages):
            dead = command("rollback", root, instant.time, *DROPPING)
            raise WriteConflictError(
                f"{root}: {instant} of another engine is pending, so its writer may be using the "
                f"metadata table ({partitions}), which cannot be dropped now: its queries would "
                "miss rows that are written here. Run this again once that engine has completed "
                f"it; if its writer is dead, {dead} rolls it back"
            )
    for time in sorted(alive):
        if not _is_known(table, timeline, time):
            raise WriteConflictError(
                f"{root}: another engine's writer is beginning instant {time}, and may be using "
                f"the metadata table ({partitions}), which cannot be dropped now; run this again "
                "once it has ended"
            )


def switch_metadata_table_on(
    table: Table,
    clock: Clock,
    wanted: Collection[str],
    options: WriteOptions,
) -> Table:
    """Make partitions of a table's metadata table, once nothing is at work on the table."""
    timeline = apply_pending(table, clock)[1]
    if at_work(table, timeline):
        return table
    made = create_partitions(table, timeline, wanted, clock.now_ms(), options)
    names = set(made.properties.metadata_partitions) - set(table.properties.metadata_partitions)
    if names:
        listed = ", ".join(sorted(names))
        Log(table.storage.root).info("of its metadata table %s is made", listed)
    return made


def note_delta_commits(table: Table, clock: Clock, most: int | None) -> Table:
    """Have a table's properties say after how many delta commits its metadata table is compacted.

    The newest decision is applied before: until then others may be at its delta commit.
    """
    if is_noted(table.properties, most):
        return table
    apply_pending(table, clock)
    changes = {keys.METADATA_DELTA_COMMITS: str(most)}
    return update_properties(table, changes, (), clock.now_ms())


def at_work(table: Table, timeline: Timeline) -> Instant | None:
    """Return a pending instant of a writer that may be at work; None if there is none."""
    return next((instant for instant in timeline.pending if not _waits(table, instant)), None)


def check_lock_is_shared(table: Table, timeline: Timeline, concurrency: Concurrency) -> None:
    """Refuse a lock that other engines do not take, if one of them wrote last, or is writing."""
    if has_own_lock(table.storage, concurrency):
        newest = next(timeline.commits_backwards(), None)
        found = [newest] if newest and not read_commit(table.storage, newest).is_ours else []
        for instant in found + _of_others(table, timeline):
            raise unshared_lock(table.storage, instant, concurrency)


def has_own_lock(storage: Storage, concurrency: Concurrency) -> bool:
    """Whether there are several writers with a lock that no other engine takes."""
    return concurrency.is_shared and not concurrency.is_common(storage.root)


def unshared_lock(storage: Storage, instant: Instant, concurrency: Concurrency) -> OptionError:
    """Return the error of a lock that the writer of an instant does not take."""
    provider = concurrency.lock_provider
    return OptionError(
        Concurrency.lock_provider.key,
        None if provider is None else provider.value,
        f"{instant} is another engine's, whose writers take another lock; let every writer of both "
        f"set {Concurrency.common_provider(storage.root).value}",
    )


def _of_others(table: Table, timeline: Timeline) -> list[Instant]:
    """Pending instants whose writers, of other engines, may be at work."""
    actions = WRITE_ACTIONS | {Action.INDEXING}
    begun = [i for i in timeline.pending if i.action in actions and not _waits(table, i)]
    return [instant for instant in begun if not _by_this_library(table, instant)]


def _by_this_library(table: Table, instant: Instant) -> bool:
    storage, time = table.storage, instant.time
    return is_claimed(storage, time) or is_begun(storage, time) or is_ours(table, instant)


def _waits(table: Table, instant: Instant) -> bool:
    if instant.state is not State.REQUESTED:
        return False
    return instant.action in _WAITING or is_pending_clustering(table.storage, instant)


def _is_known(table: Table, timeline: Timeline, time: str) -> bool:
    """Whether the instant of a heartbeat is ours or on the timeline."""
    return bool(timeline.at(time)) or is_claimed(table.storage, time)
