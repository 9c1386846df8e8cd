"""Data files that active and archived commits and savepoints name, compared with storage."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.hints import COPY, lost_savepoint
from hoodie_ds.inspection.archived_instants import archived_backwards
from hoodie_ds.inspection.findings import Finding, Kind
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.checksums import check_change_file, check_file, check_log_bytes
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.gathered_files import LiveFiles
from hoodie_ds.table.lost_files import remedy_of
from hoodie_ds.timeline.archive.archived_timeline import gaps
from hoodie_ds.timeline.archive.lsm_snapshot import HISTORY, VERSION, unnamed_newest
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.paths import HOODIE, V1, commit_path
from hoodie_ds.timeline.timeline import Timeline


@dataclass(slots=True)
class CommittedFiles:
    """What commits and savepoints say of a table's data files, by path."""

    named: dict[str, str] = field(default_factory=dict)
    """What names each file of the newest slices."""
    kept: dict[str, str] = field(default_factory=dict)
    """Times of the savepoints that keep files."""
    namers: dict[str, Instant] = field(default_factory=dict)
    """The active commits that named files of the newest slices last."""
    stats: dict[str, WriteStat] = field(default_factory=dict)
    """Of files of active commits, and of the newest slices those of archived ones too."""
    writers: dict[str, str] = field(default_factory=dict)
    """The commits that `stats` are of."""
    checksums: dict[str, str] = field(default_factory=dict)
    """The xxh64 of files of the newest slices that archived commits wrote."""
    unreadable: list[Finding] = field(default_factory=list)
    """Damage of the archive, and commits with the content of others."""
    gaps: Sequence[str] = ()
    """Files that the archive of layout 1 may have lost; Hudi merges some into others."""

    def findings(self, pinned: PinnedTable, files: Iterable[FileStatus]) -> Iterator[Finding]:
        """Yield files that are missing, damaged, or of another size than their commit says."""
        yield from self.unreadable
        storage, timeline = pinned.table.storage, pinned.timeline
        sizes = {status.path: status.size for status in files}
        missing = [path for path in self.named if path not in sizes]
        if self.gaps and (unsure := [path for path in missing if path not in self.namers]):
            yield self._gap_finding(unsure)
            missing = [path for path in missing if path in self.namers]
        for path in missing:
            whose = self.named[path]
            message = f"{whose} names the file, and it is not there"
            remedy = remedy_of(storage, timeline, self.namers.get(path), path, sizes)
            yield Finding(Kind.MISSING_FILE, path, message, remedy)
        for path, time in self.kept.items():
            if path not in sizes and path not in self.named:
                message = f"savepoint {time} names the file, and it is not there"
                remedy = lost_savepoint(pinned.table.command("savepoint", time, "--delete"))
                yield Finding(Kind.MISSING_FILE, path, message, remedy)
        for path, stat in self.stats.items():
            size, known = sizes.get(path), stat.file_size_bytes
            if size is not None and (size < known or (stat.log is None and 0 < known != size)):
                message = f"it has {size:,} bytes, and {known:,} when {self.writers[path]} wrote it"
                remedy = COPY
                if path in self.named:
                    remedy = remedy_of(storage, timeline, self.namers.get(path), path)
                yield Finding(Kind.WRONG_SIZE, path, message, remedy)
        yield from self._change_findings(pinned, sizes)

    def _gap_finding(self, paths: Sequence[str]) -> Finding:
        """Return the damage of an archive that may say that missing files were replaced."""
        message = (
            f"the archive has later files, and {len(paths)} files that archived commits name are "
            f"not there, unless this one says that they were replaced: {', '.join(paths[:3])}"
        )
        return Finding(Kind.DAMAGED_INSTANT, ", ".join(self.gaps[:3]), message, COPY)

    def _change_findings(self, pinned: PinnedTable, sizes: Container[str]) -> Iterator[Finding]:
        """Yield change data that is damaged, or missing though its base file is there."""
        storage, timeline = pinned.table.storage, pinned.timeline
        known: dict[str, str] = {}
        for instant in timeline.commits:
            known.update(file_changes(storage, instant).checksums)
        for base, stat in self.stats.items():
            for path, size in stat.change_files:
                if path not in sizes:
                    # A clean deletes both.
                    if base in sizes and (base in self.named or base in self.kept):
                        message = f"{self.writers[base]} names the change data of {base}, not there"
                        remedy = remedy_of(storage, timeline, self.namers.get(base), path)
                        yield Finding(Kind.MISSING_FILE, path, message, remedy)
                    continue
                try:
                    check_change_file(path, storage.read(path), size, known.get(path))
                except CorruptFileError as error:
                    yield Finding.of(Kind.DAMAGED_FILE, path, error)

    def check(self, storage: Storage, slice_: FileSlice) -> None:
        """Compare files of a slice with the checksums of archived commits; readers do active ones.

        Raises `CorruptFileError`, which names the file.
        """
        base = slice_.base
        if base is not None and base.checksum is None and base.path in self.checksums:
            check_file(storage, base.path, self.checksums[base.path])
        for log in slice_.logs:
            if (checksum := self.checksums.get(log.path)) is not None:
                check_log_bytes(log, storage.read(log.path), self.stats[log.path], checksum)


