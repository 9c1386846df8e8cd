"""The one merge function: what becomes of two records with the same key.

The in-batch combine, the copy-on-write merge and the merge-on-read reader all decide here, so the
same rows give the same table whichever way they take (RFC-24's writers, Hudi's record merge
modes). Everything is computed over whole columns; no row is looked at in Python.

Rules (Hudi tech spec, "record merge modes"), `old` before `new` in commit order:

- ``COMMIT_TIME_ORDERING``: the new record wins.
- ``EVENT_TIME_ORDERING``: the new record wins if its ordering value is not lower. A delete with a
  real ordering value takes part like any record. A delete without one (null, or the integer 0 that
  Hudi's writers put there) is unconditional: whenever either side is such a delete, the later one
  wins. For what a null means, see `hoodie_ds.record.ordering`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.kinds import MergeMode
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merge_hook import HookCall
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.record.ordering import order_codes, unordered

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Records of one file group, in commit order.

    Parameters
    ----------
    rows : pyarrow.Table
        The records; the column ``_hoodie_record_key`` is there and has no nulls. In a delete,
        columns other than the key may be null.
    deleted : numpy.ndarray of bool, shape (rows.num_rows,)
        Which records are deletes.
    ordering : tuple of pyarrow.ChunkedArray
        One column of `rows.num_rows` ordering values per ordering field.
    replacing : numpy.ndarray of bool, shape (rows.num_rows,), optional
        Which rows replace what is stored rather than being merged into it, since their key was
        deleted before them; none if None. Only a merge hook tells the two apart.
    hook : HookCall, optional
        What makes rows of a table of records under whose keys nothing is stored.
    """

    rows: pa.Table
    deleted: Mask
    ordering: tuple[pa.ChunkedArray, ...]
    replacing: Mask | None = None
    hook: HookCall | None = None

    @property
    def num_rows(self) -> int:
        """Number of records, deletes included."""
        return int(self.rows.num_rows)

    def take(self, positions: Positions) -> RecordSet:
        """Choose records by position."""
        return RecordSet(
            self.rows.take(positions),
            self.deleted[positions],
            tuple(column.take(pa.array(positions)) for column in self.ordering),
            None if self.replacing is None else self.replacing[positions],
            self.hook,
        )

    @staticmethod
    def of_rows(rows: pa.Table, ordering_fields: Sequence[str]) -> RecordSet:
        """See stored rows, none of them a delete, as records.

        Parameters
        ----------
        rows : pyarrow.Table
            As in `RecordSet`.
        ordering_fields : sequence of str
            Paths of the fields that the merger compares.
        """
        deleted = np.zeros(rows.num_rows, dtype=np.bool_)
        return RecordSet(rows, deleted, tuple(resolve(rows, path) for path in ordering_fields))

    def changed_rows(self) -> pa.Table:
        """The rows (pyarrow.Table) that are not deletes, to be merged into what is stored."""
        return self.rows.filter(pa.array(~self.deleted)) if self.deleted.any() else self.rows

    def live_rows(self) -> pa.Table:
        """The rows (pyarrow.Table) that are not deletes, where nothing is stored of their keys."""
        rows = self.changed_rows()
        return rows if self.hook is None else self.hook.inserted(rows)

    @staticmethod
    def concat(parts: Sequence[RecordSet]) -> RecordSet:
        """Put record sets of one schema one after another; at least one is needed."""
        if len(parts) == 1:
            return parts[0]
        return RecordSet(
            pa.concat_tables([part.rows for part in parts]),
            np.concatenate([part.deleted for part in parts]),
            tuple(
                pa.chunked_array([chunk for column in columns for chunk in column.chunks])
                if any(column.num_chunks for column in columns)
                else columns[0]
                for columns in zip(*(part.ordering for part in parts), strict=True)
            ),
            _concat_masks([part.replacing for part in parts], [part.num_rows for part in parts]),
            parts[0].hook,
        )


