"""The clustering of a table: planned, carried out, completed.

1. Schedule: the plan goes on the timeline by a decision of the log. From then on nobody writes to
   its file groups.
2. Execute: each group of the plan leaves new base files and a result, which says of which committed
   files they are made. Any number of processes may share the groups; what a killed one has done is
   kept.
3. Complete: whoever finds a result for all that is committed puts the manifest, decides, and puts
   the completed file, a replacement of the old file groups.

Every step can be killed and done again, by any process, and plans of other engines are carried out
like our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Final

from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    NotFoundError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.services.clustering.executor import ClusteringExecutor, read_result
from hoodie_ds.services.clustering.inputs import PlanInputs
from hoodie_ds.services.clustering.planner import ClusteringPlanner, check_no_buckets
from hoodie_ds.services.context import ServiceContext, unless_changed
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.table.table_schema import table_schema
from hoodie_ds.timeline.clustering_plan import CLUSTER, ClusteringPlan
from hoodie_ds.timeline.commit_metadata import (
    CHECKSUMS_KEY,
    DECISION_KEY,
    SCHEMA_KEY,
    CommitMetadata,
    WriteStat,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import clustered_path, instant_path, manifest_path
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore
from hoodie_ds.timeline.timeline import Timeline, load_timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.exclusive_commit import Exclusion, excluding, finish, sum_up
from hoodie_ds.transaction.pending_action import PendingAction

_ROUNDS: Final = 5
"""How often groups are rewritten anew that others change while they are."""
_BUCKETS: Final = "ConsistentBucket"


@dataclass(frozen=True, slots=True)
class Clustering:
    """A clustering that was carried out, or would be.

    Parameters
    ----------
    instant_time : str or None
        Its instant; None if it is not planned yet.
    plan : ClusteringPlan
        What it rewrites.
    """

    instant_time: str | None
    plan: ClusteringPlan


@dataclass(frozen=True)
class Clusterer:
    """Clusters one table.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    """

    context: ServiceContext

    @cached_property
    def table(self) -> Table:
        """The table, fit to be changed."""
        return self.context.open_table()

    @property
    def pending(self) -> tuple[Clustering, ...]:
        """Clusterings that are planned and not complete, whichever engine planned them."""
        timeline = load_timeline(self.table.storage)
        planned = (i for i in timeline.pending if i.action is Action.REPLACE_COMMIT)
        found = ((instant.time, self._plan_of(instant)) for instant in planned)
        return tuple(Clustering(time, plan) for time, plan in found if plan is not None)

    def cluster(self, dry: bool = False) -> tuple[Clustering, ...]:
        """Carry out what is planned, and then what there is to plan.

        Parameters
        ----------
        dry : bool
            Whether only to say what would be done.

        Raises
        ------
        HoodieError
            See `run` and `schedule`.
        """
        if not dry:
            self.context.look(self.table)  # a plan may be decided and not on the timeline yet
        done = list(self.pending)
        if dry:
            plan = unless_changed(self.table.storage, self._preview)
            return (*done, Clustering(None, plan)) if plan else tuple(done)
        for clustering in done:
            self.run(clustering)
        scheduled = self.schedule()
        if scheduled is not None:
            self.run(scheduled)
            done.append(scheduled)
        return tuple(done)

    def _preview(self) -> ClusteringPlan | None:
        timeline = load_timeline(self.table.storage)
        refuse_restore(self.table.storage.root, timeline)
        return self._planner.plan(timeline)

    def schedule(self) -> Clustering | None:
        """Plan a clustering, if there is anything to cluster.

        Raises
        ------
        HoodieError
            See `ServiceContext.schedule` and `ClusteringPlanner.plan`.
        """
        plans: list[ClusteringPlan] = []

        def body(timeline: Timeline, time: str) -> bytes | None:
            plan = self._planner.plan(timeline)
            if plan is None:
                return None
            plans.append(plan)
            return plan.to_bytes(self.table.storage.root)

        action = self.context.action(self.table, Action.REPLACE_COMMIT, CLUSTER)
        instant = self.context.schedule(action, body)
        return None if instant is None else Clustering(instant.time, plans[-1])

    def run(self, clustering: Clustering) -> None:
        """Carry out a pending clustering to its end, going on with what others have done.

        Parameters
        ----------
        clustering : Clustering
            One of `pending`.

        Raises
        ------
        UnsupportedTableError
            It is one of buckets.
        TimelineError
            It was rolled back, or a restore is pending.
        WriteConflictError
            Others changed its file groups again and again.
        HoodieError
            See `ClusteringExecutor.execute`.
        """
        pending = self._pending_action(clustering)
        self._check_supported(clustering, pending.timeline)
        for _ in range(_ROUNDS):
            unless_changed(pending.storage, partial(self._execute, pending, clustering.plan))
            with excluding(pending, self.context.clock, self.context.pauses) as exclusion:
                step = partial(self._try_to_complete, pending, clustering.plan, exclusion)
                while (done := unless_changed(pending.storage, step)) is None:
                    pass
            if done:
                return
        raise WriteConflictError(
            f"{self.table.storage.root}: others change the file groups of clustering "
            f"{clustering.instant_time} while they are rewritten; run it again"
        )

    @property
    def _planner(self) -> ClusteringPlanner:
        return ClusteringPlanner(self.table, self.context.options)

    def _plan_of(self, instant: Instant) -> ClusteringPlan | None:
        path = instant_path(instant.at(State.REQUESTED))
        with suppress(NotFoundError):
            return ClusteringPlan.from_bytes(self.table.storage.read(path), path)
        return None

    def _check_supported(self, clustering: Clustering, timeline: Timeline) -> None:
        plan = clustering.plan
        if _BUCKETS in plan.strategy_class or any(group.extra_metadata for group in plan.groups):
            raise UnsupportedTableError(
                f"{self.table.storage.root}: clustering {clustering.instant_time} splits or merges "
                f"buckets ({plan.strategy_class}); let the engine that planned it carry it out"
            )
        check_no_buckets(self.table, self.context.options, timeline)

    def _pending_action(self, clustering: Clustering) -> PendingAction:
        assert clustering.instant_time is not None
        action = self.context.action(self.table, Action.REPLACE_COMMIT, CLUSTER)
        return replace(action, proposed_time=clustering.instant_time)

    def _execute(self, pending: PendingAction, plan: ClusteringPlan) -> None:
        """Rewrite the groups that no result is there of."""
        storage, time = pending.storage, pending.proposed_time
        timeline = load_timeline(storage)
        if not timeline.is_pending(time) or timeline.starts_after(time):
            return  # others have completed it, or the attempt to complete it tells what became
        with suppress(AlreadyExistsError):
            storage.put_if_absent(instant_path(pending.inflight(time)), b"")
        inputs = PlanInputs(self._view(timeline), plan.groups)
        executor = ClusteringExecutor(
            self.context, self.table, time, plan, timeline, pending.attempt
        )
        for number in range(len(plan.groups)):
            executor.execute(number, inputs.of(number))

    def _view(self, timeline: Timeline) -> FileSystemView:
        verify = self.context.options.verify_checksums
        return FileSystemView(self.table.storage, timeline, verify)

    def _try_to_complete(
        self, pending: PendingAction, plan: ClusteringPlan, exclusion: Exclusion
    ) -> bool | None:
        """Check, put the manifest, decide and complete.

        Returns
        -------
        bool or None
            Whether it is complete; None if others decided something meanwhile: to be tried again.
        """
        storage, time = pending.storage, pending.proposed_time
        timeline = exclusion.apply_pending(load_timeline(storage))
        if timeline.is_committed(time):
            return True
        refuse_restore(storage.root, timeline)
        check_unchanged(pending.table)
        self._check_not_undone(pending, timeline)
        inputs = PlanInputs(self._view(timeline), plan.groups)
        results = self._results(inputs, time, len(plan.groups))
        if results is None:
            return False
        stats = tuple(chain.from_iterable(result.stats for result in results))
        _delete_others(inputs, time, stats)
        body = self._manifest(timeline, time, plan, results)
        instant = pending.inflight(time)
        if not exclusion.append(Outcome.COMPLETE, instant):
            return None
        finish(storage, instant, body)
        sum_up(storage, load_timeline(storage))
        return True

    def _check_not_undone(self, pending: PendingAction, timeline: Timeline) -> None:
        """Refuse one that has ended, also if somebody late has begun on it again since."""
        storage, time = pending.storage, pending.proposed_time
        planned = self._plan_of(pending.inflight(time)) is not None
        past = timeline.starts_after(time)
        if not planned or past or is_undone(storage, timeline, time):
            raise TimelineError(
                f"{storage.root}: clustering {time} was rolled back, or completed and archived, "
                "while it was carried out here; nothing is left to be done of it"
            )

    def _results(self, inputs: PlanInputs, time: str, count: int) -> list[CommitMetadata] | None:
        """Results of all groups, as they are now; None if one is missing, or a file of one."""
        sizes = {status.path: status.size for status in inputs.files}
        found = []
        for number in range(count):
            path = clustered_path(time, number, inputs.of(number).digest)
            result = read_result(self.table.storage, path)
            if result is None or any(sizes.get(s.path) != s.file_size_bytes for s in result.stats):
                self.table.storage.delete(path)
                return None
            found.append(result)
        return found

    def _manifest(
        self,
        timeline: Timeline,
        time: str,
        plan: ClusteringPlan,
        results: Iterable[CommitMetadata],
    ) -> bytes:
        """Put the manifest; the first one counts, so that all who complete put the same file."""
        storage, properties = self.table.storage, self.table.properties
        columns = table_schema(self.table, timeline)
        assert columns is not None, time
        stats = tuple(sorted(chain(*(r.stats for r in results)), key=lambda stat: stat.path))
        checksums = {path: text for result in results for path, text in result.checksums.items()}
        extra = {
            SCHEMA_KEY: arrow_to_avro(columns, properties.name),
            CHECKSUMS_KEY: json.dumps(checksums, sort_keys=True),
            DECISION_KEY: "",
        }
        commit = CommitMetadata(stats, CLUSTER, extra, _replaced(plan))
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


def _replaced(plan: ClusteringPlan) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for one in chain.from_iterable(group.slices for group in plan.groups):
        found.setdefault(one.partition_path, []).append(one.file_id)
    return {partition: tuple(ids) for partition, ids in found.items()}


def _delete_others(inputs: PlanInputs, time: str, stats: Iterable[WriteStat]) -> None:
    """Delete base files that came to nothing: engines that list folders would read them too.

    Another engine may keep its markers where they are not found by.
    """
    counted = {stat.path for stat in stats}
    for status in inputs.files:
        name = BaseFileName.parse(status.path.rpartition("/")[2])
        if name is not None and name.instant_time == time and status.path not in counted:
            inputs.storage.delete(status.path)