def committed_files(pinned: PinnedTable) -> CommittedFiles:
    """Gather what a table's commits and savepoints say of its data files.

    Archived commits are read too: only they name the files of groups not written to since.
    """
    storage, timeline = pinned.table.storage, pinned.timeline
    found, live = CommittedFiles(), LiveFiles(Timeline(layout=timeline.layout))
    for instant in timeline.commits:
        commit = file_changes(storage, instant)
        live.add(instant, commit)
        found.stats |= commit.added
        found.writers |= dict.fromkeys(commit.added, _label(instant))
        found.unreadable += _foreign_files(instant, commit)
    try:
        if timeline.layout == V1.version:
            found.gaps = gaps(storage, f"{HOODIE}/{pinned.table.properties.archive_folder}")
        _add_archived(pinned, found, live)
    except CorruptFileError as error:
        folder = f"{HOODIE}/{pinned.table.properties.archive_folder}"
        folder = folder if timeline.layout == V1.version else HISTORY
        found.unreadable.append(Finding.of(Kind.DAMAGED_INSTANT, folder, error))
    else:
        found.unreadable += _unnamed_manifest(storage, timeline)
    for path, instant in live.all_named(timeline):
        if timeline.commit_at(instant.time) is not None:
            found.namers[path] = instant
        whose = _label(instant)
        found.named[path] = whose if path in found.namers else f"the archived {whose}"
    for instant in timeline.savepoints:
        if instant.state is State.COMPLETED:
            with suppress(CorruptFileError):  # reported as a damaged instant
                found.kept |= dict.fromkeys(file_changes(storage, instant).kept, instant.time)
    return found


def _label(instant: Instant) -> str:
    return f"{instant.action.value} {instant.time}"


def _foreign_files(instant: Instant, commit: FileChanges) -> Iterator[Finding]:
    """Yield a commit that names base files of another one: it has that one's content."""
    names = (BaseFileName.parse(path.rpartition("/")[2]) for path in commit.added)
    strays = [name for name in names if name and name.instant_time != instant.time]
    if strays:
        message = f"it names files of other commits: {strays[0]}"
        yield Finding(Kind.DAMAGED_INSTANT, commit_path(instant), message, COPY)


def _unnamed_manifest(storage: Storage, timeline: Timeline) -> Iterator[Finding]:
    """Yield a ``_version_`` that is lost or empty: a lost manifest would not be noticed."""
    number = 0 if timeline.layout == V1.version else unnamed_newest(storage)
    if number:
        message = f"it does not name the newest manifest, and manifest_{number} is there"
        yield Finding(Kind.DAMAGED_INSTANT, VERSION, message, f"{COPY}, or write {number} into it")


def _add_archived(pinned: PinnedTable, found: CommittedFiles, live: LiveFiles) -> None:
    for archived in archived_backwards(pinned.table, bodies=True):
        body, instant = archived.commit(), archived.instant
        if body is None or pinned.timeline.commit_at(instant.time) is not None:
            continue
        commit = FileChanges.of_commit(body)
        for path in live.add(instant, commit):
            known, stat = found.stats.get(path), commit.added[path]
            # several commits may have written to one log file, which only grows
            if known is None or known.file_size_bytes < stat.file_size_bytes:
                found.stats[path], found.writers[path] = stat, _label(instant)
                if path in commit.checksums:
                    found.checksums[path] = commit.checksums[path]
