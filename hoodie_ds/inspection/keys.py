"""Location and history of a record key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.java_order import java_order
from hoodie_ds.columns.meta_columns import COMMIT_TIME, RECORD_KEY, without_meta_columns
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.inspection.archived_instants import archived_backwards
from hoodie_ds.inspection.instants import batch_of
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.slices.log_reader import LogReader
from hoodie_ds.table.checksums import open_base_file
from hoodie_ds.table.file_name import BaseFileName, LogFileName, bucket_of
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """A row of a key, without meta columns, and the newest slice of its file group."""

    partition: str
    file_id: str
    commit_time: str
    base_file: str  # its name, empty if there is none
    log_files: int
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A step in the history of a key.

    `what` is ``inserted``, ``updated`` or ``deleted``; ``written`` where earlier files are gone, so
    that it was one of the first two; ``rewritten`` where a file was rewritten with the row
    unchanged; ``replaced`` where the whole file group was.
    """

    time: str
    what: str
    partition: str
    file: str  # empty if it is gone, or the commit wrote none
    operation: str  # empty if the commit is not known any more
    query: str
    batch: int | None
    row: Mapping[str, Any] | None  # the user's columns that were written; None of a delete


def locate_key(
    pinned: PinnedTable,
    key: str,
    partition: str | None = None,
    buckets: Buckets | None = None,
) -> list[KeyLocation]:
    """Return the file groups that have a row of a key; more than one are damage.

    Other buckets than the key's are read only if that one lacks it.
    """
    _check_keys(pinned)
    slices = [s for s in pinned.slices() if partition in (None, s.group.partition_path)]
    if buckets is None:
        return _located(pinned, key, slices)
    mine = [s for s in slices if _is_of_bucket(buckets, s.group, key)]
    others = (s for s in slices if not _is_of_bucket(buckets, s.group, key))
    return _located(pinned, key, mine) or _located(pinned, key, others)


def _is_of_bucket(buckets: Buckets, group: FileGroupId, key: str) -> bool:
    count = buckets.num_buckets_in(group.partition_path)
    (bucket,) = buckets.hashed(pa.chunked_array([[key]], pa.string()), count)
    return bucket_of(group.file_id) == int(bucket)


def _located(pinned: PinnedTable, key: str, slices: Iterable[FileSlice]) -> list[KeyLocation]:
    found, reader = [], pinned.reader()
    for slice_ in slices:
        group, base = slice_.group, slice_.base
        if base is not None and not slice_.logs and not _may_hold(pinned, base, key):
            continue
        for rows in reader.read(slice_, pinned.schema.names):
            mine = _of_key(rows, key)
            for row, time in zip(_user_rows(mine), _times(mine), strict=True):
                name = str(base.name) if base else ""
                found.append(
                    KeyLocation(
                        group.partition_path, group.file_id, time, name, len(slice_.logs), row
                    )
                )
    return found


def trace_key(pinned: PinnedTable, key: str, buckets: Buckets | None = None) -> list[KeyEvent]:
    """Return the history of a key, the oldest step first, as far as files and commits show it.

    It reads every file that may have the key, those of older slices too. Of deleted files only the
    commit times of later rows remain. `buckets` are given if they were never rescaled: other ones
    than the key's are read only if that one has nothing.
    """
    _check_keys(pinned)
    groups = list(_groups(pinned))
    if buckets is None:
        return list(_events(pinned, _steps(pinned, groups, key)))
    mine = [one for one in groups if _is_of_bucket(buckets, one[0], key)]
    steps = _steps(pinned, mine, key)
    if not steps:
        others = (one for one in groups if not _is_of_bucket(buckets, one[0], key))
        steps = _steps(pinned, others, key)
    return list(_events(pinned, steps))


def _steps(pinned: PinnedTable, groups: Iterable[_Group], key: str) -> list[_Step]:
    steps: list[_Step] = []
    for group, bases, logs in groups:
        base_steps = list(_base_steps(pinned, group, bases, key))
        log_steps = list(_log_steps(pinned, group, logs, key)) if logs else []
        steps += base_steps + log_steps
        if any(step.row is not None for step in base_steps + log_steps):
            steps += _replacements(pinned, group)
    return steps


@dataclass(frozen=True, slots=True)
class _Step:
    """What one file shows of a key: a row or its absence."""

    time: str
    group: FileGroupId
    file: str
    row: Mapping[str, Any] | None
    written_at: str = ""
    is_log: bool = False
    replaced: bool = False


def _check_keys(pinned: PinnedTable) -> None:
    if RECORD_KEY not in pinned.schema.names:
        raise UnsupportedTableError(
            f"{pinned.table.storage.root}: the files of the table have no record keys "
            "(hoodie.populate.meta.fields is false); read it with a filter instead"
        )


_Group = tuple[FileGroupId, list[BaseFile], list[LogFile]]


def _groups(pinned: PinnedTable) -> Iterator[_Group]:
    """Yield the file groups with their committed files, those of older slices too, by time."""
    view = FileSystemView(pinned.table.storage, pinned.timeline, pinned.verify)
    bases: dict[FileGroupId, list[BaseFile]] = {}
    logs: dict[FileGroupId, list[LogFile]] = {}
    for status in view.data_files():
        name = status.path.rpartition("/")[2]
        base, log = BaseFileName.parse(name), LogFileName.parse(name)
        if base is not None:
            time = base.instant_time
            if view.is_committed(time) and view.names(time, status.path):
                group = FileGroupId(status.folder, base.file_id)
                bases.setdefault(group, []).append(BaseFile(status.folder, base, status.size))
        elif log is not None:
            group = FileGroupId(status.folder, log.file_id)
            logs.setdefault(group, []).append(LogFile(status.folder, log, name, status.size))
    for group in sorted({*bases, *logs}):
        yield (
            group,
            sorted(bases.get(group, ()), key=lambda b: padded(b.name.instant_time)),
            sorted(
                logs.get(group, ()), key=lambda g: (padded(g.name.base_instant), g.name.version)
            ),
        )


