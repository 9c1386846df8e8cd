"""The end of an action: decided in order with all other decisions, completed, cleaned up.

Every commit appends to the decision log, also that of a single writer: an old driver that was
thought dead may stand in the middle of a commit while the new one begins. The lock is for several
writers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    HoodieError,
    NotFoundError,
    StorageError,
    TimelineError,
)
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
from hoodie_ds.transaction.failed_write import announced, delete_left, marked_by
from hoodie_ds.transaction.guard_commits import carried_with
from hoodie_ds.transaction.lock import held
from hoodie_ds.transaction.ownership import owner_of
from hoodie_ds.transaction.pending_action import PendingAction
from hoodie_ds.transaction.resolution import apply_pending, put_requested
from hoodie_ds.transaction.temporary_files import delete_temporary

_log = logging.getLogger("hoodie_ds")


@dataclass
class Exclusion:
    """Held from the check for conflicts to the end of a commit."""

    pending: PendingAction
    clock: Clock
    _before: Decision | None = None
    _timeline: Timeline | None = None

    @property
    def number(self) -> int:
        """Number of the decision that `apply_pending` found; 0 before the first."""
        return self._before.number if self._before else 0

    def apply_pending(self, timeline: Timeline) -> Timeline:
        """Apply the newest decision, and return the timeline with all that was decided.

        It may be the one given. Not beside other writers: those of other engines log no decisions.
        """
        known = None if self.pending.is_shared else timeline
        self._before, self._timeline = apply_pending(self.pending.table, self.clock, known)
        return self._timeline

    def append(
        self, outcome: Outcome, instant: Instant, carried: Mapping[str, str] | None = None
    ) -> bool:
        """Decide about the action's instant: append to the decision log.

        Returns False if others decided something since `apply_pending`. By default the replay guard
        entries of the decision before are carried on.
        """
        return self._append(outcome, instant, carried) is not None

    def complete(
        self, instant: Instant, manifest: bytes, carried: Mapping[str, str] | None = None
    ) -> Instant | None:
        """Decide to complete the action's instant, and do so.

        Returns None if others decided something since `apply_pending`. Raises as `finish`.
        """
        assert self._timeline is not None, "nothing is decided before `apply_pending`"
        if carried is not None:
            carried = carried_with(carried, instant, self._timeline)
        decision = self._append(Outcome.COMPLETE, instant, carried)
        if decision is None:
            return None
        finish(self.pending.table, decision, manifest)
        return decision.completed

    def _append(
        self, outcome: Outcome, instant: Instant, carried: Mapping[str, str] | None
    ) -> Decision | None:
        """Append a decision; None if others decided something since `apply_pending`."""
        pending = self.pending
        decision = next_decision(self._before, outcome, instant, pending.attempt)
        if carried is not None:
            decision = replace(decision, carried=carried)
        if outcome in (Outcome.SCHEDULE, Outcome.TAKE_BACK, Outcome.CHANGE_VERSION):
            decision = replace(decision, plan=pending.plan)
        if outcome is Outcome.COMPLETE or instant.action is Action.SAVEPOINT:
            assert self._timeline is not None, "nothing is decided before `apply_pending`"
            ended = completion_time(pending.table, self._timeline, self.clock)
            decision = replace(decision, completion_time=ended)
        return decision if append_decision(pending.storage, decision) else None

    def schedule(self, instant: Instant) -> bool:
        """Decide that the action's plan goes on the timeline, and put it there.

        Returns False if others decided something since `apply_pending`, or have the time.
        """
        pending = self.pending
        decision = next_decision(self._before, Outcome.SCHEDULE, instant, pending.attempt)
        decision = replace(decision, plan=pending.plan)
        if not append_decision(pending.storage, decision):
            return False
        # A writer that took the scheduler for dead has swept its claim, and may have the time now.
        if load_timeline(pending.storage, instant.layout).has_other(instant):
            return False
        put_requested(pending.storage, decision)
        return True


@contextmanager
def excluding(pending: PendingAction, clock: Clock, pauses: Pauses) -> Iterator[Exclusion]:
    """Exclude others until the block is left."""
    if not pending.is_shared:
        yield Exclusion(pending, clock)
        return
    with held(pending.storage, pending.concurrency, pending.attempt, clock, pauses):
        yield Exclusion(pending, clock)


@contextmanager
def heartbeating(pending: PendingAction, time: str) -> Iterator[None]:
    """Let others know that an action is at work, where there may be any."""
    if not pending.is_shared:
        yield
        return
    with heartbeat.beating(pending.storage, time, pending.concurrency.heartbeat_interval_ms):
        yield


def check_not_undone(pending: PendingAction, timeline: Timeline, instant: Instant) -> None:
    """Refuse if the instant was rolled back, also if a late task has opened it again since."""
    is_anothers = owner_of(pending.storage, instant) != pending.owner
    if is_anothers or is_undone(pending.storage, timeline, instant.time):
        raise pending.undone(instant.time)


def delete_own_lost(pending: PendingAction, time: str, manifest: bytes) -> None:
    """Delete the files of an action's own lost task attempts, before readers that list see them.

    Those of other attempts wait until the instant is complete: another driver of the same query may
    be about to complete it with them.
    """
    listed = [s.path for s in pending.storage.list(marker_folder(time), recursive=True)]
    for path, marker in sorted(_lost_files(time, manifest, listed).items()):
        if marked_by(pending.storage, marker) == pending.attempt:
            pending.storage.delete(path)


def finish(table: Table, decision: Decision, manifest: bytes) -> None:
    """Complete the instant that a decision completes, and clean up.

    Raises `CommitOutcomeUnknownError` if the completed file could not be put, which others will do,
    and `TimelineError` if another writer completed the instant with other files.
    """
    storage, instant = table.storage, decision.completed
    try:
        is_own = put_completed(table, instant, manifest)
    except StorageError as error:
        raise CommitOutcomeUnknownError(
            f"{storage.root}: it is decided that instant {instant.time} is committed, but that "
            f"could not be written down ({error}); the next batch of any writer does so"
        ) from error
    if not is_own:
        raise TimelineError(
            f"{storage.root}/{instant_path(instant)} exists and is not this batch's: a second "
            "writer completed the instant"
        )
    try:
        # Listed anew: a late task looks for the completed file once its own is there.
        left = [s.path for s in storage.list(marker_folder(instant.time), recursive=True)]
        if not left and _is_gone(storage, decision.instant):
            storage.delete(instant_path(instant))
            return
        lost = _lost_files(instant.time, manifest, left)
        delete_left(storage, instant.time, lost, is_complete=True)
        delete_temporary(storage, instant.time)
    except StorageError as error:
        # The batch is in the table: to report a failure would have it written twice.
        _log.warning("%s: the next batch will clean up after this one: %s", storage.root, error)


def sum_up(storage: Storage, timeline: Timeline) -> None:
    """Store summaries that save later processes the reading of all commits."""
    try:
        save_timeline(storage, timeline.layout)
        save_live_files(storage, timeline)
    except HoodieError as error:
        _log.debug("%s: what commits say is not summed up: %s", storage.root, error)


def _is_gone(storage: Storage, pending: Instant) -> bool:
    """Whether others completed an instant and took it back, all before this process put it.

    Who takes it back deletes its requested file, its markers and then, once more, what is put here:
    so one of the two finds what the other one did. Hudi deletes the same, and nothing twice.
    """
    try:
        storage.read(instant_path(pending.at(State.REQUESTED)))
    except NotFoundError:
        return True
    return False


def _lost_files(time: str, manifest: bytes, listed: Iterable[str]) -> dict[str, str]:
    """Files that an instant's markers announce and its manifest does not name, each by marker."""
    named = CommitMetadata.from_bytes(manifest, manifest_path(time)).file_paths
    found = announced(time, listed)
    return {path: marker for path, marker in found.items() if path not in named}
