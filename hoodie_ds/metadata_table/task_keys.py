"""Log files of the record index that the tasks of a write put, each for the keys that it adds.

So what a driver reads and writes does not grow with the rows. A task with few keys leaves them to
the driver, which finds them in the data files: many tasks would put many small files. What is known
to the task alone counts: keys of new file groups, and those that a base file adds to the one before
if it takes none away.

The log files have the time of the write in their names, and no instant of the metadata table has
it before the delta commit that names them. So no reader sees them earlier, also Hudi on the JVM,
which does not look for names: whoever puts the delta commit first deletes the log files of lost
tasks, and whoever rolls the write back deletes all. Only in layout 2 they have such names.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import as_numpy
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, is_kept
from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.metadata_table.compaction import entries_of, put_once
from hoodie_ds.metadata_table.delta_commit import log_stat, num_groups, record_block
from hoodie_ds.metadata_table.payload import encode_record
from hoodie_ds.metadata_table.record_index import index_record
from hoodie_ds.metadata_table.record_keys import file_groups_of, file_id
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, WriteStat
from hoodie_ds.timeline.bodies.indexed_keys import IndexedKeys
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import METADATA_TABLE, V1, in_partition
from hoodie_ds.timeline.rollbacks import undone_by

LEAST_KEYS: Final = 10_000
"""New keys from which on a task puts them into the index itself."""
_MOST_KEYS: Final = 1 << 20
"""Keys that a task holds before it puts log files."""
_FIRST: Final = 2
"""The version of a task's first log files; those of delta commits have 1."""


def takes_keys(table: Table) -> bool:
    """Whether tasks can put keys into the record index of a table."""
    properties = table.properties
    is_there = RECORD_INDEX in properties.metadata_partitions and is_kept(properties)
    return is_there and table.layout != V1.version and record_index(table) == "table"


class TaskKeys:
    """The keys that one task adds to file groups, and the log files that it puts of them.

    `token` returns the attempt's own write token of a version, and `files` takes the paths of what
    is to be deleted if the task is late.
    """

    def __init__(
        self, table: Table, time: str, token: Callable[[int], str], files: list[str]
    ) -> None:
        self._time, self._token, self._begun = time, token, files
        self._storage = SubfolderStorage(table.storage, METADATA_TABLE)
        self._epoch_ms = epoch_ms(time, table.properties.timeline_in_utc)
        self._groups, self._version = 0, _FIRST
        self._logs: dict[str, tuple[int, int]] = {}
        self._files: list[str] = []
        self._held: list[tuple[FileGroupId, pa.Array]] = []
        self._num_keys = 0
        self._lock = Lock()  # files are also finished in the thread that flushes

    def add(self, path: str, group: FileGroupId, keys: Sequence[pa.Array]) -> None:
        """Take all keys that a data file adds to its file group."""
        with self._lock:
            self._files.append(path)
            self._held += ((group, piece.cast(pa.string())) for piece in keys)
            self._num_keys += sum(map(len, keys))
            if self._num_keys >= _MOST_KEYS:
                self._put()

    def close(self) -> IndexedKeys:
        """Put the rest of the keys, unless all of them are few."""
        if self._num_keys >= LEAST_KEYS or self._logs:
            self._put()
        return IndexedKeys(self._groups, self._logs, frozenset(self._files if self._logs else ()))

    def _put(self) -> None:
        self._groups = self._groups or num_groups(self._storage, RECORD_INDEX)
        if not self._groups or not self._num_keys:  # the index was dropped meanwhile
            return
        version, self._version = self._version, self._version + 1
        groups, pieces = zip(*self._held, strict=True)
        values = [encode_record(index_record(group, self._epoch_ms)) for group in groups]
        of_key = np.repeat(np.arange(len(pieces)), [*map(len, pieces)])
        keys = pa.concat_arrays(pieces)
        order = as_numpy(pc.sort_indices(keys))
        keys, of_key = keys.take(pa.array(order)), of_key[order]
        numbers = file_groups_of(keys, self._groups)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            found = keys.filter(pa.array(here))
            records = (values[one] for one in of_key[here])
            block = record_block(self._time, entries_of(found, records))
            name = LogFileName(
                file_id(RECORD_INDEX, number), self._time, version, self._token(version)
            )
            path = in_partition(RECORD_INDEX, str(name))
            self._begun.append(f"{METADATA_TABLE}/{path}")
            self._logs[path] = len(found), len(put_once(self._storage, path, block))
        self._held.clear()
        self._num_keys = 0


