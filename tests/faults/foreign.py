"""What other engines do to a table of ours, file by file: for tests of a neighbourhood.

The table may have either layout of the timeline.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final

from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.archive.archive import ActiveFile, archive_of
from hoodie_ds.timeline.bodies.commit_body import avro_of_json
from hoodie_ds.timeline.bodies.replace_plan import PLAN_SCHEMA
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import LAYOUTS, PROPERTIES, V1, instant_path


def savepoint(storage: Storage, time: str) -> None:
    """Keep a commit, as Hudi's savepoint does: two files of its time, and no request."""
    for state in (State.INFLIGHT, State.COMPLETED):
        storage.put_if_absent(step_path(storage, time, Action.SAVEPOINT, state), b"")


def archive(storage: Storage, times: Collection[str]) -> None:
    """Move instants from the active timeline into the archive."""
    table, files = open_table(storage), dict[str, list[ActiveFile]]()
    for step in _steps(storage, times):
        body = storage.read(instant_path(step))
        files.setdefault(step.time, []).append(ActiveFile(step, body, step.time))
    place = archive_of(storage, table.layout, table.properties.archive_folder)
    place.put([found for _, found in sorted(files.items())])
    take_off(storage, times)


def take_off(storage: Storage, times: Collection[str]) -> None:
    """Take instants off the active timeline."""
    for step in _steps(storage, times):
        storage.delete(instant_path(step))


def _steps(storage: Storage, times: Collection[str]) -> list[Instant]:
    layout = LAYOUTS[open_table(storage).layout]
    names = (status.path.rpartition("/")[2] for status in storage.list(layout.folder))
    return [step for step in map(layout.parse, names) if step is not None and step.time in times]


def step_path(storage: Storage, time: str, action: Action, state: State) -> str:
    """Where the file of a step lies; it is completed later than all that is on the timeline."""
    table = open_table(storage)
    if action is Action.CLUSTERING and state is not State.COMPLETED:
        action = LAYOUTS[table.layout].clustering
    instant = Instant(time, action, state, layout=table.layout)
    if state is State.COMPLETED and table.layout != V1.version:
        latest = max(table.load_timeline().latest_time or time, time)
        instant = instant.completed(following(latest))
    return instant_path(instant)


def complete(storage: Storage, time: str, action: Action, body: dict[str, Any]) -> None:
    """Complete an instant with what it did."""
    data = json.dumps(body).encode()
    if open_table(storage).layout != V1.version:
        data = avro_of_json(body, replaces=action is Action.REPLACE_COMMIT)
    storage.put_if_absent(step_path(storage, time, action, State.COMPLETED), data)


_TEXT: Final = {"type": "string", "avro.java.string": "String"}


