"""Compaction of a metadata table: a new base file of each file group that has log files.

It depends on nothing but what it merges: every process gives it the same time, plan and bytes. So
whoever comes next continues what another began, and several may do so at once.
"""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from itertools import chain
from typing import Final

import pyarrow as pa

from hoodie_ds.config.enums import BloomFilterType
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError
from hoodie_ds.formats.avro.decoder import damage_in
from hoodie_ds.formats.avro.tree import parse_avro
from hoodie_ds.formats.hfile.reader import Entry
from hoodie_ds.formats.hfile.writer import write_hfile
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.formats.parquet.bloom_filter import (
    BLOOM_FILTER_FOOTER,
    BloomFilterBuilder,
    BloomParams,
)
from hoodie_ds.metadata_table.payload import (
    Record,
    encode_record,
    folded,
    record_reader,
    without_deletes,
)
from hoodie_ds.metadata_table.record_keys import file_id, folder_of
from hoodie_ds.metadata_table.record_schema import SCHEMA
from hoodie_ds.metadata_table.stored import (
    EXTENSION,
    MetadataTable,
    latest_compaction,
)
from hoodie_ds.metadata_table.stored_records import REBUILD, schema_of
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie_ds.table.fs_view import data_file
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following, padded
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import V1, in_partition, instant_path
from hoodie_ds.timeline.timeline import Timeline

_DELTA_COMMITS: Final = 10
"""Delta commits after which one is due by default, as in Hudi."""
_SUFFIX: Final = "001"
ATTEMPT: Final = "0-0-0"
"""The write token of all attempts, as their bytes are the same."""
_NO_DELETES: Final = bytes.fromhex("000000030000000100")
_BLOOM: Final = BloomParams(10_000, 1e-9, BloomFilterType.DYNAMIC_V0, 100_000)
"""Hudi's filters in base files of a metadata table."""
_AT_ONCE: Final = 1 << 16
"""Keys that are Python's bytes at a time: these take several times the memory."""


def delta_commits(properties: TableProperties) -> int:
    """Return after how many delta commits the metadata table of a table is compacted."""
    text = properties.raw.get(keys.METADATA_DELTA_COMMITS, "")
    return (int(text) if text.isdecimal() else 0) or _DELTA_COMMITS


def is_noted(properties: TableProperties, most: int | None) -> bool:
    """Whether a table's properties say what a writer's options do, if they say anything."""
    return most is None or properties.raw.get(keys.METADATA_DELTA_COMMITS) == str(most)


def is_due(timeline: Timeline, most: int) -> bool:
    """Whether a compaction is pending, or due after the `most` delta commits."""
    return bool(timeline.pending_compactions or _due(timeline, most))


def compact_if_due(metadata: MetadataTable, most: int | None = None, begun: str = "") -> bool:
    """Compact if enough delta commits followed the newest compaction, or one is pending.

    `begun` is the time of the table's instant whose delta commit comes next, which has that time,
    too: it may be the next millisecond.

    Returns whether it did. It waits while an older instant of the table is pending: what that has
    recorded must not get into a base file before it counts, and Hudi does not roll back what is
    older than a compaction. A clean is never rolled back, so it matters once it is recorded.
    """
    pending = metadata.timeline.pending_compactions
    time = pending[0].time if pending else _due(metadata.timeline, most or _DELTA_COMMITS)
    awaited = {padded(found.time) for found in _awaited(metadata)}
    if time and time == begun and not pending:
        awaited.discard(begun)
        time = following(time)
    if not time or any(one <= time for one in awaited):
        return False
    storage = metadata.view.storage
    instant = Instant(time, Action.COMPACTION, State.REQUESTED, layout=metadata.timeline.layout)
    if not pending:
        put_once(storage, instant_path(instant), _plan(metadata).to_bytes())
    plan_path = instant_path(instant)
    plan = CompactionPlan.from_bytes(storage.read(plan_path), plan_path)
    put_once(storage, instant_path(instant.at(State.INFLIGHT)), b"")
    stats = tuple(_rewritten(metadata, plan, time))
    commit = CommitMetadata(stats, "COMPACT", {SCHEMA_KEY: SCHEMA}, compacted=True)
    ended = "" if instant.layout == V1.version else following(time[:17])
    put_once(storage, instant_path(instant.completed(ended)), commit.to_bytes(instant.layout))
    return True


