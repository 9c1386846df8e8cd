"""Bodies of clean instants, in the Avro schemas of Hudi's own classes.

``<time>.clean.requested`` is a ``HoodieCleanerPlan``, ``<time>.clean.inflight`` is empty, and
``<time>.clean`` is a ``HoodieCleanMetadata``; those are the schemas of Hudi 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.hints import COPY
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import HOODIE, in_partition, instant_path

SAVEPOINTS_KEY: Final = "savepointed_timestamps"
"""Key of the extra metadata of a clean: comma-separated times of the savepoints then."""

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_VERSION: Final = 2
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_STRINGS: Final = {"type": "array", "items": _STRING}
_EXTRA: Final = {
    "name": "extraMetadata",
    "type": [
        "null",
        {"type": "map", "values": _STRING, "avro.java.string": "String", "default": None},
    ],
    "default": None,
}


def _map(values: object) -> dict[str, object]:
    return {"type": "map", "values": values, "avro.java.string": "String"}


def _optional(name: str, kind: object, **more: str) -> dict[str, object]:
    return {"name": name, "type": ["null", kind], **more, "default": None}


_INSTANT: Final = {
    "type": "record",
    "name": "HoodieActionInstant",
    "fields": [{"name": name, "type": _STRING} for name in ("timestamp", "action", "state")],
}
_FILE: Final = {
    "type": "record",
    "name": "HoodieCleanFileInfo",
    "fields": [_optional("filePath", _STRING), _optional("isBootstrapBaseFile", "boolean")],
}
PLAN_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieCleanerPlan",
    "namespace": _NAMESPACE,
    "fields": [
        _optional("earliestInstantToRetain", _INSTANT),
        {"name": "lastCompletedCommitTimestamp", "type": _STRING, "default": ""},
        {"name": "policy", "type": _STRING},
        _optional("filesToBeDeletedPerPartition", _map(_STRINGS)),
        {"name": "version", "type": ["int", "null"], "default": 1},
        _optional(
            "filePathsToBeDeletedPerPartition",
            _map({"type": "array", "items": _FILE}),
            doc="This field replaces the field filesToBeDeletedPerPartition",
        ),
        _optional("partitionsToBeDeleted", _STRINGS, doc="partitions to be deleted"),
        _EXTRA,
    ],
}
"""Schema of ``<time>.clean.requested``."""

_PARTITION: Final = {
    "type": "record",
    "name": "HoodieCleanPartitionMetadata",
    "fields": [
        {"name": "partitionPath", "type": _STRING},
        {"name": "policy", "type": _STRING},
        {"name": "deletePathPatterns", "type": _STRINGS},
        {"name": "successDeleteFiles", "type": _STRINGS},
        {"name": "failedDeleteFiles", "type": _STRINGS},
        _optional("isPartitionDeleted", "boolean"),
    ],
}
METADATA_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieCleanMetadata",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "startCleanTime", "type": _STRING},
        {"name": "timeTakenInMillis", "type": "long"},
        {"name": "totalFilesDeleted", "type": "int"},
        {"name": "earliestCommitToRetain", "type": _STRING},
        {"name": "lastCompletedCommitTimestamp", "type": _STRING, "default": ""},
        {"name": "partitionMetadata", "type": _map(_PARTITION)},
        {"name": "version", "type": ["int", "null"], "default": 1},
        _optional(
            "bootstrapPartitionMetadata",
            {**_map("HoodieCleanPartitionMetadata"), "default": None},
        ),
        _EXTRA,
    ],
}
"""Schema of a completed ``<time>.clean``."""


@dataclass(frozen=True, slots=True, repr=False)
class CleanerPlan:
    """What a clean deletes (Hudi's ``HoodieCleanerPlan``).

    Parameters
    ----------
    policy : str
        Hudi's name of the rule by which files were chosen.
    earliest : Instant or None
        The oldest commit whose view of the table stays whole; None where versions are counted.
    last_completed : str
        Time of the newest commit that the planner saw; empty if there was none.
    files : mapping of str to tuple of str
        Names of the files to delete, by partition path.
    extra : mapping of str to str
        Extra metadata.
    sizes : mapping of str to int
        Sizes of the files by path, where the planner has seen them; no part of the plan on storage.
    """

    policy: str
    earliest: Instant | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        numbers = f"{len(self.paths)} files in {len(self.files)} partitions"
        return f"<CleanerPlan: {numbers}, {self.policy}>"

    @property
    def paths(self) -> tuple[str, ...]:
        """All files to delete, relative to the base path."""
        listed = self.files.items()
        return tuple(in_partition(partition, name) for partition, names in listed for name in names)

    @property
    def groups(self) -> frozenset[tuple[str, str]]:
        """Partition paths and file ids of the file groups that lose files."""
        return frozenset(
            (partition, name.removeprefix(".").partition("_")[0])
            for partition, names in self.files.items()
            for name in names
        )

    def to_bytes(self, root: str) -> bytes:
        """Return the body of the requested file; paths in it are absolute, as Hudi's are."""
        record: dict[str, object] = {
            "earliestInstantToRetain": None if self.earliest is None else _stated(self.earliest),
            "lastCompletedCommitTimestamp": self.last_completed,
            "policy": self.policy,
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": {
                partition: [
                    {
                        "filePath": f"{root}/{in_partition(partition, name)}",
                        "isBootstrapBaseFile": False,
                    }
                    for name in names
                ]
                for partition, names in self.files.items()
            },
            "partitionsToBeDeleted": [],
            "extraMetadata": dict(self.extra),
        }
        return write_record(PLAN_SCHEMA, record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CleanerPlan:
        """Read the body of a requested file, of this or of another engine.

        Base files of a bootstrap are left out: they are not the table's.

        Raises
        ------
        CorruptFileError
            The bytes are no such plan, or it names what is no file of a partition.
        """
        record = read_record(data, path)
        try:
            kept = record.get("earliestInstantToRetain")
            return cls(
                str(record["policy"]),
                None if kept is None else _instant(kept),
                str(record.get("lastCompletedCommitTimestamp") or ""),
                {str(partition): tuple(names) for partition, names in _files(record, path)},
                {str(k): str(v) for k, v in (record.get("extraMetadata") or {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptFileError(
                f"{path} is not the plan of a clean: {error!r}",
                COPY,
            ) from error

    def done(self, time: str, taken_ms: int) -> bytes:
        """Return the body of the completed file, once all files are gone.

        Parameters
        ----------
        time : str
            Instant time of the clean.
        taken_ms : int
            How long it took.
        """
        record = {
            "startCleanTime": time,
            "timeTakenInMillis": taken_ms,
            "totalFilesDeleted": len(self.paths),
            "earliestCommitToRetain": self.earliest.time if self.earliest else "",
            "lastCompletedCommitTimestamp": self.last_completed,
            "partitionMetadata": {
                partition: {
                    "partitionPath": partition,
                    "policy": self.policy,
                    "deletePathPatterns": list(names),
                    "successDeleteFiles": list(names),
                    "failedDeleteFiles": [],
                    "isPartitionDeleted": False,
                }
                for partition, names in self.files.items()
            },
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(self.extra),
        }
        return write_record(METADATA_SCHEMA, record)


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """What a completed clean says for later ones (Hudi's ``HoodieCleanMetadata``).

    `earliest` is the time of the oldest commit whose view of the table stayed whole, empty where
    versions were counted; `last_completed` that of the newest commit that the planner saw.
    """

    earliest: str
    last_completed: str
    savepoints: frozenset[str]
    paths: frozenset[str] = frozenset()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CleanMetadata:
        """Read the body of a completed file."""
        record = read_record(data, path)
        try:
            known = (record.get("extraMetadata") or {}).get(SAVEPOINTS_KEY) or ""
            return cls(
                str(record["earliestCommitToRetain"] or ""),
                str(record.get("lastCompletedCommitTimestamp") or ""),
                frozenset(known.split(",")) - {""},
                frozenset(_deleted(record)),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(f"{path} says nothing of a clean: {error!r}", COPY) from error


def read_plan(storage: Storage, clean: Instant) -> CleanerPlan:
    """Read what a clean deletes, or has deleted; `NotFoundError` if the clean was archived."""
    path = instant_path(clean.at(State.REQUESTED))
    return CleanerPlan.from_bytes(storage.read(path), path)


def _deleted(record: Mapping[str, Any]) -> Iterator[str]:
    """Paths of the files that a completed clean deleted; engines may name their folders too."""
    for partition, done in (record.get("partitionMetadata") or {}).items():
        for name in done["deletePathPatterns"]:
            yield in_partition(partition, str(name).rpartition("/")[2])


def _stated(instant: Instant) -> dict[str, str]:
    return {"timestamp": instant.time, "action": instant.action.value, "state": "COMPLETED"}


def _instant(record: Mapping[str, Any]) -> Instant:
    return Instant(str(record["timestamp"]), Action(record["action"]), State.COMPLETED)


def _files(record: Mapping[str, Any], path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield partition paths with file names, from either field that plans have had."""
    named = record.get("filePathsToBeDeletedPerPartition") or {}
    for partition, files in named.items():
        kept = (str(file["filePath"]) for file in files if not file["isBootstrapBaseFile"])
        yield partition, [_name(partition, file, path) for file in kept]
    if not named:
        for partition, files in (record.get("filesToBeDeletedPerPartition") or {}).items():
            yield partition, [_name(partition, str(file), path) for file in files]


def _name(partition: str, file: str, path: str) -> str:
    """Return the name of a file, which may come with its folder, and only with that one."""
    folder, _, name = file.rpartition("/")
    inside = not folder or folder == partition or folder.endswith(f"/{partition}".rstrip("/"))
    if not name or name in (".", "..") or not inside or partition.split("/")[0] == HOODIE:
        raise CorruptFileError(
            f"{path} is to delete {file!r}, which is no file of {partition!r}",
            COPY,
        )
    return name
