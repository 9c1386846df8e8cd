"""The one merge function: the result of two records with the same key.

The in-batch combine, the copy-on-write merge and the merge-on-read reader all decide here, so the
same rows give the same table however they are written (RFC-24's writers, Hudi's record merge
modes). Everything is computed over whole columns; no row is looked at in Python.

Rules (Hudi tech spec, "record merge modes"), `old` before `new` in commit order:

- ``COMMIT_TIME_ORDERING``: the new record wins.
- ``EVENT_TIME_ORDERING``: the new record wins if its ordering value is not lower; a null is lower
  than any value. A delete with an ordering value takes part like any record. A delete without one
  is unconditional (`hoodie_ds.record.merge.ordering.unconditional`): whenever either side is such a
  delete, the later one wins, except that a further delete changes nothing.

A row after an unconditional delete meets different rows in the two table types, as in Hudi. A
copy-on-write table has applied the delete: the row is an insert, in the same batch too. In a
merge-on-read table delete and row are combined to the row before they meet the base file, which
still has the deleted row: if that has the greater ordering value, it reappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, as_numpy, one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merge.merge_hook import HookCall
from hoodie_ds.record.merge.ordering import order_codes, unconditional

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Records of one file group, in commit order."""

    rows: pa.Table  # with ``_hoodie_record_key``; other columns of a delete may be null
    deleted: Mask  # which records are deletes
    ordering: tuple[pa.ChunkedArray, ...]  # one column of values per ordering field
    replacing: Mask | None = None
    """Which records follow an unconditional delete of their key, so that they replace stored rows
    instead of being merged into them; none if None."""
    hook: HookCall | None = None  # makes rows of records without a stored row
    lacking: Mask | None = None
    """Which values are missing and come from an older record of the key, by record and column; none
    if None. See `hoodie_ds.record.merge.partial_merger`."""

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
            None if self.lacking is None else self.lacking[positions],
        )

    @staticmethod
    def of_rows(rows: pa.Table, ordering_fields: Sequence[str]) -> RecordSet:
        """Return stored rows, without deletes, as records; the fields are paths."""
        deleted = np.zeros(rows.num_rows, dtype=np.bool_)
        return RecordSet(rows, deleted, tuple(resolve(rows, path) for path in ordering_fields))

    def changed_rows(self) -> pa.Table:
        """The rows (pyarrow.Table) that are not deletes, to merge into what is stored."""
        return self.rows.filter(pa.array(~self.deleted)) if self.deleted.any() else self.rows

    def live_rows(self) -> pa.Table:
        """The rows (pyarrow.Table) that are not deletes, if nothing is stored under their keys."""
        rows = self.changed_rows()
        return rows if self.hook is None else self.hook.inserted(rows)

    @staticmethod
    def concat(parts: Sequence[RecordSet]) -> RecordSet:
        """Concatenate record sets of one schema; at least one is needed."""
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
            _concat_masks([part.replacing for part in parts], [(p.num_rows,) for p in parts]),
            parts[0].hook,
            _concat_masks([part.lacking for part in parts], [part.rows.shape for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Merger:
    """Merges records of one table."""

    mode: MergeMode
    applies_deletes: bool = False
    """Whether a delete has removed the stored row before a later row of the same batch, as in a
    copy-on-write table; in a merge-on-read table that row meets the stored one."""
    needs_complete_rows: ClassVar[bool] = False

    def combine(self, records: RecordSet) -> RecordSet:
        """Leave the winner of each key, delete or not, in the order of `records`.

        See `hoodie_ds.record.merge.hook_merger.AnyMerger.combine`.
        """
        encoded = pc.dictionary_encode(one_chunk(records.rows.column(RECORD_KEY)))
        keys = encoded.indices.to_numpy(zero_copy_only=False)
        if len(encoded.dictionary) == len(keys):
            return records
        counts = np.bincount(keys, minlength=len(encoded.dictionary))
        repeated = np.flatnonzero(counts[keys] > 1)
        chosen = counts[keys] == 1
        replacing = np.zeros(len(keys), dtype=np.bool_)
        # The winners are found without the other columns: few rows are copied.
        compared = replace(records, rows=records.rows.select([RECORD_KEY]))
        winners, after_delete = self._last_winners(compared.take(repeated), keys[repeated])
        chosen[repeated[winners]] = True
        replacing[repeated[winners[after_delete]]] = True
        if replacing.any():
            records = replace(records, replacing=replacing)
        return records.take(np.flatnonzero(chosen))

    def over(self, new: RecordSet) -> Merge:
        """Begin to merge records, one per key, into older stored rows."""
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
        wins |= unconditional(new.ordering, new.deleted)[new_at]
        if self.applies_deletes and new.replacing is not None:
            wins |= new.replacing[new_at]
        return wins

    def _last_winners(self, records: RecordSet, keys: Positions) -> tuple[Positions, Mask]:
        """Position of the winner of each key, and whether it follows an unconditional delete.

        `keys` are integers that identify the keys.
        """
        positions = np.arange(records.num_rows, dtype=np.int64)
        if self.mode is MergeMode.COMMIT_TIME_ORDERING or not records.ordering:
            last = last_of(keys, positions, int(keys.max()) + 1)
            winners = last[last >= 0]
            return winners, np.zeros(len(winners), dtype=np.bool_)
        cleared, repeated = _cleared(records, keys, positions)
        # Records before a key's last record without an order lose, and that record itself loses to
        # any later one.
        resets = np.flatnonzero(unconditional(records.ordering, records.deleted) & ~repeated)
        last = last_of(keys[resets], resets, int(keys.max()) + 1)
        since_reset = np.sign(positions - last[keys])
        since_reset[repeated] = -1
        left = _greatest(since_reset, keys, positions)
        left = _greatest(order_codes(records.ordering, records.num_rows), keys, left)
        winners = last_of(keys[left], left, int(keys.max()) + 1)
        winners = winners[winners >= 0]
        by = cleared[keys[winners]]
        return winners, (by >= 0) & (by < winners)


def _cleared(records: RecordSet, keys: Positions, positions: Positions) -> tuple[Positions, Mask]:
    """Each key's last delete without ordering values, -1 if none; deletes that follow one directly.

    Hudi skips a delete of a key that is deleted unconditionally. It does so in log files, where
    such a delete reads as one without ordering values, and not within a batch, where its value may
    be the integer 0.
    """
    missing = records.deleted.copy()
    for column in records.ordering:
        missing &= as_numpy(pc.is_null(column))
    num_keys = int(keys.max()) + 1
    clearing = np.flatnonzero(missing)
    last = last_of(keys[clearing], clearing, num_keys)
    if not len(clearing):
        return last, missing
    after = (last[keys] >= 0) & (last[keys] < positions)
    first_live = np.full(num_keys, len(keys), dtype=np.int64)
    live = np.flatnonzero(after & ~records.deleted)[::-1]
    first_live[keys[live]] = live
    return last, after & (positions < first_live[keys])


def _greatest(values: Positions, keys: Positions, positions: Positions) -> Positions:
    """Return those of some positions that have the greatest value among those of their key."""
    values, keys = values[positions], keys[positions]
    greatest = np.full(int(keys.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(greatest, keys, values)
    found: Positions = positions[values == greatest[keys]]
    return found


def last_of(keys: Positions, positions: Positions, num_keys: int) -> Positions:
    """Return the last position of each key, -1 of keys that have none."""
    last = np.full(num_keys, -1, dtype=np.int64)
    last[keys] = positions  # of repeated indices NumPy keeps the last assignment
    return last


def matching(rows: pa.Table, keys: pa.Array) -> tuple[Positions, Positions]:
    """Return the positions of rows whose keys are among the given ones, and those of their keys."""
    found = pc.index_in(rows.column(RECORD_KEY), value_set=keys)
    at = np.flatnonzero(as_numpy(pc.is_valid(found)))
    return at, as_numpy(found.drop_null()).astype(np.int64)


class Merge:
    """New records, one per key, merged into stored rows, which may come in pieces of any size."""

    def __init__(self, merger: Merger, new: RecordSet) -> None:
        self._merger = merger
        self._new = new
        self._keys = one_chunk(new.rows.column(RECORD_KEY))
        self._take_new = ~new.deleted
        self._replacing = np.zeros(new.num_rows, dtype=np.bool_)
        self._losing = np.zeros(new.num_rows, dtype=np.bool_)
        self.num_deletes = 0

    def keep(self, old: RecordSet) -> Mask:
        """Merge into a piece of the stored rows; return which of them stay unchanged.

        No key may repeat in all pieces together.
        """
        keep = np.ones(old.num_rows, dtype=np.bool_)
        old_at, new_at = matching(old.rows, self._keys)
        if not len(old_at):
            return keep
        new_wins = self._merger.new_wins(old, old_at, self._new, new_at)
        keep[old_at[new_wins]] = False
        self._take_new[new_at[~new_wins]] = False
        self._losing[new_at[~new_wins]] = True
        self._replacing[new_at[new_wins]] = True
        self.num_deletes += int((self._new.deleted[new_at] & new_wins).sum())
        return keep

    @property
    def num_updates(self) -> int:
        """Number of rows that replace stored ones, after the last piece."""
        return int((self._take_new & self._replacing).sum())

    @property
    def num_inserts(self) -> int:
        """Number of added rows, after the last piece."""
        return int((self._take_new & ~self._replacing).sum())

    @property
    def inserted_keys(self) -> pa.Array:
        """Keys of the added rows, after the last piece."""
        return self._keys.filter(pa.array(self._take_new & ~self._replacing))

    @property
    def deleted_keys(self) -> pa.Array:
        """Keys of which no row is left, after the last piece; an insert may have stored several."""
        return self._keys.filter(pa.array(self._new.deleted & self._replacing & ~self._losing))

    @property
    def changes_nothing(self) -> bool:
        """Whether all stored rows stay and none is added."""
        return not (self._take_new.any() or self.num_deletes)

    def new_rows(self) -> pa.Table:
        """Return the new records that are rows of the result, in addition to the kept ones."""
        if self._take_new.all():
            return self._new.rows  # not copied: they may be all that the memory holds
        return self._new.rows.filter(pa.array(self._take_new))


def _concat_masks(masks: Sequence[Mask | None], shapes: Sequence[tuple[int, ...]]) -> Mask | None:
    if all(mask is None for mask in masks):
        return None
    pairs = zip(masks, shapes, strict=True)
    return np.concatenate(
        [np.zeros(shape, dtype=np.bool_) if mask is None else mask for mask, shape in pairs]
    )
