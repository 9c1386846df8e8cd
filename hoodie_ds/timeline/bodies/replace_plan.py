"""The body of ``<time>.replacecommit.requested``: a plan, which only clustering fills in.

Overwrites write it with every field null, and deletes of partitions with their operation, as Hudi
on Spark does (Hudi tech spec, ``HoodieRequestedReplaceMetadata``).
`hoodie_ds.timeline.bodies.clustering_plan` has the plan itself.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from hoodie_ds.errors import NotFoundError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path

DELETE_PARTITION: Final = "DELETE_PARTITION"
"""Hudi's name of the operation."""

_STRING: Final = {"type": "string", "avro.java.string": "String"}
_STRINGS: Final = {"type": "map", "values": _STRING, "avro.java.string": "String"}


def _record(name: str, fields: dict[str, object], **after: object) -> dict[str, Any]:
    """A record whose fields are all optional; some come after its version."""
    listed = [{"name": n, "type": ["null", t], "default": None} for n, t in fields.items()]
    later = [{"name": n, "type": ["null", t], "default": None} for n, t in after.items()]
    return {"type": "record", "name": name, "fields": [*listed, _version(), *later]}


def _version(name: str = "version") -> dict[str, object]:
    return {"name": name, "type": ["int", "null"], "default": 1}


_SLICE: Final = _record(
    "HoodieSliceInfo",
    {
        "dataFilePath": _STRING,
        "deltaFilePaths": {"type": "array", "items": _STRING},
        "fileId": _STRING,
        "partitionPath": _STRING,
        "bootstrapFilePath": _STRING,
    },
)
del _SLICE["fields"][2]["default"]  # of the file id, which every slice has
_GROUP: Final = {
    "type": "record",
    "name": "HoodieClusteringGroup",
    "fields": [
        {"name": "slices", "type": ["null", {"type": "array", "items": _SLICE}], "default": None},
        {
            "name": "metrics",
            "type": ["null", {"type": "map", "values": "double", "avro.java.string": "String"}],
            "default": None,
        },
        _version("numOutputFileGroups"),
        {"name": "extraMetadata", "type": ["null", _STRINGS], "default": None},
        _version(),
    ],
}
_STRATEGY: Final = _record(
    "HoodieClusteringStrategy", {"strategyClassName": _STRING, "strategyParams": _STRINGS}
)
_PLAN: Final = _record(
    "HoodieClusteringPlan",
    {
        "inputGroups": {"type": "array", "items": _GROUP},
        "strategy": _STRATEGY,
        "extraMetadata": _STRINGS,
    },
    preserveHoodieMetadata="boolean",
    missingSchedulePartitions={"type": "array", "items": _STRING},
)
_REPLACEMENT: Final = _record(
    "HoodieRequestedReplaceMetadata",
    {"operationType": _STRING, "clusteringPlan": _PLAN, "extraMetadata": _STRINGS},
)
PLAN_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": _REPLACEMENT["name"],
    "namespace": "org.apache.hudi.avro.model",
    "fields": _REPLACEMENT["fields"],
}
"""Schema of the file, as Apache Hudi 1.2 writes it."""


def empty_plan(operation_type: str = "") -> bytes:
    """Return the body of a replacement without clustering, with Hudi's name of the operation."""
    body: dict[str, object] = dict.fromkeys(field["name"] for field in PLAN_SCHEMA["fields"])
    if operation_type == DELETE_PARTITION:  # the one operation that says what it is
        body |= {"operationType": operation_type, "extraMetadata": {}, "version": 1}
    return write_record(PLAN_SCHEMA, body)


def is_clustering(data: bytes, path: str) -> bool:
    """Whether a requested replace commit is a clustering with a pending plan."""
    return bool(data) and read_record(data, path).get("clusteringPlan") is not None


def is_pending_clustering(storage: Storage, pending: Instant) -> bool:
    """Whether a pending instant is a clustering, and not a write that replaces file groups."""
    if pending.action is Action.CLUSTERING:
        return True
    if pending.action is not Action.REPLACE_COMMIT:
        return False
    path = instant_path(pending.at(State.REQUESTED))
    with suppress(NotFoundError):
        return is_clustering(storage.read(path), path)
    return False
