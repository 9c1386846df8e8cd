"""How a commit excludes other decisions about its table: one writer has nobody to exclude."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from hoodie_ds.config.clock import Clock, Pauses
from hoodie_ds.services.decisions import settle
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.conflicts import check_keys
from hoodie_ds.table import heartbeat
from hoodie_ds.table.lock import held
from hoodie_ds.table.turns import Decision, Turn, take_turn
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.timeline import Timeline


class Exclusion(Protocol):
    """Held from the check for conflicts to the end of a commit."""

    def settle(self) -> bool:
        """Carry out what others decided; whether the timeline may have changed meanwhile."""
        ...

    def decide(self, instant: Instant, timeline: Timeline) -> bool:
        """Decide to complete an instant; False if others decided something since `settle`.

        Raises
        ------
        WriteConflictError
            A commit that the timeline shows brought keys that this one brings too.
        """
        ...


class NobodyElse:
    """The exclusion of a single writer."""

    def settle(self) -> bool:
        """Do nothing: nobody else decides."""
        return False

    def decide(self, instant: Instant, timeline: Timeline) -> bool:
        """Decide; nobody objects."""
        return True


@dataclass
class AmongOthers:
    """The exclusion of one of several writers, which holds the lock.

    Parameters
    ----------
    batch : Batch
        The batch.
    clock : Clock
        For rollbacks of others' instants that were decided and not carried out.
    """

    batch: Batch
    clock: Clock
    _number: int = 0

    def settle(self) -> bool:
        """Carry out the newest decision."""
        self._number = settle(self.batch.table, self.clock)
        return True

    def decide(self, instant: Instant, timeline: Timeline) -> bool:
        """Compare keys, which the manifest makes visible to this writer, and take the next turn."""
        check_keys(self.batch, Instant(instant.time, instant.action, State.COMPLETED, 1), timeline)
        turn = Turn(self._number + 1, Decision.COMPLETE, instant, self.batch.attempt)
        return take_turn(self.batch.table.storage, turn)


@contextmanager
def excluding(batch: Batch, clock: Clock, pauses: Pauses) -> Iterator[Exclusion]:
    """Exclude others, where there may be any, until the block is left.

    Raises
    ------
    LockTimeoutError
        They held the lock all the time.
    """
    concurrency, storage = batch.options.concurrency, batch.table.storage
    if not concurrency.is_shared:
        yield NobodyElse()
        return
    with held(storage, concurrency, batch.attempt, clock, pauses):
        yield AmongOthers(batch, clock)


@contextmanager
def alive(batch: Batch, time: str) -> Iterator[None]:
    """Let others know that a batch is being written, where there may be any."""
    concurrency = batch.options.concurrency
    if not concurrency.is_shared:
        yield
        return
    with heartbeat.beating(batch.table.storage, time, concurrency.heartbeat_interval_ms):
        yield
