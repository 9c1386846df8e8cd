"""Merging by a user's hook: the same two steps as `hoodie_ds.record.merge.merger`, another rule.

The hook combines rows of one key in commit order. It never sees deletes: a delete removes
everything before it, in commit order, and a row after it starts anew. So combining is associative
if the hook is, and a table is the same however its rows were batched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, one_chunk, ranks
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import TableType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.record.merge.merge_hook import HookCall, hook_call
from hoodie_ds.record.merge.merger import Merger, Positions, RecordSet, matching
from hoodie_ds.record.partial_update import fill_of


@dataclass(frozen=True, slots=True)
class HookMerger:
    """Merges records of one table by a hook; an `AnyMerger`."""

    hook: HookCall
    needs_complete_rows: ClassVar[bool] = True

    def combine(self, records: RecordSet) -> RecordSet:
        """Leave a row, a delete, or a row after a delete, in the order of each key's last record.

        See `AnyMerger.combine`; the result has no ordering values.
        """
        encoded = pc.dictionary_encode(one_chunk(records.rows.column(RECORD_KEY)))
        keys = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        records = RecordSet(records.rows, records.deleted, (), records.replacing, self.hook)
        if len(encoded.dictionary) == len(keys):
            return records
        counts = np.bincount(keys)
        # A loop over the k-th records of all keys that have as many, not over rows.
        first, *later = _by_occurrence(keys, counts)
        folded, last, done, done_last = records.take(first), first, [], []
        for number, positions in enumerate(later, start=1):
            goes_on = counts[keys[last]] > number
            done.append(folded.take(np.flatnonzero(~goes_on)))
            done_last.append(last[~goes_on])
            folded = self._fold(folded.take(np.flatnonzero(goes_on)), records.take(positions))
            last = positions
        combined = RecordSet.concat([*done, folded])
        return combined.take(np.argsort(np.concatenate([*done_last, last])))

    def over(self, new: RecordSet) -> HookMerge:
        """Begin to merge records, one per key, into older stored rows."""
        return HookMerge(self.hook, new)

    def _fold(self, old: RecordSet, new: RecordSet) -> RecordSet:
        """Merge pair by pair.

        Whether a row is left of a pair is only asked when it meets what is stored, or nothing: the
        combination of two changes says nothing about the row that they change. A row that a later
        one leaves unchanged keeps the commit that wrote it here, too.
        """
        replacing = old.deleted | _replacing(old) | _replacing(new)
        both = np.flatnonzero(~old.deleted & ~new.deleted & ~_replacing(new))
        earlier = old.rows.take(both)
        merged, _, kept = self.hook.merge(earlier, new.rows.take(both))
        if kept.any():
            chosen = np.where(kept, len(both), 0) + np.arange(len(both))
            merged = pa.concat_tables([merged, earlier]).take(chosen)
        others = np.setdiff1d(np.arange(new.num_rows), both, assume_unique=True)
        rows = pa.concat_tables([merged, new.rows.take(others)])
        rows = rows.take(np.argsort(np.concatenate([both, others])))
        return RecordSet(rows, new.deleted, (), replacing, self.hook)


class HookMerge:
    """New records, one per key, merged into stored rows by a hook; an `AnyMerge`."""

    def __init__(self, hook: HookCall, new: RecordSet) -> None:
        self._hook = hook
        self._new = new
        self._keys = one_chunk(new.rows.column(RECORD_KEY))
        self._left = ~new.deleted
        self._replaced = np.zeros(new.num_rows, dtype=np.bool_)
        self._merged: list[pa.Table] = []
        self._num_removed = 0

    def keep(self, old: RecordSet) -> Mask:
        """Merge into a piece of the stored rows, complete ones; see `Merge.keep`."""
        keep = np.ones(old.num_rows, dtype=np.bool_)
        old_at, new_at = matching(old.rows, self._keys)
        if not len(old_at):
            return keep
        keep[old_at] = False
        deleted = self._new.deleted[new_at]
        replaced = _replacing(self._new)[new_at] & ~deleted
        self._replaced[new_at[replaced]] = True
        both = ~deleted & ~replaced
        self._left[new_at[both]] = False
        rows, gone, kept = self._hook.merge(
            old.rows.take(old_at[both]), self._new.rows.take(new_at[both])
        )
        keep[old_at[both][kept]] = True
        self._merged.append(_without(rows, gone | kept))
        self._num_removed += int(deleted.sum() + gone.sum())
        return keep

    @property
    def num_updates(self) -> int:
        """Number of rows that replace stored ones, after the last piece."""
        merged = sum(int(rows.num_rows) for rows in self._merged)
        return merged + self._count(replaced=True, gone=False)

    @property
    def num_deletes(self) -> int:
        """Number of stored rows that are removed and not replaced."""
        return self._num_removed + self._count(replaced=True, gone=True)

    @property
    def num_inserts(self) -> int:
        """Number of rows that are added."""
        return self._count(replaced=False, gone=False)

    @property
    def changes_nothing(self) -> bool:
        """Whether all stored rows stay and none is added."""
        return not (self.num_updates or self.num_deletes or self.num_inserts)

    def new_rows(self) -> pa.Table:
        """Return the rows of the result in addition to the kept ones."""
        return pa.concat_tables([*self._merged, _without(*self._inserted)])

    @cached_property
    def _inserted(self) -> tuple[pa.Table, Mask]:
        """The hook's result for rows without a stored one, or not to be merged into it."""
        return self._hook.insert(self._new.rows.filter(pa.array(self._left)))

    def _count(self, replaced: bool, gone: bool) -> int:
        chosen = (self._replaced[self._left] == replaced) & (self._inserted[1] == gone)
        return int(np.count_nonzero(chosen))


