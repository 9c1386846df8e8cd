"""Writing the archive of layout 2: new instants, merging of small files, deletion of old ones.

A file of new instants is of level 0; files of a level become one of the next, so the archive has
few files however long its table lives. A file counts once a manifest lists it. Invariant: an
archiver puts a file after it has read the newest manifest, and lists it in the next one or never.
So of two archivers at once one lists its file and the other begins again with a new one, and files
that no manifest lists are known to be waste once another manifest has come (Hudi's
`LSMTimelineWriter`, which relies on a lock).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.formats.parquet.avro_records import encode_records
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.lsm_snapshot import (
    ArchiveFile,
    Snapshot,
    is_archive_file,
    manifest_path,
    newest_snapshot,
    point_to_newest,
    put_manifest,
    read_manifest,
)
from hoodie_ds.timeline.archive.lsm_timeline import archived_keys
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State

_SCHEMA_FILE: Final = "lsm_timeline_instant.avsc"
_TIME, _ACTION, _VERSION = "instantTime", "action", "version"
_SCHEMA: Final = pa.schema(
    [
        pa.field(_TIME, pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field(_ACTION, pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field(_VERSION, pa.int32(), nullable=False),
    ]
)
_STORED: Final = pa.schema([field.with_nullable(True) for field in _SCHEMA])
_SHORT: Final = [_TIME, "completionTime", _ACTION, _VERSION]
_INSTANT_VERSION: Final = 1
_PLANNED: Final = frozenset({Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION})
"""Actions whose requested file is the plan."""

FILES_PER_LEVEL: Final = 10
"""Files of a level that become one of the next, in Hudi by default."""
_MERGED_BYTES: Final = 128 << 20
"""Files are merged up to this size; by Hudi up to 1 GB."""
_SNAPSHOTS_KEPT: Final = 3
"""Manifests that are kept for their readers, as in Hudi."""


@dataclass(frozen=True, slots=True)
class LsmEntry:
    """A completed instant, under the action as which it completed, with the bytes of its files.

    `plan` is empty if the archive has no plans of its action.
    """

    instant: Instant
    metadata: bytes
    plan: bytes = b""

    @property
    def key(self) -> tuple[str, str]:
        """Time and action, which no other instant has both of."""
        return self.instant.time, self.instant.action.value


def entry_of(instant: Instant, contents: Mapping[Instant, bytes]) -> LsmEntry:
    """Return what the archive says of a completed instant with these files, by the step of each."""
    begun = {step.state: step.action for step in contents if step.state is not State.COMPLETED}
    said = {step.state: content for step, content in contents.items()}
    action = begun.get(State.REQUESTED, begun.get(State.INFLIGHT))
    plan = said.get(State.REQUESTED, b"")
    if action in REPLACING:  # as in Hudi; that of a clustering is empty
        plan = said.get(State.INFLIGHT) or plan
    elif action not in _PLANNED:
        plan = b""
    return LsmEntry(instant, contents.get(instant, b""), plan)


def put_entries(storage: Storage, entries: Collection[LsmEntry]) -> frozenset[str]:
    """Put instants, in any order, into the archive, except those that it has.

    When it returns, the archive has them all, durably, and ``_version_`` names it: they may leave
    the active timeline. Returns names in the archive's folder that no later manifest will list for
    the first time, for `merge_and_clean`; none if the archive had all instants. Raises
    `CommitOutcomeUnknownError` if the outcome of a manifest could not be found out.
    """
    settled: frozenset[str] = frozenset()
    while missing := _missing(storage, (snapshot := newest_snapshot(storage)), entries):
        rows = _rows(missing)
        bounds = missing[0].instant.time, missing[-1].instant.time
        file = _put_file(storage, [rows], bounds, level=0)
        if put_manifest(storage, snapshot, (*snapshot.files, file)):
            settled = snapshot.names
    point_to_newest(storage)
    return settled


def merge_and_clean(
    storage: Storage, settled: Collection[str], files_per_level: int = FILES_PER_LEVEL
) -> None:
    """Merge small files of the archive, and delete files that recent manifests do not list.

    `settled` is what `put_entries` returned: no other file is deleted. `files_per_level` files of a
    level become one of the next. Raises `CorruptFileError` if a file of the newest manifest is
    lost, and `CommitOutcomeUnknownError` as `put_entries`.
    """
    level = 0
    while chosen := _to_merge(snapshot := newest_snapshot(storage), level, files_per_level):
        level += 1
        try:
            times = [time for file in chosen for time in _extremes(storage, file)]
            merged = _put_file(storage, _merged(storage, chosen), (min(times), max(times)), level)
        except NotFoundError:
            newest_snapshot(storage)  # refuses if a file is lost
            return  # others have merged the files, and deleted them
        rest = [file for file in snapshot.files if file not in chosen]
        put_manifest(storage, snapshot, [*rest, merged])  # if not, another archiver was faster
    point_to_newest(storage)
    _clean(storage, snapshot, settled, _SNAPSHOTS_KEPT + level)


def _missing(storage: Storage, snapshot: Snapshot, entries: Collection[LsmEntry]) -> list[LsmEntry]:
    """The entries that an archive does not have, by time."""
    wanted = {entry.key: entry for entry in entries}
    for file in snapshot.files:
        if any(file.may_hold(time) for time, _ in wanted):
            with suppress(NotFoundError):  # others have merged it, and listed another one
                for key in archived_keys(storage, file):
                    wanted.pop(key, None)
    return [wanted[key] for key in sorted(wanted)]


def _extremes(storage: Storage, file: ArchiveFile) -> Sequence[str]:
    """First and last time of the instants of a file."""
    low, high = file.bounds
    return (low, high) if low <= high else [time for time, _ in archived_keys(storage, file)]


def _rows(entries: Sequence[LsmEntry]) -> pa.Table:
    instants = [entry.instant for entry in entries]
    columns = [
        [instant.time for instant in instants],
        # An instant that was completed before an upgrade may have none, which Hudi cannot read.
        [instant.ended for instant in instants],
        [instant.action.value for instant in instants],
        [entry.metadata or None for entry in entries],
        [entry.plan or None for entry in entries],
        [_INSTANT_VERSION] * len(entries),
    ]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _to_merge(snapshot: Snapshot, level: int, files_per_level: int) -> list[ArchiveFile]:
    """The oldest files of a level, if there are enough; none that is large by itself."""
    of_level = sorted((f for f in snapshot.files if f.level == level), key=lambda file: file.name)
    if len(of_level) < files_per_level:
        return []
    chosen: list[ArchiveFile] = []
    size = 0
    for file in of_level:
        chosen.append(file)
        size += file.size
        if len(chosen) == files_per_level:
            break
        if size > _MERGED_BYTES:
            if len(chosen) > 1:
                break
            chosen, size = [], 0
    return chosen if len(chosen) > 1 else []


def _merged(storage: Storage, chosen: Iterable[ArchiveFile]) -> Iterator[pa.Table]:
    """The rows of files; of an instant that is in several of them, the first."""
    seen = pa.array([], pa.string())
    for file in chosen:
        before = seen
        with storage.open_input(file.path) as source:
            for piece in BaseFileReader(source, _STORED, file.path).pieces():
                keys = pc.binary_join_element_wise(piece[_TIME], piece[_ACTION], " ")
                rows = piece.filter(pc.invert(pc.is_in(keys, before)))
                seen = pa.concat_arrays([seen, keys.combine_chunks()])
                *others, version = rows.columns
                version = pc.fill_null(version, _INSTANT_VERSION)
                yield pa.Table.from_arrays([*others, version], schema=_SCHEMA)


def _put_file(
    storage: Storage, pieces: Iterable[pa.Table], bounds: tuple[str, str], level: int
) -> ArchiveFile:
    """Put a file of the archive under a free name."""
    body = encode_records(pieces, _SCHEMA, _avro_schema(), _SHORT)
    low, high = bounds
    while True:
        file = ArchiveFile.named(low, high, level, len(body))
        try:
            storage.put_if_absent(file.path, body)
            return file
        except AlreadyExistsError:
            # Of an archiver that was killed, or is slower; an earlier bound is right too.
            low = str(int(low) - 1)


def _clean(storage: Storage, snapshot: Snapshot, settled: Collection[str], kept: int) -> None:
    """Delete all but the newest manifests, then the files that none of those lists."""
    numbers = [number for number in snapshot.manifests if number <= snapshot.number]
    staying: list[int] = []
    listed: set[str] = set()
    for number in numbers:
        if len(staying) == kept:
            break
        with suppress(CorruptFileError, NotFoundError):  # no reader can use it
            listed |= {file.name for file in read_manifest(storage, number)}
            staying.append(number)
    storage.delete_many([manifest_path(number) for number in numbers if number not in staying])
    waste = {name for name in settled if is_archive_file(name)} - listed
    storage.delete_many([ArchiveFile(name, 0).path for name in sorted(waste)])


@lru_cache(maxsize=1)
def _avro_schema() -> str:
    return files(__package__).joinpath(_SCHEMA_FILE).read_text("utf-8")