def _awaited(metadata: MetadataTable) -> Iterator[Instant]:
    recorded = {instant.time for instant in metadata.timeline.completed}
    for instant in metadata.data.pending:
        if instant.action is not Action.CLEAN or instant.time in recorded:
            yield instant


def put_once(storage: Storage, path: str, data: bytes) -> bytes:
    """Put a file, unless another process has put it; return what it holds."""
    try:
        storage.put_if_absent(path, data)
    except AlreadyExistsError:
        return storage.read(path)
    return data


def put_pending(storage: Storage, instant: Instant) -> None:
    """Put the requested and the inflight file of an instant."""
    for state in (State.REQUESTED, State.INFLIGHT):
        put_once(storage, instant_path(instant.at(state)), b"")


def put_first_log(storage: Storage, partition: str, number: int, time: str) -> None:
    """Put the log file with which a file group begins: it deletes nothing."""
    log = LogFileName(file_id(partition, number), time, 1, ATTEMPT)
    block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: time}, _NO_DELETES)
    put_once(storage, in_partition(folder_of(partition), str(log)), block)


def _due(timeline: Timeline, most: int) -> str:
    """The time of the next compaction; empty if none is due.

    It is later than the ends of all that it merges, and no later than those of all that follow: in
    layout 1 the newest end with a suffix, as Hudi's are; in layout 2 the next millisecond, as
    hudi-rs knows times of 17 digits only there.
    """
    last = latest_compaction(timeline)
    deltas = (i for i in timeline.completed if i.action is Action.DELTA_COMMIT)
    since = [padded(instant.ended) for instant in deltas if padded(instant.ended) >= last]
    if len(since) < most:
        return ""
    return max(since) + _SUFFIX if timeline.layout == V1.version else following(max(since))


def _plan(metadata: MetadataTable) -> CompactionPlan:
    slices = (slice_ for partition in metadata.partitions for slice_ in metadata.slices(partition))
    return CompactionPlan(
        tuple(
            CompactionOperation(
                slice_.group.partition_path,
                slice_.group.file_id,
                slice_.base_instant,
                str(slice_.base.name) if slice_.base else None,
                tuple(log.file_name for log in slice_.logs),
            )
            for slice_ in slices
            if slice_.logs
        )
    )


def _rewritten(metadata: MetadataTable, plan: CompactionPlan, time: str) -> Iterator[WriteStat]:
    """Put the base files of a plan; without records and an older base file a group needs none."""
    storage = metadata.view.storage
    for partition in sorted({one.partition_path for one in plan.operations}):
        listed = {status.path: status for status in metadata.view.files_of(partition)}
        for one in (one for one in plan.operations if one.partition_path == partition):
            name = BaseFileName(one.file_id, ATTEMPT, time, EXTENSION)
            _delete_others(metadata, name, partition, listed)
            slice_ = _slice(metadata, one, listed)
            entries = _merged(metadata, slice_)
            if not entries and slice_.base is None:
                continue
            path = in_partition(partition, str(name))
            keys = pa.array([key for key, _ in entries], pa.string())
            content = base_file(keys, (value for _, value in entries))
            size = len(put_once(storage, path, content))
            yield WriteStat(
                one.file_id,
                path,
                partition,
                prev_commit=slice_.base.name.instant_time if slice_.base else "null",
                num_writes=len(entries),
                total_write_bytes=size,
                file_size_bytes=size,
                total_log_files_compacted=len(slice_.logs),
                total_log_size_compacted=sum(log.size for log in slice_.logs),
            )


