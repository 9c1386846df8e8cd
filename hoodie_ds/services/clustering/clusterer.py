"""Clustering of a table: once it is planned, no other action writes to its file groups.

It completes as a replace commit of the old file groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import ClassVar

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import NotFoundError, UnsupportedTableError
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.index.bucket_clustering import obstacle_to
from hoodie_ds.services.clustering.executor import ClusteringExecutor, read_result
from hoodie_ds.services.clustering.inputs import PlanInputs
from hoodie_ds.services.clustering.planner import ClusteringPlanner
from hoodie_ds.services.planned_service import PlannedService, Rewritten
from hoodie_ds.services.results import Clustering, ServiceResult
from hoodie_ds.services.rewriting import delete_uncounted
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.planned_services import plan_of
from hoodie_ds.timeline.bodies.clustering_plan import CLUSTER, ClusteringPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import LAYOUTS, clustered_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.open_instant import begin_plan


class Clusterer(PlannedService[ClusteringPlan]):
    """Clusters one table."""

    service: ClassVar[Service] = Service.CLUSTERING
    operation_type: ClassVar[str] = CLUSTER

    def cluster(self, dry: bool = False) -> ServiceResult[Clustering]:
        """Carry out the pending clusterings, then a new one."""
        return self.run_all(Clustering, self._plan, dry)

    def schedule(self) -> Clustering | None:
        """Plan a clustering, if there is anything to cluster."""
        scheduled = self.schedule_by(self._plan)
        return None if scheduled is None else Clustering(scheduled[0].time, scheduled[1])

    def run(self, clustering: Clustering) -> None:
        """Carry out a pending clustering to its end; see `carry_out`."""
        assert clustering.instant_time is not None
        instant = self.table.instant(clustering.instant_time, self.action, State.INFLIGHT)
        self.carry_out(instant, clustering.plan)

    @property
    def action(self) -> Action:
        """The action of a pending clustering in the table's layout."""
        return LAYOUTS[self.table.layout].clustering

    def planned(self, timeline: Timeline) -> Iterator[tuple[Instant, ClusteringPlan]]:
        """Iterate over the pending clusterings on a timeline; other replacements have no plan.

        Raises `UnsupportedTableError` at a clustering of buckets.
        """
        for instant in timeline.pending:
            plan = self._plan_of(instant) if instant.action is self.action else None
            if plan is None:
                continue
            if (obstacle := obstacle_to(self.table, instant)) is not None:
                raise UnsupportedTableError(
                    f"{self.storage.root}: clustering {instant.time} cannot be carried out here: "
                    f"{obstacle}"
                )
            yield instant, plan

    def new_files(self, plan: ClusteringPlan) -> int:
        """Estimate how many base files a plan creates."""
        return sum(group.num_output_groups for group in plan.groups)

    def encoded(self, plan: ClusteringPlan) -> bytes:
        """Return the content of the requested file."""
        return plan.to_bytes(self.storage.root)

    def is_open(self, timeline: Timeline, instant: Instant) -> bool:
        """Whether a clustering is still to be carried out: one older than all commits has ended."""
        return super().is_open(timeline, instant) and not timeline.starts_after(instant.time)

    def rewrite(self, timeline: Timeline, instant: Instant, plan: ClusteringPlan) -> None:
        """Rewrite the groups that have no result yet."""
        begin_plan(self.storage, instant)
        inputs = self._inputs(timeline, plan)
        executor = ClusteringExecutor(self.context, self.table, instant.time, plan, timeline)
        for number in self.context.following(range(len(plan.groups))):
            executor.execute(number, inputs.of(number))

    def rewritten(
        self, timeline: Timeline, instant: Instant, plan: ClusteringPlan
    ) -> Rewritten | None:
        """Return the new base files; None if a result is missing, or a file of one."""
        inputs = self._inputs(timeline, plan)
        sizes = {status.path: status.size for status in inputs.files}
        statuses: list[WriteStatus] = []
        for number in range(len(plan.groups)):
            path = clustered_path(instant.time, number, inputs.of(number).digest)
            result = read_result(self.storage, path)
            if result is None or any(sizes.get(s.path) != s.file_size_bytes for s in result.stats):
                self.storage.delete(path)
                return None
            statuses += (WriteStatus.of(stat, result.checksums) for stat in result.stats)
        counted = (status.stat.path for status in statuses)
        delete_uncounted(self.storage, instant.time, sizes, counted)
        return Rewritten(tuple(statuses), _replaced(plan))

    def _plan(self, timeline: Timeline, time: str) -> ClusteringPlan | None:
        return ClusteringPlanner(self.table, self.context.options).plan(timeline)

    def _plan_of(self, instant: Instant) -> ClusteringPlan | None:
        with suppress(NotFoundError):
            return plan_of(self.storage, instant, ClusteringPlan.from_bytes)
        return None

    def _inputs(self, timeline: Timeline, plan: ClusteringPlan) -> PlanInputs:
        verify = self.context.options.verify_checksums
        return PlanInputs(FileSystemView(self.storage, timeline, verify), plan.groups)


def _replaced(plan: ClusteringPlan) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for one in chain.from_iterable(group.slices for group in plan.groups):
        found.setdefault(one.partition_path, []).append(one.file_id)
    return {partition: tuple(ids) for partition, ids in found.items()}
