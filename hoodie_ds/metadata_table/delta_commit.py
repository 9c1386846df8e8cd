"""Delta commits of a metadata table: one for each instant of the table, at its time.

All that is put follows from the instant and its records, so that any process may put it again after
a crash, or beside another one. The requested and the inflight file are put first, as a JVM that
rolls a dead writer's delta commit back deletes only log files of an instant that is pending. In
layout 2 the delta commit has the completion time of the instant, so a compaction of the metadata
table includes what has been completed up to its own time, and must not have a later one than the
newest delta commit. In layout 1 a log file is named after its slice, so the metadata table is
compacted here: no process puts a log file beside another's plan. When it is due the table's
properties say, which are read here: they change only once the newest decision is applied, so all
processes that put the delta commit of an instant find the same.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from hoodie_ds.config.properties.keys import METADATA_INDEX_GROUPS
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError
from hoodie_ds.formats.hfile.writer import write_hfile
from hoodie_ds.formats.log.delete_block import encode_delete_block
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.metadata_table.compaction import (
    delta_commits,
    is_due,
    put_first_log,
    put_once,
    put_pending,
)
from hoodie_ds.metadata_table.joined_keys import KeyBlock
from hoodie_ds.metadata_table.payload import Record, encode_record
from hoodie_ds.metadata_table.record_keys import file_groups_of, file_id, folder_of, groups_among
from hoodie_ds.metadata_table.record_schema import SCHEMA, record_schema
from hoodie_ds.metadata_table.stored import EXTENSION, MetadataTable
from hoodie_ds.metadata_table.stored_records import REBUILD
from hoodie_ds.metadata_table.upkeep import look_after
from hoodie_ds.storage.protocol import FileStatus, Storage, names_in, put_pieces
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.planned_services import compacting
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.timeline.bodies.commit_metadata import (
    SCHEMA_KEY,
    CommitMetadata,
    LogWrite,
    WriteStat,
)
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import METADATA_TABLE, V1, in_partition, instant_path
from hoodie_ds.timeline.timeline import Timeline

Entries = Mapping[str, Record | None]
"""Records by their keys, None of deleted ones."""
Records = Mapping[FileGroupId, Entries]
"""Records of file groups."""

Blocks = Mapping[FileGroupId, Sequence[KeyBlock]]
"""Log blocks of tasks that the log files of file groups take over."""

_OPERATION: Final = "UPSERT_PREPPED"
_NO_BLOCKS: Final[Blocks] = MappingProxyType({})


def put_delta_commit(
    table: Table, instant: Instant, records: Records, blocks: Blocks = _NO_BLOCKS
) -> None:
    """Put the delta commit of an instant that is about to be completed.

    No key of a file group has both a record and an entry in a block. Does nothing if others have
    completed the instant, as file groups may have been compacted since.
    """
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    groups = sorted({*(group for group in records if records[group]), *blocks}, key=str)
    listed, timeline = _seen(storage, instant, groups)
    if timeline.commit_at(instant.time) is not None or _is_archived(table, timeline, instant.time):
        return
    current = open_table(table.storage)
    if is_due(timeline, delta_commits(current.properties)):
        look_after(current, instant.time)
        listed, timeline = _seen(storage, instant, groups)
    done = replace(instant, action=Action.DELTA_COMMIT)
    put_pending(storage, done)
    stats = []
    for group in groups:
        log = _log_of(storage, timeline, instant, group, listed.get(group.partition_path, []))
        entries, joined = records.get(group, {}), blocks.get(group, ())
        stats.append(_put_log(storage, instant, group, log, entries, joined))
    schema = {SCHEMA_KEY: record_schema(has_meta_fields=False)}
    body = CommitMetadata(tuple(stats), _OPERATION, schema).to_bytes(instant.layout)
    put_once(storage, instant_path(done), body)


def by_file_group(
    table: Table, partition: str, records: Entries, hashed: Callable[[str], str] = str
) -> dict[FileGroupId, dict[str, Record | None]]:
    """Return records by the file groups of a partition, which never become more.

    `hashed` returns the part of a key that decides about its file group.
    """
    if not records:
        return {}
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    groups = groups_among(names_in(storage, partition), partition)
    if not groups:
        raise CorruptFileError(f"{storage.root}/{partition} has no file groups", REBUILD)
    return _spread(partition, groups, records, hashed)


def in_index(
    table: Table, metadata: MetadataTable, index: str, time: str, records: Entries
) -> dict[FileGroupId, dict[str, Record | None]]:
    """Return records by the file groups of the record index of a partition.

    A new partition gets them at the `time` of its first write. What a dead writer has left does
    not count, as whoever rolls it back may delete it.
    """
    groups = len(metadata.slices(index))
    if not groups:
        groups = new_groups(table)
        for number in range(groups):
            put_first_log(metadata.view.storage, index, number, time)
    return _spread(index, groups, records)


def new_groups(table: Table) -> int:
    """Return how many file groups the record index of a new partition of a table gets."""
    least = table.properties.raw.get(METADATA_INDEX_GROUPS, "")
    return int(least) if least.isdecimal() else 1


def _spread(
    partition: str, groups: int, records: Entries, hashed: Callable[[str], str] = str
) -> dict[FileGroupId, dict[str, Record | None]]:
    found: dict[FileGroupId, dict[str, Record | None]] = {}
    numbers = file_groups_of(pa.array([*map(hashed, records)], pa.string()), groups)
    for number, (key, record) in zip(numbers.tolist(), records.items(), strict=True):
        group = FileGroupId(folder_of(partition), file_id(partition, number))
        found.setdefault(group, {})[key] = record
    return found


def log_blocks(partition: str, time: str, entries: Entries) -> bytes:
    """Return the log blocks of records of a partition: one of records, and one of deletes."""
    there = {key: record for key, record in entries.items() if record is not None}
    blocks = b""
    if there:
        encoded = sorted((key.encode(), encode_record(record)) for key, record in there.items())
        blocks += record_block(time, encoded)
    if deleted := sorted(entries.keys() - there.keys()):
        blocks += delete_block(partition, time, pa.array(deleted))
    return blocks


def record_block(time: str, entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the log block of encoded records, whose keys ascend."""
    content = io.BytesIO()
    write_hfile(content, entries, created_ms=0)
    header: dict[int, str] = {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: SCHEMA}
    return encode_block(BlockType.HFILE_DATA, header, content.getvalue())