def settled(table: Table, instant: Instant, changes: FileChanges) -> IndexedKeys:
    """Return what the tasks of a write have put into the index, if it can be used.

    Nothing if the index is another one by now: then the keys are found in the data files. Log files
    that are not used are deleted.
    """
    if instant.action not in WRITE_ACTIONS or changes.is_rewrite or not takes_keys(table):
        return IndexedKeys()
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    there = put_by_tasks(storage, instant.time)
    found = changes.indexed
    if found.logs:
        sizes = {path: size for path, (_, size) in found.logs.items()}
        is_same = found.groups == num_groups(storage, RECORD_INDEX)
        if not (is_same and sizes.items() <= there.items() and found.files <= changes.added.keys()):
            found = IndexedKeys()
    unused = [path for path in there if path not in found.logs]
    if unused:
        timeline = load_timeline(storage, table.layout)
        if timeline.commit_at(instant.time) is None and not timeline.starts_after(instant.time):
            storage.delete_many(unused)  # no delta commit names them
    return found


def forget_undone(table: Table, undoing: Instant) -> None:
    """Delete what the tasks of writes have put that an instant rolls back, if nobody counts it."""
    if undoing.action not in (Action.ROLLBACK, Action.RESTORE) or not takes_keys(table):
        return
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    timeline = load_timeline(storage, table.layout)
    for time in undone_by(table.storage, undoing):
        if not (timeline.at(time) or timeline.starts_after(time)):
            storage.delete_many([*put_by_tasks(storage, time)])


def delete_late(table: Table, time: str, body: bytes) -> None:
    """Delete what late tasks of a write have put that its completed file does not name."""
    if not takes_keys(table):
        return
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    if there := put_by_tasks(storage, time):
        named = IndexedKeys.of(CommitMetadata.from_bytes(body, time).extra).logs
        storage.delete_many([path for path in there if path not in named])


def put_by_tasks(storage: Storage, time: str) -> dict[str, int]:
    """Return the log files that tasks of a write have put, and their sizes."""
    found: dict[str, int] = {}
    for status in storage.list(RECORD_INDEX):
        name = LogFileName.parse(status.path.rpartition("/")[2])
        if name is not None and name.base_instant == time and name.version >= _FIRST:
            found[status.path] = status.size
    return found


def stats_of(indexed: IndexedKeys, time: str) -> Iterator[WriteStat]:
    """Yield the write stats of log files of tasks."""
    for path, (num_keys, size) in sorted(indexed.logs.items()):
        name = LogFileName.parse(path.rpartition("/")[2])
        assert name is not None, path
        yield log_stat(name, RECORD_INDEX, time, num_keys, 0, size)


def placed(storage: Storage, indexed: IndexedKeys, keys: Collection[str]) -> Iterator[str]:
    """Yield those of some keys that log files of tasks hold."""
    numbers = file_groups_of(pa.array(keys, pa.string()), indexed.groups)
    asked: dict[str, list[bytes]] = {}
    for key, number in zip(keys, numbers.tolist(), strict=True):
        asked.setdefault(file_id(RECORD_INDEX, number), []).append(key.encode())
    for path in indexed.logs:
        name = LogFileName.parse(path.rpartition("/")[2])
        some = asked.get(name.file_id, ()) if name is not None else ()
        for block in read_blocks(storage.read(path), path) if some else ():
            for found, _ in HFile(io.BytesIO(block.content), path).get_many(sorted(some)):
                yield found.decode()