class AnyMerge(Protocol):
    """The common interface of `Merge`, `HookMerge` and others."""

    def keep(self, old: RecordSet) -> Mask:
        """Merge into a piece of the stored rows; return which of them stay unchanged."""
        ...

    @property
    def num_inserts(self) -> int:
        """Number of rows that are added."""
        ...

    @property
    def num_updates(self) -> int:
        """Number of rows that replace stored ones."""
        ...

    @property
    def num_deletes(self) -> int:
        """Number of stored rows that are removed and not replaced."""
        ...

    @property
    def changes_nothing(self) -> bool:
        """Whether all stored rows stay and none is added."""
        ...

    def new_rows(self) -> pa.Table:
        """Return the rows of the result in addition to the kept ones."""
        ...


class AnyMerger(Protocol):
    """The common interface of `Merger`, `HookMerger` and others: a merge rule."""

    @property
    def needs_complete_rows(self) -> bool:
        """Whether merging needs more of a row than its key and ordering columns."""
        ...

    def combine(self, records: RecordSet) -> RecordSet:
        """Combine records, in commit order, so that one is left of each key.

        A `MergeHookError` means that the user's hook failed.
        """
        ...

    def over(self, new: RecordSet) -> AnyMerge:
        """Begin to merge records, one per key, into older stored rows."""
        ...


def merger_of(
    properties: TableProperties, hook: str | Callable[..., object] | None
) -> Merger | HookMerger:
    """Return the merger of a table's records.

    The hook never comes from the table's own files, which must not decide which code runs. An
    `OptionError` means that the table needs a hook and none is given, or the other way round, or
    that it cannot be imported.
    """
    properties.check_merge_hook(hook)
    update = properties.partial_update
    if update is not None:
        return HookMerger(HookCall(fill_of(update, properties.ordering_fields), update.name))
    if hook is not None:
        places = (*properties.record_key_fields, *properties.partition_fields)
        return HookMerger(hook_call(hook, places))
    applies_deletes = properties.table_type is TableType.COPY_ON_WRITE
    return Merger(properties.merge_mode, applies_deletes)


def _by_occurrence(keys: Positions, counts: Positions) -> list[Positions]:
    """Positions of the first record of each key, of the second, ...; each in the order of keys."""
    order = np.argsort(keys, kind="stable")
    occurrences = ranks(counts)
    by_rank = order[np.argsort(occurrences, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(occurrences))[:-1])


def _replacing(records: RecordSet) -> Mask:
    if records.replacing is None:
        return np.zeros(records.num_rows, dtype=np.bool_)
    return records.replacing


def _without(rows: pa.Table, gone: Mask) -> pa.Table:
    return rows.filter(pa.array(~gone)) if gone.any() else rows
