"""Entries of the record index, and of secondary indexes, that the tasks of a write make.

So what a driver reads and makes does not grow with the rows: the delta commit joins the log blocks
that tasks have made; see `hoodie_ds.metadata_table.joined_keys`. Until then they are in files of
the write's temporary folder, which no other engine reads and which goes with the write, however
that ends. The commit names the files that count: those of lost tasks are in none.

A task with few keys leaves them to the driver, which finds them in the data files. Of new file
groups, and of base files that take no key away, writers know the keys. Those of other files, such
as log files, the task finds as the driver would, and compares them with the index as it is: no
other write may change where they are before the commit, which refuses what else touches its file
groups. A task that shares file groups, but not its keys, does so with log files that add none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, is_kept
from hoodie_ds.metadata_table.compaction import entries_of
from hoodie_ds.metadata_table.delta_commit import delete_block, new_groups, record_block
from hoodie_ds.metadata_table.payload import Record, encode_record
from hoodie_ds.metadata_table.record_changes import moved_keys
from hoodie_ds.metadata_table.record_index import index_record, places_of, record_indexes
from hoodie_ds.metadata_table.record_keys import file_groups_of, folder_of, groups_among
from hoodie_ds.metadata_table.secondary_changes import THERE, moved_values
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.touched_slices import TouchedSlices
from hoodie_ds.slices.slice_keys import NO_KEYS, among, sole_keys, without
from hoodie_ds.storage.protocol import names_in
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.secondary_index import secondary_indexes
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.bodies.key_files import KeyFiles
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.paths import METADATA_TABLE, keys_path

LEAST_KEYS: Final = 1_000
"""New keys from which on a task makes their entries itself."""
_MOST_KEYS: Final = 1 << 20
"""Keys that a task holds before it puts a file."""
_KEYS_AT_ONCE: Final = 1 << 16
"""Keys whose records a task looks up together."""


def takes_keys(table: Table) -> bool:
    """Whether the tasks of a write can make entries of a table's record index."""
    return RECORD_INDEX in table.properties.metadata_partitions and is_kept(table.properties)


class Held(NamedTuple):
    """Keys of an index for which a task makes entries, of rows in a file group."""

    group: FileGroupId
    keys: pa.Array
    is_new: bool = True  # else the record index tells
    is_gone: bool = False