def _base_steps(
    pinned: PinnedTable, group: FileGroupId, bases: Iterable[BaseFile], key: str
) -> Iterator[_Step]:
    held = False
    for base in bases:
        time = base.name.instant_time
        row, written = None, ""
        if _may_hold(pinned, base, key):
            with open_base_file(pinned.table.storage, base) as source:
                renaming = pinned.history.renaming(time)
                reader = BaseFileReader(
                    source, pinned.schema, base.path, trusted=True, renaming=renaming
                )
                for rows in reader.pieces():
                    mine = _of_key(rows, key)
                    if mine.num_rows:
                        row, written = _user_rows(mine)[0], _times(mine)[0]
        if row is not None or held:
            yield _Step(time, group, str(base.name), row, written)
        held = row is not None


def _log_steps(
    pinned: PinnedTable, group: FileGroupId, logs: list[LogFile], key: str
) -> Iterator[_Step]:
    slices = pinned.reader()
    reader = LogReader(
        slices.view,
        pinned.schema,
        slices.ordering_fields,
        slices.delete_marker,
        history=pinned.history,
    )
    for time, log, _, records, _ in reader.by_block(tuple(logs)):
        mask = pc.fill_null(pc.equal(records.rows.column(RECORD_KEY), key), False)
        if not pc.any(mask).as_py():
            continue
        mine = records.take(np.flatnonzero(mask.to_numpy()))
        for number, row in enumerate(_user_rows(mine.rows)):
            if mine.lacking is not None:  # columns that were not written, rather than null
                lacks = dict(zip(mine.rows.column_names, mine.lacking[number], strict=True))
                row = {name: value for name, value in row.items() if not lacks[name]}
            left = None if mine.deleted[number] else row
            yield _Step(time, group, log.file_name, left, time, is_log=True)


def _replacements(pinned: PinnedTable, group: FileGroupId) -> Iterator[_Step]:
    for instant in pinned.timeline.replace_commits:
        commit = read_commit(pinned.table.storage, instant)
        if group.file_id in commit.replaced.get(group.partition_path, ()) and not commit.is_rewrite:
            yield _Step(instant.time, group, "", None, replaced=True)


def _events(pinned: PinnedTable, steps: list[_Step]) -> Iterator[KeyEvent]:
    known = {step.time for step in steps}
    for step in list(steps):  # a write whose own file is gone
        if step.row is not None and step.written_at and step.written_at not in known:
            known.add(step.written_at)
            steps.append(_Step(step.written_at, step.group, "", step.row, step.written_at))
    commits = _commits(pinned, {step.time for step in steps})
    there: set[str] = set()  # partitions with a copy of the key, each with its own history
    for step in sorted(steps, key=lambda s: (_ended(pinned, s.time), not s.replaced, s.is_log)):
        commit, partition = commits.get(step.time), step.group.partition_path
        rewrite = commit is not None and commit.is_rewrite
        if step.row is None:
            if partition not in there or rewrite:  # a log file or another file group has shown it
                continue
            what = "replaced" if step.replaced else "deleted"
            there.remove(partition)
        elif rewrite or (step.written_at and step.written_at != step.time):
            what = "rewritten"
        else:
            new = "inserted" if step.file else "written"
            what = "updated" if partition in there else new
            there.add(partition)
        query, batch = batch_of(commit) if commit else ("", None)
        yield KeyEvent(
            step.time,
            what,
            partition,
            step.file,
            commit.operation_type if commit else "",
            query,
            batch,
            step.row,
        )


def _ended(pinned: PinnedTable, time: str) -> str:
    instant = pinned.timeline.commit_at(time)
    return padded(instant.ended if instant else time)


def _commits(pinned: PinnedTable, times: set[str]) -> dict[str, CommitMetadata]:
    """Return the commits of some times; the archive is read as far as needed."""
    table, timeline = pinned.table, pinned.timeline
    at = {time: timeline.commit_at(time) for time in times}
    found = {
        time: read_commit(table.storage, instant)
        for time, instant in at.items()
        if isinstance(instant, Instant)
    }
    missing = times - found.keys()
    oldest = min(missing, default="")
    for archived in archived_backwards(table, bodies=True) if missing else ():
        time = archived.instant.time
        if time in missing and (commit := archived.commit()) is not None:
            found[time] = commit
        if found.keys() >= times or padded(time) < padded(oldest):
            break
    return found


def _may_hold(pinned: PinnedTable, base: BaseFile, key: str) -> bool:
    """Whether a base file may have a key, by its footer."""
    with pinned.table.storage.open_input(base.path) as source:
        keys = pa.schema([pa.field(RECORD_KEY, pa.string())])
        reader = BaseFileReader(source, keys, base.path, trusted=base.trusted)
        bounds = reader.key_range()
        if bounds is not None:
            low, high = bounds
            if not java_order(low) <= java_order(key) <= java_order(high):
                return False
        bloom = reader.bloom_filter()
        return bloom is None or bool(bloom.may_contain(pa.array([key]))[0])


def _of_key(rows: pa.Table, key: str) -> pa.Table:
    return rows.filter(pc.equal(rows.column(RECORD_KEY), key))


def _user_rows(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.select(without_meta_columns(rows.schema).names).to_pylist()
    return found


def _times(rows: pa.Table) -> list[str]:
    found: list[str] = rows.column(COMMIT_TIME).to_pylist()
    return found
