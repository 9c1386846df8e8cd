"""Looks up which file slice holds a record key, in the batch's own view of the table.

All tasks, and every further attempt of each, share that view, so they get the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import DuplicatePolicy, Operation
from hoodie_ds.errors import RecordKeyError, WriteConflictError
from hoodie_ds.index.protocol import KeyLookup, LookupContext, LookupIndex
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.stored_keys import SliceKeys
from hoodie_ds.index.table_slices import TableSlices, tasks_of
from hoodie_ds.metadata_table.record_index import trusted_index
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.sink.hidden_columns import mixed_timelines
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.slices.slice_keys import live_keys, split_keys
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView


class KeyLocations:
    """The file slices in which keys of the whole table are found.

    Operations that do not look keys up find none. `WriteConflictError` if a key is in a slice of
    another than this `task`, where slices are distributed over tasks, one at least.
    """

    def __init__(self, plan: WritePlan, task: int = 0, num_tasks: int = 0) -> None:
        self._task = task
        self._num_tasks = num_tasks
        self._lookup = key_lookup(plan)
        self._is_empty = not (plan.looks_up and plan.timeline.first_commit)
        self._table = TableSlices(plan.view)

    @property
    def view(self) -> FileSystemView:
        """The table as the batch sees it."""
        return self._table.view

    @property
    def slices(self) -> Sequence[FileSlice]:
        """The slices of the last look-up, until the next one."""
        return self._table.known

    def find(self, keys: pa.Array) -> RecordLocations:
        """Return where in `slices` each key (string) is.

        As in Hudi, a deleted key is free again, and so is one that moved away.
        """
        if self._is_empty:
            return RecordLocations.nowhere(len(keys))
        found = self._lookup.find_anywhere(self._table, keys)
        if self._num_tasks:
            # Its assigner has looked keys up in another way if one is elsewhere.
            stored = np.unique(found.slices[found.slices >= 0])
            if (tasks_of(self.slices, self._num_tasks)[stored] != self._task).any():
                raise WriteConflictError(mixed_timelines())
        return found

    @property
    def asks_index(self) -> bool:
        """Whether keys are looked up in a record index; see `KeyLookup`."""
        return not self._is_empty and self._lookup.asks_index

    def tasks(self, keys: pa.Array, num_tasks: int) -> Numbers | None:
        """Return the task of the one slice of each key (string), -1 for a key in none.

        None unless it `asks_index`.
        """
        at = None if self._is_empty else self._lookup.place(self._table, keys)
        return None if at is None else np.append(tasks_of(self.slices, num_tasks), -1)[at]


def key_lookup(plan: WritePlan) -> KeyLookup:
    """Return the lookup of keys in slices of the table as a batch sees it."""
    assert isinstance(plan.index, LookupIndex), plan.index
    return plan.index.lookup(
        LookupContext(
            plan.table.storage,
            plan.timeline,
            partial(known_keys, plan),
            plan.budget.lookup_bytes,
            plan.virtual_keys,
            partial(trusted_index, plan.table, lambda: plan.metadata),
            isinstance(plan.stored_merger, Merger),
        )
    )


def apply_policy(plan: WritePlan, records: RecordSet, latest: FileSlice | None) -> RecordSet:
    """Return the rows that an insert adds to a file group, given its latest slice.

    With policy ``fail``, `RecordKeyError` names a key that is stored.
    """
    policy = plan.options.duplicate_policy
    wanted = plan.operation is Operation.INSERT and policy is not DuplicatePolicy.NONE
    if latest is None or not wanted:
        return records
    stored = stored_keys(plan, latest)
    keys = records.rows.column(RECORD_KEY)
    known = pc.is_in(keys, value_set=stored).combine_chunks()
    if policy is DuplicatePolicy.FAIL and pc.any(known).as_py():
        key = keys.filter(known)[0].as_py()
        raise RecordKeyError(
            f"record key {key!r} is stored in {latest.group} already, and "
            "hoodie.datasource.insert.dup.policy is 'fail'; upsert the row, or insert with 'drop'"
        )
    return records.take(np.flatnonzero(~known.to_numpy(zero_copy_only=False)))


def stored_keys(plan: WritePlan, latest: FileSlice) -> pa.Array:
    """Return the record keys (string) of the rows of a slice, its log files merged."""
    return live_keys(plan.slice_reader(plan.view), latest)


def known_keys(plan: WritePlan, latest: FileSlice) -> SliceKeys:
    """Return the record keys of a slice, with those that log files delete separated."""
    return SliceKeys.of(*split_keys(plan.slice_reader(plan.view), latest))
