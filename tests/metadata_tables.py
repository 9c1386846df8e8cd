"""A metadata table for a table that this library wrote, as Hudi's writers keep it up to date.

It has the partition ``files``, in log files alone: an empty listing first, then a delta commit for
each instant of the table.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro

from hoodie_ds.config.properties import keys
from hoodie_ds.formats.hfile.writer import write_hfile
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, open_table, update_properties
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import INDEX_DEFINITIONS, LAYOUTS, METADATA_TABLE, PROPERTIES

_FILE = {
    "type": "record",
    "name": "File",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
SCHEMA = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "fields": [
        {"name": "key", "type": "string"},
        {"name": "type", "type": "int"},
        {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": _FILE}]},
    ],
}
FIRST = {1: "00000000000000010", 2: "00000000000000000"}
"""The time of the delta commit that makes the partition, by layout."""
ALL = "__all_partitions__"
Files = Mapping[str, Mapping[str, int | None]]
"""Sizes of files by partition and name; None of a deleted one."""


@dataclass
class Recorder:
    """Writes the metadata table of a table on a storage."""

    storage: Storage
    _logs: int = 0

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return open_table(self.storage)

    def begin(self, listed: Files | None = None, ended: str = "20000101000000000") -> None:
        """Make the metadata table, with a listing of files that was `ended` at some time."""
        table = self.table
        update_properties(table, {keys.METADATA_PARTITIONS: "files"}, (), 0)
        self.storage.replace(f"{METADATA_TABLE}/{PROPERTIES}", b"hoodie.archivelog.folder=archived")
        self.deltacommit(FIRST[table.layout], block(FIRST[table.layout], listed or {}), ended)

    def catch_up(self, leaving_out: Collection[str] = ()) -> None:
        """Record all completed instants of the table, but for some."""
        for instant in sorted(self.table.load_timeline().completed, key=lambda i: i.ended):
            if instant.time not in leaving_out:
                self.record(instant)

    def index(self, columns: Collection[str], version: str) -> None:
        """Add empty partitions of statistics of columns to the metadata table of an empty table."""
        groups = ["col-stats-0000-0", "col-stats-0001-0"]
        self.add(column_stats=groups, partition_stats=["partition-stats-0000-0"])
        defined = {"sourceFields": list(columns), "version": version}
        definitions = {"indexDefinitions": {"column_stats": defined}}
        self.storage.replace(INDEX_DEFINITIONS, json.dumps(definitions).encode())
        update_properties(self.table, {keys.INDEX_DEFINITIONS: INDEX_DEFINITIONS}, (), 0)

    def add(self, **partitions: Collection[str]) -> None:
        """Add empty partitions to the metadata table, with the ids of their file groups."""
        table = self.table
        listed = ",".join((*table.properties.metadata_partitions, *partitions))
        update_properties(table, {keys.METADATA_PARTITIONS: listed}, (), 0)
        first = FIRST[table.layout]
        header: dict[int, str] = {HeaderKey.INSTANT_TIME: first}
        empty = encode_block(BlockType.DELETE, header, bytes.fromhex("000000030000000100"))
        for partition, groups in partitions.items():
            for group in groups:
                name = f".{group}_{first}.log.1_0-0-0"
                self.storage.replace(f"{METADATA_TABLE}/{partition}/{name}", empty)

    def define(self, **indexes: tuple[str, str]) -> None:
        """Store the definitions of secondary indexes: their columns and versions."""
        defined = {
            name: {"indexName": name, "sourceFields": [column], "version": version}
            for name, (column, version) in indexes.items()
        }
        content = json.dumps({"indexDefinitions": defined})
        self.storage.replace(INDEX_DEFINITIONS, content.encode())
        update_properties(self.table, {keys.INDEX_DEFINITIONS: INDEX_DEFINITIONS}, (), 0)

    def record(self, instant: Instant) -> None:
        """Record a completed instant of the table."""
        content = block(instant.time, self.files_of(instant))
        self.deltacommit(instant.time, content, instant.completion_time)

    def files_of(self, instant: Instant) -> Files:
        """What an instant did to files."""
        done = file_changes(self.storage, instant)
        changed: dict[str, int | None] = {}
        for path, stat in done.added.items():
            changed |= {path: stat.file_size_bytes, **dict(stat.change_files)}
        changed |= dict.fromkeys((*done.deleted, *done.removed))
        by_partition: dict[str, dict[str, int | None]] = {}
        for path, size in changed.items():
            folder, _, name = path.rpartition("/")
            by_partition.setdefault(folder, {})[name] = size
        return by_partition

    def deltacommit(self, time: str, content: bytes, ended: str = "") -> None:
        """Put a log file and the delta commit that names it."""
        self._logs += 1
        layout = self.table.layout
        start, number = (FIRST[1], self._logs) if layout == 1 else (time, 1)
        name = f".files-0000-0_{start}.log.{number}_0-0-0"
        self.storage.replace(f"{METADATA_TABLE}/files/{name}", content)
        log = LogWrite(number, 0, "", (name,))
        stat = WriteStat("files-0000-0", f"files/{name}", "files", log=log)
        body = CommitMetadata((stat,), "UPSERT_PREPPED").to_bytes(layout)
        done = Instant(time, Action.DELTA_COMMIT, State.COMPLETED, layout=layout)
        self.put(replace(done, completion_time=ended) if layout > 1 else done, body)

    def put(self, instant: Instant, body: bytes = b"") -> None:
        """Put an instant on the metadata table's timeline."""
        layout = LAYOUTS[instant.layout]
        path = f"{METADATA_TABLE}/{layout.folder}/{layout.file_name(instant)}"
        self.storage.replace(path, body)


def block(time: str, files: Files) -> bytes:
    """A log block that says what happened to files, by partition."""
    partitions: dict[str, int | None] = {path or ".": 0 for path in files}
    entries = {ALL: record(1, partitions)}
    entries |= {path or ".": record(2, names) for path, names in files.items()}
    return hfile_block(time, entries)


def record(kind: int, names: Mapping[str, int | None]) -> bytes:
    """A record that lists files."""
    listed = {name: {"size": size or 0, "isDeleted": size is None} for name, size in names.items()}
    datum: dict[str, Any] = {"key": "", "type": kind, "filesystemMetadata": listed}
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, SCHEMA, datum)
    return sink.getvalue()


def hfile_block(time: str, entries: Mapping[str, bytes], schema: str = json.dumps(SCHEMA)) -> bytes:
    """A log block of records by their keys."""
    sink = io.BytesIO()
    write_hfile(sink, sorted((key.encode(), value) for key, value in entries.items()), 0)
    header: dict[int, str] = {
        HeaderKey.INSTANT_TIME: time,
        HeaderKey.SCHEMA: schema,
    }
    return encode_block(BlockType.HFILE_DATA, header, sink.getvalue())


def recorded(path: str | Path, leaving_out: Collection[str] = ()) -> Recorder:
    """Give a table a metadata table that has caught up, but for some instants."""
    recorder = Recorder(open_storage(str(path)))
    recorder.begin()
    recorder.catch_up(leaving_out)
    return recorder
