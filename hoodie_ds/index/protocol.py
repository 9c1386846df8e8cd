"""What a write asks the index of its table: how the file group of a record key is found.

There are two kinds. `BucketIndex` hashes a key into the file group of a bucket. Each other one is a
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

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.index.bucket_identifier import KeyParsing
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.stored_keys import SliceKeys
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


class Index(Protocol):
    """The index of a table with record keys; a value, which travels to the tasks of a write."""

    @property
    def kind(self) -> IndexType:
        """What options and table properties call it."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a record key is unique in the whole table rather than in its partition."""
        ...

    def spread(self, num_tasks: int) -> Buckets:
        """Return the buckets by which a shuffle sends rows to tasks without looking keys up."""
        ...

    def complete_change(self, table: Table, timeline: Timeline, clock: Clock) -> tuple[Table, bool]:
        """Finish what a process that died has left of a change of the index, such as a rescale.

        Returns the table as it is then, and whether the index may be another one now.
        """
        ...

    def changed_by(self, storage: Storage, began: Timeline, now: Timeline) -> Instant | None:
        """Return the commit that gave keys other file groups since a write began, as a rescale."""
        ...


class KeyLookup(Protocol):
    """Looks record keys up in one view of a table."""

    def find(
        self, slices: Sequence[FileSlice], keys: pa.Array, live_only: bool = False
    ) -> RecordLocations:
        """Return where in `slices`, the latest ones of their partitions, each key (string) is.

        Each key has at least one location, if only that of a key which is in no slice. With
        `live_only` a deleted key is in none.
        """
        ...


@dataclass(frozen=True, slots=True)
class LookupContext:
    """The table in which keys are looked up, and what it takes to read them.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is seen.
    merged_keys : callable
        Reads the keys of a slice that has log files, those merged.
    memory_bytes : int
        What keys may take of a task's memory.
    virtual_keys : MadeColumn, optional
        Makes the record keys of rows, where files are without them.
    """

    storage: Storage
    timeline: Timeline
    merged_keys: Callable[[FileSlice], SliceKeys]
    memory_bytes: int
    virtual_keys: MadeColumn | None = None


@dataclass(frozen=True)
class LookupIndex(ABC):
    """An index that looks keys up; see `Index`.

    Parameters
    ----------
    kind : IndexType
        What options and table properties call it.
    record_key_fields : tuple of str
        Fields of the record key.
    is_global : bool
        Whether a record key is unique in the whole table rather than in its partition.
    moves_records : bool
        Whether, if it is, a record moves to another partition where a row says that.
    """

    kind: IndexType
    record_key_fields: tuple[str, ...]
    is_global: bool
    moves_records: bool

    @classmethod
    @abstractmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> LookupIndex:
        """Return the index that a table has by one of its names."""

    @abstractmethod
    def lookup(self, context: LookupContext) -> KeyLookup:
        """Return what looks keys up in a table."""

    def spread(self, num_tasks: int) -> Buckets:
        """Return one bucket for each task: the key alone decides where an insert goes."""
        keys = self.record_key_fields
        return Buckets(num_tasks, keys, keys, KeyParsing.LAST_COMMA_BEFORE_COLON)

    def complete_change(self, table: Table, timeline: Timeline, clock: Clock) -> tuple[Table, bool]:
        """Return the table as it is: what is stored is the index."""
        return table, False

    def changed_by(self, storage: Storage, began: Timeline, now: Timeline) -> Instant | None:
        """Return None: keys stay in their file groups, and commits compare those."""
        return None
