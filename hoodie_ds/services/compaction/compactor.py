"""The compaction of a merge-on-read table: planned, carried out, completed.

1. Schedule: the plan goes on the timeline by a decision of the log. From then on log files of its
   file groups are named after it.
2. Execute: each operation leaves a base file and a result. Any number of processes may share the
   operations; what a killed one has done is kept.
3. Complete: whoever finds all results looks whether they hold all that was committed before the
   plan, puts the manifest, decides, and puts the completed file.

Every step can be killed and done again, by any process, and plans of other engines are carried out
like our own.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from hoodie_ds.config.enums import TableType
from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    NotFoundError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.record.merge.hook_merger import merger_of
from hoodie_ds.services.compaction.executor import CompactionExecutor
from hoodie_ds.services.compaction.planned_slices import PlannedSlices
from hoodie_ds.services.compaction.planner import CompactionPlanner
from hoodie_ds.services.compaction.result import CompactionResult, checked_results
from hoodie_ds.services.context import ServiceContext, unless_changed
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.table.table_schema import table_schema
from hoodie_ds.timeline.commit_metadata import (
    CHECKSUMS_KEY,
    DECISION_KEY,
    SCHEMA_KEY,
    CommitMetadata,
)
from hoodie_ds.timeline.compaction_plan import CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.paths import instant_path, manifest_path
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline, load_timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.exclusive_commit import Exclusion, excluding, finish, sum_up
from hoodie_ds.transaction.pending_action import PendingAction

_OPERATION: Final = "COMPACT"
_ROUNDS: Final = 5
"""How often file groups are merged anew that others change while they are."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that was carried out, or would be.

    Parameters
    ----------
    instant_time : str or None
        Its instant; None if it is not planned yet.
    plan : CompactionPlan
        What it merges.
    """

    instant_time: str | None
    plan: CompactionPlan


@dataclass(frozen=True)
class Compactor:
    """Compacts one table.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    """

    context: ServiceContext

    @cached_property
    def table(self) -> Table:
        """The table.

        Raises
        ------
        UnsupportedTableError
            It has no log files: it is not a merge-on-read table.
        OptionError
            It needs a merge hook, and none is given.
        """
        table = self.context.open_table()
        if table.properties.table_type is not TableType.MERGE_ON_READ:
            raise UnsupportedTableError(
                f"table {table.properties.name!r} is {table.properties.table_type.value}; only "
                f"{TableType.MERGE_ON_READ.value} tables are compacted"
            )
        merger_of(table.properties, self.context.options.merge_hook)
        return table

    @property
    def pending(self) -> tuple[Instant, ...]:
        """Compactions that are planned and not complete, whichever engine planned them."""
        return load_timeline(self.table.storage).pending_compactions

    def compact(self, dry: bool = False, only_if_due: bool = False) -> tuple[Compaction, ...]:
        """Carry out what is planned, and then what there is to plan.

        Parameters
        ----------
        dry : bool
            Whether only to say what would be done.
        only_if_due : bool
            See `preview`.

        Raises
        ------
        HoodieError
            See `run` and `schedule`.
        """
        done = []
        # A plan that was decided is on the timeline once somebody has looked.
        pending = self.pending if dry else self.context.look(self.table).pending_compactions
        for instant in pending:
            done.append(Compaction(instant.time, self.plan_of(instant)))
            if not dry:
                self.run(instant)
        if dry:
            preview = partial(self.preview, only_if_due)
            plan = unless_changed(self.table.storage, preview)
            return (*done, Compaction(None, plan)) if plan else tuple(done)
        scheduled = self.schedule(only_if_due)
        if scheduled is not None:
            done.append(Compaction(scheduled.time, self.plan_of(scheduled)))
            self.run(scheduled)
        return tuple(done)

    def preview(self, only_if_due: bool = False) -> CompactionPlan | None:
        """Return the plan that `schedule` would make; changes nothing.

        Parameters
        ----------
        only_if_due : bool
            Whether there is to be none before the trigger asks for it.
        """
        timeline = load_timeline(self.table.storage)
        refuse_restore(self.table.storage.root, timeline)
        utc = self.table.properties.timeline_in_utc
        time = next_time(self.context.clock.now_ms(), utc, timeline.latest_time)
        return self._planned(timeline, time, only_if_due)

    def schedule(self, only_if_due: bool = False) -> Instant | None:
        """Plan a compaction, if there is anything to compact.

        Parameters
        ----------
        only_if_due : bool
            See `preview`.

        Returns
        -------
        Instant or None
            The requested instant.

        Raises
        ------
        HoodieError
            See `ServiceContext.schedule`.
        """

        def body(timeline: Timeline, time: str) -> bytes | None:
            plan = self._planned(timeline, time, only_if_due)
            return None if plan is None else plan.to_bytes()

        action = self.context.action(self.table, Action.COMPACTION, _OPERATION)
        return self.context.schedule(action, body)

    def plan_of(self, instant: Instant) -> CompactionPlan:
        """Return the plan of a pending compaction.

        Raises
        ------
        CorruptFileError
            It is missing, or damaged.
        """
        path = instant_path(instant.at(State.REQUESTED))
        try:
            return CompactionPlan.from_bytes(self.table.storage.read(path), path)
        except NotFoundError as error:
            raise CorruptFileError(f"{path} is missing; restore it from a copy") from error

    def run(self, instant: Instant) -> None:
        """Carry out a pending compaction to its end, going on with what others have done.

        Parameters
        ----------
        instant : Instant
            One of `pending`.

        Raises
        ------
        HoodieError
            See `execute` and `complete`.
        WriteConflictError
            Others changed its file groups again and again.
        """
        plan = self.plan_of(instant)
        for _ in range(_ROUNDS):
            self.execute(instant, plan)
            if self.complete(instant, plan):
                return
        raise WriteConflictError(
            f"{self.table.storage.root}: others change the file groups of compaction "
            f"{instant.time} while they are compacted; run it again"
        )

    def execute(self, instant: Instant, plan: CompactionPlan) -> None:
        """Merge the file slices of a plan, or of a part of it.

        Parameters
        ----------
        instant : Instant
            A pending compaction.
        plan : CompactionPlan
            Its plan, or another one with some of its operations.

        Raises
        ------
        CorruptFileError, TimelineError
            See `CompactionExecutor.execute`.
        """
        unless_changed(self.table.storage, partial(self._execute, instant, plan))

    def _execute(self, instant: Instant, plan: CompactionPlan) -> None:
        storage = self.table.storage
        timeline = load_timeline(storage)
        if not timeline.is_pending(instant.time):
            return  # others have completed it, or `complete` tells what became of it
        executor = CompactionExecutor(self.context, self.table, instant.time, timeline)
        for operation in plan.operations:
            executor.execute(operation)

    def complete(self, instant: Instant, plan: CompactionPlan) -> bool:
        """Complete a compaction of which all results are there.

        Parameters
        ----------
        instant : Instant
            A pending compaction.
        plan : CompactionPlan
            Its plan.

        Returns
        -------
        bool
            Whether it is complete; else there is something left to be merged.

        Raises
        ------
        TimelineError
            It was cancelled, or a restore is pending.
        UnsupportedTableError
            The table was upgraded meanwhile.
        LockTimeoutError
            Others held the table's lock all the time.
        CommitOutcomeUnknownError
            It could not be found out whether the commit took effect.
        """
        pending = self._pending_action(instant)
        with excluding(pending, self.context.clock, self.context.pauses) as exclusion:
            step = partial(self._try_to_complete, pending, plan, exclusion)
            while (done := unless_changed(pending.storage, step)) is None:
                pass
        return done

    def _planned(self, timeline: Timeline, time: str, only_if_due: bool) -> CompactionPlan | None:
        planner = CompactionPlanner(self.table, self.context.options)
        if only_if_due and not planner.is_due(timeline, time):
            return None
        return planner.plan(timeline)

    def _pending_action(self, instant: Instant) -> PendingAction:
        action = self.context.action(self.table, Action.COMPACTION, _OPERATION)
        return replace(action, proposed_time=instant.time)

    def _try_to_complete(
        self, pending: PendingAction, plan: CompactionPlan, exclusion: Exclusion
    ) -> bool | None:
        """Check, put the manifest, decide and complete; None if others decided meanwhile."""
        storage, time = pending.storage, pending.proposed_time
        timeline = exclusion.apply_pending(load_timeline(storage))
        if timeline.is_committed(time):
            return True
        refuse_restore(storage.root, timeline)
        check_unchanged(pending.table)
        if not timeline.is_pending(time):
            raise TimelineError(
                f"{storage.root}: compaction {time} was cancelled, or rolled back, while it was "
                "carried out; nothing of it is in the table"
            )
        view = FileSystemView(storage, timeline, self.context.options.verify_checksums)
        results = checked_results(PlannedSlices(view, time), plan)
        if results is None:
            return False
        instant = pending.inflight(time)
        with suppress(AlreadyExistsError):
            storage.put_if_absent(instant_path(instant), b"")
        body = self._manifest(timeline, time, results)
        if not exclusion.append(Outcome.COMPLETE, instant):
            return None
        finish(storage, instant, body)
        sum_up(storage, load_timeline(storage))
        return True

    def _manifest(self, timeline: Timeline, time: str, results: list[CompactionResult]) -> bytes:
        """Put the manifest; the first one counts, so that all who complete put the same file."""
        storage, properties = self.table.storage, self.table.properties
        columns = table_schema(self.table, timeline)
        assert columns is not None, time
        written = sorted(
            (result.status for result in results if result.status), key=lambda s: s.stat.path
        )
        checksums = {status.stat.path: status.checksum for status in written}
        extra = {
            SCHEMA_KEY: arrow_to_avro(columns, properties.name),
            CHECKSUMS_KEY: json.dumps(checksums, sort_keys=True),
            DECISION_KEY: "",
        }
        stats = tuple(status.stat for status in written)
        commit = CommitMetadata(stats, _OPERATION, extra, compacted=True)
        body, path = commit.to_bytes(), manifest_path(time)
        try:
            storage.put_if_absent(path, body)
        except AlreadyExistsError:
            with suppress(NotFoundError, CorruptFileError):
                first = storage.read(path)
                if CommitMetadata.from_bytes(first, path).stats == stats:
                    return first
            storage.replace(path, body)
        return body
