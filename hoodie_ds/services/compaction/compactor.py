"""Compaction of a merge-on-read table: once it is planned, log files are named after the plan.

It completes only with all that was committed to its file slices before the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import ClassVar

from hoodie_ds.config.enums import TableType
from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import CorruptFileError, NotFoundError, UnsupportedTableError
from hoodie_ds.hints import COPY
from hoodie_ds.record.merge.hook_merger import merger_of
from hoodie_ds.services.compaction.executor import CompactionExecutor
from hoodie_ds.services.compaction.planned_slices import PlannedSlices
from hoodie_ds.services.compaction.planner import CompactionPlanner, holding_back
from hoodie_ds.services.compaction.result import checked_results
from hoodie_ds.services.planned_service import PlannedService, Rewritten
from hoodie_ds.services.results import Compaction, ServiceResult
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.planned_services import plan_of
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.compaction_plan import CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollbacks import is_dead_compaction
from hoodie_ds.timeline.timeline import Timeline


class Compactor(PlannedService[CompactionPlan]):
    """Compacts one table."""

    service: ClassVar[Service] = Service.COMPACTION
    operation_type: ClassVar[str] = "COMPACT"

    @property
    def action(self) -> Action:
        """A compaction, in every layout."""
        return Action.COMPACTION

    @cached_property
    def table(self) -> Table:
        """The table: merge-on-read, and with a merge hook if it needs one."""
        table = self.context.open_table()
        if table.properties.table_type is not TableType.MERGE_ON_READ:
            raise UnsupportedTableError(
                f"table {table.properties.name!r} is {table.properties.table_type.value}; only "
                f"{TableType.MERGE_ON_READ.value} tables are compacted"
            )
        merger_of(table.properties, self.context.options.merge_hook)
        return table

    def compact(self, dry: bool = False, only_if_due: bool = False) -> ServiceResult[Compaction]:
        """Carry out the pending compactions, then a new one.

        With `only_if_due` nothing is planned before the trigger asks for it.
        """
        done = self.run_all(Compaction, partial(self._plan, only_if_due), dry)
        if done or only_if_due:
            return done
        return replace(done, reason=self._reason())

    def _reason(self) -> str:
        """Why nothing is planned, if a pending write is in the way; empty otherwise."""
        for write in holding_back(self.table, self.table.load_timeline()):
            undo = self.table.command("rollback", write.time)
            pending = f"{write.action.value} {write.time} is pending"
            return f"as {pending}: if its writer is dead, {undo} undoes it"
        return ""

    def preview(self, only_if_due: bool = False) -> CompactionPlan | None:
        """Return the plan that `schedule` would make; changes nothing."""
        return self.preview_by(partial(self._plan, only_if_due))

    def schedule(self, only_if_due: bool = False) -> Instant | None:
        """Plan a compaction, if there is anything to compact; return the requested instant."""
        scheduled = self.schedule_by(partial(self._plan, only_if_due))
        return None if scheduled is None else scheduled[0]

    def run(self, instant: Instant) -> None:
        """Carry out a pending compaction to its end; see `carry_out`."""
        self.carry_out(instant, self.plan_of(instant))

    def plan_of(self, instant: Instant) -> CompactionPlan:
        """Return the plan of a pending compaction. Raises `CorruptFileError` if it is missing."""
        try:
            return plan_of(self.storage, instant, CompactionPlan.from_bytes)
        except NotFoundError as error:
            path = instant_path(instant.at(State.REQUESTED))
            raise CorruptFileError(f"{path} is missing", COPY) from error

    def planned(self, timeline: Timeline) -> Iterator[tuple[Instant, CompactionPlan]]:
        """Iterate over the pending compactions on a timeline."""
        return ((instant, self.plan_of(instant)) for instant in timeline.pending_compactions)

    def new_files(self, plan: CompactionPlan) -> int:
        """Return how many base files a plan creates."""
        return len(plan.operations)

    def is_dead(self, timeline: Timeline, instant: Instant) -> bool:
        """Whether an instant has ended and is on the timeline again."""
        return is_dead_compaction(self.storage, timeline, instant)

    def encoded(self, plan: CompactionPlan) -> bytes:
        """Return the content of the requested file."""
        return plan.to_bytes()

    def rewrite(self, timeline: Timeline, instant: Instant, plan: CompactionPlan) -> None:
        """Merge the file slices that have no result yet."""
        executor = CompactionExecutor(self.context, self.table, instant.time, timeline)
        for operation in self.context.following(plan.operations):
            executor.execute(operation)

    def rewritten(
        self, timeline: Timeline, instant: Instant, plan: CompactionPlan
    ) -> Rewritten | None:
        """Return the new base files; None if a file slice is left to merge."""
        view = FileSystemView(self.storage, timeline, self.context.options.verify_checksums)
        results = checked_results(PlannedSlices(view, instant.time), plan)
        if results is None:
            return None
        return Rewritten(tuple(result.status for result in results if result.status is not None))

    def _plan(self, only_if_due: bool, timeline: Timeline, time: str) -> CompactionPlan | None:
        planner = CompactionPlanner(self.table, self.context.options)
        if only_if_due and not planner.is_due(timeline, time):
            return None
        return planner.plan(timeline)
