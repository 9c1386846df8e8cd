"""The plan of a clustering: which file slices are rewritten together, and in which order of rows.

Part of the body of ``<time>.replacecommit.requested`` (Hudi tech spec, ``HoodieClusteringPlan``),
whose schema `hoodie_ds.timeline.bodies.replace_plan` has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.hints import COPY
from hoodie_ds.timeline.bodies.replace_plan import PLAN_SCHEMA
from hoodie_ds.timeline.paths import in_partition

CLUSTER: Final = "CLUSTER"
"""Hudi's name of the operation."""

STRATEGY_CLASS: Final = (
    "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
)
"""Java class by which Hudi on Spark carries our plans out."""


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """A file slice that is to be rewritten (Hudi's ``HoodieSliceInfo``).

    Names of its base file, empty if it has none, and log files, the newest first, as in Hudi's
    plans.
    """

    partition_path: str
    file_id: str
    base_file: str
    log_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices of one partition whose rows are rewritten together (Hudi's ``HoodieClusteringGroup``).

    `num_output_groups` is the approximate number of new file groups; `metrics` are sizes, by Hudi's
    names. Other strategies use `extra_metadata`, such as bucket resizing for its buckets.
    """

    slices: tuple[ClusteringSlice, ...]
    num_output_groups: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class ClusteringPlan:
    """What a clustering is to do (Hudi's ``HoodieClusteringPlan``).

    Parameters
    ----------
    groups : tuple of ClusteringGroup
        Each is rewritten by itself.
    strategy_class : str
        Java class of the execution strategy.
    strategy_params : mapping of str to str
        Options of Hudi that the rewriting has to obey, the sort columns among them.
    missing_partitions : tuple of str
        Partitions with file groups that were left for a later plan.
    """

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str = STRATEGY_CLASS
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    missing_partitions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        slices = sum(len(group.slices) for group in self.groups)
        return f"<ClusteringPlan: {slices} file groups in {len(self.groups)} groups>"

    def to_bytes(self, root: str) -> bytes:
        """Return the requested file's content.

        Parameters
        ----------
        root : str
            The table's base path: the plan has absolute paths.
        """
        strategy = {
            "strategyClassName": self.strategy_class,
            "strategyParams": dict(self.strategy_params),
            "version": 1,
        }
        plan = {
            "inputGroups": [_group_record(group, _uri(root)) for group in self.groups],
            "strategy": strategy,
            "extraMetadata": {},
            "version": 1,
            "preserveHoodieMetadata": True,
            "missingSchedulePartitions": list(self.missing_partitions),
        }
        body = {"operationType": CLUSTER, "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
        return write_record(PLAN_SCHEMA, body)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> ClusteringPlan | None:
        """Read a requested file of any engine; None for another replacement.

        Raises
        ------
        CorruptFileError
            The bytes are no plan; names `path`.
        """
        plan = read_record(data, path).get("clusteringPlan") if data else None
        if plan is None:
            return None
        try:
            strategy = plan.get("strategy") or {}
            return cls(
                tuple(map(_group, plan.get("inputGroups") or ())),
                strategy.get("strategyClassName") or "",
                strategy.get("strategyParams") or {},
                tuple(map(str, plan.get("missingSchedulePartitions") or ())),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise CorruptFileError(
                f"{path} is not the plan of a clustering: {error!r}",
                COPY,
            ) from error


def clustered_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """Return the partition paths and file ids of the file slices that a clustering plan names.

    Empty for a replacement without clustering.
    """
    plan = ClusteringPlan.from_bytes(data, path)
    groups = () if plan is None else plan.groups
    return frozenset((one.partition_path, one.file_id) for g in groups for one in g.slices)


def _uri(root: str) -> str:
    return root if "://" in root else f"file:{root}"


def _group_record(group: ClusteringGroup, root: str) -> dict[str, Any]:
    slices = [
        {
            "dataFilePath": _path(root, one, one.base_file) if one.base_file else "",
            "deltaFilePaths": [_path(root, one, name) for name in one.log_files],
            "fileId": one.file_id,
            "partitionPath": one.partition_path,
            "bootstrapFilePath": "",
            "version": 1,
        }
        for one in group.slices
    ]
    return {
        "slices": slices,
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.num_output_groups,
        "extraMetadata": dict(group.extra_metadata) or None,
        "version": 1,
    }


def _path(root: str, one: ClusteringSlice, name: str) -> str:
    return f"{root}/{in_partition(one.partition_path, name)}"


def _group(record: Mapping[str, Any]) -> ClusteringGroup:
    return ClusteringGroup(
        tuple(map(_slice, record["slices"] or ())),
        int(record.get("numOutputFileGroups") or 1),
        record.get("metrics") or {},
        record.get("extraMetadata") or {},
    )


def _slice(record: Mapping[str, Any]) -> ClusteringSlice:
    return ClusteringSlice(
        record["partitionPath"] or "",
        str(record["fileId"]),
        _name(record.get("dataFilePath") or ""),
        tuple(map(_name, record.get("deltaFilePaths") or ())),
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
