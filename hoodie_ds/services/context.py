"""The context of every table service: how it opens the table, and schedules and decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from hoodie_ds.config.properties.agreement import check_same
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource, Pauses, RandomPauses
from hoodie_ds.errors import CorruptFileError, NotFoundError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.followers import Follower, followers
from hoodie_ds.table.metadata_table import refuse_metadata_table
from hoodie_ds.table.table import Table, check_unchanged, open_table
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following, next_time
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.exclusive_commit import excluding
from hoodie_ds.transaction.other_engines import check_lock_is_shared, switch_metadata_table_off
from hoodie_ds.transaction.ownership import claim, owner_entry
from hoodie_ds.transaction.pending_action import PendingAction
from hoodie_ds.transaction.recovery import drop_dead_plans
from hoodie_ds.transaction.resolution import apply_pending
from hoodie_ds.transaction.temporary_files import delete_temporary

T = TypeVar("T")

_TRIES: Final = 5
"""Attempts at a table that others keep changing."""

Planner = Callable[[Timeline, str], bytes | None]
"""Takes the timeline and the instant time of a plan; returns the plan, None if nothing is due."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision to append."""

    outcome: Outcome
    instant: Instant
    plan: bytes = b""  # what is to be put or done
    # replay guard entries for the log; None for those of the decision before
    carried: Mapping[str, str] | None = None


Progress = Callable[[int, int], None]
"""Receives the number of parts that are done, and of all parts."""

Decider = Callable[[Timeline], Decided | None]
"""Takes the timeline; returns the decision, None if nothing is to be done."""


def retry_on_concurrent_change(table: Table, work: Callable[[], T]) -> T:
    """Run a part of a service, and again if others changed the table meanwhile.

    Another process may finish the same plan, and a clean delete the old files, while this one reads
    them by an older timeline. So an error counts only if the timeline has stayed the same. `work`
    begins with loading the timeline.
    """
    for _ in range(_TRIES - 1):
        before = table.load_timeline()
        try:
            return work()
        except (CorruptFileError, NotFoundError, TimelineError):
            if table.load_timeline() == before:
                raise
    return work()


def _planned(plan: Planner, table: Table, time: str) -> bytes | None:
    return plan(table.load_timeline(), time)


@dataclass(frozen=True)
class ServiceContext:
    """The storage, options and environment in which the services of a table run."""

    options: WriteOptions  # those of a writer, which say how it coordinates with others
    storage: Storage
    clock: Clock
    ids: IdSource
    pauses: Pauses = field(default_factory=RandomPauses)
    progress: Progress | None = None
    is_dry: bool = False  # whether nothing is changed

    def following(self, parts: Sequence[T]) -> Iterator[T]:
        """Yield parts of a plan, and report the progress after each."""
        for number, part in enumerate(parts, 1):
            yield part
            if self.progress is not None:
                self.progress(number, len(parts))

    def open_table(
        self,
        *,
        to_be_dropped: bool = False,
        ends: Callable[[Instant], bool] = lambda _: False,
    ) -> Table:
        """Return the table, ready to be changed: without its metadata table, if the options allow.

        `to_be_dropped` says that the caller drops the metadata table itself, later; `ends` whether
        the service ends a pending instant of another engine, whose writer is dead. Raises
        `WriteConflictError` if another engine may be at work with the metadata table.
        """
        table = open_table(self.storage)
        table.properties.check_writable()
        check_same(self.options, table.properties)
        refuse_metadata_table(table, self.options)
        is_dropped = table.properties.metadata_partitions and self.options.metadata_enable is False
        if is_dropped and not (to_be_dropped or self.is_dry):
            timeout_ms = self.options.concurrency.heartbeat_timeout_ms
            table = switch_metadata_table_off(table, self.clock, timeout_ms, ends)
        return table

    def followers(self, table: Table) -> tuple[Follower, ...]:
        """Return what follows the table; see `hoodie_ds.sync.followers.followers`."""
        return followers(table, self.options, self.clock, self.ids)

    def action(self, table: Table, action: Action, operation_type: str) -> PendingAction:
        """Return an action of a service, without an instant time or a plan yet."""
        attempt = self.ids.unique()
        concurrency = self.options.concurrency
        return PendingAction(
            table=table,
            timeline=table.load_timeline(),
            action=action,
            operation_type=operation_type,
            proposed_time="",
            attempt=attempt,
            owner=owner_entry("", attempt, concurrency.is_shared),
            concurrency=concurrency,
        )

    def schedule(self, pending: PendingAction, plan: Planner) -> Instant | None:
        """Put a service's plan on the timeline; return the requested instant, or None if not due.

        The plan is made under the lock, after the newest decision, and again if others decided
        something meanwhile. It is an entry of the decision log itself: a scheduler that was stopped
        cannot add a plan later that others do not know of.
        """
        storage, table = pending.storage, pending.table
        with excluding(pending, self.clock, self.pauses) as exclusion:
            while True:
                timeline = exclusion.apply_pending(table.load_timeline())
                check_lock_is_shared(table, timeline, self.options.concurrency)
                refuse_restore(storage.root, timeline)
                check_unchanged(table)
                time = self._claim_time(pending, timeline)
                try:
                    body = retry_on_concurrent_change(table, partial(_planned, plan, table, time))
                    if body is None:
                        return None
                    exclusion.pending = replace(pending, proposed_time=time, plan=body)
                    instant = table.instant(time, pending.action, State.REQUESTED)
                    if exclusion.schedule(instant):
                        return instant
                finally:
                    delete_temporary(storage, time)

    def current_timeline(self, table: Table) -> Timeline:
        """Return the timeline with all decisions applied; refuse while a restore is pending."""
        _, timeline = apply_pending(table, self.clock)
        refuse_restore(table.storage.root, timeline)
        return table.load_timeline() if drop_dead_plans(table, timeline) else timeline

    def decide(self, table: Table, action: Action, decide: Decider) -> Timeline:
        """Append a decision about existing instants, apply it, and return the timeline after it.

        `decide` is called again if others decided something meanwhile. Raises `TimelineError` if a
        restore is pending.
        """
        pending = self.action(table, action, action.value.upper())
        with excluding(pending, self.clock, self.pauses) as exclusion:
            while True:
                timeline = exclusion.apply_pending(table.load_timeline())
                check_lock_is_shared(table, timeline, self.options.concurrency)
                refuse_restore(table.storage.root, timeline)
                check_unchanged(table)
                decided = decide(timeline)
                if decided is None:
                    return timeline
                exclusion.pending = replace(pending, plan=decided.plan)
                if exclusion.append(decided.outcome, decided.instant, decided.carried):
                    return apply_pending(table, self.clock)[1]

    def claim_time(self, table: Table, timeline: Timeline) -> str:
        """Claim an instant time later than all others, which no other action gets."""
        return self._claim_time(self.action(table, Action.RESTORE, ""), timeline)

    def next_time(self, table: Table, timeline: Timeline) -> str:
        """Return an instant time later than all others, without claiming it."""
        return next_time(
            self.clock.now_ms(), table.properties.timeline_in_utc, timeline.latest_time
        )

    def _claim_time(self, pending: PendingAction, timeline: Timeline) -> str:
        storage, layout = pending.storage, pending.table.layout
        time = self.next_time(pending.table, timeline)
        # A claim is deleted once its instant is on the timeline, so load the timeline after it.
        while not claim(storage, time, pending.owner) or load_timeline(storage, layout).at(time):
            time = following(time)
        return time