def delete_block(partition: str, time: str, keys: pa.Array) -> bytes:
    """Return the log block of records of a partition that are deleted."""
    return encode_delete_block(keys, pa.repeat(partition, len(keys)), None, time, SCHEMA)


def _is_archived(table: Table, timeline: Timeline, time: str) -> bool:
    """Whether an instant has ended long ago; a write that takes long is pending on the table."""
    return timeline.starts_after(time) and not table.load_timeline().is_pending(time)


def _seen(
    storage: Storage, instant: Instant, groups: Iterable[FileGroupId]
) -> tuple[dict[str, list[FileStatus]], Timeline]:
    """The files of the groups' partitions, and the timeline."""
    # Listed before the timeline: what this does not see is no later slice than the timeline has.
    # Only in layout 1 do they decide about the names of log files.
    paths = {group.partition_path for group in groups} if instant.layout == V1.version else ()
    listed = {path: storage.list(path) for path in paths}
    return listed, load_timeline(storage, instant.layout)


@dataclass(frozen=True, slots=True)
class _Log:
    """The name of a log file to be put, and of the files of its slice."""

    name: LogFileName
    base: str = ""
    others: tuple[str, ...] = ()
    starts: str = ""


def _log_of(
    storage: Storage,
    timeline: Timeline,
    instant: Instant,
    group: FileGroupId,
    listed: list[FileStatus],
) -> _Log:
    if instant.layout == V1.version:
        return _next_of_slice(storage, timeline, instant, group, listed)
    return _Log(LogFileName(group.file_id, instant.time, 1, _token(instant.time)))


def _put_log(
    storage: Storage,
    instant: Instant,
    group: FileGroupId,
    log: _Log,
    entries: Entries,
    joined: Sequence[KeyBlock],
) -> WriteStat:
    name = str(log.name)
    path = in_partition(group.partition_path, name)
    own = log_blocks(group.partition_path, instant.time, entries)
    try:
        put_pieces(storage, path, lambda: chain([own], *(one.pieces() for one in joined)))
        size = len(own) + sum(one.size for one in joined)
    except AlreadyExistsError:  # an earlier attempt's, which may have found other blocks of tasks
        with storage.open_input(path) as file:
            size = file.seek(0, io.SEEK_END)
    own_deletes = sum(record is None for record in entries.values())
    deletes = own_deletes + sum(one.num_deletes for one in joined)
    live = len(entries) - own_deletes + sum(one.num_keys for one in joined)
    return WriteStat(
        group.file_id,
        path,
        group.partition_path,
        prev_commit=log.starts or instant.time,
        num_writes=live,
        num_update_writes=live,
        num_deletes=deletes,
        total_write_bytes=size,
        file_size_bytes=size,
        log=LogWrite(log.name.version, 0, log.base, (*log.others, name)),
    )


def _next_of_slice(
    storage: Storage,
    timeline: Timeline,
    instant: Instant,
    group: FileGroupId,
    listed: list[FileStatus],
) -> _Log:
    """The next log file of the newest slice, unless an earlier attempt has put it."""
    view = FileSystemView(storage, timeline, extension=EXTENSION)
    newest = next((found for found in view.slices_among(listed) if found.group == group), None)
    if newest is None:
        where = f"{storage.root}/{group.partition_path}"
        raise CorruptFileError(f"{where} has no file group {group.file_id}", REBUILD)
    planned = compacting(storage, timeline).get(group, "")
    start = max(newest.base_instant, planned, key=padded)
    logs = [log for log in newest.logs if log.name.base_instant == start]
    token = _token(instant.time)
    others = tuple(log.file_name for log in logs if log.name.write_token != token)
    own = next((log.name for log in logs if log.name.write_token == token), None)
    version = 1 + max((log.name.version for log in logs), default=0)
    name = own or LogFileName(group.file_id, start, version, token)
    base = str(newest.base.name) if newest.base and newest.base_instant == start else ""
    return _Log(name, base, others, start)


def _token(time: str) -> str:
    """A write token that no other instant has; Java reads its parts as numbers of 32 bits."""
    return f"{int(time[:9])}-{int(time[9:])}-0"
