"""What an instant did to the files of a table: the one reading of its body that all others share.

Listings, Delta and catalogs, services, `verify` and the archive need the same of an instant, of any
action and layout of the timeline. A process reads it once and keeps it small.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Final

from hoodie_ds.environment import forget_at_fork
from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan, CleanMetadata
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_ds.timeline.bodies.key_files import KeyFiles, key_files_of
from hoodie_ds.timeline.bodies.restore_metadata import restored_files
from hoodie_ds.timeline.bodies.rollback_metadata import PartitionRollback, done_files, planned_files
from hoodie_ds.timeline.bodies.savepoint_metadata import savepointed_files
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import in_partition, instant_path

_TABLES: Final = 8
_HELD_BYTES: Final = 64 << 20
_INSTANT_BYTES: Final = 1_000
_FILE_BYTES: Final = 700


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What one instant did to the files of a table; of a pending clean or rollback, its plan."""

    added: Mapping[str, WriteStat] = field(default_factory=dict)
    """Files that a write, compaction or clustering wrote to, by path."""
    named: frozenset[str] = frozenset()
    """Those, their files of change data, and the other log files of the slices written to."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """The xxh64 of files by path; empty in commits of other writers."""
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Replaced file ids by partition path, those of deleted partitions among them."""
    deleted: frozenset[str] = frozenset()
    """Paths of superseded files that a clean deleted."""
    removed: frozenset[str] = frozenset()
    """Paths of files that a rollback or restore deleted."""
    marked: Mapping[str, int] = field(default_factory=dict)
    """Bytes of log files with hidden or rollback blocks: layout 1 deletes no log files."""
    kept: frozenset[str] = frozenset()
    """Paths of files that a savepoint keeps."""
    ranges: Mapping[str, Mapping[str, ColumnRange]] = field(default_factory=dict)
    """Ranges of columns in added files by path, where the process knows them that wrote the files.
    """
    schema: str = ""
    """The table's schema as Avro JSON, if the instant has it."""
    is_rewrite: bool = False
    """Whether it wrote stored rows anew, without new ones; its schema is no news then."""
    key_files: KeyFiles = field(default_factory=dict)
    """Temporary files with entries of the record index that its tasks have made."""

    @classmethod
    def of(cls, instant: Instant, body: bytes, path: str) -> FileChanges:
        """Return what the body of an instant's file says; the file at `path` may be empty.

        The instant is completed, or requested for the plan of a clean or rollback. Nothing is known
        of other pending instants.
        """
        is_done = instant.state is State.COMPLETED
        if is_done and instant.action in WRITE_ACTIONS:
            return cls.of_commit(CommitMetadata.from_bytes(body, path))
        if not body:
            return cls()
        match instant.action:
            case Action.CLEAN if is_done:
                return cls(deleted=CleanMetadata.from_bytes(body, path).paths)
            case Action.CLEAN:
                return cls(deleted=frozenset(CleanerPlan.from_bytes(body, path).paths))
            case Action.ROLLBACK if is_done:
                return cls._of_rollbacks(done_files(body, path))
            case Action.ROLLBACK:
                return cls._of_rollbacks(*planned_files(body, path).values())
            case Action.RESTORE if is_done:
                return cls._of_rollbacks(restored_files(body, path))
            case Action.SAVEPOINT if is_done:
                return cls(kept=savepointed_files(body, path))
        return cls()

    @classmethod
    def of_commit(cls, commit: CommitMetadata) -> FileChanges:
        """Return what a write, compaction or clustering did."""
        named: set[str] = set()
        for stat in commit.stats:
            named.update(stat.paths)
            if stat.log is not None:
                named |= {in_partition(stat.partition_path, name) for name in stat.log.log_files}
        return cls(
            {stat.path: stat for stat in commit.stats},
            frozenset(named),
            commit.checksums,
            commit.replaced,
            schema=sys.intern(commit.extra.get(SCHEMA_KEY, "")),  # most commits have the same
            is_rewrite=commit.is_rewrite,
            key_files=key_files_of(commit.extra),
        )

    @classmethod
    def _of_rollbacks(cls, *done: PartitionRollback) -> FileChanges:
        removed = frozenset(path for found in done for path in found.deleted)
        marked: dict[str, int] = {}
        for found in done:
            marked |= {**(found.command_logs or {}), **(found.mixed_logs or {})}
        return cls(removed=removed, marked=marked)

    @property
    def partitions(self) -> frozenset[str]:
        """Paths of the partitions in which it wrote, or replaced file groups."""
        return frozenset(stat.partition_path for stat in self.added.values()) | set(self.replaced)

    @property
    def replaced_groups(self) -> frozenset[tuple[str, str]]:
        """Partition path and file id of each file group that it replaced."""
        listed = self.replaced.items()
        return frozenset((partition, file_id) for partition, ids in listed for file_id in ids)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        paths = len(self.named) + len(self.deleted) + len(self.removed) + len(self.marked)
        paths += len(self.kept) + len(self.key_files)
        return _INSTANT_BYTES + _FILE_BYTES * (paths + sum(map(len, self.replaced.values())))


def file_changes(storage: Storage, instant: Instant) -> FileChanges:
    """Return what an instant did to the files of a table; see `FileChanges.of`.

    A write that was archived since the timeline was loaded is read from the archive. Raises
    `TimelineError` if it was rolled back since then, and `NotFoundError` if the file of another
    action is gone.
    """
    return _cache(storage).get(instant)


def forget_instants(storage: Storage) -> None:
    """Forget what the instants of a table did, in whose place there is another."""
    _cache(storage).clear()
    read_commit.cache_clear()


class _Cache:
    """What the instants of one table did, the most recently used."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._found: OrderedDict[Instant, FileChanges] = OrderedDict()
        self._held_bytes = 0
        self._lock = Lock()

    def clear(self) -> None:
        with self._lock:
            self._found.clear()
            self._held_bytes = 0

    def get(self, instant: Instant) -> FileChanges:
        with self._lock:
            known = self._found.get(instant)
            if known is not None:
                self._found.move_to_end(instant)
                return known
        if not instant.counts:  # plans are not cached
            return _read(self._storage, instant.at(State.REQUESTED))
        found = _read(self._storage, instant)
        with self._lock:
            if instant not in self._found:
                self._found[instant] = found
                self._held_bytes += found.nbytes
            while self._held_bytes > _HELD_BYTES:
                _, dropped = self._found.popitem(last=False)
                self._held_bytes -= dropped.nbytes
        return found


@lru_cache(maxsize=_TABLES)
def _cache(storage: Storage) -> _Cache:
    return _Cache(storage)


forget_at_fork(_cache.cache_clear)


def _read(storage: Storage, instant: Instant) -> FileChanges:
    if instant.counts and instant.action in WRITE_ACTIONS:
        return FileChanges.of_commit(read_commit(storage, instant))
    path = instant_path(instant)
    return FileChanges.of(instant, storage.read(path), path)
