"""Pending clusterings of buckets: other engines plan them, and none is carried out here."""

from __future__ import annotations

from typing import Final

from hoodie_ds.errors import NotFoundError
from hoodie_ds.index.choice import are_buckets, has_hashing_rings
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.planned_services import built_on, plan_of
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clustering_plan import ClusteringPlan
from hoodie_ds.timeline.instant import Instant

_SPLITTING: Final = "ConsistentBucket"


def obstacle_to(table: Table, clustering: Instant) -> str | None:
    """Say why a pending clustering cannot be carried out here, and what ends it; None if it can."""
    try:
        plan = plan_of(table.storage, clustering, ClusteringPlan.from_bytes)
    except NotFoundError:
        return None
    if plan is None:
        return None
    undo = f"give it up with {table.command('rollback', clustering.time)}"
    if _SPLITTING in plan.strategy_class or any(group.extra_metadata for group in plan.groups):
        log = built_on(table.storage, clustering)
        end = f", or {undo}" if log is None else f", as rows were written on top of it ({log})"
        return f"it splits or merges buckets; let Hudi execute it{end}"
    slices = (one for group in plan.groups for one in group.slices)
    groups = [FileGroupId(one.partition_path, one.file_id) for one in slices]
    if are_buckets(groups) or has_hashing_rings(table.storage):
        return f"it would move rows out of their buckets; {undo}"
    return None
