"""How a commit excludes other decisions about its table.

Every commit takes a turn, also that of a single writer: an old driver that was thought dead may
stand in the middle of a commit while the new one begins. The lock is for several writers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.conflicts import check_new_keys
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction import heartbeat
from hoodie_ds.transaction.decision_log import Decision, Turn, following_turn, take_turn
from hoodie_ds.transaction.lock import held
from hoodie_ds.transaction.resolution import settle


@dataclass
class Exclusion:
    """Held from the check for conflicts to the end of a commit.

    Parameters
    ----------
    batch : Batch
        The batch.
    clock : Clock
        For rollbacks of others' instants that were decided and not carried out.
    """

    batch: Batch
    clock: Clock
    _before: Turn | None = None

    @property
    def number(self) -> int:
        """The turn that `settle` found; 0 before the first."""
        return self._before.number if self._before else 0

    def settle(self, timeline: Timeline) -> Timeline:
        """Carry out the newest decision, and return the timeline with all that was decided.

        It may be the one given. Not beside other writers: those of other engines take no turns.
        """
        known = None if self.batch.options.concurrency.is_shared else timeline
        self._before, timeline = settle(self.batch.table, self.clock, known)
        return timeline

    def decide(
        self,
        decision: Decision,
        instant: Instant,
        timeline: Timeline,
        carried: Mapping[str, str] | None = None,
    ) -> bool:
        """Decide about the batch's instant: compare keys, and take the next turn.

        Parameters
        ----------
        decision : Decision
            To complete the instant, or that it waits for further batches.
        instant : Instant
            The batch's, whose manifest is there.
        timeline : Timeline
            As `settle` returned it.
        carried : mapping of str to str, optional
            Entries of the replay guard, which the turn keeps where others archive the commit;
            by default those of the turn before.

        Returns
        -------
        bool
            False if others decided something since `settle`.

        Raises
        ------
        WriteConflictError
            A commit that the timeline shows brought keys that this one brings too.
        """
        if self.batch.options.concurrency.is_shared:  # the manifest makes them visible here
            prepared = Instant(instant.time, instant.action, State.COMPLETED, 1)
            check_new_keys(self.batch, prepared, timeline)
        me = self.batch.attempt
        turn = following_turn(self._before, decision, instant, me)
        if carried is not None:
            turn = replace(turn, carried=carried)
        return take_turn(self.batch.table.storage, turn)


@contextmanager
def excluding(batch: Batch, clock: Clock, pauses: Pauses) -> Iterator[Exclusion]:
    """Exclude others until the block is left.

    Raises
    ------
    LockTimeoutError
        They held the lock all the time.
    """
    concurrency, storage = batch.options.concurrency, batch.table.storage
    if not concurrency.is_shared:
        yield Exclusion(batch, clock)
        return
    with held(storage, concurrency, batch.attempt, clock, pauses):
        yield Exclusion(batch, clock)


@contextmanager
def alive(batch: Batch, time: str) -> Iterator[None]:
    """Let others know that a batch is being written, where there may be any."""
    concurrency = batch.options.concurrency
    if not concurrency.is_shared:
        yield
        return
    with heartbeat.beating(batch.table.storage, time, concurrency.heartbeat_interval_ms):
        yield
