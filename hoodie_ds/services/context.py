"""What every table service needs, and the way its plan comes on the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from hoodie_ds.config.properties.agreement import check_same
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource, Pauses, RandomPauses
from hoodie_ds.errors import CorruptFileError, NotFoundError, TimelineError, UnsupportedTableError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.followers import Follower, followers
from hoodie_ds.table.metadata_table import described
from hoodie_ds.table.table import Table, check_unchanged, open_table
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following, next_time
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.exclusive_commit import excluding
from hoodie_ds.transaction.other_engines import check_lock_is_shared, switch_metadata_table_off
from hoodie_ds.transaction.ownership import claim, owner_text
from hoodie_ds.transaction.pending_action import PendingAction
from hoodie_ds.transaction.recovery import drop_dead_plans
from hoodie_ds.transaction.resolution import apply_pending
from hoodie_ds.transaction.temporary_files import delete_temporary

T = TypeVar("T")

_TRIES: Final = 5
"""How often a table is looked at that others change all the time."""

Planner = Callable[[Timeline, str], bytes | None]
"""Takes the timeline and the instant time of a plan; returns the plan, None if nothing is due."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision to append.

    Parameters
    ----------
    outcome : Outcome
        What is decided.
    instant : Instant
        About which instant.
    plan : bytes
        What is to be put or done.
    carried : mapping of str to str or None
        Entries of the replay guard that the log is to keep; by default those of the decision
        before.
    """

    outcome: Outcome
    instant: Instant
    plan: bytes = b""
    carried: Mapping[str, str] | None = None


Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""

Decider = Callable[[Timeline], Decided | None]
"""Takes the timeline; returns what is decided, None if nothing is to be done."""


def unless_changed(table: Table, work: Callable[[], T]) -> T:
    """Do a part of a service, and again where others changed the table from under it.

    Another process may finish the same plan, and a clean take the old files away, while this one
    reads them by an older timeline. Files that are missing are lost, or behind the retention, only
    if the timeline has stayed the same since.

    Parameters
    ----------
    table : Table
        The table.
    work : callable
        Begins with the timeline as it is then; may be done twice.

    Raises
    ------
    CorruptFileError, NotFoundError, TimelineError
        A file is missing, or damaged, and no instant has come or gone meanwhile; or what is asked
        for cannot be done.
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
    """Where and how the services of a table run.

    Parameters
    ----------
    options : WriteOptions
        Of a writer of the table; they say how a service lives beside others too.
    storage : Storage
        Rooted at the table's base path.
    clock : Clock
        Where times come from.
    ids : IdSource
        Where the identity of an attempt comes from.
    pauses : Pauses
        Waits for the lock, where there are several writers.
    progress : callable, optional
        Is told of a plan that is carried out how many of its parts are done, and of how many.
    is_dry : bool
        Whether nothing is done, but what would be is said.
    """

    options: WriteOptions
    storage: Storage
    clock: Clock
    ids: IdSource
    pauses: Pauses = field(default_factory=RandomPauses)
    progress: Progress | None = None
    is_dry: bool = False

    def following(self, parts: Sequence[T]) -> Iterator[T]:
        """Yield parts of a plan, and tell of each that is done."""
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
        """Return the table, fit to be changed: without its metadata table, if the options agree.

        Parameters
        ----------
        to_be_dropped : bool
            Whether the caller drops the metadata table itself, later.
        ends : callable
            Whether the service ends a pending instant of another engine, which is dead then.

        Raises
        ------
        TableNotFoundError
            There is none.
        UnsupportedTableError
            This release does not change such tables.
        OptionError
            An option contradicts the table.
        WriteConflictError
            Another engine may be at work with the metadata table.
        """
        table = open_table(self.storage)
        table.properties.check_writable()
        check_same(self.options, table.properties)
        if table.properties.metadata_partitions and self.options.metadata_enable is not False:
            raise UnsupportedTableError(
                f"table {table.properties.name!r} has {described(table)}; this release cannot keep "
                "it up to date: do so with hoodie.metadata.enable = false, which drops it as Hudi "
                "does"
            )
        if table.properties.metadata_partitions and not (to_be_dropped or self.is_dry):
            timeout_ms = self.options.concurrency.heartbeat_timeout_ms
            table = switch_metadata_table_off(table, self.clock, timeout_ms, ends)
        return table

    def followers(self, table: Table) -> tuple[Follower, ...]:
        """Return what follows the table; see `hoodie_ds.sync.followers.followers`."""
        return followers(table, self.options, self.clock, self.ids)

    def action(self, table: Table, action: Action, operation_type: str) -> PendingAction:
        """Return an action of a service, which has neither time nor plan yet.

        Parameters
        ----------
        table : Table
            The table.
        action : Action
            What is done to it.
        operation_type : str
            Hudi's name for that, such as ``COMPACT``.
        """
        attempt = self.ids.unique()
        concurrency = self.options.concurrency
        return PendingAction(
            table=table,
            timeline=table.load_timeline(),
            action=action,
            operation_type=operation_type,
            proposed_time="",
            attempt=attempt,
            owner=owner_text("", attempt, concurrency.is_shared),
            concurrency=concurrency,
        )

    def schedule(self, pending: PendingAction, plan: Planner) -> Instant | None:
        """Put the plan of a service on the timeline, if there is anything to do.

        The plan is made under the lock, after the newest decision, and is an entry of the decision
        log itself: a scheduler that was stopped cannot bring a plan that others do not know of.

        Parameters
        ----------
        pending : PendingAction
            From `action`.
        plan : Planner
            Is called again where others decided something meanwhile.

        Returns
        -------
        Instant or None
            The requested instant; None if nothing is due.

        Raises
        ------
        TimelineError
            A restore is pending.
        UnsupportedTableError
            The table was upgraded meanwhile.
        LockTimeoutError
            Others held the table's lock all the time.
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
                    body = unless_changed(table, partial(_planned, plan, table, time))
                    if body is None:
                        return None
                    exclusion.pending = replace(pending, proposed_time=time, plan=body)
                    instant = table.instant(time, pending.action, State.REQUESTED)
                    if exclusion.schedule(instant):
                        return instant
                finally:
                    delete_temporary(storage, time)

    def look(self, table: Table) -> Timeline:
        """Return the timeline with all that was decided, and refuse while a restore is pending.

        Parameters
        ----------
        table : Table
            The table.

        Raises
        ------
        TimelineError
            A restore is pending.
        """
        _, timeline = apply_pending(table, self.clock)
        refuse_restore(table.storage.root, timeline)
        return table.load_timeline() if drop_dead_plans(table, timeline) else timeline

    def decide(self, table: Table, action: Action, decide: Decider) -> Timeline:
        """Append a decision about instants that are there, and apply it.

        Parameters
        ----------
        table : Table
            The table.
        action : Action
            What is done to it.
        decide : Decider
            Is called again where others decided something meanwhile.

        Returns
        -------
        Timeline
            As it is afterwards.

        Raises
        ------
        TimelineError
            A restore is pending.
        UnsupportedTableError
            The table was upgraded meanwhile.
        LockTimeoutError
            Others held the table's lock all the time.
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
        """Take an instant time later than all others, which no other action gets.

        Parameters
        ----------
        table : Table
            The table.
        timeline : Timeline
            As it is now.
        """
        return self._claim_time(self.action(table, Action.RESTORE, ""), timeline)

    def next_time(self, table: Table, timeline: Timeline) -> str:
        """Return an instant time later than all others, which nobody has taken yet.

        Parameters
        ----------
        table : Table
            The table.
        timeline : Timeline
            As it is now.
        """
        return next_time(
            self.clock.now_ms(), table.properties.timeline_in_utc, timeline.latest_time
        )

    def _claim_time(self, pending: PendingAction, timeline: Timeline) -> str:
        """Take an instant time later than all others, which no other action gets."""
        storage, layout = pending.storage, pending.table.layout
        time = self.next_time(pending.table, timeline)
        # A claim is let go once its instant is on the timeline, so look there after it.
        while not claim(storage, time, pending.owner) or load_timeline(storage, layout).at(time):
            time = following(time)
        return time
