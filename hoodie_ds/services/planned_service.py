"""A table service that rewrites file groups by a plan: planned, carried out, completed.

1. Schedule: the plan goes on the timeline by a decision of the log. From then on writers know what
   is going to be rewritten.
2. Execute: each part of the plan leaves base files and a result. Any number of processes may share
   the parts; what a killed one has done is kept.
3. Complete: whoever finds a result for all that is committed puts the manifest, decides, and puts
   the completed file.

Every step can be killed and done again, by any process, and plans of other engines are carried out
like our own.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar, Final, Generic, TypeVar

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    NotFoundError,
    TimelineError,
    WriteConflictError,
)
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.services.context import ServiceContext, unless_changed
from hoodie_ds.services.results import ServiceResult, Work, tell, work_of
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.table.table_schema import avro_schema, check_columns_have_names, table_schema
from hoodie_ds.timeline.bodies.commit_metadata import (
    CHECKSUMS_KEY,
    DECISION_KEY,
    SCHEMA_KEY,
    CommitMetadata,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path, manifest_path
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore
from hoodie_ds.timeline.standing import counts
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.exclusive_commit import Exclusion, excluding, sum_up
from hoodie_ds.transaction.open_instant import put_step

PlanT = TypeVar("PlanT")
T = TypeVar("T")

PlanMaker = Callable[[Timeline, str], PlanT | None]
"""Takes the timeline and the instant time of a plan; returns the plan, None if nothing is due."""

ROUNDS: Final = 5
"""How often file groups are rewritten anew that others change while they are."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of all file groups of a plan.

    Parameters
    ----------
    statuses : tuple of WriteStatus
        The new base files.
    replaced : mapping of str to tuple of str
        File ids that they take the place of, by partition path.
    """

    statuses: tuple[WriteStatus, ...]
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedService(ABC, Generic[PlanT]):
    """A service of one table.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    """

    context: ServiceContext

    service: ClassVar[Service]
    """As which it is told of."""
    operation_type: ClassVar[str]
    """Hudi's name of what is done, such as ``COMPACT``."""

    @cached_property
    def table(self) -> Table:
        """The table, fit to be changed."""
        return self.context.open_table()

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return self.table.storage

    @property
    @abstractmethod
    def action(self) -> Action:
        """What a plan is on the timeline while it is pending."""

    @abstractmethod
    def planned(self, timeline: Timeline) -> Iterator[tuple[Instant, PlanT]]:
        """Iterate over the plans that wait on a timeline, whichever engine made them.

        Each is read when its turn comes: others may have ended it while the one before was carried
        out.
        """

    @abstractmethod
    def encoded(self, plan: PlanT) -> bytes:
        """Return the content of the requested file."""

    @abstractmethod
    def rewrite(self, timeline: Timeline, instant: Instant, plan: PlanT) -> None:
        """Rewrite what no result is there of."""

    @abstractmethod
    def rewritten(self, timeline: Timeline, instant: Instant, plan: PlanT) -> Rewritten | None:
        """Return what became of a plan; None if something is left to be rewritten.

        That is so as well if a result does not hold all that is committed by now.
        """

    @abstractmethod
    def new_files(self, plan: PlanT) -> int:
        """Return about how many base files come of a plan."""

    def is_open(self, timeline: Timeline, instant: Instant) -> bool:
        """Whether an instant is still to be carried out, as far as the timeline tells."""
        return timeline.is_pending(instant.time)

    def is_dead(self, timeline: Timeline, instant: Instant) -> bool:
        """Whether an instant is on the timeline again that has ended."""
        return is_undone(self.storage, timeline, instant.time)

    def carry_out_all(self, make: PlanMaker[PlanT], dry: bool) -> list[tuple[str | None, PlanT]]:
        """Carry out what is planned, and then what there is to plan.

        Parameters
        ----------
        make : callable
            See `schedule_by`.
        dry : bool
            Whether only to say what would be done.

        Returns
        -------
        list of tuple of str or None and plan
            What was done, or would be, by instant time; None for that of what is not planned yet.
        """
        # A plan that was decided is on the timeline once somebody has looked.
        timeline = self.table.load_timeline() if dry else self.context.look(self.table)
        done: list[tuple[str | None, PlanT]] = []
        for instant, plan in self.planned(timeline):
            done.append((instant.time, plan))
            if not dry:
                self.carry_out(instant, plan)
        if dry:
            preview = unless_changed(self.table, partial(self.preview_by, make))
            return done if preview is None else [*done, (None, preview)]
        scheduled = self.schedule_by(make)
        if scheduled is not None:
            instant, plan = scheduled
            done.append((instant.time, plan))
            self.carry_out(instant, plan)
        return done

    def told(
        self, tell_of: Callable[[str | None, PlanT], T], make: PlanMaker[PlanT], dry: bool
    ) -> ServiceResult[T]:
        """Carry out all, and tell what was done.

        Parameters
        ----------
        tell_of : callable
            Takes the time of an instant and its plan; returns what the result is to hold of it.
        make, dry
            See `carry_out_all`.
        """
        started_ms = self.context.clock.now_ms()
        done = self.carry_out_all(make, dry)
        work = Work(sum(self.new_files(plan) for _, plan in done) if dry else 0)
        for time, _ in () if dry else done:
            work += work_of(self.table, str(time))
        took_ms = self.context.clock.now_ms() - started_ms
        told = tuple(tell_of(time, plan) for time, plan in done)
        return ServiceResult(self.service, told, work, dry, took_ms)

    def preview_by(self, make: PlanMaker[PlanT]) -> PlanT | None:
        """Return the plan that `schedule_by` would make; changes nothing.

        Parameters
        ----------
        make : callable
            See `schedule_by`.
        """
        timeline = self.table.load_timeline()
        refuse_restore(self.storage.root, timeline)
        check_columns_have_names(self.table, timeline, to_write=True)
        return make(timeline, self.context.next_time(self.table, timeline))

    def schedule_by(self, make: PlanMaker[PlanT]) -> tuple[Instant, PlanT] | None:
        """Put a plan on the timeline, if there is anything to do.

        Parameters
        ----------
        make : callable
            Makes it; is called again where others decided something meanwhile.

        Returns
        -------
        tuple of Instant and plan, or None
            The requested instant.

        Raises
        ------
        HoodieError
            See `ServiceContext.schedule`.
        """
        plans: list[PlanT] = []

        def body(timeline: Timeline, time: str) -> bytes | None:
            check_columns_have_names(self.table, timeline, to_write=True)
            plan = make(timeline, time)
            if plan is None:
                return None
            plans.append(plan)
            return self.encoded(plan)

        pending = self.context.action(self.table, self.action, self.operation_type)
        instant = self.context.schedule(pending, body)
        return None if instant is None else (instant, plans[-1])

    def carry_out(self, instant: Instant, plan: PlanT) -> None:
        """Carry out a plan to its end, going on with what others have done.

        Parameters
        ----------
        instant : Instant
            A pending one.
        plan : plan
            Its plan.

        Raises
        ------
        HoodieError
            See `execute` and `complete`.
        WriteConflictError
            Others changed its file groups again and again.
        """
        for _ in range(ROUNDS):
            self.execute(instant, plan)
            if self.complete(instant, plan):
                return
        raise WriteConflictError(
            f"{self.storage.root}: others change the file groups of {self._named(instant)} "
            "while they are rewritten; run it again"
        )

    def execute(self, instant: Instant, plan: PlanT) -> None:
        """Rewrite the file slices of a plan, or of a part of it.

        Parameters
        ----------
        instant : Instant
            A pending one.
        plan : plan
            Its plan, or a part of it.

        Raises
        ------
        HoodieError
            A file is missing or damaged, or the rows cannot be merged or sorted.
        """
        unless_changed(self.table, partial(self._execute, instant, plan))

    def complete(self, instant: Instant, plan: PlanT) -> bool:
        """Complete an instant of which all results are there.

        Parameters
        ----------
        instant : Instant
            A pending one.
        plan : plan
            Its plan.

        Returns
        -------
        bool
            Whether it is complete; else there is something left to be rewritten.

        Raises
        ------
        TimelineError
            It was rolled back or cancelled, or a restore is pending.
        UnsupportedTableError
            The table was upgraded meanwhile.
        LockTimeoutError
            Others held the table's lock all the time.
        CommitOutcomeUnknownError
            It could not be found out whether the commit took effect.
        """
        action = self.context.action(self.table, self.action, self.operation_type)
        pending = replace(action, proposed_time=instant.time)
        with excluding(pending, self.context.clock, self.context.pauses) as exclusion:
            step = partial(self._try_to_complete, instant.at(State.INFLIGHT), plan, exclusion)
            while (done := unless_changed(self.table, step)) is None:
                pass
        return done

    def begin(self, instant: Instant) -> None:
        """Say on the timeline that a plan is being carried out."""
        put_step(self.storage, instant, State.INFLIGHT)

    def _execute(self, instant: Instant, plan: PlanT) -> None:
        timeline = self.table.load_timeline()
        if self.is_open(timeline, instant):  # else others have ended it: `complete` tells how
            self.rewrite(timeline, instant, plan)

    def _try_to_complete(self, instant: Instant, plan: PlanT, exclusion: Exclusion) -> bool | None:
        """Check, put the manifest, decide and complete.

        Returns
        -------
        bool or None
            Whether it is complete; None if others decided something meanwhile: to be tried again.
        """
        timeline = exclusion.apply_pending(self.table.load_timeline())
        if counts(self.storage, timeline, instant.time):
            return True
        refuse_restore(self.storage.root, timeline)
        check_unchanged(self.table)
        self._check_not_undone(timeline, instant)
        found = self.rewritten(timeline, instant, plan)
        if found is None:
            return False
        self.begin(instant)
        manifest = self._put_manifest(timeline, instant, found)
        if exclusion.complete(instant, manifest) is None:
            return None
        sum_up(self.storage, self.table.load_timeline())
        written = Work.of_files(status.stat for status in found.statuses)
        tell(self.storage.root, self.service, instant.time, written)
        return True

    def _check_not_undone(self, timeline: Timeline, instant: Instant) -> None:
        """Refuse one that has ended, also if somebody late has begun on it again since."""
        is_open = self.is_open(timeline, instant) and self._is_requested(instant)
        if not is_open or self.is_dead(timeline, instant):
            raise TimelineError(
                f"{self.storage.root}: {self._named(instant)} was rolled back or cancelled, or "
                "completed and archived, while it was carried out here; nothing is left to be done "
                "of it"
            )

    def _named(self, instant: Instant) -> str:
        return f"{self.service.value} {instant.time}"

    def _is_requested(self, instant: Instant) -> bool:
        with suppress(NotFoundError):
            self.storage.read(instant_path(instant.at(State.REQUESTED)))
            return True
        return False

    def _put_manifest(self, timeline: Timeline, instant: Instant, found: Rewritten) -> bytes:
        """Put the manifest; the first one counts, so that all who complete put the same file."""
        columns = table_schema(self.table, timeline, to_write=True)
        assert columns is not None, instant
        statuses = sorted(found.statuses, key=lambda status: status.stat.path)
        checksums = {path: sum_ for status in statuses for path, sum_ in status.checksums.items()}
        commit = CommitMetadata(
            stats=tuple(status.stat for status in statuses),
            operation_type=self.operation_type,
            extra={
                SCHEMA_KEY: avro_schema(self.table, timeline, columns),
                CHECKSUMS_KEY: json.dumps(checksums),
                DECISION_KEY: "",
            },
            replaced=found.replaced,
            compacted=self.action is Action.COMPACTION,
        )
        body, path = commit.to_bytes(instant.layout), manifest_path(instant.time)
        try:
            self.storage.put_if_absent(path, body)
        except AlreadyExistsError:
            with suppress(NotFoundError, CorruptFileError):
                first = self.storage.read(path)
                if CommitMetadata.from_bytes(first, path).stats == commit.stats:
                    return first
            self.storage.replace(path, body)
        return body