class TaskKeys:
    """The keys that one task adds to file groups, and the files that it puts of them.

    `token` is the attempt's own write token.
    """

    def __init__(self, table: Table, time: str, token: str) -> None:
        self._table, self._time, self._token = table, time, token
        self._epoch_ms = epoch_ms(time, table.properties.timeline_in_utc)
        self._put_files: dict[str, tuple[int, str]] = {}
        self._known: set[str] = set()
        self._moved: dict[str, tuple[pa.Array, pa.Array]] = {}  # keys added, and lost, by file
        self._files: dict[str, list[str]] = {}
        self._held: dict[str, list[Held]] = {}
        self._num_keys = 0
        self._losing: list[tuple[str, Collection[str], Collection[Held]]] = []
        self._num_losing = 0
        self._secondary = {one.partition: one for one in secondary_indexes(table)}
        self._metadata: MetadataTable | None = None
        self._lock = Lock()  # files are also finished in the thread that flushes

    def add(
        self, path: str, group: FileGroupId, keys: Sequence[pa.Array], gone: pa.Array = NO_KEYS
    ) -> None:
        """Take all keys that a data file adds to its file group, unless that loses some: `find`."""
        pieces = [piece.cast(pa.string()) for piece in keys]
        with self._lock:
            if len(gone):
                self._moved[path] = pa.concat_arrays([NO_KEYS, *pieces]), gone.cast(pa.string())
                return
            self._known.add(path)
            self._take(RECORD_INDEX, [path], [Held(group, piece) for piece in pieces])

    def find(
        self,
        stats: Collection[WriteStat],
        opened: Callable[[], MetadataTable | None],
        schema: str,
        may_move: bool,
        others: Collection[WriteStat] = (),
    ) -> None:
        """Find the keys in all other files of the task, whose file groups no other task writes to.

        And the values of its rows. The metadata table is `opened` by the timeline by which they
        were written, and `schema` is the one that the commit has. If keys `may_move`, one that a
        file group loses may be in another one of the task: one file has the entries of both, or
        the driver finds them. It may be in `others`, too, new files of other tasks, which are read
        for it; there must be no secondary index then.
        """
        left = [one for one in stats if one.path not in self._known and _moves_keys(one)]
        read = stats if self._secondary else left
        if sum(one.num_writes + one.num_deletes for one in read) < LEAST_KEYS:
            return
        self._metadata = metadata = opened()
        assert metadata is not None, self._table  # `takes_keys` has seen its partitions
        groups = {_group(one) for one in (*read, *others)}
        before = TouchedSlices.before(self._table, metadata, groups, schema)
        after = before.after(self._time, FileChanges({one.path: one for one in (*stats, *others)}))
        moved = {}
        for group, files in _by_group(left):
            known = self._moved.get(files[-1].path)
            moved[group] = known or moved_keys(before, after, files[-1], self._time)
        placed = _placed(after, others, [lost for _, lost in moved.values()])
        for group, files in _by_group(left):
            found, lost = moved[group]
            self._take_found(RECORD_INDEX, group, files, (found, without(lost, placed)), may_move)
        for name, index in self._secondary.items():
            for group, files in _by_group(read):
                keys = moved_values(index, before, after, group)
                self._take_found(name, group, files, keys, may_move)
        self._take_losing()

    def find_updates(
        self,
        stats: Collection[WriteStat],
        opened: Callable[[], MetadataTable | None],
        schema: str,
    ) -> None:
        """Find the log files that add no key to their file groups, to which other tasks write too.

        They update rows that the record index has there, and take keys away, of which no other
        task has rows. Only they are read. All other files are the driver's, and with one of them
        all that take keys away, as those may be in it. See `find`.
        """
        left = [one for one in stats if one.path not in self._known and _moves_keys(one)]
        if not LEAST_KEYS <= sum(one.num_writes + one.num_deletes for one in left) < _MOST_KEYS:
            return
        self._metadata = metadata = opened()
        assert metadata is not None, self._table  # `takes_keys` has seen its partitions
        before = TouchedSlices.before(self._table, metadata, {*map(_group, left)}, schema)
        after = before.after(self._time, FileChanges({one.path: one for one in stats}))
        left_out = False
        sole = {group: _sole_keys(after, group, files) for group, files in _by_group(left)}
        stored = self._places({group: keys[0] for group, keys in sole.items() if keys})
        for group, files in _by_group(left):
            keys = sole[group]
            if keys and not len(without(keys[0], stored.get(group, NO_KEYS))):
                self._take_found(RECORD_INDEX, group, files, (NO_KEYS, keys[1]), may_move=True)
            else:
                left_out = True
        if left_out:
            self._losing = []
        self._take_losing()

    def _take_losing(self) -> None:
        """Take the keys that file groups lose, if one file has them and those that they get."""
        if not self._put_files and self._num_keys + self._num_losing < _MOST_KEYS:
            for partition, paths, held in self._losing:
                self._take(partition, paths, held)
        self._losing = []

    def close(self) -> KeyFiles:
        """Put the rest of the keys, unless all of them are few and known without reading."""
        has_more = self._num_keys and self._put_files
        if self._num_keys >= LEAST_KEYS or has_more or (self._files and self._metadata):
            self._put()
        return self._put_files

    def _take_found(
        self,
        partition: str,
        group: FileGroupId,
        files: Iterable[WriteStat],
        keys: tuple[pa.Array, pa.Array],
        may_move: bool,
    ) -> None:
        """Take keys that the files of a group add, and that they take away; see `find`."""
        found, lost = keys
        held = Held(group, found, is_new=False), Held(group, lost, False, is_gone=True)
        paths = [one.path for one in files]
        if not (may_move and len(lost)):
            self._take(partition, paths, held)
            return
        self._num_losing += len(found) + len(lost)
        if self._num_losing < _MOST_KEYS:
            self._losing.append((partition, paths, held))

    def _places(self, keys: Mapping[FileGroupId, pa.Array]) -> Mapping[FileGroupId, pa.Array]:
        """Return those of some keys that the record index has, by their file groups there."""
        assert self._metadata is not None
        asked: dict[str, list[pa.Array]] = {}
        for group, some in keys.items():
            (index,) = record_indexes(self._table, [group.partition_path])
            asked.setdefault(index, []).append(some)
        found: dict[FileGroupId, pa.Array] = {}
        for index, pieces in asked.items():
            found |= _stored(self._metadata, index, pa.concat_arrays(pieces))
        return found

    def _take(self, partition: str, paths: Collection[str], held: Collection[Held]) -> None:
        self._files.setdefault(partition, []).extend(paths)
        for one in held:
            index = partition
            if partition == RECORD_INDEX:
                (index,) = record_indexes(self._table, [one.group.partition_path])
            self._held.setdefault(index, []).append(one)
        self._num_keys += sum(len(one.keys) for one in held)
        if self._num_keys >= _MOST_KEYS:
            self._put()

    def _put(self) -> None:
        folders = {index: f"{METADATA_TABLE}/{folder_of(index)}" for index in self._held}
        names = {one: names_in(self._table.storage, one) for one in {*folders.values()}}
        groups = {index: groups_among(names[at], index) for index, at in folders.items()}
        groups |= {i: new_groups(self._table) for i, n in groups.items() if not n and "/" in i}
        if all(groups.values()):  # else an index was dropped meanwhile
            name = f"{self._token}_{len(self._put_files)}"
            parts: list[tuple[str, int, int, int, int, str]] = []
            with self._table.storage.open_output(keys_path(self._time, name)) as file:
                for index, held in self._held.items():
                    for number, found, lost, block in self._blocks(index, held, groups[index]):
                        file.write(block)
                        hashed = xxhash.xxh64_hexdigest(block)
                        parts.append((index, number, found, lost, len(block), hashed))
                body = {"files": self._files, "groups": groups, "blocks": parts}
                end = json.dumps(body).encode()
                file.write(end)
            size = sum(size for *_, size, _ in parts)
            self._put_files[name] = size, xxhash.xxh64_hexdigest(end)
        self._files, self._held, self._num_keys = {}, {}, 0

    def _changes(self, index: str, held: Collection[Held]) -> Iterator[Held]:
        """Yield what changes in an index: keys that it has elsewhere, and those gone from there."""
        if self._metadata is None or index in self._secondary:
            yield from held
            return
        asked = pa.concat_arrays([NO_KEYS, *(one.keys for one in held if not one.is_new)])
        stored = _stored(self._metadata, index, asked)
        for one in held:
            there = stored.get(one.group, NO_KEYS)
            if one.is_gone:
                yield one._replace(keys=among(one.keys, there))
            else:
                yield one if one.is_new else one._replace(keys=without(one.keys, there))

    def _blocks(
        self, index: str, held: Collection[Held], groups: int
    ) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield a file group's number, how many keys it gets and loses, and their log blocks."""
        placed: list[Held] = []
        gone = [NO_KEYS]
        for one in self._changes(index, held):
            if one.is_gone:
                gone.append(one.keys)
            else:
                placed.append(one)
        values = [encode_record(self._record(index, one.group)) for one in placed]
        of_key = np.repeat(np.arange(len(placed)), [len(one.keys) for one in placed])
        keys, of_key = _sorted(pa.concat_arrays([NO_KEYS, *(one.keys for one in placed)]), of_key)
        lost = without(pa.concat_arrays(gone), keys)  # those have moved
        numbers, of_lost = (self._numbers(index, some, groups) for some in (keys, lost))
        for number in np.union1d(numbers, of_lost).tolist():
            here = numbers == number
            found, left = keys.filter(pa.array(here)), lost.filter(pa.array(of_lost == number))
            records = (values[one] for one in of_key[here])
            block = b""
            if len(found):
                block += record_block(self._time, entries_of(found, records))
            if len(left):
                block += delete_block(folder_of(index), self._time, left)
            yield number, len(found), len(left), block

    def _record(self, index: str, group: FileGroupId) -> Record:
        return THERE if index in self._secondary else index_record(group, self._epoch_ms)

    def _numbers(self, index: str, keys: pa.Array, groups: int) -> Numbers:
        """The number of the file group of each key of an index."""
        if index in self._secondary:
            keys = pa.array(map(self._secondary[index].hashed, keys.to_pylist()), pa.string())
        return file_groups_of(keys, groups)


