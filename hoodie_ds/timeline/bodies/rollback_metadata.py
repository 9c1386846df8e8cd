"""Bodies of rollback instants, in the Avro schemas of Hudi's own classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.hints import COPY
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import in_partition

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_SIZES: Final = ["null", {"type": "map", "values": "long", "avro.java.string": "String"}]
INSTANT_SCHEMA: Final = {
    "type": "record",
    "name": "HoodieInstantInfo",
    "fields": [{"name": "commitTime", "type": _STRING}, {"name": "action", "type": _STRING}],
}
"""Schema of the name of an instant in a plan."""

_REQUEST: Final = {
    "type": "record",
    "name": "HoodieRollbackRequest",
    "fields": [
        {"name": "partitionPath", "type": _STRING},
        {"name": "fileId", "type": ["null", _STRING], "default": None},
        {"name": "latestBaseInstant", "type": ["null", _STRING], "default": None},
        {
            "name": "filesToBeDeleted",
            "type": {"type": "array", "items": _STRING, "default": []},
            "default": [],
        },
        {"name": "logBlocksToBeDeleted", "type": _SIZES, "default": None},
    ],
}
PLAN_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieRollbackPlan",
    "namespace": _NAMESPACE,
    "fields": [
        {
            "name": "instantToRollback",
            "type": ["null", INSTANT_SCHEMA],
            "doc": "Hoodie instant that needs to be rolled back",
            "default": None,
        },
        {
            "name": "RollbackRequests",
            "type": ["null", {"type": "array", "items": _REQUEST}],
            "default": None,
        },
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}
"""Schema of ``<time>.rollback.requested``."""

_PARTITION: Final = {
    "type": "record",
    "name": "HoodieRollbackPartitionMetadata",
    "fields": [
        {"name": "partitionPath", "type": _STRING},
        {"name": "successDeleteFiles", "type": {"type": "array", "items": _STRING}},
        {"name": "failedDeleteFiles", "type": {"type": "array", "items": _STRING}},
        {"name": "rollbackLogFiles", "type": _SIZES, "default": None},
        {"name": "logFilesFromFailedCommit", "type": _SIZES, "default": None},
    ],
}
METADATA_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieRollbackMetadata",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "startRollbackTime", "type": _STRING},
        {"name": "timeTakenInMillis", "type": "long"},
        {"name": "totalFilesDeleted", "type": "int"},
        {"name": "commitsRollback", "type": {"type": "array", "items": _STRING}},
        {
            "name": "partitionMetadata",
            "type": {"type": "map", "values": _PARTITION, "avro.java.string": "String"},
        },
        {"name": "version", "type": ["int", "null"], "default": 1},
        {
            "name": "instantsRollback",
            "type": {"type": "array", "items": INSTANT_SCHEMA, "default": []},
            "default": [],
        },
    ],
}
"""Schema of a completed ``<time>.rollback``."""


@dataclass(frozen=True, slots=True)
class PartitionRollback:
    """What a rollback does in one partition, by paths relative to the base path.

    `mixed_logs` hold blocks of other instants too, so a rollback command is appended after them;
    `command_logs` hold those commands. Both have the files' sizes in bytes.
    """

    deleted: tuple[str, ...] = ()
    mixed_logs: Mapping[str, int] | None = None
    command_logs: Mapping[str, int] | None = None


def plan_to_bytes(
    root: str, instant: Instant, partitions: Mapping[str, PartitionRollback]
) -> bytes:
    """Write a rollback plan; paths in it are absolute, as Hudi's are.

    Another engine may execute it. Hudi ignores the log files of a request that names files to
    delete too, and puts its command into the slice that a request names.
    """
    requests = [
        request
        for partition, found in partitions.items()
        for request in (*_deletions(root, partition, found), *_commands(root, partition, found))
    ]
    record = {
        "instantToRollback": _info(instant),
        "RollbackRequests": requests,
        "version": 1,
    }
    return write_record(PLAN_SCHEMA, record)


def rolled_back_time(data: bytes, path: str) -> str:
    """Return the time of the instant that a rollback plan undoes."""
    return rolled_back(data, path)[0]


def rolled_back(data: bytes, path: str) -> tuple[str, str]:
    """Return time and action, by Hudi's name, of the instant that a rollback plan undoes."""
    record = read_record(data, path)
    try:
        target = record["instantToRollback"]
        return str(target["commitTime"]), str(target["action"])
    except (KeyError, TypeError) as error:
        raise CorruptFileError(
            f"{path} is no rollback plan: it names no instant",
            COPY,
        ) from error


