"""Rollback by hand: of the newest completed write, or of one that is pending.

The rollback of a completed write is a decision of the log, with the plan of the rollback: a writer
in the middle of its commit finds it there, and checks again what it is based on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hoodie_ds.errors import TimelineError
from hoodie_ds.index.bucket_clustering import obstacle_to
from hoodie_ds.log import Log
from hoodie_ds.services.context import Decided, ServiceContext
from hoodie_ds.services.earlier_state import check_files_are_kept
from hoodie_ds.services.undoing import Loss, Undoing, check_written_since
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.planned_services import built_on
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.archive import archived_writes
from hoodie_ds.timeline.bodies.replace_plan import is_pending_clustering
from hoodie_ds.timeline.bodies.rollback_metadata import PartitionRollback, plan_to_bytes
from hoodie_ds.timeline.instant import COMPLETES_AS, WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.failed_write import files_of_completed, is_named_after
from hoodie_ds.transaction.guard_commits import carried_entries, guard_commits_until
from hoodie_ds.transaction.heartbeat import living
from hoodie_ds.transaction.ownership import claim
from hoodie_ds.transaction.rolled_back_batches import record_rolled_back
from hoodie_ds.transaction.undated_entries import date_entries

_BEFORE_ALL: Final = "0" * 17


def roll_back_by_hand(context: ServiceContext, time: str | None, *, dry: bool = False) -> Undoing:
    """Roll back the write at a time, or the newest completed one; see `HoodieTable.rollback`."""
    table = context.open_table(ends=lambda instant: instant.time == time)
    if dry:
        return _checked(context, table, context.current_timeline(table), time)[1]
    found: list[Undoing] = []

    def decide(timeline: Timeline) -> Decided:
        instant, undoing = _checked(context, table, timeline, time)
        found[:] = [undoing]
        if instant.action is Action.COMPACTION:
            files = _written(table, timeline, instant)
        elif instant.state is State.COMPLETED:
            files = files_of_completed(table, instant)
        else:
            return Decided(Outcome.ROLL_BACK, instant)
        plan = plan_to_bytes(table.storage.root, instant, files)
        carried = None
        if instant.state is State.COMPLETED:
            carried = carried_without(table.storage, timeline, (instant,), undoing.target)
            # If this process ends after the decision, the next batch finds it by this claim.
            claim(table.storage, instant.time, f"rollback of {instant.time}")
        return Decided(Outcome.UNDO, instant, plan, carried)

    context.decide(table, Action.ROLLBACK, decide)
    Log(table.storage.root).info("rolled %s", found[0])
    return found[0]


def carried_without(
    storage: Storage, timeline: Timeline, lost: Iterable[Instant], time: str
) -> Mapping[str, str]:
    """Return the replay guard entries for the decision log once the lost writes are rolled back.

    Records the micro-batches of the lost writes first. `time` is that of the newest write that
    stays; empty if none does.
    """
    staying = guard_commits_until(storage, timeline, time) if time else []
    kept = [commit for _, commit in staying]
    gone = [(instant, read_commit(storage, instant)) for instant in lost]
    record_rolled_back(storage, (commit for _, commit in gone), kept)
    date_entries(storage, timeline, time, gone, kept)
    return carried_entries(kept, time)


def check_no_savepoint(table: Table, timeline: Timeline, times: set[str]) -> None:
    """Refuse to roll back commits that a savepoint keeps, as Hudi does."""
    for savepoint in timeline.savepoints:
        if savepoint.time in times:
            delete = table.command("savepoint", savepoint.time, "--delete")
            raise TimelineError(
                f"{table.storage.root}: commit {savepoint.time} has a savepoint; delete that first "
                f"(delete_savepoint, or {delete}), then take the commit back"
            )


def _checked(
    context: ServiceContext, table: Table, timeline: Timeline, time: str | None
) -> tuple[Instant, Undoing]:
    """Find the instant, and refuse if it must stay."""
    instant = _instant(table, timeline, time)
    stays = next((i for i in timeline.commits_backwards() if i.time != instant.time), None)
    undoing = Undoing(stays.time if stays else "", (Loss.of(table.storage, instant),))
    check_no_savepoint(table, timeline, {instant.time})  # whose completed file may be lost
    if instant.state is State.COMPLETED:
        _check_newest(table.storage, timeline, instant)
        _check_not_first(table, timeline, instant, undoing.target)
        check_written_since(table.storage, (instant.time,))
        target, what = undoing.target or _BEFORE_ALL, f"a rollback of {instant.time}"
        check_files_are_kept(table, timeline, target, what, retained=False)
    else:
        _check_unused(table, instant)
        if instant.action is not Action.COMPACTION:
            _check_dead(context, instant)
    return instant, undoing


def _instant(table: Table, timeline: Timeline, time: str | None) -> Instant:
    storage = table.storage
    newest = next(timeline.commits_backwards(), None)
    if time is None:
        if newest is None:
            raise TimelineError(f"{storage.root} has no completed write to roll back")
        _refuse_choice(table, timeline, newest)
        return newest
    found = next((i for i in timeline.at(time) if i.action in WRITE_ACTIONS), None)
    if found is None:
        pending = ", ".join(str(i) for i in timeline.pending if i.action in WRITE_ACTIONS)
        raise TimelineError(
            f"{storage.root}: {time} is no write of the active timeline; name the newest "
            f"completed one, {newest.time if newest else '(none)'}, or one that is pending: "
            f"{pending or '(none)'}"
        )
    return found


def _refuse_choice(table: Table, timeline: Timeline, newest: Instant) -> None:
    """Refuse to choose while a write is pending: the user may mean that one, not a good commit.

    A plan that waits to be carried out, such as a compaction, is no such write.
    """
    writes = (i for i in timeline.pending if i.action in WRITE_ACTIONS)
    pending = [i for i in writes if not _is_service(table.storage, i)]
    if pending:
        undo = " or ".join(table.command("rollback", i.time) for i in pending)
        raise TimelineError(
            f"{table.storage.root}: name the instant to roll back, as {pending[0]} is pending: "
            f"{undo} takes off what a dead writer has left, and "
            f"{table.command('rollback', newest.time)} the newest commit, which is complete"
        )


def _is_service(storage: Storage, pending: Instant) -> bool:
    return pending.action in COMPLETES_AS or is_pending_clustering(storage, pending)


def _check_not_first(table: Table, timeline: Timeline, instant: Instant, previous: str) -> None:
    """Refuse if no commit would be left that shows that the archived ones were before it.

    Readers, those of Hudi too, take what is older than the first commit for archived.
    """
    if padded(instant.time) > timeline.start:
        return
    archived = archived_writes(table.storage, timeline, table.properties.archive_folder)
    hidden = [i.time for i in archived if not previous or padded(i.time) > padded(previous)]
    if hidden:
        raise TimelineError(
            f"{table.storage.root}: {instant.action.value} {instant.time} is the first commit that "
            f"is not archived, and without it no reader would find the rows of {hidden[-1]} and "
            "of those before; take its rows back by a write, a delete or an upsert"
        )


def _check_newest(storage: Storage, timeline: Timeline, instant: Instant) -> None:
    later = [
        other
        for other in (*timeline.commits_backwards(), *timeline.pending)
        if other.action in WRITE_ACTIONS and padded(other.time) > padded(instant.time)
    ]
    if later:
        newest = max(later, key=lambda other: padded(other.time))
        is_done = newest.state is State.COMPLETED
        first = "roll that back first" if is_done else "let its writer finish, or roll it back"
        raise TimelineError(
            f"{storage.root}: {instant.action.value} {instant.time} is not the newest write: "
            f"{newest.action.value} {newest.time} {'comes' if is_done else 'is pending'} after it; "
            f"{first}, or go back further by a restore"
        )


def _check_dead(context: ServiceContext, instant: Instant) -> None:
    timeout_ms = context.options.concurrency.heartbeat_timeout_ms
    if instant.time in living(context.storage, timeout_ms):
        raise TimelineError(
            f"{context.storage.root}: a writer is at work on instant {instant.time}; stop it, or "
            f"wait until it has ended (a dead one shows after {timeout_ms} ms)"
        )


def _check_unused(table: Table, pending: Instant) -> None:
    """Refuse to cancel a plan on top of which rows were written: later commits name such files."""
    path = built_on(table.storage, pending)
    is_compaction = pending.action is Action.COMPACTION
    if path is None or not (is_compaction or is_pending_clustering(table.storage, pending)):
        return
    by = "" if is_compaction or obstacle_to(table, pending) is None else " by Hudi"
    raise TimelineError(
        f"{table.storage.root}: {pending} cannot be rolled back any more, since rows were written "
        f"on top of it ({path}); let it be executed{by}"
    )


def _written(table: Table, timeline: Timeline, instant: Instant) -> dict[str, PartitionRollback]:
    """Files that a compaction has written so far, by partition path."""
    found: dict[str, list[str]] = {}
    for path in _named_after(table, timeline, instant):
        found.setdefault(path.rpartition("/")[0], []).append(path)
    return {path: PartitionRollback(tuple(files)) for path, files in found.items()}


def _named_after(table: Table, timeline: Timeline, instant: Instant) -> list[str]:
    listed = FileSystemView(table.storage, timeline).data_files()
    return [found.path for found in listed if is_named_after(found.path, instant.time)]
