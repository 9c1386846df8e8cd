"""The metadata table of a table: a merge-on-read table of HFiles under ``.hoodie/metadata``.

A log block counts if its instant is completed on the metadata table's timeline and is not pending
on that of the table: a writer completes it there first. Hudi on the JVM reads the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import methodcaller
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, SECONDARY_INDEX
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.hfile.reader import Entry, HFile
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey
from hoodie_ds.metadata_table.payload import Change, Record, folded
from hoodie_ds.metadata_table.record_keys import (
    file_groups_of,
    file_id,
    folder_of,
    index_of,
    indexed_path,
)
from hoodie_ds.metadata_table.stored_records import (
    REBUILD,
    LoggedBlock,
    Made,
    Numbered,
    Records,
    Select,
    base_records,
    logged_blocks,
)
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.block_order import BlockPlace, in_order
from hoodie_ds.table.checksums import open_base_file
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.metadata_table import FIRST_SECOND
from hoodie_ds.table.slicing import SLICINGS
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import METADATA_TABLE
from hoodie_ds.timeline.timeline import Timeline

FILES_PARTITION: Final = "files"
"""The partition that lists the table's files."""
EXTENSION: Final = "hfile"
"""That of base files."""
LISTED_UNTIL: Final = "_hoodie_ds_listed_until"
"""What such a delta commit of this library says in layout 1, whose instants have no end."""
_HELD_BYTES: Final = 64 << 20
"""Bytes of log files that are kept while a metadata table is open: each look-up needs them."""
T = TypeVar("T")


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table, as it is now, of a table as its `data` timeline has it.

    `storage` is that of the table; `partitions` are those that may be read.
    """

    storage: Storage
    view: FileSystemView
    data: Timeline
    partitions: tuple[str, ...]
    _slices: dict[str, list[FileSlice]] = field(default_factory=dict, repr=False, compare=False)
    _held: dict[LogFile, list[LoggedBlock]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, table: Table, data: Timeline) -> MetadataTable | None:
        """Open the metadata table; None if the table has none that may be read."""
        usable = usable_partitions(table)
        if not usable:
            return None
        storage = SubfolderStorage(table.storage, METADATA_TABLE)
        timeline = load_timeline(storage, table.layout)
        view = FileSystemView(storage, timeline, extension=EXTENSION)
        return cls(table.storage, view, data, usable)

    @property
    def timeline(self) -> Timeline:
        """The metadata table's own timeline."""
        return self.view.timeline

    def slices(self, partition: str) -> list[FileSlice]:
        """Return the newest slice of each file group of a partition, or of an `index_of` one.

        None lacks a log file.
        """
        if folder_of(partition) != partition:
            return self._by_path.get(partition, [])
        if partition not in self._slices:
            found = self.view.latest_slices(partition)
            self._check_logs_are_there(found)
            self._slices[partition] = found
        return self._slices[partition]

    @cached_property
    def _by_path(self) -> dict[str, list[FileSlice]]:
        """The slices of the record indexes of partitions of the table."""
        found: dict[str, list[FileSlice]] = {}
        for slice_ in self.slices(RECORD_INDEX):
            found.setdefault(index_of(indexed_path(slice_.group.file_id)), []).append(slice_)
        return found

    def without_pending(self, times: Container[str]) -> MetadataTable:
        """Return it as it is once the pending instants of some times are gone from the timeline."""
        others = tuple(instant for instant in self.data.pending if instant.time not in times)
        return replace(self, data=replace(self.data, pending=others))

    def records(
        self, partition: str, only: Collection[str] | None = None
    ) -> Iterator[Mapping[str, Record]]:
        """Yield the records of each file group of a partition by their keys, or `only` of some."""
        slices = self.slices(partition)
        if only is None:
            yield from (self._merged(slice_) for slice_ in slices)
            return
        # A part of the key may decide about the file group in a secondary index.
        are_hashed = not partition.startswith(SECONDARY_INDEX)
        among = _spread(partition, slices, only, are_hashed)
        for slice_, here in zip(slices, among, strict=True):
            some = methodcaller("get_many", sorted(map(str.encode, here)))
            yield self._merged(slice_, some) if here else {}

    def newest(
        self, partition: str, keys: pa.Array, make: Callable[[Record], T]
    ) -> tuple[Numbers, list[T]]:
        """Return what is made of the newest records of some keys (string), and its number for each.

        That is -1 for a key without one. In such a partition a newer record takes the place of an
        older one. Records of many keys that are the same are read once.
        """
        slices, made = self.slices(partition) if len(keys) else [], Made(make)
        found, every = np.full(len(keys), -1), np.arange(len(keys))
        numbers = _file_groups(partition, slices, keys)
        for number, slice_ in enumerate(slices):
            here = every if numbers is None else np.flatnonzero(numbers == number)
            wanted = keys.take(pa.array(here)).cast(pa.binary())
            order = pc.sort_indices(wanted)
            wanted, here = wanted.take(order), here[as_numpy(order)]
            is_first = np.ones(len(here), np.bool_)
            is_first[1:] = as_numpy(pc.not_equal(wanted[1:], wanted[:-1]))
            newest = self._newest(slice_, wanted.filter(pa.array(is_first)), made)
            of_key = newest[np.cumsum(is_first) - 1]
            found[here[of_key >= 0]] = of_key[of_key >= 0]
        return made.only(found)

    def _newest(self, slice_: FileSlice, keys: pa.Array, made: Made[T]) -> Numbers:
        """The numbers of what is made of the newest records of some sorted keys."""
        parts: list[Numbered] = []
        if slice_.base is not None and len(keys):
            with base_records(self.view, slice_.base) as records:
                parts += records.find(keys, made)
        for block in self._changes(slice_) if len(keys) else ():
            parts += block.find(keys, made)
        there = pa.concat_arrays([keys[:0], *(some for some, _ in parts)])
        at = pc.index_in(there, value_set=keys)
        numbers = np.concatenate([np.empty(0, np.int64), *(numbers for _, numbers in parts)])
        newest = np.full(len(keys), -1)
        np.maximum.at(newest, as_numpy(at.drop_null()), np.flatnonzero(as_numpy(at.is_valid())))
        found: Numbers = np.append(numbers, -1)[newest]
        return found

    def keys_starting_with(
        self, partition: str, prefixes: Collection[str], are_hashed: bool, most: int
    ) -> list[str] | None:
        """Return the keys of a partition that start with one of some prefixes.

        None if `most` entries or more have such keys. `are_hashed` says whether the prefix of a
        key decides about its file group.
        """
        slices, left = self.slices(partition), iter(range(most))
        found: list[str] = []
        among = _spread(partition, slices, prefixes, are_hashed)
        for slice_, here in zip(slices, among, strict=True):
            some = partial(_starting_with, [*map(str.encode, here)], left)
            found += self._merged(slice_, some) if here else {}
        return None if next(left, None) is None else found

    def by_key(self, partition: str, only: Collection[str] | None = None) -> dict[str, Record]:
        """Return the `records` of all file groups of a partition, which have no key in common."""
        found: dict[str, Record] = {}
        for group in self.records(partition, only):
            found |= group
        return found

    @contextmanager
    def opened(self, base: BaseFile) -> Iterator[HFile]:
        """Open a base file."""
        with open_base_file(self.view.storage, base) as source:
            yield HFile(source, base.path)

    def logged(
        self,
        slice_: FileSlice,
        select: Select = HFile.scan,
        times: Container[str] | None = None,
    ) -> Iterator[Change]:
        """Yield what the log files of a slice change, the oldest first.

        Or what concerns the entries of a choice, or instants of some `times`.
        """
        for block in self._changes(slice_, times):
            if isinstance(block.change, Records):
                yield from block.change.selected(select)
            else:
                yield from ((key, None) for key in block.change.to_pylist())

    def _changes(
        self, slice_: FileSlice, times: Container[str] | None = None
    ) -> Iterator[LoggedBlock]:
        """Yield the blocks of a slice with what its log files change, the oldest first."""
        for place, block in self._blocks(slice_):
            if times is None or place.time in times:
                yield block

    def _check_logs_are_there(self, slices: Sequence[FileSlice]) -> None:
        """Refuse slices without a log file that a later commit than their base files' names.

        Earlier ones name those of a partition that was dropped since, and made again.
        """
        found = {slice_.group: slice_ for slice_ in slices}
        there = {log.path for slice_ in slices for log in slice_.logs}
        for instant in self.timeline.commits:
            for path, stat in file_changes(self.view.storage, instant).added.items():
                log = LogFileName.parse(path.rpartition("/")[2])
                slice_ = found.get(FileGroupId(stat.partition_path, stat.file_id))
                if log is None or slice_ is None or path in there:
                    continue
                start, made = padded(slice_.base_instant), self._first(slice_)
                begun = SLICINGS[self.timeline.layout].start(log, instant)
                if min(begun, padded(instant.ended)) < start:
                    continue
                if made is None or not self.was_before(instant, made):
                    where = f"{self.view.storage.root}/{path}"
                    raise CorruptFileError(f"{where}, which {instant} names, is missing", REBUILD)

    def _first(self, slice_: FileSlice) -> Instant | None:
        """The delta commit that has made the partition of a slice, if the slice begins with it."""
        is_first = slice_.base_instant.startswith(FIRST_SECOND)
        return self.timeline.commit_at(slice_.base_instant) if is_first else None

    def was_before(self, instant: Instant, made: Instant) -> bool:
        """Whether an instant had ended before the delta commit that has made a partition.

        That is not known of those that Hudi made in layout 1.
        """
        if made.completion_time:
            return instant.ended < made.completion_time
        known = read_commit(self.view.storage, made).extra.get(LISTED_UNTIL, "")
        latest, *pending = known.split(",")
        return padded(instant.time) <= padded(latest) and instant.time not in pending

    def _merged(self, slice_: FileSlice, select: Select = HFile.scan) -> dict[str, Record]:
        found: dict[str, Record] = {}
        if slice_.base is not None:
            with base_records(self.view, slice_.base) as records:
                found.update(records.selected(select))
        return folded(found, self.logged(slice_, select))

    def _blocks(self, slice_: FileSlice) -> Iterator[tuple[BlockPlace, LoggedBlock]]:
        """Yield the blocks that count, the oldest first.

        A rollback block hides what is before it: Hudi writes under the same instant time again.
        """
        places: dict[BlockPlace, LoggedBlock] = {}
        for log in slice_.logs:
            for number, logged in enumerate(self._blocks_of(log)):
                block = logged.block
                if block.block_type is BlockType.COMMAND:
                    undone = block.header.get(HeaderKey.TARGET_INSTANT_TIME)
                    places = {p: one for p, one in places.items() if p.time != undone}
                elif block.block_type is not BlockType.CORRUPT:
                    places[BlockPlace.of(log, number, block)] = logged
        for place in in_order([p for p in places if self._counts(p)]):
            yield place, places[place]

    def _blocks_of(self, log: LogFile) -> Iterable[LoggedBlock]:
        """Return the blocks of a log file, which is read once while there is room."""
        if log in self._held:
            return self._held[log]
        blocks = logged_blocks(self.view, log)
        if log.size + sum(held.size for held in self._held) > _HELD_BYTES:
            return blocks
        return self._held.setdefault(log, [*blocks])

    def _counts(self, place: BlockPlace) -> bool:
        is_complete = self.view.is_committed(place.time) and not self.data.is_pending(place.time)
        return is_complete and self.view.names(place.time, place.log.path)


