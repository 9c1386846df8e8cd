"""The body of a savepoint, in the Avro schema of Hudi's own class (``HoodieSavepointMetadata``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.hints import COPY
from hoodie_ds.timeline.paths import in_partition

_STRING: Final = {"type": "string", "avro.java.string": "String"}
_PARTITION: Final = {
    "type": "record",
    "name": "HoodieSavepointPartitionMetadata",
    "fields": [
        {"name": "partitionPath", "type": _STRING},
        {"name": "savepointDataFile", "type": {"type": "array", "items": _STRING}},
    ],
}
SAVEPOINT_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieSavepointMetadata",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "savepointedBy", "type": _STRING},
        {"name": "savepointedAt", "type": "long"},
        {"name": "comments", "type": _STRING},
        {
            "name": "partitionMetadata",
            "type": {"type": "map", "values": _PARTITION, "avro.java.string": "String"},
        },
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}
"""Schema of ``<time>.savepoint``."""


def savepoint_to_bytes(
    files: Mapping[str, Sequence[str]], user: str, at_ms: int, comments: str
) -> bytes:
    """Write a savepoint of some files, their names by partition path; `at_ms` is epoch time."""
    partitions = {
        partition: {"partitionPath": partition, "savepointDataFile": list(names)}
        for partition, names in files.items()
    }
    record = {
        "savepointedBy": user,
        "savepointedAt": at_ms,
        "comments": comments,
        "partitionMetadata": partitions,
        "version": 1,
    }
    return write_record(SAVEPOINT_SCHEMA, record)


def savepointed_files(data: bytes, path: str) -> frozenset[str]:
    """Return the paths of the files that a savepoint keeps."""
    record = read_record(data, path)
    try:
        return frozenset(
            in_partition(partition, str(name))
            for partition, kept in record["partitionMetadata"].items()
            for name in kept["savepointDataFile"]
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{path} is no savepoint: {error!r}", COPY) from error
