"""The hidden columns that `shuffle_by_file_group` adds: a row's task and maybe its location.

Rows that a write has found in the table have their location too.

The columns travel through Spark's shuffle, and are used only as far as they can be checked: a row
is in the task that its column names, and its location is from the timeline that the batch is
written by, or it was sent by the fields of the table's keys.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers
from hoodie_ds.errors import WriteConflictError
from hoodie_ds.index.protocol import LookupIndex

TASK_COLUMN: Final = "_hoodie_ds_task"
"""Hidden column (integer): the task to which the shuffle sent the row."""

LOCATION_COLUMN: Final = "_hoodie_ds_place"
"""Hidden column (int64): the timeline's digest above 32 bits for the location of the row's key.

That is the number of a slice among the latest ones of its partition, by file id; or, for a key that
is not stored, and with a global index for every key, the negative number of tasks of the shuffle. A
row whose key is stored in several slices goes to each; those after the first are marked by `_COPY`.
Where keys were looked up in a record index the digest is another one; see `digest_by_index`.
"""

HIDDEN_COLUMNS: Final = (TASK_COLUMN, LOCATION_COLUMN)
"""Columns that are never stored."""

_LOW_BITS: Final = 32
_COPY: Final = 1 << 30
"""Bit in the location of a repeated row."""


def digest_by_index(timeline_digest: int) -> int:
    """Return the digest for rows whose keys were looked up in the record index of a timeline.

    Rows of one batch that were looked up in different ways are refused, as those of different
    timelines are: a key may have other places by the index than by the files.
    """
    return ~timeline_digest


def digest_by_key(index: LookupIndex, num_tasks: int, partition_fields: Sequence[str]) -> int:
    """Return the digest for rows that went to some tasks by the hash of their keys alone.

    Rows may have been sent for a table with other keys, whose tasks say nothing about those here.
    """
    fields = index.record_key_fields, () if index.is_global else tuple(partition_fields)
    return zlib.crc32(repr((num_tasks, *fields)).encode()) & 0x7FFFFFFF


def encode_locations(timeline_digest: int, locations: Numbers) -> pa.Array:
    """Return the values of `LOCATION_COLUMN` for locations in a timeline."""
    return pa.array((np.int64(timeline_digest) << _LOW_BITS) | (locations & 0xFFFFFFFF))


def mark_copies(locations: Numbers) -> Numbers:
    """Return the locations of rows that are repeated, marked as such."""
    return locations | _COPY


def without_copies(rows: pa.Table) -> pa.Table:
    """Return the rows that came from the user.

    An assigner added the others, for further file groups of their keys.
    """
    copies = copies_among(rows)
    return rows if copies is None else rows.filter(pa.array(~copies))


def copies_among(rows: pa.Table) -> Mask | None:
    """Return which rows an assigner added; None if it added none."""
    if LOCATION_COLUMN not in rows.column_names:
        return None
    copies = _are_copies(rows.column(LOCATION_COLUMN).to_numpy().astype(np.int32))
    return copies if copies.any() else None


def _are_copies(low: npt.NDArray[np.int32]) -> Mask:
    copies: Mask = (low >= 0) & (low & _COPY != 0)
    return copies


@dataclass(frozen=True, slots=True)
class TaskOwnership:
    """What no other task of a batch has rows of: the file groups, or the keys, of a task's rows.

    The file groups are distributed over `num_tasks`; if that is 0 the task has all of them.
    """

    groups: bool
    keys: bool
    num_tasks: int = 0


class Assignment:
    """Reads the hidden columns of one task's rows.

    `digests` are those of rows that were located by the timeline that the batch is written by.
    Unless the batch `looks_up` keys, locations in slices are not used. With an `index` that looks
    keys up, rows of a key are known to be in one task only if they were located, or sent by key.
    """

    def __init__(
        self,
        task: int,
        digests: Collection[int],
        looks_up: bool = True,
        index: LookupIndex | None = None,
        partition_fields: Sequence[str] = (),
    ) -> None:
        self._task = task
        self._looks_up = looks_up
        self._digests = digests
        self._index = index
        self._partition_fields = partition_fields
        self._is_here = True
        self._is_located = True
        self._is_by_key = True
        self._num_tasks = 0
        self.assigned_by: int | None = None
        """How rows were assigned: the same for all rows of a batch; None if they were not."""

    def locations(self, chunk: pa.Table) -> Numbers | None:
        """Return the location of each row; None if they are not of this batch's view.

        `WriteConflictError` if rows were assigned by different timelines of the table.
        """
        self._is_here = self._is_here and self._sits_here(chunk)
        if LOCATION_COLUMN not in chunk.column_names:
            self._is_located = self._is_by_key = False
            return None
        values = chunk.column(LOCATION_COLUMN).to_numpy()
        is_global = self._index is not None and self._index.is_global  # one value for all rows
        ways = np.unique(values if is_global else values >> _LOW_BITS).tolist()
        if len({*ways, *({self.assigned_by} - {None})}) > 1:
            raise WriteConflictError(mixed_timelines())
        (self.assigned_by,) = ways
        low, digest = values.astype(np.int32), int(values[0]) >> _LOW_BITS
        self._is_by_key = self._is_by_key and digest == self._digest_by_key(-int(low[0]))
        if digest not in self._digests:
            self._is_located = False
            return None
        if not self._looks_up and low.max(initial=-1) >= 0:  # assigned for another operation
            self._is_located = False
            return None
        self._num_tasks = max(self._num_tasks, -int(low.min(initial=0)))
        locations: Numbers = np.where(_are_copies(low), low & ~_COPY, low).astype(np.int64)
        return locations

    def ownership(self, is_alone: bool, by_bucket: bool) -> TaskOwnership:
        """Return what the task has to itself, once all rows are read.

        `is_alone` says that there is no other task, and `by_bucket` that keys name file groups.
        """
        groups = self._is_here and (by_bucket or self._is_located)
        if is_alone:
            return TaskOwnership(groups=True, keys=True)
        keys = self._is_here and (self._index is None or self._is_located or self._is_by_key)
        return TaskOwnership(groups, keys, self._num_tasks if groups else 0)

    def _digest_by_key(self, num_tasks: int) -> int | None:
        if self._index is None:
            return None
        return digest_by_key(self._index, num_tasks, self._partition_fields)

    def _sits_here(self, chunk: pa.Table) -> bool:
        if TASK_COLUMN not in chunk.column_names:
            return False
        extremes = pc.min_max(chunk.column(TASK_COLUMN)).as_py()
        return bool(extremes["min"] == self._task == extremes["max"])


def mixed_timelines() -> str:
    """Return the message for rows of one batch that were assigned in different ways."""
    return (
        "another writer changed the table while this batch's rows were being assigned to file "
        "groups, or results of several calls of shuffle_by_file_group were united; the batch is "
        "not committed and can be run again, the former as it is"
    )
