"""Arrow rows that are found again by their numbers, or by the values of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers, as_numpy, one_chunk
from hoodie_ds.sink.digest.row_hash import Hashes, row_hashes
from hoodie_ds.sink.row_change import same_values
from hoodie_ds.storage.memory_map import mapped_copy, release

_HELD_BYTES: Final = 256 << 20
"""Arrow bytes of rows that are held in memory, if they need not be there anyway."""
_NOT_MAPPED: Final = memoryview(b"")


class NumberedRows:
    """Rows in memory, or in a memory map, of which no more than is looked at stays in memory."""

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        mapped: memoryview = _NOT_MAPPED,
    ) -> None:
        self.schema = schema
        self._mapped = mapped
        self._batches = [batch for batch in batches if batch.num_rows]
        ends = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        self._starts, self.num_rows = ends[:-1], int(ends[-1])

    @classmethod
    def spooled(cls, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> NumberedRows:
        """Return rows that come once; many of them are kept in a file on the local disk."""
        held, size = list[pa.RecordBatch](), 0
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size > _HELD_BYTES:
                break
        else:
            return cls(schema, held)

        def write(copy: IO[bytes]) -> None:
            with pa.ipc.new_file(copy, schema) as file:
                while held:
                    file.write_batch(held.pop(0))
                for batch in batches:
                    file.write_batch(batch)

        mapped = mapped_copy("the source of a merge", write)
        file = pa.ipc.open_file(pa.py_buffer(mapped))
        return cls(schema, map(file.get_batch, range(file.num_record_batches)), mapped)

    def pieces(self) -> Iterator[tuple[Numbers, pa.Table]]:
        """Yield all rows, some at a time, with their numbers."""
        for start, batch in zip(self._starts.tolist(), self._batches, strict=True):
            yield np.arange(start, start + batch.num_rows), pa.Table.from_batches([batch])
            release(self._mapped)

    def take(self, numbers: Numbers) -> pa.Table:
        """Return rows by their numbers; only batches that have some are looked at."""
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        which = np.searchsorted(self._starts, ascending, side="right") - 1
        parts = [
            self._batches[at].take(pa.array(ascending[which == at] - self._starts[at]))
            for at in np.unique(which).tolist()
        ]
        release(self._mapped)
        found = pa.Table.from_batches(parts, schema=self.schema)
        if (order[1:] > order[:-1]).all():
            return found
        return found.combine_chunks().take(pa.array(np.argsort(order)))


class RowIndex:
    """Finds rows by the values of all of their columns, of which null is like nothing.

    It holds a hash and a number for each row. Rows with the same values are one group.
    """

    def __init__(self, rows: NumberedRows) -> None:
        self._rows = rows
        hashes, numbers = [np.array([], np.uint64)], [np.array([], np.int64)]
        for at, piece in rows.pieces():
            whole = _are_whole(piece)
            hashes.append(_hashes(piece)[whole])
            numbers.append(at[whole])
        every, self._numbers = np.concatenate(hashes), np.concatenate(numbers)
        del hashes, numbers
        order = np.argsort(every, kind="stable")
        every, self._numbers = every[order], self._numbers[order]
        del order
        self._starts = self._grouped(every)
        self._hashes = every[self._starts]
        self.sizes: Numbers = np.diff(self._starts, append=len(every))

    def find(self, rows: pa.Table) -> Numbers:
        """Return the group of each of some rows with the same columns; -1 for none."""
        groups = np.full(rows.num_rows, -1)
        hashes = _hashes(rows)
        at = np.searchsorted(self._hashes, hashes)
        left = np.flatnonzero(_are_whole(rows))
        while True:
            left = left[at[left] < len(self._hashes)]
            left = left[self._hashes[at[left]] == hashes[left]]
            if not len(left):
                return groups
            equal = _are_equal(rows.take(pa.array(left)), self._rows.take(self.first(at[left])))
            groups[left[equal]] = at[left[equal]]
            left = left[~equal]
            at[left] += 1

    def first(self, groups: Numbers) -> Numbers:
        """Return the number of the first row of each group."""
        found: Numbers = self._numbers[self._starts[groups]]
        return found

    def numbers(self, chosen: Mask) -> Numbers:
        """Return the numbers of all rows of the groups that are chosen."""
        found: Numbers = self._numbers[np.repeat(chosen, self.sizes)]
        return found

    def _grouped(self, hashes: Hashes) -> Numbers:
        """Bring equal rows together among those of one hash; returns where each group begins."""
        begins = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
        is_shared = ~begins
        is_shared[:-1] |= ~begins[1:]
        if is_shared.any():
            shared = self._numbers[is_shared]
            codes = _codes(self._rows.take(shared))
            order = np.lexsort((codes, hashes[is_shared]))
            self._numbers[is_shared] = shared[order]
            begins[is_shared] |= np.diff(codes[order], prepend=-1) != 0
        return np.flatnonzero(begins)


def comparable(rows: pa.Table) -> pa.Table:
    """Return rows in which equal values have equal bits: of zero and NaN there is one each."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = pc.add(rows.column(number), pa.scalar(0, field.type))
            nan = pa.scalar(float("nan"), field.type)
            rows = rows.set_column(number, field, pc.if_else(pc.is_nan(column), nan, column))
    return rows


def _hashes(rows: pa.Table) -> Hashes:
    return row_hashes(rows) if rows.num_rows else np.array([], np.uint64)


def _are_whole(rows: pa.Table) -> Mask:
    """Which rows have no null."""
    whole = np.ones(rows.num_rows, np.bool_)
    for column in rows.columns:
        if column.null_count:
            whole &= as_numpy(column.is_valid())
    return whole


def _are_equal(one: pa.Table, other: pa.Table) -> Mask:
    pairs = zip(one.columns, other.columns, strict=True)
    return reduce(np.logical_and, (same_values(one_chunk(a), one_chunk(b)) for a, b in pairs))


def _codes(rows: pa.Table) -> Numbers:
    """A number for each row, the same for equal ones."""
    codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        values = as_numpy(one_chunk(column).dictionary_encode().indices)
        codes = np.unique(codes * rows.num_rows + values, return_inverse=True)[1]
    return codes