@dataclass(frozen=True, slots=True)
class Merger:
    """Merges records of one table.

    Parameters
    ----------
    mode : MergeMode
        ``COMMIT_TIME_ORDERING`` or ``EVENT_TIME_ORDERING``.
    """

    mode: MergeMode

    @property
    def needs_whole_rows(self) -> bool:
        """Whether merging needs more of a row than its key and ordering columns."""
        return False

    def combine(self, records: RecordSet) -> RecordSet:
        """Fold records so that one is left of each key: the winner, delete or not.

        Parameters
        ----------
        records : RecordSet
            In commit order; keys may repeat.

        Returns
        -------
        RecordSet
            One record per key, in the order of `records`.
        """
        encoded = pc.dictionary_encode(_one_chunk(records.rows.column(RECORD_KEY)))
        keys = encoded.indices.to_numpy(zero_copy_only=False)
        if len(encoded.dictionary) == len(keys):
            return records
        counts = np.bincount(keys, minlength=len(encoded.dictionary))
        repeated = np.flatnonzero(counts[keys] > 1)
        winners = counts[keys] == 1
        winners[repeated[self._last_winners(records.take(repeated), keys[repeated])]] = True
        return records.take(np.flatnonzero(winners))

    def over(self, new: RecordSet) -> Merge:
        """Begin to merge records, one per key, into stored rows that are older than they are."""
        return Merge(self, new)

    def new_wins(
        self, old: RecordSet, old_at: Positions, new: RecordSet, new_at: Positions
    ) -> Mask:
        """Decide pairs of an old and a new record with the same key, given by their positions."""
        if self.mode is MergeMode.COMMIT_TIME_ORDERING or not new.ordering:
            return np.ones(len(new_at), dtype=np.bool_)
        pairs = [
            pa.chunked_array(
                [*stored.take(pa.array(old_at)).chunks, *later.take(pa.array(new_at)).chunks]
            )
            for stored, later in zip(old.ordering, new.ordering, strict=True)
        ]
        codes = order_codes(pairs, 2 * len(new_at))
        wins: Mask = codes[len(old_at) :] >= codes[: len(old_at)]
        wins |= unordered(new.ordering, new.deleted)[new_at]
        return wins | unordered(old.ordering, old.deleted)[old_at]

    def _last_winners(self, records: RecordSet, keys: Positions) -> Positions:
        """Position of the winner of each key; `keys` are integers that stand for the keys."""
        positions = np.arange(records.num_rows, dtype=np.int64)
        last = np.full(int(keys.max()) + 1, -1, dtype=np.int64)
        if self.mode is MergeMode.COMMIT_TIME_ORDERING or not records.ordering:
            last[keys] = positions  # of repeated indices NumPy keeps the last assignment
            return last[last >= 0]
        # What lies before the last record of a key that has no order is out of the game, and that
        # record itself yields to anything after it.
        resets = np.flatnonzero(unordered(records.ordering, records.deleted))
        last[keys[resets]] = resets
        since_reset = np.sign(positions - last[keys])
        since_reset[self._repeated_deletes(records, keys, positions, last)] = -1
        codes = order_codes(records.ordering, records.num_rows)
        order = np.lexsort((positions, codes, since_reset, keys))
        ends = np.flatnonzero(np.diff(keys[order], append=-1))
        return order[ends]

    def _repeated_deletes(
        self, records: RecordSet, keys: Positions, positions: Positions, last: Positions
    ) -> Mask:
        """Deletes that find their key deleted unconditionally: Hudi passes over them."""
        after = last[keys] < positions
        by_delete = (last >= 0) & records.deleted[last]
        if not by_delete.any():
            return np.zeros(len(keys), dtype=np.bool_)
        first_live = np.full(len(last), len(keys), dtype=np.int64)
        live = np.flatnonzero(after & ~records.deleted)[::-1]
        first_live[keys[live]] = live
        repeated: Mask = by_delete[keys] & after & (positions < first_live[keys])
        return repeated


class Merge:
    """New records on their way over stored rows, which may come in pieces of any size.

    Parameters
    ----------
    merger : Merger
        Decides.
    new : RecordSet
        The new records, one per key, deletes among them.
    """

    def __init__(self, merger: Merger, new: RecordSet) -> None:
        self._merger = merger
        self._new = new
        self._keys = _one_chunk(new.rows.column(RECORD_KEY))
        self._take_new = ~new.deleted
        self.num_updates = 0
        self.num_deletes = 0

    def keep(self, old: RecordSet) -> Mask:
        """Merge into a piece of the stored rows.

        Parameters
        ----------
        old : RecordSet
            Stored rows, no deletes; no key comes twice in all pieces together.

        Returns
        -------
        numpy.ndarray of bool, shape (old.num_rows,)
            Which of them stay as they are.
        """
        keep = np.ones(old.num_rows, dtype=np.bool_)
        matched_by = pc.index_in(old.rows.column(RECORD_KEY), value_set=self._keys)
        if matched_by.null_count == old.num_rows:
            return keep
        old_at = np.flatnonzero(_numpy(pc.is_valid(matched_by)))
        new_at = _numpy(matched_by.drop_null()).astype(np.int64)
        new_wins = self._merger.new_wins(old, old_at, self._new, new_at)
        keep[old_at[new_wins]] = False
        self._take_new[new_at[~new_wins]] = False
        removed = int((self._new.deleted[new_at] & new_wins).sum())
        self.num_deletes += removed
        self.num_updates += int(new_wins.sum()) - removed
        return keep

    @property
    def num_inserts(self) -> int:
        """Number of rows that are added, once all pieces were there."""
        return int(self._take_new.sum()) - self.num_updates

    @property
    def changes_nothing(self) -> bool:
        """Whether all stored rows stay and none is added."""
        return not (self._take_new.any() or self.num_deletes)

    def new_rows(self) -> pa.Table:
        """Return the new records that are rows of the result beside those that stay."""
        return self._new.rows.filter(pa.array(self._take_new))


def _concat_masks(masks: Sequence[Mask | None], lengths: Sequence[int]) -> Mask | None:
    if all(mask is None for mask in masks):
        return None
    pairs = zip(masks, lengths, strict=True)
    return np.concatenate(
        [np.zeros(length, dtype=np.bool_) if mask is None else mask for mask, length in pairs]
    )


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _numpy(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    result: npt.NDArray[Any] = _one_chunk(values).to_numpy(zero_copy_only=False)
    return result
