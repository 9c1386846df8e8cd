"""The result of the compaction of one file group: the new base file, and the files merged into it.

Each result is a small file, put if absent, so that the work of one plan can be shared: of several
processes that merge the same file group the first one counts, and results outlive the process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.services.compaction.planned_slices import PlannedSlices
from hoodie_ds.services.rewriting import delete_uncounted
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.paths import compacted_path


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of one operation of a plan."""

    status: WriteStatus | None = None  # None for a file group that is no longer part of the table
    # sizes of the committed files in it, by path
    merged: Mapping[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return what `from_bytes` reads."""
        status = self.status
        written = None if status is None else [status.stat.to_json(), status.checksums]
        return json.dumps({"written": written, "merged": dict(self.merged)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CompactionResult:
        """Read a result; raises `CorruptFileError` if it is not what `to_bytes` wrote."""
        try:
            body = json.loads(data)
            merged = {str(name): int(size) for name, size in body["merged"].items()}
            if body["written"] is None:
                return cls(None, merged)
            stat, checksums = body["written"]
            return cls(WriteStatus.of(WriteStat.from_json(stat), checksums), merged)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(
                f"{path} is not the result of a compaction ({error!r:.200})",
                "delete it, and the file group is compacted again",
            ) from error


def result_path(time: str, operation: CompactionOperation) -> str:
    """Path of the result of an operation of the compaction at a time."""
    return compacted_path(time, operation.partition_path, operation.file_id)


def read_result(
    storage: Storage, time: str, operation: CompactionOperation
) -> CompactionResult | None:
    """Return the result of an operation; None if there is none yet."""
    path = result_path(time, operation)
    with suppress(NotFoundError):
        return CompactionResult.from_bytes(storage.read(path), path)
    return None


def checked_results(planned: PlannedSlices, plan: CompactionPlan) -> list[CompactionResult] | None:
    """Return the results of a plan; None if file groups are left to merge.

    Results that do not hold all that was committed before the plan are deleted, and so are base
    files that are not to be committed.
    """
    by_partition: dict[str, list[CompactionOperation]] = {}
    for operation in plan.operations:
        by_partition.setdefault(operation.partition_path, []).append(operation)
    found = [_results(planned, path, some) for path, some in sorted(by_partition.items())]
    results = list(chain.from_iterable(found))
    return results if len(results) == len(plan.operations) else None


def _results(
    planned: PlannedSlices, partition: str, operations: Sequence[CompactionOperation]
) -> list[CompactionResult]:
    """Results of the completed operations in a partition."""
    storage, time = planned.view.storage, planned.time
    listed, slices = planned.listing(partition)
    sizes = {status.path: status.size for status in listed}
    results = []
    for operation in operations:
        result = read_result(storage, time, operation)
        slice_ = slices.get(FileGroupId(partition, operation.file_id))
        if result is None:
            continue
        if _is_written(result, sizes) and (slice_ is None or planned.is_all(slice_, result.merged)):
            results.append(result)
        else:
            storage.delete(result_path(time, operation))
    if len(results) == len(operations):
        stats = [result.status.stat for result in results if result.status is not None]
        delete_uncounted(storage, time, sizes, chain.from_iterable(stat.paths for stat in stats))
    return results


def _is_written(result: CompactionResult, sizes: Mapping[str, int]) -> bool:
    """Whether a result's files exist: another engine may have deleted them."""
    if result.status is None:
        return True
    stat = result.status.stat
    written = {stat.path: stat.file_size_bytes, **dict(stat.change_files)}
    return written.items() <= sizes.items()
