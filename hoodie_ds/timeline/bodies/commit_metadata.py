"""What a commit, delta commit or replace commit did, and the body of its files.

Hudi's ``HoodieCommitMetadata`` and ``HoodieWriteStat``. Reading tolerates unknown fields; writing
leaves none out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import xxhash

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import is_container, read_record
from hoodie_ds.hints import COPY
from hoodie_ds.timeline.bodies.commit_body import avro_body, json_body

SCHEMA_KEY: Final = "schema"
"""Key of the extra metadata that holds the table's Avro schema."""

OWNER_KEY: Final = "_hoodie_ds_owner"
"""Key of the extra metadata of an inflight file: JSON of the owner of the instant."""

CHECKSUMS_KEY: Final = "_hoodie_ds_checksums"
"""Key of the extra metadata of our commits: JSON object of file path to xxh64."""

FOOTER: Final = "#footer"
"""Follows the path of a base file there, for the checksum of its Parquet footer alone."""

CHECKPOINT_KEY: Final = "_hudi_streaming_sink_checkpoint"
"""Key in a commit's extra metadata: JSON object of writer identifier to batch id, a string."""

INPUTS_KEY: Final = "_hoodie_ds_inputs"
"""Key in the extra metadata of our commits: JSON, by query and batch, of digests of their rows."""

AT_ITS_TIME: Final = {
    CHECKPOINT_KEY: "_hoodie_ds_checkpoint_at_its_time",
    INPUTS_KEY: "_hoodie_ds_inputs_at_its_time",
}
"""Keys of what a commit says without the commits of later times, where it was made after some."""

DECISION_KEY: Final = "_hoodie_ds_turn"
"""Key in the extra metadata of our commits: the decision up to which conflicts were checked."""

PENDING_KEY: Final = "_hoodie_ds_pending"
"""Key in the extra metadata of our commits: times of the instants that were pending then."""

ADDED_KEY: Final = "_hoodie_ds_added_columns"
"""Key in the extra metadata of our commits: JSON list of columns that batches added to a table."""

DIGEST_KEY: Final = "_hoodie_ds_digest"
"""Key of the extra metadata of what we write: xxh64 of all that the body says.

A second one, after a blank, is of what it says once Hudi has written it anew between table
versions, and so has left out what belongs to log files only.
"""

_REPLACING: Final = frozenset(
    {"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION", "CLUSTER"}
)
"""Operations that complete as replace commits."""

_REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX"})
"""Operations that do not set the table's schema (``WriteOperationType.canUpdateSchema``)."""

_OURS: Final = b"_hoodie_ds_"
"""Prefix of the keys above in a body; none of them is written without the digest."""

_INTEGERS: Final = {
    "num_writes": "numWrites",
    "num_deletes": "numDeletes",
    "num_update_writes": "numUpdateWrites",
    "num_inserts": "numInserts",
    "total_write_bytes": "totalWriteBytes",
    "total_write_errors": "totalWriteErrors",
    "file_size_bytes": "fileSizeInBytes",
    "total_log_records": "totalLogRecords",
    "total_log_files_compacted": "totalLogFilesCompacted",
    "total_log_size_compacted": "totalLogSizeCompacted",
    "total_updated_records_compacted": "totalUpdatedRecordsCompacted",
    "total_log_blocks": "totalLogBlocks",
    "total_corrupt_log_block": "totalCorruptLogBlock",
    "total_rollback_blocks": "totalRollbackBlocks",
}


