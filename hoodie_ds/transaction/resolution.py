"""Resolution of open instants: applying the newest logged decision, and appending the next.

A writer applies the newest decision before it appends its own. So at most the newest one is not
applied yet, and any writer can apply it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from hoodie_ds.environment import Clock
from hoodie_ds.errors import TimelineError
from hoodie_ds.log import Log
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.timeline.bodies.commit_metadata import DECISION_KEY, PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import instant_path, manifest_path
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore, target_of
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction import heartbeat
from hoodie_ds.transaction.completion import completion_time, find_completed, put_completed
from hoodie_ds.transaction.decision_log import (
    Decision,
    Outcome,
    append_decision,
    newest_decision,
    next_decision,
)
from hoodie_ds.transaction.guard_commits import carried_as_outdated, carried_with
from hoodie_ds.transaction.lost_instants import refuse_lost
from hoodie_ds.transaction.manifest import (
    InstantTest,
    complete_from_manifest,
    never,
    newest_manifest,
)
from hoodie_ds.transaction.open_instant import put_step
from hoodie_ds.transaction.rollback import finish_rollback, roll_back, undo_by_hand

_RECOVERY: Final = "recovery"
"""The author of recoveries' decisions: several that decide the same at once may all continue."""


def apply_pending(
    table: Table, clock: Clock, known: Timeline | None = None
) -> tuple[Decision | None, Timeline]:
    """Apply the newest decision if it is not applied yet.

    Returns the newest decision, None before the first, and the timeline with all decisions. `known`
    is not loaded again if it shows the newest commit. Raises `TimelineError` if another engine's
    restore is pending, or the table's version is being changed.
    """
    newest = newest_decision(table.storage)
    if newest is not None and newest.table_version is not None:
        _refuse_halfway(table, newest.table_version)
        return newest, known or table.load_timeline()
    if known is not None and (newest is None or _is_applied(known, newest)):
        return newest, known
    timeline = table.load_timeline()
    if newest is None or not _is_due(timeline, newest):
        return newest, timeline
    refuse_restore(table.storage.root, timeline)
    due = _revised(table, newest, timeline)
    if due is None:
        return apply_pending(table, clock)
    _apply(table, due, clock)
    return due, table.load_timeline()


def _revised(table: Table, newest: Decision, timeline: Timeline) -> Decision | None:
    """Return what to apply: a decision to roll back, where another engine has overtaken a write.

    The writer died after its decision to complete the write; the other engine took the lock next
    and knew nothing of it. Returns None if others decided something meanwhile.
    """
    if newest.outcome is not Outcome.COMPLETE:
        return newest
    commit = _manifest(table, newest.instant)
    if commit is None or not commit.extra.get(DECISION_KEY):  # of several batches, or a service
        return newest
    if not _is_overtaken(table, timeline, newest.instant, commit, newest.seen):
        return newest
    undo = next_decision(newest, Outcome.ROLL_BACK, newest.instant, _RECOVERY)
    undo = replace(undo, carried=carried_as_outdated(newest.carried, newest.instant))
    return undo if append_decision(table.storage, undo) else None


def _refuse_halfway(table: Table, version: int) -> None:
    """Refuse while a version change is incomplete, which only the same call completes."""
    if table.properties.version == version:
        return
    check_unchanged(table)  # the change may be complete since this process opened the table
    method = "upgrade" if version > table.properties.version else "downgrade"
    raise TimelineError(
        f"{table.storage.root}: the change of the table from version {table.properties.version} "
        f"to {version} is incomplete; if no process is at work on it any more, call "
        f"HoodieTable.{method}({version}) to resume it"
    )


def _is_applied(timeline: Timeline, newest: Decision) -> bool:
    """Whether a timeline, which may be old, shows that a decision is applied."""
    time = newest.instant.time
    if newest.instant.action is Action.SAVEPOINT:
        return newest.outcome is Outcome.SCHEDULE and not _is_due(timeline, newest)
    if newest.outcome is Outcome.SCHEDULE:
        return bool(timeline.at(time))
    if newest.outcome is Outcome.UNDO:
        return False  # a timeline of the time before the instant looks the same
    return timeline.commit_at(time) is not None


def _is_due(timeline: Timeline, newest: Decision) -> bool:
    """Whether the newest timeline shows that a decision is not applied yet."""
    if newest.instant.action is Action.SAVEPOINT:
        there = (i for i in timeline.savepoints if i.time == newest.instant.time)
        made = any(i.state is State.COMPLETED for i in there)
        left = any(i.time == newest.instant.time for i in timeline.savepoints)
        return not made if newest.outcome is Outcome.SCHEDULE else left
    match newest.outcome:
        case Outcome.KEEP_OPEN:
            return False
        case Outcome.SCHEDULE:
            return not timeline.at(newest.instant.time)
        case Outcome.UNDO:
            begun = any(i.action is Action.ROLLBACK for i in timeline.pending)
            return begun or bool(timeline.at(newest.instant.time))
        case _:
            return timeline.is_pending(newest.instant.time)