def _file_groups(
    partition: str, slices: Sequence[FileSlice], keys: pa.Array, are_hashed: bool = True
) -> Numbers | None:
    """Return which slice each of some keys may be in; None if its hash does not say so."""
    ids = [slice_.group.file_id for slice_ in slices]
    are_hashed = are_hashed and len(ids) > 1
    if not are_hashed or ids != [file_id(partition, number) for number in range(len(ids))]:
        return None
    return file_groups_of(keys, len(slices))


def _spread(
    partition: str, slices: Sequence[FileSlice], keys: Collection[str], are_hashed: bool = True
) -> Sequence[Collection[str]]:
    """Return which of some keys may be in each file group."""
    numbers = _file_groups(partition, slices, pa.array(keys, pa.string()), are_hashed)
    if numbers is None:
        return [keys] * len(slices)
    found: list[list[str]] = [[] for _ in slices]
    for key, number in zip(keys, numbers.tolist(), strict=True):
        found[number].append(key)
    return found


def _starting_with(
    prefixes: Collection[bytes], left: Iterator[int], file: HFile
) -> Iterator[Entry]:
    """Yield the entries of a file whose keys start with some prefixes, while numbers are `left`."""
    yield from (entry for entry, _ in zip(file.scan_prefixes(prefixes), left, strict=False))


def latest_compaction(timeline: Timeline) -> str:
    """Return the time of the newest compaction of a metadata table; empty if there is none."""
    return max((i.time for i in timeline.completed if i.action is Action.COMMIT), default="")


def usable_partitions(table: Table) -> tuple[str, ...]:
    """Return the partitions of a table's metadata table that are not being built."""
    raw = table.properties.raw
    listed, building = (
        [name.strip() for name in raw.get(key, "").split(",") if name.strip()]
        for key in (keys.METADATA_PARTITIONS, keys.METADATA_PARTITIONS_INFLIGHT)
    )
    return tuple(name for name in listed if name not in building)
