"""Bodies of restore instants, in the Avro schemas of Hudi's own classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.hints import COPY
from hoodie_ds.timeline.bodies.rollback_metadata import (
    INSTANT_SCHEMA,
    METADATA_SCHEMA,
    PartitionRollback,
    done_in,
    metadata_record,
)
from hoodie_ds.timeline.instant import Instant

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_VERSION: Final = 2

RESTORE_PLAN_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieRestorePlan",
    "namespace": _NAMESPACE,
    "fields": [
        {
            "name": "instantsToRollback",
            "type": {"type": "array", "items": INSTANT_SCHEMA, "default": None},
            "default": [],
        },
        {"name": "version", "type": ["int", "null"], "default": _VERSION},
        {"name": "savepointToRestoreTimestamp", "type": ["null", _STRING], "default": None},
    ],
}
"""Schema of ``<time>.restore.requested``."""

_ROLLBACKS: Final = {
    "type": "array",
    "items": ["null", {k: v for k, v in METADATA_SCHEMA.items() if k != "namespace"}],
    "default": None,
}
RESTORE_METADATA_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieRestoreMetadata",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "startRestoreTime", "type": _STRING},
        {"name": "timeTakenInMillis", "type": "long"},
        {"name": "instantsToRollback", "type": {"type": "array", "items": _STRING}},
        {
            "name": "hoodieRestoreMetadata",
            "type": {"type": "map", "values": _ROLLBACKS, "avro.java.string": "String"},
        },
        {"name": "version", "type": ["int", "null"], "default": 1},
        {
            "name": "restoreInstantInfo",
            "type": {"type": "array", "items": "HoodieInstantInfo", "default": None},
            "default": [],
        },
    ],
}
"""Schema of a completed ``<time>.restore``."""


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What a restore is to do.

    `instants` are times and actions of what is rolled back, the newest first, `target` is the time
    of the last instant that stays, empty in plans of old engines.
    """

    instants: tuple[tuple[str, str], ...]
    target: str

    @property
    def times(self) -> tuple[str, ...]:
        """Times of the instants to roll back, the newest first."""
        return tuple(time for time, _ in self.instants)

    def to_bytes(self) -> bytes:
        """Write the plan."""
        record = {
            "instantsToRollback": _infos(self.instants),
            "version": _VERSION,
            "savepointToRestoreTimestamp": self.target,
        }
        return write_record(RESTORE_PLAN_SCHEMA, record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> RestoreRequest:
        """Read a plan of any engine."""
        record = read_record(data, path)
        try:
            listed = record["instantsToRollback"]
            instants = tuple((str(one["commitTime"]), str(one["action"])) for one in listed)
            return cls(instants, str(record.get("savepointToRestoreTimestamp") or ""))
        except (KeyError, TypeError) as error:
            raise CorruptFileError(
                f"{path} is not the plan of a restore: {error!r}",
                COPY,
            ) from error


def restore_to_bytes(
    root: str,
    time: str,
    request: RestoreRequest,
    done: Mapping[Instant, Mapping[str, PartitionRollback]],
    taken_ms: int,
) -> bytes:
    """Write what a restore did, with what was deleted for each instant by partition path."""
    record = {
        "startRestoreTime": time,
        "timeTakenInMillis": taken_ms,
        "instantsToRollback": list(request.times),
        "hoodieRestoreMetadata": {
            instant.time: [metadata_record(root, time, instant, found, 0)]
            for instant, found in done.items()
        },
        "version": 1,
        "restoreInstantInfo": _infos(request.instants),
    }
    return write_record(RESTORE_METADATA_SCHEMA, record)


def restored_files(data: bytes, path: str) -> PartitionRollback:
    """Return what a completed restore has done, in all partitions together."""
    record = read_record(data, path)
    try:
        rollbacks = chain.from_iterable(record["hoodieRestoreMetadata"].values())
        return done_in(filter(None, rollbacks), path)
    except (AttributeError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{path} says nothing of a restore: {error!r}", COPY) from error


def _infos(instants: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"commitTime": time, "action": action} for time, action in instants]
