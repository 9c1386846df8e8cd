"""A table service that rewrites file groups by a plan: planned, carried out, completed.

1. Schedule: a decision of the log puts the plan on the timeline. From then on writers know which
   file groups will be rewritten.
2. Execute: each part of the plan creates base files and a result. Any number of processes may share
   the parts; results of a killed process are kept.
3. Complete: a process that finds all results, of all that is committed, puts the manifest, decides,
   and puts the completed file.

Every step can be interrupted and repeated, by any process, and plans of other engines are carried
out like our own.
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
from hoodie_ds.services.context import ServiceContext, retry_on_concurrent_change
from hoodie_ds.services.results import ServiceResult, Work, tell, work_of
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.live_files import forget_completed
from hoodie_ds.table.schema_on_read import LATEST_SCHEMA_KEY
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.table.table_schema import (
    avro_schema,
    column_history,
    numbered_columns,
    planned_columns,
    table_schema,
)
from hoodie_ds.timeline.bodies.commit_metadata import (
    CHECKSUMS_KEY,
    DECISION_KEY,
    SCHEMA_KEY,
    CommitMetadata,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_status import counts
from hoodie_ds.timeline.paths import instant_path, manifest_path
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.exclusive_commit import Exclusion, excluding, store_summaries
from hoodie_ds.transaction.open_instant import begin_plan

PlanT = TypeVar("PlanT")
T = TypeVar("T")

PlanMaker = Callable[[Timeline, str], PlanT | None]
"""Takes the timeline and the instant time of a plan; returns the plan, None if nothing is due."""

ROUNDS: Final = 5
"""Attempts at file groups that others keep changing."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The result of all file groups of a plan."""

    statuses: tuple[WriteStatus, ...]  # the new base files
    # ids of replaced file groups, by partition path
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedService(ABC, Generic[PlanT]):
    """A planned service of one table."""

    context: ServiceContext

    service: ClassVar[Service]
    """The service in results and the log."""
    operation_type: ClassVar[str]
    """Hudi's name of the operation, such as ``COMPACT``."""

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
        """The action of a pending plan on the timeline."""

    @abstractmethod
    def planned(self, timeline: Timeline) -> Iterator[tuple[Instant, PlanT]]:
        """Iterate over the pending plans on a timeline, whichever engine made them.

        Each is read when its turn comes: another process may have ended it while the one before was
        carried out.
        """

    @abstractmethod
    def encoded(self, plan: PlanT) -> bytes:
        """Return the content of the requested file."""

    @abstractmethod
    def rewrite(self, timeline: Timeline, instant: Instant, plan: PlanT) -> None:
        """Rewrite the parts that have no result yet."""

    @abstractmethod
    def rewritten(self, timeline: Timeline, instant: Instant, plan: PlanT) -> Rewritten | None:
        """Return the result of a plan; None if something is left to rewrite.

        That is also the case if a result does not hold all that is committed by now.
        """

    @abstractmethod
    def new_files(self, plan: PlanT) -> int:
        """Estimate how many base files a plan creates."""

    def is_open(self, timeline: Timeline, instant: Instant) -> bool:
        """Whether an instant is still to be carried out, as far as the timeline shows."""
        return timeline.is_pending(instant.time)

    def is_dead(self, timeline: Timeline, instant: Instant) -> bool:
        """Whether an instant has ended and is on the timeline again."""
        return is_undone(self.storage, timeline, instant.time)

    def carry_out_all(self, make: PlanMaker[PlanT], dry: bool) -> list[tuple[str | None, PlanT]]:
        """Carry out the pending plans, then a new one; a dry call changes nothing.

        Returns the plans with their instant times, None for that of a plan which is not on the
        timeline.
        """
        # `current_timeline` applies decisions, so that every decided plan is on the timeline.
        timeline = self.table.load_timeline() if dry else self.context.current_timeline(self.table)
        done: list[tuple[str | None, PlanT]] = []
        for instant, plan in self.planned(timeline):
            done.append((instant.time, plan))
            if not dry:
                self.carry_out(instant, plan)
        if dry:
            preview = retry_on_concurrent_change(self.table, partial(self.preview_by, make))
            return done if preview is None else [*done, (None, preview)]
        scheduled = self.schedule_by(make)
        if scheduled is not None:
            instant, plan = scheduled
            done.append((instant.time, plan))
            self.carry_out(instant, plan)
        return done

    def run_all(
        self, item: Callable[[str | None, PlanT], T], make: PlanMaker[PlanT], dry: bool
    ) -> ServiceResult[T]:
        """Carry out all plans and return the result, with what `item` makes of each."""
        started_ms = self.context.clock.now_ms()
        done = self.carry_out_all(make, dry)
        work = Work(sum(self.new_files(plan) for _, plan in done) if dry else 0)
        for time, _ in () if dry else done:
            work += work_of(self.table, str(time))
        took_ms = self.context.clock.now_ms() - started_ms
        items = tuple(item(time, plan) for time, plan in done)
        return ServiceResult(self.service, items, work, dry, took_ms)

    def preview_by(self, make: PlanMaker[PlanT]) -> PlanT | None:
        """Return the plan that `schedule_by` would make; changes nothing."""
        timeline = self.table.load_timeline()
        refuse_restore(self.storage.root, timeline)
        column_history(self.table, timeline)  # raises if it is not known
        return make(timeline, self.context.next_time(self.table, timeline))

    def schedule_by(self, make: PlanMaker[PlanT]) -> tuple[Instant, PlanT] | None:
        """Put a plan on the timeline, if there is anything to do.

        `make` is called again if others decided something meanwhile.
        """
        plans: list[PlanT] = []

        def body(timeline: Timeline, time: str) -> bytes | None:
            column_history(self.table, timeline)  # raises if it is not known
            plan = make(timeline, time)
            if plan is None:
                return None
            plans.append(plan)
            return self.encoded(plan)

        pending = self.context.action(self.table, self.action, self.operation_type)
        instant = self.context.schedule(pending, body)
        return None if instant is None else (instant, plans[-1])

    def carry_out(self, instant: Instant, plan: PlanT) -> None:
        """Carry out a plan to its end, continuing from what others have done.

        Raises `WriteConflictError` if others kept changing its file groups.
        """
        forget_completed(self.storage, instant)
        for _ in range(ROUNDS):
            self.execute(instant, plan)
            if self.complete(instant, plan):
                return
        raise WriteConflictError(
            f"{self.storage.root}: others change the file groups of {self._named(instant)} "
            "while they are rewritten; run it again"
        )

    def execute(self, instant: Instant, plan: PlanT) -> None:
        """Rewrite the file slices of a plan, or of a part of it."""
        retry_on_concurrent_change(self.table, partial(self._execute, instant, plan))

    def complete(self, instant: Instant, plan: PlanT) -> bool:
        """Complete an instant if all results are there; return whether it is complete.

        Raises `TimelineError` if it was rolled back or cancelled, or a restore is pending, and
        `CommitOutcomeUnknownError` if it is unknown whether the commit took effect.
        """
        action = self.context.action(self.table, self.action, self.operation_type)
        pending = replace(action, proposed_time=instant.time)
        with excluding(pending, self.context.clock, self.context.pauses) as exclusion:
            step = partial(self._try_to_complete, instant.at(State.INFLIGHT), plan, exclusion)
            while (done := retry_on_concurrent_change(self.table, step)) is None:
                pass
        return done

    def _execute(self, instant: Instant, plan: PlanT) -> None:
        timeline = self.table.load_timeline()
        if self.is_open(timeline, instant):  # else others have ended it: `complete` says how
            self.rewrite(timeline, instant, plan)

    def _try_to_complete(self, instant: Instant, plan: PlanT, exclusion: Exclusion) -> bool | None:
        """Check, put the manifest and complete; None if others decided something meanwhile."""
        timeline = exclusion.apply_pending(self.table.load_timeline())
        if counts(self.storage, timeline, instant.time):
            return True
        refuse_restore(self.storage.root, timeline)
        check_unchanged(self.table)
        self._check_not_undone(timeline, instant)
        found = self.rewritten(timeline, instant, plan)
        if found is None:
            return False
        begin_plan(self.storage, instant)
        manifest = self._put_manifest(timeline, instant, found)
        if exclusion.complete(instant, manifest) is None:
            return None
        store_summaries(self.storage, self.table.load_timeline())
        written = Work.of_files(status.stat for status in found.statuses)
        tell(self.storage.root, self.service, instant.time, written)
        return True

    def _check_not_undone(self, timeline: Timeline, instant: Instant) -> None:
        """Refuse an instant that has ended, also if a late process has begun it again since."""
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
        timeline = planned_columns(self.table, timeline, instant.time)
        columns = table_schema(self.table, timeline)
        numbered = numbered_columns(self.table, timeline)
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
                **({} if numbered is None else {LATEST_SCHEMA_KEY: str(numbered)}),
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
