"""The hidden columns that `shuffle_by_file_group` writes: a row's task and maybe location.

The columns travel through Spark's shuffle. They are believed only as far as they can be checked: a
row is where its task column says, and its location was found by the very timeline that the batch is
written by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers
from hoodie_ds.errors import WriteConflictError

TASK_COLUMN: Final = "_hoodie_ds_task"
"""Hidden column (integer): the task to which the shuffle sent the row."""

LOCATION_COLUMN: Final = "_hoodie_ds_place"
"""Hidden column (int64): the timeline's digest above 32 bits that say where the row's key is.

The number of a slice among the latest ones of its partition, by file id; or, for a key that is
stored nowhere, the number of tasks that the shuffle has, negative. A row whose key is stored in
several slices goes to each; those after the first are marked by `_COPY`.
"""

HIDDEN_COLUMNS: Final = (TASK_COLUMN, LOCATION_COLUMN)
"""Columns that are never stored."""

_LOW_BITS: Final = 32
_COPY: Final = 1 << 30
"""Bit of a location whose row is there once more."""


def encode_locations(timeline_digest: int, locations: Numbers) -> pa.Array:
    """Return the values of `LOCATION_COLUMN` for locations in a timeline."""
    return pa.array((np.int64(timeline_digest) << _LOW_BITS) | (locations & 0xFFFFFFFF))


def mark_copies(locations: Numbers) -> Numbers:
    """Return locations of rows that are there with another location already."""
    return locations | _COPY


def without_copies(rows: pa.Table) -> pa.Table:
    """Return the rows that came from the user.

    The others are what an assigner added for further file groups of their keys.
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
    """What a task has to itself in a batch.

    Parameters
    ----------
    groups : bool
        No other task has rows of the file groups of its rows.
    keys : bool
        No other task has rows of the same keys.
    """

    groups: bool
    keys: bool


class Assignment:
    """Reads the hidden columns of one task's rows.

    Parameters
    ----------
    task : int
        Number of the task.
    timeline_digest : int
        Digest of the timeline that the batch is written by.
    looks_up : bool
        Whether the batch looks keys up; otherwise rows go to no slice.
    """

    def __init__(self, task: int, timeline_digest: int, looks_up: bool = True) -> None:
        self._task = task
        self._looks_up = looks_up
        self._timeline_digest = timeline_digest
        self._is_here = True
        self._is_located = True
        self.assigned_by: int | None = None
        """Digest of the timeline that the rows were assigned by; None if they were not."""

    def locations(self, chunk: pa.Table) -> Numbers | None:
        """Return the location of each row; None where they say nothing of this batch's view.

        Raises
        ------
        WriteConflictError
            Rows were assigned by different timelines of the table.
        """
        self._is_here = self._is_here and self._sits_here(chunk)
        if LOCATION_COLUMN not in chunk.column_names:
            self._is_located = False
            return None
        values = chunk.column(LOCATION_COLUMN).to_numpy()
        digests = np.unique(values >> _LOW_BITS).tolist()
        if len({*digests, *({self.assigned_by} - {None})}) > 1:
            raise WriteConflictError(mixed_timelines())
        (self.assigned_by,) = digests
        if self.assigned_by != self._timeline_digest:
            self._is_located = False
            return None
        low = values.astype(np.int32)
        if not self._looks_up and low.max(initial=-1) >= 0:  # assigned for another operation
            self._is_located = False
            return None
        locations: Numbers = np.where(_are_copies(low), low & ~_COPY, low).astype(np.int64)
        return locations

    def ownership(self, is_alone: bool, by_bucket: bool) -> TaskOwnership:
        """Say what the task has to itself, once all rows are seen.

        Parameters
        ----------
        is_alone : bool
            Whether there is no other task.
        by_bucket : bool
            Whether a row's key names its file group.
        """
        groups = self._is_here and (by_bucket or self._is_located)
        return TaskOwnership(is_alone or groups, is_alone or self._is_here)

    def _sits_here(self, chunk: pa.Table) -> bool:
        if TASK_COLUMN not in chunk.column_names:
            return False
        extremes = pc.min_max(chunk.column(TASK_COLUMN)).as_py()
        return bool(extremes["min"] == self._task == extremes["max"])


def mixed_timelines() -> str:
    """Return the message for rows of one batch that were assigned by different timelines."""
    return (
        "another writer changed the table while this batch's rows were being assigned to file "
        "groups; the batch is not committed and can be run again"
    )
