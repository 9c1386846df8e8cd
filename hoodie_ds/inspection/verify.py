"""Checks of every promise of a table at rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.html_table import html_table
from hoodie_ds.columns.meta_columns import PARTITION_PATH, RECORD_KEY
from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader, MadeColumn
from hoodie_ds.hints import REBUILD_FILTER, TWO_GROUPS
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.inspection.committed_files import CommittedFiles, committed_files
from hoodie_ds.inspection.damaged_instants import (
    damaged_instants,
    damaged_plans,
    damaged_savepoints,
    empty_instants,
    lost_findings,
    vanished_finding,
)
from hoodie_ds.inspection.files import paths_of
from hoodie_ds.inspection.findings import Finding, Kind, Severity
from hoodie_ds.inspection.listing import plain
from hoodie_ds.inspection.recorded_files import recorded_findings
from hoodie_ds.inspection.replay_guard import guard_findings
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.services.context import Progress
from hoodie_ds.services.orphans import find_orphans
from hoodie_ds.sink.digest.row_hash import Hashes, row_hashes
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.checksums import HELD_BYTES, check_file, open_base_file
from hoodie_ds.table.file_name import bucket_of
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import naming_remedies, remedy_for
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import column_history, virtual_keys
from hoodie_ds.timeline.paths import PARTITION_METAFILE, in_partition
from hoodie_ds.timeline.timeline import Timeline

_THREADS: Final = 4
_COPIES: Final = "delete these keys, which takes every copy, and write their rows again"
_ANOTHER_INDEX: Final = (
    "the table has another index, or another number of buckets; upsert into it with the engine "
    "that wrote it"
)
_NAMED: Final = 10
"""Keys that a finding names at most."""


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """What a check of a table found; true if no promise was broken.

    Parameters
    ----------
    path : str
        The table's base path.
    files, bytes, rows : int
        What was checked.
    findings : tuple of Finding
        What was found, damage first.
    """

    path: str
    files: int
    bytes: int
    rows: int
    findings: tuple[Finding, ...]

    @property
    def damage(self) -> tuple[Finding, ...]:
        """Promises that are broken."""
        return tuple(one for one in self.findings if one.severity is Severity.DAMAGE)

    def __bool__(self) -> bool:
        return not self.damage

    def __repr__(self) -> str:
        looked = f"{self.files} files, {self.rows} rows"
        return f"<Verification of {self.path}: {looked}, {len(self.damage)} damages>"

    def _repr_html_(self) -> str:
        return html_table(repr(self), map(plain, self.findings), len(self.findings))


@dataclass(slots=True)
class _Slice:
    """What a check of a slice found."""

    rows: int = 0
    keys: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    findings: list[Finding] = field(default_factory=list)


def broken_instants(
    table: Table, timeline: Timeline, known: Iterable[Finding] = ()
) -> Verification | None:
    """Return the damaged instants of a table; None if all can be read.

    Which files count is unknown then, so nothing else is checked.
    """
    findings = tuple(damaged_instants(table, timeline))
    return Verification(table.storage.root, 0, 0, 0, (*findings, *known)) if findings else None


def not_to_be_read(table: Table, timeline: Timeline) -> Verification | None:
    """Return that rows cannot be checked if the numbers of columns are lost; else None."""
    try:
        column_history(table, timeline)
    except UnsupportedTableError as error:
        finding = Finding.of(Kind.NOT_CHECKED, "", error)
        return Verification(table.storage.root, 0, 0, 0, (finding,))
    return None


def verify_table(
    pinned: PinnedTable,
    buckets: Buckets | None,
    progress: Progress | None = None,
    *,
    keys_are_global: bool = False,
    known: Iterable[Finding] = (),
) -> Verification:
    """Check a table: its commits, files, rows and keys, and its buckets if they are known.

    `known` are findings of before.
    """
    storage, timeline = pinned.table.storage, pinned.timeline
    broken = broken_instants(pinned.table, timeline, known)
    if broken is not None:
        return broken
    findings = list(known)
    view = FileSystemView(storage, timeline, pinned.verify)
    files = view.data_files()
    findings += empty_instants(pinned.table)
    findings += damaged_savepoints(pinned.table, timeline)
    findings += damaged_plans(pinned.table, timeline)
    findings += lost_findings(pinned.table)
    findings += guard_findings(pinned.table, timeline)
    committed = committed_files(pinned)
    findings += committed.findings(pinned, files)
    bad = {one.where for one in findings if one.severity is Severity.DAMAGE}
    findings += recorded_findings(pinned, committed, files)
    slices, more = _slices(view, files, bad)
    findings += more
    findings += _bucket_findings(slices, buckets)
    findings += _metafile_findings(storage, slices)
    checked = _checked(pinned, committed, slices, buckets, progress)
    for one in checked.values():
        findings += one.findings
    findings += _duplicates(pinned, checked, keys_are_global)
    with suppress(CorruptFileError):  # of the decision log or a savepoint, which is found above
        orphans, vanished = find_orphans(pinned.table, timeline, files)
        findings += map(vanished_finding, vanished)
        for status in orphans:
            remedy = f"{pinned.table.command('cleanup')} deletes it"
            findings.append(Finding(Kind.ORPHAN, status.path, "no commit names the file", remedy))
    ordered = sorted(findings, key=lambda f: (f.severity is not Severity.DAMAGE, f.kind, f.where))
    size, rows = sum(s.size for s in slices), sum(one.rows for one in checked.values())
    count = sum(1 for s in slices for _ in paths_of(s))
    return Verification(storage.root, count, size, rows, tuple(ordered))


def verify_metadata_table(pinned: PinnedTable) -> Verification:
    """Compare the metadata table with timeline, folders and files."""
    files = FileSystemView(pinned.table.storage, pinned.timeline, pinned.verify).data_files()
    findings = recorded_findings(pinned, committed_files(pinned), files)
    size = sum(status.size for status in files)
    return Verification(pinned.table.storage.root, len(files), size, 0, tuple(findings))


def _slices(
    view: FileSystemView, files: Iterable[FileStatus], bad: set[str]
) -> tuple[list[FileSlice], list[Finding]]:
    """Return the newest slices that can be read, and findings for the others."""
    groups: dict[tuple[str, str], list[FileStatus]] = {}
    for status in files:
        name = status.path.rpartition("/")[2].removeprefix(".")
        groups.setdefault((status.folder, name.partition("_")[0]), []).append(status)
    slices: list[FileSlice] = []
    findings: list[Finding] = []
    for (folder, file_id), listed in sorted(groups.items()):
        try:
            with naming_remedies(view.storage, view.timeline):
                found = list(view.slices_among(listed))
        except CorruptFileError as error:
            if bad.isdisjoint(_of_group(bad, folder, file_id)):
                where = f"{folder}/{file_id}".lstrip("/")
                findings.append(Finding.of(Kind.DAMAGED_FILE, where, error))
            continue
        slices += [one for one in found if bad.isdisjoint(paths_of(one))]
    return slices, findings


def _of_group(paths: Iterable[str], folder: str, file_id: str) -> list[str]:
    start = f"{folder}/" if folder else ""
    return [p for p in paths if p.startswith((f"{start}{file_id}_", f"{start}.{file_id}_"))]


def _bucket_findings(slices: Iterable[FileSlice], buckets: Buckets | None) -> Iterator[Finding]:
    if buckets is None:
        return
    owners: dict[tuple[str, int], str] = {}
    for slice_ in slices:
        path, file_id = slice_.group.partition_path, slice_.group.file_id
        bucket, count = bucket_of(file_id), buckets.num_buckets_in(path)
        if bucket is None or bucket >= count:
            message = f"its name belongs to none of {count} buckets"
            yield Finding(Kind.WRONG_BUCKET, str(slice_.group), message, _ANOTHER_INDEX)
        elif owners.setdefault((path, bucket), file_id) != file_id:
            message = f"bucket {bucket} has another file group too, {owners[path, bucket]}"
            yield Finding(Kind.TWO_GROUPS_OF_A_BUCKET, str(slice_.group), message, TWO_GROUPS)


def _metafile_findings(storage: Storage, slices: Iterable[FileSlice]) -> Iterator[Finding]:
    """Yield partitions without the file by which Hudi finds them; it may have any extension."""
    for path in sorted({one.group.partition_path for one in slices} - {""}):
        names = (status.path.rpartition("/")[2] for status in storage.list(path))
        if not any(name.startswith(PARTITION_METAFILE) for name in names):
            where, message = in_partition(path, PARTITION_METAFILE), "Hudi finds partitions by it"
            yield Finding(Kind.MISSING_FILE, where, message, "copy that of another partition")


def _checked(
    pinned: PinnedTable,
    committed: CommittedFiles,
    slices: list[FileSlice],
    buckets: Buckets | None,
    progress: Progress | None,
) -> Mapping[FileSlice, _Slice]:
    total, done = sum(one.size for one in slices), 0
    found: dict[FileSlice, _Slice] = {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hoodie-verify") as pool:
        checks = pool.map(partial(_check, pinned, committed, buckets), slices)
        for slice_, one in zip(slices, checks, strict=True):
            found[slice_] = one
            done += slice_.size
            if progress is not None:
                progress(done, total)
    return found


def _check(
    pinned: PinnedTable,
    committed: CommittedFiles,
    buckets: Buckets | None,
    slice_: FileSlice,
) -> _Slice:
    """Read a whole slice and check the keys of its rows."""
    found = _Slice()
    where = _first_path(slice_)
    hashes: list[Hashes] = []
    storage, timeline = pinned.table.storage, pinned.timeline
    try:
        with naming_remedies(storage, timeline):
            committed.check(storage, slice_)
            found.findings += _base_findings(pinned, committed, slice_)
        for rows in pinned.reader().read(slice_, pinned.schema.names):
            found.rows += rows.num_rows
            if rows.num_rows and _has_keys(pinned):
                keys = _keys(pinned, rows)
                hashes.append(row_hashes(pa.table({RECORD_KEY: keys})))
                found.findings += _row_findings(pinned, rows, keys, slice_, buckets)
    except (CorruptFileError, UnsupportedTableError) as error:
        found.findings.append(Finding.of(Kind.DAMAGED_FILE, where, error))
    if hashes:
        found.keys = np.concatenate(hashes)
    return found


def _first_path(slice_: FileSlice) -> str:
    return next(file.path for file in slice_.files)


def _has_keys(pinned: PinnedTable) -> bool:
    return RECORD_KEY in pinned.schema.names or _virtual(pinned) is not None


def _virtual(pinned: PinnedTable) -> MadeColumn | None:
    return virtual_keys(pinned.table.properties, pinned.schema)


def _keys(pinned: PinnedTable, rows: pa.Table) -> pa.ChunkedArray:
    """Return the record keys of rows, computed where the files have none."""
    made = _virtual(pinned)
    return rows.column(RECORD_KEY) if made is None else made.make(rows)


def _row_findings(
    pinned: PinnedTable,
    rows: pa.Table,
    keys: pa.ChunkedArray,
    slice_: FileSlice,
    buckets: Buckets | None,
) -> Iterator[Finding]:
    """Yield rows of another partition or bucket than that of their file."""
    where, path = _first_path(slice_), slice_.group.partition_path
    if PARTITION_PATH in rows.column_names:
        others = keys.filter(pc.not_equal(rows.column(PARTITION_PATH), path))
        if len(others):
            message = f"rows of another partition: {_some(others)}"
            remedy = remedy_for(pinned.table.storage, pinned.timeline, where)
            yield Finding(Kind.WRONG_PARTITION, where, message, remedy)
    bucket = bucket_of(slice_.group.file_id)
    if buckets is not None and bucket is not None:
        paths = pa.array([path]).dictionary_encode().take(pa.array(np.zeros(len(keys), np.int64)))
        astray = keys.filter(pa.array(buckets.ids(keys, paths) != bucket))
        if len(astray):
            message = f"keys of other buckets than {bucket}: {_some(astray)}"
            yield Finding(Kind.WRONG_BUCKET, where, message, _ANOTHER_INDEX)


def _base_findings(
    pinned: PinnedTable, committed: CommittedFiles, slice_: FileSlice
) -> Iterator[Finding]:
    """Yield a base file with a wrong number of rows, or a bloom filter that denies its keys."""
    base, storage = slice_.base, pinned.table.storage
    if base is None:
        return
    keys_only = pa.schema([pa.field(RECORD_KEY, pa.string())])
    if base.checksum is not None and base.size > HELD_BYTES:
        check_file(storage, base.path, base.checksum)  # whatever this process has read of it
    with open_base_file(storage, base) as source:
        reader = BaseFileReader(source, keys_only, base.path, trusted=base.trusted)
        stat = committed.stats.get(base.path)
        if stat is not None and stat.num_writes != reader.num_rows:
            message = f"it has {reader.num_rows:,} rows, and its commit says {stat.num_writes:,}"
            remedy = remedy_for(storage, pinned.timeline, base.path)
            yield Finding(Kind.ROW_COUNT, base.path, message, remedy)
        bloom = reader.bloom_filter() if RECORD_KEY in pinned.schema.names else None
        if bloom is not None:
            keys = reader.read().column(RECORD_KEY).combine_chunks()
            denied = keys.filter(pa.array(~np.asarray(bloom.may_contain(keys), np.bool_)))
            if len(denied):
                message = f"its bloom filter denies keys that it has: {_some(denied)}"
                yield Finding(Kind.BLOOM_DENIES_KEY, base.path, message, REBUILD_FILTER)


def _duplicates(
    pinned: PinnedTable, checked: Mapping[FileSlice, _Slice], keys_are_global: bool
) -> Iterator[Finding]:
    """Yield keys that a partition, or the table, has twice: found by hash, confirmed by key."""
    by_path: dict[str, list[FileSlice]] = {}
    for slice_ in checked:
        where = "(all partitions)" if keys_are_global else slice_.group.partition_path
        by_path.setdefault(where, []).append(slice_)
    made = _virtual(pinned)
    names = [RECORD_KEY] if made is None else made.made_from.names
    for path, slices in by_path.items():
        ordered = np.sort(np.concatenate([checked[one].keys for one in slices]))
        twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if not len(twice):
            continue
        parts = []
        for one in slices:
            if not np.isin(checked[one].keys, twice).any():
                continue
            for rows in pinned.reader().read(one, names):
                if rows.num_rows:
                    keys = _keys(pinned, rows)
                    hashes = row_hashes(pa.table({RECORD_KEY: keys}))
                    parts.append(keys.filter(pa.array(np.isin(hashes, twice))).combine_chunks())
        counts = pc.value_counts(pa.chunked_array(parts, pa.string()).combine_chunks())
        keys = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        if len(keys):
            message = f"{len(keys):,} keys have more than one row: {_some(keys)}"
            remedy = _COPIES
            if RECORD_INDEX in pinned.table.properties.metadata_partitions:
                index = (IndexType.GLOBAL_SIMPLE if keys_are_global else IndexType.SIMPLE).value
                remedy += f"; delete with hoodie.index.type={index}: a record index finds one copy"
            yield Finding(Kind.DUPLICATE_KEY, path or "(no partition)", message, remedy)


def _some(keys: pa.Array | pa.ChunkedArray) -> str:
    named = ", ".join(map(str, keys[:_NAMED].to_pylist()))
    return f"{named}{f' and {len(keys) - _NAMED:,} more' if len(keys) > _NAMED else ''}"
