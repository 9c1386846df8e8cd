"""The end of an action: log the decision, complete the instant, clean up.

Every commit appends to the decision log, also that of a single writer: an old driver that seemed
dead may be in the middle of a commit while the new one begins. Several writers also take the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    HoodieError,
    LockTimeoutError,
    NotFoundError,
    StorageError,
    TimelineError,
)
from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.log import Log
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.live_files import save_live_files
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline, save_timeline
from hoodie_ds.timeline.paths import instant_path, manifest_path, marker_folder
from hoodie_ds.timeline.rollbacks import is_undone
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction import heartbeat
from hoodie_ds.transaction.completion import completion_time, put_completed
from hoodie_ds.transaction.decision_log import Decision, Outcome, append_decision, next_decision
from hoodie_ds.transaction.failed_write import announced, delete_leftovers, marked_by
from hoodie_ds.transaction.guard_commits import carried_with
from hoodie_ds.transaction.lock import Lock, held
from hoodie_ds.transaction.ownership import owner_of
from hoodie_ds.transaction.pending_action import PendingAction
from hoodie_ds.transaction.resolution import apply_pending, put_requested
from hoodie_ds.transaction.temporary_files import delete_temporary

Named: TypeAlias = Mapping[str, Mapping[str, ColumnRange]]
"""Files with the ranges of their columns, of which nothing may be known."""


@dataclass
class Exclusion:
    """What a writer holds from the check for conflicts to the end of its commit."""

    pending: PendingAction
    clock: Clock
    lock: Lock | None = None
    """The table's lock, if there may be other writers."""
    _before: Decision | None = None
    _timeline: Timeline | None = None

    @property
    def number(self) -> int:
        """Number of the decision that `apply_pending` found; 0 before the first."""
        return self._before.number if self._before else 0

    def apply_pending(self, timeline: Timeline) -> Timeline:
        """Apply the newest decision, and return the timeline with all decisions.

        A single writer may get the given timeline back. With several it is loaded again, as other
        engines log no decisions.
        """
        known = None if self.pending.concurrency.is_shared else timeline
        self._before, self._timeline = apply_pending(self.pending.table, self.clock, known)
        return self._timeline

    def append(
        self, outcome: Outcome, instant: Instant, carried: Mapping[str, str] | None = None
    ) -> bool:
        """Append a decision about the action's instant to the log.

        Returns False if others decided something since `apply_pending`. By default the replay guard
        entries of the decision before are carried over.
        """
        return self._append(outcome, instant, carried) is not None

    def complete(
        self,
        instant: Instant,
        manifest: bytes,
        carried: Mapping[str, str] | None = None,
        named: Named | None = None,
    ) -> Instant | None:
        """Decide to complete the action's instant, and complete it.

        `named` has the files that the manifest names, where they are known, with what is known of
        their columns. Returns None if others decided something since `apply_pending`. Raises as
        `finish`.
        """
        assert self._timeline is not None, "nothing is decided before `apply_pending`"
        if carried is not None:
            carried = carried_with(carried, instant, self._timeline)
        decision = self._append(Outcome.COMPLETE, instant, carried)
        if decision is None:
            return None
        finish(self.pending.table, decision, manifest, named)
        return decision.completed

    def _append(
        self, outcome: Outcome, instant: Instant, carried: Mapping[str, str] | None
    ) -> Decision | None:
        """Append a decision; None if others decided something since `apply_pending`."""
        pending = self.pending
        decision = next_decision(self._before, outcome, instant, pending.attempt)
        if carried is not None:
            decision = replace(decision, carried=carried)
        if outcome in (Outcome.SCHEDULE, Outcome.UNDO, Outcome.CHANGE_VERSION):
            decision = replace(decision, plan=pending.plan)
        timeline = self._timeline
        if outcome is Outcome.COMPLETE or instant.action is Action.SAVEPOINT:
            assert timeline is not None, "nothing is decided before `apply_pending`"
            ended = completion_time(pending.table, timeline, self.clock)
            decision = replace(decision, completion_time=ended)
            if outcome is Outcome.COMPLETE:
                later = timeline.commits_since(instant.time)
                decision = replace(decision, seen=tuple(found.time for found in later))
        self._check_held()
        return decision if append_decision(pending.storage, decision) else None

    def schedule(self, instant: Instant) -> bool:
        """Decide to schedule the action's plan, and put it on the timeline.

        Returns False if others decided something since `apply_pending`, or took the instant time.
        """
        pending = self.pending
        decision = next_decision(self._before, Outcome.SCHEDULE, instant, pending.attempt)
        decision = replace(decision, plan=pending.plan)
        self._check_held()
        if not append_decision(pending.storage, decision):
            return False
        # Another writer may have swept the claim of a process that seemed dead, and taken the time.
        if load_timeline(pending.storage, instant.layout).has_other(instant):
            return False
        put_requested(pending.storage, decision)
        return True

    def _check_held(self) -> None:
        """Refuse to decide without the lock: another engine may be committing, and logs nothing."""
        if self.lock is not None and not self.lock.is_held():
            raise LockTimeoutError(
                f"{self.pending.storage.root}: another writer has taken the lock, as this one did "
                "not renew it in time; nothing was committed, run the batch again"
            )