def resolve_instant(
    table: Table, instant: Instant, clock: Clock, *, may_complete: InstantTest = never
) -> None:
    """Decide about a dead writer's instant, unless others did meanwhile, and apply the decision.

    The instant is completed if `may_complete` allows it, its manifest is whole and nothing was
    decided since its writer checked for conflicts; otherwise it is rolled back.
    """
    while True:
        before, timeline = apply_pending(table, clock)
        if not timeline.is_pending(instant.time):
            return
        newest = next_decision(before, Outcome.ROLL_BACK, instant, _RECOVERY)
        is_free = not is_undone(table.storage, timeline, instant.time)
        if is_free and may_complete(table, timeline, instant):
            ended = completion_time(table, timeline, clock)
            newest = _completing(table, replace(newest, completion_time=ended), timeline)
        if newest.outcome is Outcome.ROLL_BACK:
            refuse_lost(table, (instant.time,))
        if append_decision(table.storage, newest):
            _apply(table, newest, clock)
            return


def _apply(table: Table, newest: Decision, clock: Clock) -> None:
    """Apply a decision; any process may, several at a time too."""
    time = newest.instant.time
    if newest.instant.action is Action.SAVEPOINT:
        _apply_savepoint(table, newest)
        return
    if newest.outcome is Outcome.SCHEDULE:
        put_requested(table.storage, newest)
    elif newest.outcome is Outcome.COMPLETE:
        # False if its writer completed it and deleted the manifest since the timeline was loaded,
        # or if the completed file is lost: then a rollback of the instant is refused.
        if complete_from_manifest(table, newest.completed):
            Log(table.storage.root, time).info("%s by a recovery", newest.completed)
    elif newest.outcome is Outcome.UNDO:
        undo_by_hand(table, newest.instant, newest.plan, clock)
    else:
        _undo(table, newest.instant, clock)
    heartbeat.stop(table.storage, time)


def _apply_savepoint(table: Table, newest: Decision) -> None:
    """Put or delete a savepoint, which has no plan; its inflight file is empty, as in Hudi.

    One that is put late, after it was deleted, keeps files for longer and can be deleted again.
    """
    storage, inflight = table.storage, newest.instant
    if newest.outcome is Outcome.SCHEDULE:
        put_step(storage, inflight, State.INFLIGHT)
        put_completed(table, newest.completed, newest.plan)
        return
    while (made := find_completed(storage, inflight)) is not None:
        storage.delete(instant_path(made))
    storage.delete(instant_path(inflight))


def put_requested(storage: Storage, scheduled: Decision) -> None:
    """Put the plan of a decision to schedule on the timeline, unless another process did."""
    put_step(storage, scheduled.instant, State.REQUESTED, scheduled.plan)


def _completing(table: Table, newest: Decision, timeline: Timeline) -> Decision:
    """Turn a decision to roll back into one to complete, if the instant's manifest allows it.

    A manifest of several micro-batches names no decision: Spark is past those, so they stay.
    """
    commit = _manifest(table, newest.instant)
    if commit is None:
        return newest
    checked_after = commit.extra.get(DECISION_KEY)
    if checked_after is not None and (
        checked_after != str(newest.number - 1)
        or _is_overtaken(table, timeline, newest.instant, commit)
    ):
        return newest
    carried = carried_with(commit.entries_of_all, newest.instant, timeline)
    return replace(newest, outcome=Outcome.COMPLETE, carried=carried)


def _manifest(table: Table, instant: Instant) -> CommitMetadata | None:
    """Read the newest manifest of an instant; None without a whole one."""
    found = newest_manifest(table.storage, instant)
    if found is None:
        return None
    number, body = found
    return CommitMetadata.from_bytes(body, manifest_path(instant.time, number))


def _is_overtaken(
    table: Table,
    timeline: Timeline,
    instant: Instant,
    manifest: CommitMetadata,
    seen: Collection[str] = (),
) -> bool:
    """Whether another engine, which logs no decisions, has a commit that a manifest may not fit.

    It may have rewritten the same file groups or changed the schema since the manifest was put.
    `seen` are times of later commits that it fits.
    """
    pending = manifest.extra.get(PENDING_KEY, "").split()
    first = min((instant.time, *pending), key=padded)
    for found in timeline.commits_since(first):
        was_checked = found.time in seen or padded(found.time) < padded(instant.time)
        is_new = found.time in pending or not was_checked
        if is_new and not read_commit(table.storage, found).is_ours:
            return True
    return False


def _undo(table: Table, instant: Instant, clock: Clock) -> None:
    """Roll an instant back; an interrupted rollback of it is resumed."""
    for pending in table.load_timeline().pending:
        if pending.action is Action.ROLLBACK and target_of(table.storage, pending) == instant.time:
            finish_rollback(table, pending, clock)
            return
    roll_back(table, instant, clock)