@dataclass(frozen=True, slots=True)
class LogWrite:
    """What a write stat adds for a log file.

    This write begins at byte `offset`. `base_file` is the name of the slice's base file, empty
    where there is none, and `log_files` has the names of all log files of the slice.
    """

    version: int
    offset: int
    base_file: str
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One file written by a commit (Hudi's ``HoodieWriteStat``). Sizes are bytes."""

    file_id: str
    path: str
    partition_path: str
    prev_commit: str = "null"
    num_writes: int = 0
    num_inserts: int = 0
    num_update_writes: int = 0
    num_deletes: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    file_size_bytes: int = 0
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    total_create_ms: int = 0
    total_upsert_ms: int = 0
    log: LogWrite | None = None
    prev_base_file: str = ""
    change_files: tuple[tuple[str, int], ...] = ()
    """Files of change data of the file (Hudi's ``cdcStats``): paths and sizes."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all files that were written, the file itself first."""
        return self.path, *(path for path, _ in self.change_files)

    def to_json(self) -> dict[str, Any]:
        """Return the stat as Hudi's JSON object."""
        body: dict[str, Any] = {
            "fileId": self.file_id,
            "path": self.path,
            "cdcStats": dict(self.change_files) or None,
            "prevCommit": self.prev_commit,
            "partitionPath": self.partition_path,
            "tempPath": None,
            "minEventTime": None,
            "maxEventTime": None,
            "runtimeStats": {
                "totalScanTime": 0,
                "totalUpsertTime": self.total_upsert_ms,
                "totalCreateTime": self.total_create_ms,
            },
        }
        body |= {name: getattr(self, attribute) for attribute, name in _INTEGERS.items()}
        if self.prev_base_file:
            body["prevBaseFile"] = self.prev_base_file
        if self.log is not None:
            body |= {
                "logVersion": self.log.version,
                "logOffset": self.log.offset,
                "baseFile": self.log.base_file,
                "logFiles": list(self.log.log_files),
                "recordsStats": {"val": None},
            }
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> WriteStat:
        """Read Hudi's JSON object; absent counters are 0."""
        log = None
        if body.get("logVersion") is not None or body.get("logFiles"):
            log = LogWrite(
                int(body.get("logVersion") or 0),
                int(body.get("logOffset") or 0),
                str(body.get("baseFile") or ""),
                tuple(str(name) for name in body.get("logFiles") or ()),
            )
        return cls(
            file_id=str(body.get("fileId") or ""),
            path=str(body.get("path") or ""),
            partition_path=str(body.get("partitionPath") or ""),
            prev_commit=str(body.get("prevCommit") or "null"),
            log=log,
            prev_base_file=str(body.get("prevBaseFile") or ""),
            change_files=tuple(
                (str(path), int(size)) for path, size in (body.get("cdcStats") or {}).items()
            ),
            **{attribute: int(body.get(name) or 0) for attribute, name in _INTEGERS.items()},
        )


@dataclass(frozen=True)
class CommitMetadata:
    """What a commit did (Hudi's ``HoodieCommitMetadata``).

    `stats` has every file that became part of the table, and no other. `operation_type` is Hudi's
    name, such as ``UPSERT``; `extra` has the table's Avro schema under ``schema``, and `replaced`
    the file ids that a replace commit replaced, by partition path.
    """

    stats: tuple[WriteStat, ...] = ()
    operation_type: str = "UNKNOWN"
    extra: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compacted: bool = False

    @property
    def is_rewrite(self) -> bool:
        """Whether the commit wrote stored rows anew, without new ones: its schema is no news."""
        return self.compacted or self.operation_type in _REWRITES

    @property
    def is_ours(self) -> bool:
        """Whether this library wrote it."""
        return any(key.startswith("_hoodie_ds_") for key in self.extra)

    @property
    def file_paths(self) -> frozenset[str]:
        """Every file that the commit names, relative to the base path."""
        return frozenset(path for stat in self.stats for path in stat.paths)

    def with_extra(self, more: Mapping[str, str]) -> CommitMetadata:
        """Return a copy with more extra metadata."""
        return replace(self, extra={**self.extra, **more})

    @property
    def guard_entries(self) -> dict[str, str]:
        """What it says of micro-batches, if only commits of earlier times are in the table.

        It stays true when commits of later times are rolled back.
        """
        named = {key: own for key, own in AT_ITS_TIME.items() if own in self.extra}
        return {key: self.extra[own] for key, own in named.items()} or self.entries_of_all

    @property
    def entries_of_all(self) -> dict[str, str]:
        """What it says of all micro-batches that were in the table when it was made."""
        return {key: self.extra[key] for key in (CHECKPOINT_KEY, INPUTS_KEY) if key in self.extra}

    @property
    def batches(self) -> Mapping[str, frozenset[int]]:
        """Numbers of the newest micro-batches that are in the table, by query."""
        try:
            kept = json.loads(self.guard_entries[INPUTS_KEY])
            return {str(query): frozenset(map(int, digests)) for query, digests in kept.items()}
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            return {}

    @cached_property
    def checksums(self) -> Mapping[str, str]:
        """The xxh64 of files by path, and of footers (`FOOTER`); empty in commits of others."""
        try:
            return {str(k): str(v) for k, v in json.loads(self.extra[CHECKSUMS_KEY]).items()}
        except (KeyError, ValueError, AttributeError, RecursionError):
            return {}

    @cached_property
    def added_columns(self) -> frozenset[str]:
        """The columns that batches up to this one added to those that the table had at first."""
        try:
            return frozenset(map(str, json.loads(self.extra[ADDED_KEY])))
        except (KeyError, ValueError, TypeError, RecursionError):
            return frozenset()

    def to_bytes(self, layout: int, *, inflight: bool = False) -> bytes:
        """Return the body in the form of a timeline layout, with a digest that reveals damage.

        The body of an inflight file is never Hudi's record of a replace commit.
        """
        body = self._body()
        logless = replace(self, stats=tuple(replace(stat, log=None) for stat in self.stats))
        digests = f"{_digest(body)} {_digest(logless._body())}"
        body["extraMetadata"][DIGEST_KEY] = digests
        if layout == 1:
            return json_body(body)
        replaces = bool(self.replaced) or self.operation_type in _REPLACING
        return avro_body(body, replaces=replaces and not inflight)

    def _body(self) -> dict[str, Any]:
        partitions: dict[str, list[dict[str, Any]]] = {}
        for stat in self.stats:
            partitions.setdefault(stat.partition_path, []).append(stat.to_json())
        body: dict[str, Any] = {
            "partitionToWriteStats": partitions,
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra),
            "operationType": self.operation_type,
        }
        if self.replaced:
            body["partitionToReplaceFileIds"] = {
                partition: list(ids) for partition, ids in self.replaced.items()
            }
        return body

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CommitMetadata:
        """Read a body, JSON or Avro. Raises `CorruptFileError` if it is damaged."""
        try:
            is_avro = is_container(data)
            body = read_record(data, path) if is_avro else json.loads(data)
            stats = tuple(
                WriteStat.from_json(stat)
                for listed in (body.get("partitionToWriteStats") or {}).values()
                for stat in listed
            )
            extra = {
                str(key): str(value)
                for key, value in (body.get("extraMetadata") or {}).items()
                if value is not None
            }
            written = extra.pop(DIGEST_KEY, None)
            commit = cls(
                stats=stats,
                operation_type=str(body.get("operationType") or "UNKNOWN"),
                extra=extra,
                replaced={
                    str(partition): tuple(str(file_id) for file_id in ids)
                    for partition, ids in (body.get("partitionToReplaceFileIds") or {}).items()
                },
                compacted=bool(body.get("compacted")),
            )
        except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise CorruptFileError(f"{path} is not what a commit says ({error})", COPY) from error
        digests = (written or "").split()
        if len(digests) == 1 and is_avro:
            return commit  # Hudi rewrote it, from a JSON that had no digest for this
        found = _digest(commit._body())
        if found not in digests and (written is not None or _OURS in data):
            raise CorruptFileError(
                f"{path} was damaged: its digest is {found}, and {written or 'lost, or another'} "
                f"when it was written",
                COPY,
            )
        return commit


def _digest(body: dict[str, Any]) -> str:
    # Of the content, not of its bytes: Hudi may rewrite it, between table versions.
    return str(xxhash.xxh64_hexdigest(json.dumps(body, sort_keys=True).encode()))