@contextmanager
def excluding(pending: PendingAction, clock: Clock, pauses: Pauses) -> Iterator[Exclusion]:
    """Hold the table's lock during the block, if there may be other writers."""
    if not pending.concurrency.is_shared:
        yield Exclusion(pending, clock)
        return
    with held(pending.storage, pending.concurrency, pending.attempt, clock, pauses) as lock:
        yield Exclusion(pending, clock, lock)


@contextmanager
def heartbeating(pending: PendingAction, time: str) -> Iterator[None]:
    """Keep the heartbeat of an action's instant, if there may be other writers."""
    if not pending.concurrency.is_shared:
        yield
        return
    with heartbeat.beating(pending.storage, time, pending.concurrency.heartbeat_interval_ms):
        yield


def check_not_undone(pending: PendingAction, timeline: Timeline, instant: Instant) -> None:
    """Refuse if the instant was rolled back, even if a late task opened it again."""
    is_anothers = owner_of(pending.storage, instant) != pending.owner
    if is_anothers or is_undone(pending.storage, timeline, instant.time):
        raise pending.undone(instant.time)


def delete_own_lost(pending: PendingAction, time: str, named: Collection[str]) -> None:
    """Delete files of this attempt's lost tasks, not `named`, before the instant is completed.

    Readers that list folders would see them. Files of other attempts stay until the instant is
    completed: another driver of the same query may be about to complete it with them.
    """
    listed = [s.path for s in pending.storage.list(marker_folder(time), recursive=True)]
    for path, marker in sorted(_lost_files(time, named, listed).items()):
        if marked_by(pending.storage, marker) == pending.attempt:
            pending.storage.delete(path)


def finish(table: Table, decision: Decision, manifest: bytes, named: Named | None = None) -> None:
    """Apply a decision to complete an instant, and clean up.

    Raises `CommitOutcomeUnknownError` if the instant could not be made visible, which the next
    batch does, and `TimelineError` if another writer completed the instant with other files.
    """
    storage, instant = table.storage, decision.completed
    try:
        is_own = put_completed(table, instant, manifest, named)
    except CommitOutcomeUnknownError:
        raise
    except HoodieError as error:  # of the storage, or of a follower whose files are damaged
        raise CommitOutcomeUnknownError(
            f"{storage.root}: instant {instant.time} is committed by the decision log, but could "
            f"not be made visible ({error}); the next batch of any writer does it, or rolls it "
            "back if another engine commits first, so do not write the rows again before it"
        ) from error
    if not is_own:
        raise TimelineError(
            f"{storage.root}/{instant_path(instant)} exists and is not this batch's: a second "
            "writer completed the instant"
        )
    try:
        # Listed again: a late task looks for the completed file after it has put its own file.
        left = [s.path for s in storage.list(marker_folder(instant.time), recursive=True)]
        if not left and _is_gone(storage, decision.instant):
            storage.delete(instant_path(instant))
            return
        paths: Collection[str] | None = named
        if paths is None:
            paths = CommitMetadata.from_bytes(manifest, manifest_path(instant.time)).file_paths
        lost = _lost_files(instant.time, paths, left)
        delete_leftovers(storage, instant.time, lost, is_complete=True)
        delete_temporary(storage, instant.time)
    except StorageError as error:
        # The batch is in the table: if this failed, it would be written twice.
        Log(storage.root, instant.time).warning(
            "the next batch will clean up after this one: %s", error
        )


def store_summaries(storage: Storage, timeline: Timeline) -> None:
    """Store summaries, so that later processes need not read all commits."""
    try:
        save_timeline(storage, timeline.layout)
        save_live_files(storage, timeline)
    except HoodieError as error:
        Log(storage.root).debug("no summary of commits was stored: %s", error)


def _is_gone(storage: Storage, pending: Instant) -> bool:
    """Whether others completed and rolled back an instant before this process put its file.

    A rollback deletes the requested file, the markers and then the completed file once more, so one
    of the two processes sees what the other did. Hudi deletes the same files, each once.
    """
    try:
        storage.read(instant_path(pending.at(State.REQUESTED)))
    except NotFoundError:
        return True
    return False


def _lost_files(time: str, named: Collection[str], listed: Iterable[str]) -> dict[str, str]:
    """Files that an instant's markers announce and its manifest lacks, each with its marker."""
    found = announced(time, listed)
    return {path: marker for path, marker in found.items() if path not in named}
