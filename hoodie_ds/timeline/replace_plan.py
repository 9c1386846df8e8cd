"""The body of ``<time>.replacecommit.requested``: a plan, which only clustering fills in.

Overwrites and partition deletes write it with every field null, as Hudi on Spark does (Hudi tech
spec, ``HoodieRequestedReplaceMetadata``).
"""

from __future__ import annotations

from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record

_STRING: Final = {"type": "string", "avro.java.string": "String"}
_STRINGS: Final = {"type": "map", "values": _STRING, "avro.java.string": "String"}


def _optional(kind: object) -> list[object]:
    return ["null", kind]


def _record(name: str, fields: dict[str, object]) -> dict[str, Any]:
    """A record whose fields are all optional, but for its version."""
    version = {"name": "version", "type": ["int", "null"], "default": 1}
    listed = [{"name": n, "type": _optional(t), "default": None} for n, t in fields.items()]
    return {"type": "record", "name": name, "fields": [*listed, version]}


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
_GROUP: Final = _record(
    "HoodieClusteringGroup",
    {
        "slices": {"type": "array", "items": _SLICE},
        "metrics": {"type": "map", "values": "double", "avro.java.string": "String"},
        "numOutputFileGroups": "int",
        "extraMetadata": _STRINGS,
    },
)
_STRATEGY: Final = _record(
    "HoodieClusteringStrategy", {"strategyClassName": _STRING, "strategyParams": _STRINGS}
)
_PLAN: Final = _record(
    "HoodieClusteringPlan",
    {
        "inputGroups": {"type": "array", "items": _GROUP},
        "strategy": _STRATEGY,
        "extraMetadata": _STRINGS,
        "preserveHoodieMetadata": "boolean",
    },
)
PLAN_SCHEMA: Final[dict[str, Any]] = {
    **_record(
        "HoodieRequestedReplaceMetadata",
        {"operationType": _STRING, "clusteringPlan": _PLAN, "extraMetadata": _STRINGS},
    ),
    "namespace": "org.apache.hudi.avro.model",
}
"""Schema of the file; readers resolve fields by name, so their order does not matter."""


def empty_plan() -> bytes:
    """Return the body of a replacement without clustering."""
    return write_record(
        PLAN_SCHEMA,
        {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": 1},
    )


def is_clustering(data: bytes, path: str) -> bool:
    """Whether a requested replace commit is a clustering, which only its engine can undo.

    Raises
    ------
    CorruptFileError
        The bytes are no such plan; names `path`.
    """
    return bool(data) and read_record(data, path).get("clusteringPlan") is not None


def clustered_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """Return the partition paths and file ids of the file slices that a clustering plan names.

    Nothing for a replacement without clustering.

    Raises
    ------
    CorruptFileError
        The bytes are no plan; names `path`.
    """
    plan = read_record(data, path).get("clusteringPlan") if data else None
    try:
        groups = (plan or {}).get("inputGroups") or ()
        slices = [one for group in groups for one in group["slices"] or ()]
        return frozenset((one["partitionPath"] or "", str(one["fileId"])) for one in slices)
    except (AttributeError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{path} is not the plan of a clustering: {error!r}") from error
