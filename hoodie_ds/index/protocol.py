"""The protocol between a write and its table's index, which finds the file group of a record key.

There are two kinds. `BucketIndex` hashes a key into the file group of a bucket. All others are a
`LookupIndex`: it says where a key is stored, and the sink does the rest. A key that is stored
nowhere begins a file group or fills a small one, so two writers may store it in two, and commits
compare keys. `choose_index` makes the index of a table.

Tables record the name of their index and, for readers too, their buckets
(`config/properties/new_table.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.stored_keys import SliceKeys
from hoodie_ds.index.table_slices import TableSlices
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.metadata_table import Scope
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


class Index(Protocol):
    """The index of a table with record keys; a value, which is sent to the tasks of a write."""

    @property
    def kind(self) -> IndexType:
        """Its name in options and table properties."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a record key is unique in the whole table rather than in its partition."""
        ...

    def spread(self, num_tasks: int) -> Buckets:
        """Return the buckets by which a shuffle sends rows to tasks without looking keys up."""
        ...

    def complete_change(self, table: Table, timeline: Timeline, clock: Clock) -> tuple[Table, bool]:
        """Finish a change of the index, such as a rescale, of a process that died.

        Returns the table afterwards, and whether its index may have changed.
        """
        ...

    def changed_by(self, storage: Storage, began: Timeline, now: Timeline) -> Instant | None:
        """Return the commit since a write began that moved keys to other groups: a rescale."""
        ...


class KeyLookup(Protocol):
    """Looks record keys up in one view of a table."""

    def find(
        self, slices: Sequence[FileSlice], keys: pa.Array, live_only: bool = False
    ) -> RecordLocations:
        """Return where in `slices`, the latest ones of their partitions, each key (string) is.

        Each key has at least one location; that of a key which is in no slice is -1. With
        `live_only` a deleted key is in none.
        """
        ...

    def positions(self, slice_: FileSlice, keys: pa.Array) -> Numbers | None:
        """Return where keys are in a slice's base file, if the lookup knows without reading it.

        A key that is in no row, or in several, is at -1.
        """
        return None

    @property
    def asks_index(self) -> bool:
        """Whether it began with a record index that is of the moment of its view.

        If two processes differ in that, so may what they find, as of keys with copies.
        """
        return False

    def place(self, slices: TableSlices, keys: pa.Array) -> Numbers | None:
        """Return the one slice of each key of a table by a record index; None unless it asks one.

        It is a position among the slices that are known then, -1 for a key that is not live. The
        answer for a key is the same in all processes that `asks_index`, whatever else they look up.
        """
        return None

    def find_anywhere(self, slices: TableSlices, keys: pa.Array) -> RecordLocations:
        """Return where in a table, among the slices that are known then, each live key is.

        All of its partitions are listed, unless an index knows which of them have the keys.
        """
        return self.find(slices.all(), keys, live_only=True)


@dataclass(frozen=True, slots=True)
class LookupContext:
    """The view of a table in which keys are looked up, and the means to read them."""

    storage: Storage
    timeline: Timeline
    merged_keys: Callable[[FileSlice], SliceKeys]  # reads the keys of a slice with log files
    memory_bytes: int  # of a task, for keys
    virtual_keys: MadeColumn | None = None  # makes record keys that files do not store
    # opens the metadata table where its record index is that of the timeline
    record_index: Callable[[Scope], MetadataTable | None] = lambda _: None
    splits_slices: bool = False  # whether log files alone say what keys outside the base file are


@dataclass(frozen=True)
class LookupIndex(ABC):
    """An index that looks keys up; see `Index`.

    With `moves_records` a global index moves a record to the partition that a new row names.
    """

    kind: IndexType
    record_key_fields: tuple[str, ...]
    is_global: bool
    moves_records: bool

    @property
    def assigns_rows(self) -> bool:
        """Whether a shuffle looks keys up, to send rows to the tasks of their file groups.

        With a global index it needs to know without files that a key has one place.
        """
        return not self.is_global

    @classmethod
    @abstractmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> LookupIndex:
        """Return the index `kind` of a table."""

    @abstractmethod
    def lookup(self, context: LookupContext) -> KeyLookup:
        """Return the lookup of keys in a table."""

    def spread(self, num_tasks: int) -> Buckets:
        """Return one bucket for each task: the key alone decides where an insert goes."""
        keys = self.record_key_fields
        return Buckets(num_tasks, keys, keys)

    def complete_change(self, table: Table, timeline: Timeline, clock: Clock) -> tuple[Table, bool]:
        """Return the table as it is: the stored rows are the index."""
        return table, False

    def changed_by(self, storage: Storage, began: Timeline, now: Timeline) -> Instant | None:
        """Return None: keys stay in their file groups, and commits compare those."""
        return None