def _delete_others(
    metadata: MetadataTable, own: BaseFileName, partition: str, listed: Iterable[str]
) -> None:
    """Delete what a dead attempt of another engine left: its readers check no commit for names."""
    names = filter(None, (BaseFileName.parse(posixpath.basename(p), EXTENSION) for p in listed))
    same = {name for name in names if replace(name, write_token=ATTEMPT) == own} - {own}
    storage, layout = metadata.view.storage, metadata.timeline.layout
    if same and load_timeline(storage, layout).is_pending(own.instant_time):
        storage.delete_many([in_partition(partition, str(name)) for name in same])


def _slice(
    metadata: MetadataTable, one: CompactionOperation, listed: Mapping[str, FileStatus]
) -> FileSlice:
    """The slice that a plan names."""
    found: list[BaseFile | LogFile] = []
    for name in filter(None, (one.base_file, *one.log_files)):
        path = in_partition(one.partition_path, name)
        file = data_file(one.partition_path, listed[path], EXTENSION) if path in listed else None
        if file is None:
            root = metadata.view.storage.root
            raise CorruptFileError(f"{root}/{path}, to be compacted, is missing", REBUILD)
        found.append(file)
    base = next((metadata.view.checked(file) for file in found if isinstance(file, BaseFile)), None)
    logs = tuple(file for file in found if isinstance(file, LogFile))
    return FileSlice(FileGroupId(one.partition_path, one.file_id), one.base_instant, base, logs)


def _merged(metadata: MetadataTable, slice_: FileSlice) -> list[Entry]:
    """The entries of a slice, without what is deleted.

    Those of its base file that no log file changes are not decoded: a record index has many.
    """
    changes = list(metadata.logged(slice_))
    changed = {key.encode() for key, _ in changes}
    entries, older = [], dict[str, Record]()
    if slice_.base is not None:
        path = slice_.base.path
        with metadata.opened(slice_.base) as file:
            schema = schema_of(file.info.get("schema"), path)
            read, is_same = record_reader(schema, path), _is_current(schema, path)
            for key, value in file.scan():
                if key in changed or not is_same:
                    with damage_in(path):
                        older[key.decode()] = read(key.decode(), value)
                else:
                    entries.append((key, value))
    kept = filter(None, map(without_deletes, folded(older, changes).values()))
    entries += [(record["key"].encode(), encode_record(record)) for record in kept]
    return sorted(entries)


def _is_current(schema: str | bytes, path: str) -> bool:
    """Whether values of a schema are also values of that which is written."""
    is_text_same = schema in (SCHEMA, SCHEMA.encode())
    return is_text_same or astuple(parse_avro(schema, path)) == astuple(parse_avro(SCHEMA, path))


def base_file(keys: pa.Array, values: Iterable[bytes]) -> bytes:
    """Return a base file of sorted keys (string) with a value each."""
    bloom = BloomFilterBuilder(_BLOOM)
    bloom.add(pa.chunked_array([keys]))
    info = {"schema": SCHEMA.encode(), "bloomFilterTypeCode": _BLOOM.kind.value.encode()}
    if len(keys):
        first, last = keys[0].as_py(), keys[-1].as_py()
        info |= {"minRecordKey": first.encode(), "maxRecordKey": last.encode()}
    metas = {"bloomFilter": bloom.footers()[BLOOM_FILTER_FOOTER].encode()}
    sink = io.BytesIO()
    write_hfile(sink, entries_of(keys, values), 0, metas=metas, info=info)
    return sink.getvalue()


def entries_of(keys: pa.Array, values: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys (string) with a value each, as a file has them."""
    raw = keys.cast(pa.binary())
    parts = (raw.slice(start, _AT_ONCE).to_pylist() for start in range(0, len(raw), _AT_ONCE))
    return zip(chain.from_iterable(parts), values, strict=True)