def _sorted(keys: pa.Array, of_key: Numbers) -> tuple[pa.Array, Numbers]:
    """Sort keys, each once, as an insert may have one several times; `of_key` goes with them."""
    order = as_numpy(pc.sort_indices(keys))
    keys, of_key = keys.take(pa.array(order)), of_key[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = as_numpy(pc.not_equal(keys[1:], keys[:-1]))
    return keys.filter(pa.array(first)), of_key[first]


def _group(stat: WriteStat) -> FileGroupId:
    return FileGroupId(stat.partition_path, stat.file_id)


def _placed(after: TouchedSlices, stats: Iterable[WriteStat], lost: Sequence[pa.Array]) -> pa.Array:
    """Those of some keys that the file groups of other tasks' files have."""
    keys = pa.concat_arrays([NO_KEYS, *lost])
    groups = {*map(_group, stats)} if len(keys) else ()
    return pa.concat_arrays([NO_KEYS, *(among(after.keys(one), keys) for one in groups)])


def _by_group(stats: Iterable[WriteStat]) -> Iterator[tuple[FileGroupId, list[WriteStat]]]:
    """Yield the files of each file group."""
    for group, files in groupby(sorted(stats, key=_order), _group):
        yield group, [*files]


def _order(stat: WriteStat) -> tuple[FileGroupId, bool]:
    """By file groups, log files before base files."""
    return _group(stat), stat.log is None


def _moves_keys(stat: WriteStat) -> bool:
    """Whether a file may add or take keys; of a base file with updates alone, the driver sees."""
    return stat.log is not None or bool(stat.num_inserts or stat.num_deletes)


def _sole_keys(
    after: TouchedSlices, group: FileGroupId, files: Collection[WriteStat]
) -> tuple[pa.Array, pa.Array] | None:
    """The keys of rows and of deletes in some files of a group; see `sole_keys`."""
    paths, latest = {one.path for one in files}, after.latest[group]
    if not all(one.log for one in files):
        return None
    logs = tuple(one for one in latest.logs if one.path in paths)
    return sole_keys(after.reader, replace(latest, base=None, logs=logs))


def _stored(metadata: MetadataTable, index: str, keys: pa.Array) -> Mapping[FileGroupId, pa.Array]:
    """Return those of some keys that an index has, by their file groups."""
    found: dict[FileGroupId, list[pa.Array]] = {}
    keys = keys.take(pc.sort_indices(keys))  # so each block is read about once
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        places = places_of(metadata, keys.slice(start, _KEYS_AT_ONCE), index)
        for group, there in places.by_group():
            found.setdefault(group, []).append(there)
    return {group: pa.concat_arrays(pieces) for group, pieces in found.items()}
