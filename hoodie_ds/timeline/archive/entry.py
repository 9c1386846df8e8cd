"""Entries of the archive of table version 6: one for each file of an instant on the timeline.

Hudi's ``HoodieArchivedMetaEntry``: which instant, in which state, and what its file says. The JSON
of commits becomes Avro there, by the names of its fields. The schema next to this module is the one
that Apache Hudi 1.2 writes, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import DatumWriter, read_record
from hoodie_ds.hints import COPY
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.paths import instant_path

_SCHEMA_FILE: Final = "archived_meta_entry.avsc"

PLANS: Final = {
    Action.COMPACTION: "hoodieCompactionPlan",
    Action.LOG_COMPACTION: "hoodieCompactionPlan",
    Action.CLEAN: "hoodieCleanerPlan",
    Action.REPLACE_COMMIT: "hoodieRequestedReplaceMetadata",
}
"""Field of the plan of an action, where the archive has one."""

RESULTS: Final = {
    Action.COMMIT: "hoodieCommitMetadata",
    Action.DELTA_COMMIT: "hoodieCommitMetadata",
    Action.REPLACE_COMMIT: "hoodieReplaceCommitMetadata",
    Action.CLEAN: "hoodieCleanMetadata",
    Action.ROLLBACK: "hoodieRollbackMetadata",
}
"""Field of what an action did."""

_PROFILES: Final = {
    Action.COMMIT: "hoodieCommitMetadata",
    Action.DELTA_COMMIT: "hoodieCommitMetadata",
    Action.REPLACE_COMMIT: "HoodieInflightReplaceMetadata",
}
"""Field of what an inflight file says of a write."""

_COUNTERS: Final = """
    numWrites numDeletes numUpdateWrites totalWriteBytes totalWriteErrors totalLogRecords
    totalUpdatedRecordsCompacted numInserts totalLogBlocks totalCorruptLogBlock
    totalRollbackBlocks fileSizeInBytes totalLogFilesCompacted totalLogReadTimeMs
    totalLogSizeCompacted numUpdates
"""
"""Numbers of a write stat that are 0 in Hudi's own class, where its JSON does not name them."""


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """What the archive says of one file of an instant.

    `content` has the fields of the entry that say what the file said, none for an empty file;
    `transition` is when the file was written, as an instant time.
    """

    instant: Instant
    content: Mapping[str, Any] = field(default_factory=dict)
    transition: str = ""

    def to_bytes(self) -> bytes:
        """Return the entry's Avro binary.

        Raises `CorruptFileError` if the file had something that Hudi's schema does not have there.
        """
        record = {
            **self.content,
            "commitTime": self.instant.time,
            "actionType": self.instant.action.value,
            "actionState": self.instant.state.name,
            "stateTransitionTime": self.transition,
            "version": None,
        }
        return _writer().write(record, instant_path(self.instant))

    def commit(self, path: str) -> CommitMetadata:
        """Return what a completed write did; the path is for errors."""
        found = self.content.get(RESULTS.get(self.instant.action, ""))
        if found is None:
            raise CorruptFileError(
                f"{path} is in the archive without what it did", "restore its files from a copy"
            )
        return CommitMetadata.from_bytes(json.dumps(found).encode(), path)


def entry_schema() -> str:
    """Return the Avro JSON of Hudi's ``HoodieArchivedMetaEntry``."""
    return files(__package__).joinpath(_SCHEMA_FILE).read_text("utf-8")


@cache
def record_schema(field: str) -> Mapping[str, Any]:
    """Return the self-contained Avro schema of a record field of `PLANS` or `RESULTS`."""
    schema: dict[str, Any] = json.loads(entry_schema())
    named = {record["name"]: record for record in _records(schema)}
    (kind,) = (found["type"] for found in schema["fields"] if found["name"] == field)
    (record,) = (part for part in kind if part != "null")
    whole: dict[str, Any] = _whole(record, named, set())
    return whole


def _records(part: object) -> Iterator[dict[str, Any]]:
    """Yield all records that a schema defines, wherever it does."""
    if isinstance(part, dict):
        if part.get("type") == "record":
            yield part
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _records(inner)


def _whole(part: Any, named: Mapping[str, Any], seen: set[str]) -> Any:  # noqa: ANN401
    """Write each record out where it comes first, and only there."""
    if isinstance(part, list):
        return [_whole(inner, named, seen) for inner in part]
    if isinstance(part, str):
        name = part.rpartition(".")[2]
        return part if name not in named or name in seen else _whole(named[name], named, seen)
    if part["type"] == "record":
        seen.add(part["name"])
        fields = [{**f, "type": _whole(f["type"], named, seen)} for f in part["fields"]]
        return {**part, "fields": fields}
    inside = {key: _whole(part[key], named, seen) for key in ("items", "values") if key in part}
    return {**part, **inside}


@lru_cache(maxsize=1)
def _writer() -> DatumWriter:
    return DatumWriter(entry_schema())


def entry_of(instant: Instant, body: bytes, plan: bytes, transition: str) -> ArchivedEntry:
    """Return the entry of a file of the active timeline, written at `transition`.

    `plan` is the content of the instant's requested file, empty if it has none.
    """
    action, path = instant.action, instant_path(instant)
    key, content = None, body
    match instant.state:
        case State.COMPLETED:
            key = RESULTS.get(action)
        case State.INFLIGHT if action is Action.CLEAN:  # Hudi puts the plan into both
            key, content = PLANS[action], plan
        case State.INFLIGHT:
            key = _PROFILES.get(action)
        case _:
            key = PLANS.get(action)
    if key is None or not content:
        return ArchivedEntry(instant, {}, transition)
    is_json = action in WRITE_ACTIONS and instant.state is not State.REQUESTED
    found = _commit_record(content, path) if is_json else read_record(content, path)
    return ArchivedEntry(instant, {key: found}, transition)


def parse_entry(record: Mapping[str, Any], name: str) -> ArchivedEntry:
    """Return the entry of a ``HoodieArchivedMetaEntry``; `name` is the file, for errors."""
    try:
        # Old releases of Hudi archived completed instants only, without their state.
        state = State[record.get("actionState") or "COMPLETED"]
        instant = Instant(str(record["commitTime"]), Action(record["actionType"]), state)
    except (KeyError, ValueError) as error:
        raise CorruptFileError(
            f"{name}: an entry of the archive names no instant ({error})", COPY
        ) from error
    known = {*PLANS.values(), *RESULTS.values(), *_PROFILES.values()}
    content = {key: record[key] for key in known if record.get(key) is not None}
    return ArchivedEntry(instant, content, record.get("stateTransitionTime") or "")


def _commit_record(body: bytes, path: str) -> dict[str, Any]:
    """The fields of a commit's JSON, as Hudi's own class has them after reading it."""
    CommitMetadata.from_bytes(body, path)  # a damaged file is not archived
    found: dict[str, Any] = json.loads(body)
    partitions = found.get("partitionToWriteStats") or {}
    counters = dict.fromkeys(_COUNTERS.split(), 0)
    found["partitionToWriteStats"] = {
        partition: [{**counters, **stat} for stat in stats]
        for partition, stats in partitions.items()
    }
    extra = found.get("extraMetadata") or {}
    found["extraMetadata"] = {key: text for key, text in extra.items() if text is not None}
    return {"version": None, **found}
