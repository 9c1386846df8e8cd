"""The body of ``<time>.compaction.requested`` and ``<time>.logcompaction.requested``: a plan.

It is Hudi's ``HoodieCompactionPlan`` (Hudi tech spec, "compaction"), an Avro container of one
record: for each file slice that is to be merged, its base file and its log files, by bare names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.hints import COPY

_TEXT: Final = {"type": "string", "avro.java.string": "String"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_TEXT_MAP: Final = {"type": "map", "values": _TEXT, "avro.java.string": "String"}
_VERSION: Final = {"name": "version", "type": ["int", "null"], "default": 1}
_PLAN_VERSION: Final = 2


def _optional(name: str, kind: object, doc: str = "") -> dict[str, object]:
    told = {"doc": doc} if doc else {}
    return {"name": name, "type": ["null", kind], **told, "default": None}


_OPERATION: Final = {
    "type": "record",
    "name": "HoodieCompactionOperation",
    "fields": [
        {"name": "baseInstantTime", "type": ["null", _TEXT]},
        _optional("deltaFilePaths", _TEXTS),
        _optional("dataFilePath", _TEXT),
        {"name": "fileId", "type": ["null", _TEXT]},
        _optional("partitionPath", _TEXT),
        _optional("metrics", {"type": "map", "values": "double", "avro.java.string": "String"}),
        _optional("bootstrapFilePath", _TEXT),
    ],
}
_STRATEGY: Final = {
    "type": "record",
    "name": "HoodieCompactionStrategy",
    "fields": [
        _optional(
            "compactorClassName",
            _TEXT,
            "The class name that is provided here should extend CompactionExecutionStrategy "
            "abstract class, idea is that the plan generator will also provide the execution "
            "strategy to use.",
        ),
        _optional(
            "strategyParams",
            _TEXT_MAP,
            "These parameters play a key role in determining which action type it is i.e. "
            "compaction or logcompaction and it will also include configs that determine how "
            "compaction needs to be executed.",
        ),
        _VERSION,
    ],
}
PLAN_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieCompactionPlan",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        _optional("operations", {"type": "array", "items": _OPERATION}),
        _optional("extraMetadata", _TEXT_MAP),
        _VERSION,
        _optional("strategy", _STRATEGY),
        {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
        _optional("missingSchedulePartitions", _TEXTS),
    ],
}
"""Schema of the file, as Apache Hudi 1.2 writes it."""


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """What is to be merged in one file group (Hudi's ``HoodieCompactionOperation``).

    The slice begins at `base_instant`; log files are in the order in which they are merged;
    `metrics` are sizes, by Hudi's names.
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class CompactionPlan:
    """What a compaction is to do (Hudi's ``HoodieCompactionPlan``).

    Parameters
    ----------
    operations : tuple of CompactionOperation
        One for each file group.
    missing_partitions : tuple of str
        Partitions with file groups that were left for a later plan.
    """

    operations: tuple[CompactionOperation, ...] = ()
    missing_partitions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        logs = sum(len(one.log_files) for one in self.operations)
        return f"<CompactionPlan: {len(self.operations)} file groups, {logs} log files>"

    def to_bytes(self) -> bytes:
        """Return the requested file's content."""
        operations = [
            {
                "baseInstantTime": one.base_instant,
                "deltaFilePaths": list(one.log_files),
                "dataFilePath": one.base_file,
                "fileId": one.file_id,
                "partitionPath": one.partition_path,
                "metrics": dict(one.metrics),
                "bootstrapFilePath": None,
            }
            for one in self.operations
        ]
        record = {
            "operations": operations,
            "extraMetadata": {},
            "version": _PLAN_VERSION,
            "strategy": None,
            "preserveHoodieMetadata": False,
            "missingSchedulePartitions": list(self.missing_partitions),
        }
        return write_record(PLAN_SCHEMA, record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CompactionPlan:
        """Read a requested file of any engine.

        Raises
        ------
        CorruptFileError
            The bytes are no such plan; names `path`.
        """
        plan = read_record(data, path)
        try:
            operations = tuple(map(_operation, plan["operations"] or ()))
            missing = plan.get("missingSchedulePartitions") or ()
            return cls(operations, tuple(map(str, missing)))
        except (KeyError, TypeError) as error:
            raise CorruptFileError(
                f"{path} is not the plan of a compaction: {error!r}",
                COPY,
            ) from error


def _operation(one: Mapping[str, Any]) -> CompactionOperation:
    base_file = one.get("dataFilePath")
    return CompactionOperation(
        one["partitionPath"] or "",
        str(one["fileId"]),
        str(one.get("baseInstantTime") or ""),
        _name(base_file) if base_file else None,
        tuple(map(_name, one.get("deltaFilePaths") or ())),
        one.get("metrics") or {},
    )


def _name(path: str) -> str:
    """The bare name: older writers put whole paths."""
    return str(path).rpartition("/")[2]


def compacted_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """Return the partition paths and file ids of the file slices that a plan names."""
    plan = CompactionPlan.from_bytes(data, path)
    return frozenset((one.partition_path, one.file_id) for one in plan.operations)