def planned_files(data: bytes, path: str) -> dict[str, PartitionRollback]:
    """Return what a rollback plan is to delete and hide, by partition path."""
    record = read_record(data, path)
    deleted: dict[str, list[str]] = {}
    logs: dict[str, dict[str, int]] = {}
    try:
        for request in record["RollbackRequests"] or ():
            partition = str(request["partitionPath"])
            named = (_here(partition, file) for file in request["filesToBeDeleted"])
            deleted.setdefault(partition, []).extend(named)
            sizes = request["logBlocksToBeDeleted"] or {}
            for file, size in sizes.items():
                logs.setdefault(partition, {})[_here(partition, file)] = int(size)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(
            f"{path} is not the plan of a rollback: {error!r}",
            COPY,
        ) from error
    return {
        partition: PartitionRollback(tuple(files), logs.get(partition, {}))
        for partition, files in deleted.items()
    }


def done_files(data: bytes, path: str) -> PartitionRollback:
    """Return what a completed rollback has done, in all partitions together."""
    return done_in([read_record(data, path)], path)


def done_in(rollbacks: Iterable[Mapping[str, Any]], path: str) -> PartitionRollback:
    """Return what records of `METADATA_SCHEMA` say was done."""
    deleted: list[str] = []
    mixed: dict[str, int] = {}
    commands: dict[str, int] = {}
    try:
        for record in rollbacks:
            for partition, done in record["partitionMetadata"].items():
                deleted += (_here(partition, file) for file in done["successDeleteFiles"])
                for name, found in (
                    ("logFilesFromFailedCommit", mixed),
                    ("rollbackLogFiles", commands),
                ):
                    sizes = done.get(name) or {}
                    found.update((_here(partition, file), int(sizes[file])) for file in sizes)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"{path} says nothing of a rollback: {error!r}", COPY) from error
    return PartitionRollback(tuple(deleted), mixed, commands)


def _here(partition: str, file: object) -> str:
    """Path of a file by its name: tables are moved, and engines write paths in other ways."""
    return in_partition(partition, str(file).rpartition("/")[2])


def metadata_to_bytes(
    root: str,
    time: str,
    instant: Instant,
    partitions: Mapping[str, PartitionRollback],
    taken_ms: int,
) -> bytes:
    """Write what a rollback did."""
    return write_record(METADATA_SCHEMA, metadata_record(root, time, instant, partitions, taken_ms))


def metadata_record(
    root: str,
    time: str,
    instant: Instant,
    partitions: Mapping[str, PartitionRollback],
    taken_ms: int,
) -> dict[str, Any]:
    """Return what a rollback did as a record of `METADATA_SCHEMA`."""
    return {
        "startRollbackTime": time,
        "timeTakenInMillis": taken_ms,
        "totalFilesDeleted": sum(len(found.deleted) for found in partitions.values()),
        "commitsRollback": [instant.time],
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "successDeleteFiles": _absolute(root, found.deleted),
                "failedDeleteFiles": [],
                "rollbackLogFiles": _sized(root, found.command_logs),
                "logFilesFromFailedCommit": _sized(root, found.mixed_logs),
            }
            for partition, found in partitions.items()
        },
        "version": 1,
        "instantsRollback": [_info(instant)],
    }


def _deletions(root: str, partition: str, found: PartitionRollback) -> Iterator[dict[str, Any]]:
    """Yield a request for each file to delete."""
    for path in found.deleted:
        yield _request(partition, "", "", _absolute(root, [path]), {})


def _commands(root: str, partition: str, found: PartitionRollback) -> Iterator[dict[str, Any]]:
    """Yield a request for each slice with blocks to hide."""
    slices: dict[tuple[str, str], dict[str, int]] = {}
    for path, size in (found.mixed_logs or {}).items():
        file_id, _, rest = path.rpartition("/")[2].removeprefix(".").partition("_")
        slices.setdefault((file_id, rest.partition(".")[0]), {})[path] = size
    for (file_id, base_instant), logs in slices.items():
        yield _request(partition, file_id, base_instant, [], _sized(root, logs))


def _request(
    partition: str, file_id: str, base_instant: str, files: list[str], logs: dict[str, int]
) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "fileId": file_id,
        "latestBaseInstant": base_instant,
        "filesToBeDeleted": files,
        "logBlocksToBeDeleted": logs,
    }


def _info(instant: Instant) -> dict[str, str]:
    return {"commitTime": instant.time, "action": instant.action.value}


def _absolute(root: str, paths: Sequence[str]) -> list[str]:
    return [f"{root}/{path}" for path in paths]


def _sized(root: str, sizes: Mapping[str, int] | None) -> dict[str, int]:
    return {f"{root}/{path}": size for path, size in (sizes or {}).items()}