def _optional(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": ["null", kind], "default": None}


_OPERATION: Final = {
    "type": "record",
    "name": "HoodieCompactionOperation",
    "fields": [
        _optional("baseInstantTime", _TEXT),
        _optional("deltaFilePaths", {"type": "array", "items": _TEXT}),
        _optional("dataFilePath", _TEXT),
        _optional("fileId", _TEXT),
        _optional("partitionPath", _TEXT),
        _optional("metrics", {"type": "map", "values": "double", "avro.java.string": "String"}),
        _optional("bootstrapFilePath", _TEXT),
    ],
}
COMPACTION_PLAN: Final = {
    "type": "record",
    "name": "HoodieCompactionPlan",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        _optional("operations", {"type": "array", "items": _OPERATION}),
        _optional("extraMetadata", {"type": "map", "values": _TEXT, "avro.java.string": "String"}),
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}
"""The schema of a compaction's plan, as Hudi writes it."""


def plan_compaction(
    storage: Storage, time: str, slices: Iterable[FileSlice], action: str = "compaction"
) -> None:
    """Schedule a compaction, or a log compaction, of file slices."""
    operations: list[dict[str, Any]] = [
        {
            "baseInstantTime": found.base_instant,
            "deltaFilePaths": [log.file_name for log in found.logs],
            "dataFilePath": found.base.path.rpartition("/")[2] if found.base else None,
            "fileId": found.group.file_id,
            "partitionPath": found.group.partition_path,
            "metrics": {},
            "bootstrapFilePath": None,
        }
        for found in slices
    ]
    plan = {"operations": operations, "extraMetadata": None, "version": 2}
    path = step_path(storage, time, Action(action), State.REQUESTED)
    storage.put_if_absent(path, write_record(COMPACTION_PLAN, plan))


def plan_clustering(storage: Storage, time: str, slices: Iterable[FileSlice]) -> None:
    """Schedule a clustering of file slices into one file group."""
    named: list[dict[str, Any]] = [
        {
            "dataFilePath": found.base.path if found.base else None,
            "deltaFilePaths": [],
            "fileId": found.group.file_id,
            "partitionPath": found.group.partition_path,
            "bootstrapFilePath": None,
            "version": 1,
        }
        for found in slices
    ]
    group = {
        "slices": named, "metrics": {}, "numOutputFileGroups": 1, "extraMetadata": {}, "version": 1
    }  # fmt: skip
    plan: dict[str, Any] = {
        "inputGroups": [group], "strategy": None, "extraMetadata": {},
        "preserveHoodieMetadata": True, "version": 1,
    }  # fmt: skip
    body = {"operationType": "CLUSTER", "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
    path = step_path(storage, time, Action.CLUSTERING, State.REQUESTED)
    storage.put_if_absent(path, write_record(PLAN_SCHEMA, body))


def slices(storage: Storage, partition_path: str) -> list[FileSlice]:
    """The latest slices of a partition, as they are now."""
    timeline = open_table(storage).load_timeline()
    return FileSystemView(storage, timeline).latest_slices(partition_path)


def complete_compaction(storage: Storage, time: str, planned: Iterable[FileSlice]) -> None:
    """Carry a compaction out on what its plan names: of base files, copies."""
    storage.put_if_absent(step_path(storage, time, Action.COMPACTION, State.INFLIGHT), b"")
    stats: dict[str, list[dict[str, object]]] = {}
    for found in planned:
        name = f"{found.group.file_id}_9-9-9_{time}.parquet"
        partition = found.group.partition_path
        stats.setdefault(partition, []).append(
            _copied(storage, found, f"{partition}/{name}", found.group)
        )
    body = {
        "partitionToWriteStats": stats, "compacted": True, "extraMetadata": {},
        "operationType": "COMPACT",
    }  # fmt: skip
    complete(storage, time, Action.COMMIT, body)


def begin_write(storage: Storage, time: str) -> None:
    """Begin a write, with a heartbeat."""
    storage.put_if_absent(f".hoodie/.heartbeat/{time}", b"")
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.put_if_absent(step_path(storage, time, Action.COMMIT, state), b"")


def complete_write(storage: Storage, time: str, written: Iterable[FileSlice]) -> None:
    """Complete a write that made base files of file groups anew, with the rows of some slices."""
    stats: dict[str, list[dict[str, object]]] = {}
    for found in written:
        path = f"{found.group.partition_path}/{found.group.file_id}_9-9-9_{time}.parquet"
        copied = _copied(storage, found, path, found.group)
        stats.setdefault(found.group.partition_path, []).append(copied)
    body = {
        "partitionToWriteStats": stats, "compacted": False, "extraMetadata": {},
        "operationType": "UPSERT",
    }  # fmt: skip
    complete(storage, time, Action.COMMIT, body)
    storage.delete(f".hoodie/.heartbeat/{time}")


def complete_clustering(storage: Storage, time: str, planned: Iterable[FileSlice]) -> None:
    """Carry a clustering out: each file group is copied into a new one."""
    storage.put_if_absent(step_path(storage, time, Action.CLUSTERING, State.INFLIGHT), b"")
    stats: dict[str, list[dict[str, object]]] = {}
    replaced: dict[str, list[str]] = {}
    for number, found in enumerate(planned):
        partition = found.group.partition_path
        group = FileGroupId(partition, f"1111111{number}-1111-1111-1111-111111111111-0")
        path = f"{partition}/{group.file_id}_9-9-9_{time}.parquet"
        stats.setdefault(partition, []).append(_copied(storage, found, path, group))
        replaced.setdefault(partition, []).append(found.group.file_id)
    body = {
        "partitionToWriteStats": stats, "partitionToReplaceFileIds": replaced,
        "extraMetadata": {}, "operationType": "CLUSTER",
    }  # fmt: skip
    complete(storage, time, Action.REPLACE_COMMIT, body)


def _copied(storage: Storage, old: FileSlice, new: str, group: FileGroupId) -> dict[str, object]:
    data = storage.read(old.base.path) if old.base else b""
    storage.put_if_absent(new, data)
    return {
        "fileId": group.file_id, "path": new, "partitionPath": group.partition_path,
        "prevCommit": "null", "numWrites": 1, "fileSizeInBytes": len(data),
    }  # fmt: skip


def begin_restore(storage: Storage, time: str) -> None:
    """Begin to take the table back to a savepoint."""
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.put_if_absent(step_path(storage, time, Action.RESTORE, state), b"")


def upgrade(storage: Storage) -> None:
    """Make it a table of version 8: its timeline moves, what was pending is rolled back."""
    for status in storage.list(".hoodie"):
        name = status.path.rpartition("/")[2]
        if not name[0].isdigit():
            continue
        if V1.parse(name) in load_timeline(storage, 1).completed:
            storage.put_if_absent(f".hoodie/timeline/{name}", storage.read(status.path))
        storage.delete(status.path)
    storage.put_if_absent(".hoodie/timeline/history/_version_", b"")
    properties = storage.read(PROPERTIES).decode()
    changed = properties.replace("table.version=6", "table.version=8")
    storage.replace(PROPERTIES, changed.replace("layout.version=1", "layout.version=2").encode())
