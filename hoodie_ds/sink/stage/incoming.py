"""The rows that a batch has for one file group, of which merging holds no more than it compares.

A file group's rows may be more than a task may hold, which is why some were set aside. Which of
them survive depends on keys, ordering fields and delete marks alone, so those columns are merged;
the survivors then pass through memory piece by piece.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.record.merge.rule import RecordSet
from hoodie_ds.record.meta_columns import IS_DELETED, RECORD_KEY
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import split, to_records
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.checksums import open_checked

POSITION: Final = "_hoodie_ds_position"
"""Column that says where a compared row is among all of them."""

_REMEDY: Final = "run the batch again"


class Incoming:
    """Rows of one file group, in order of arrival.

    Parameters
    ----------
    batch : Batch
        The batch.
    parts : sequence of StagedRows and pyarrow.Table
        Rows set aside, and rows in memory: user columns and ``_hoodie_record_key``.
    """

    def __init__(self, batch: Batch, parts: Sequence[StagedRows | pa.Table]) -> None:
        self._batch = batch
        self._storage = batch.table.storage
        self._parts = list(parts) or [_no_rows(batch)]
        self._in_memory = batch.merger.needs_whole_rows
        self._num_rows = 0

    def records(self, also: Collection[str] = ()) -> RecordSet:
        """Return the rows as records, complete only where merging needs all columns.

        Parameters
        ----------
        also : collection of str
            Columns that the caller needs beside those that merging compares.
        """
        if self._in_memory:
            return to_records(self._batch, pa.concat_tables(self._pieces(None)))
        fields = {path.partition(".")[0] for path in self._batch.ordering_fields}
        names = self._batch.schema.names
        wanted = {
            RECORD_KEY,
            IS_DELETED,
            *also,
            *fields,
            *(set(self._batch.ordering_fields) & set(names)),
        }
        rows = pa.concat_tables(self._pieces(wanted))
        self._num_rows = rows.num_rows
        position = pa.array(np.arange(rows.num_rows))
        return to_records(self._batch, rows.append_column(POSITION, position))

    def whole(self, chosen: pa.Table) -> Iterator[pa.Table]:
        """Yield the complete rows of some of the records, and forget them all.

        Parameters
        ----------
        chosen : pyarrow.Table
            Rows of what `records` gave, or of what became of it.
        """
        if self._in_memory:
            self._parts.clear()
            yield chosen
            return
        wanted = np.zeros(self._num_rows, dtype=np.bool_)
        wanted[chosen.column(POSITION).to_numpy()] = True
        start = 0
        while self._parts:
            for rows in _read(self._storage, self._parts.pop(0), None):
                here = wanted[start : start + rows.num_rows]
                start += rows.num_rows
                yield rows if here.all() else rows.filter(pa.array(here))

    def parted(
        self, codes: npt.NDArray[np.int64], piece_bytes: int
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield all rows parted by a number for each, piece by piece, and forget them.

        Parameters
        ----------
        codes : numpy.ndarray of int64
            A number for each row; rows with a negative one are left out.
        piece_bytes : int
            Size of the pieces.
        """
        start = 0
        while self._parts:
            for rows in _read(self._storage, self._parts.pop(0), None):
                step = max(1, rows.num_rows * piece_bytes // max(1, rows.nbytes))
                for first in range(0, rows.num_rows, step):
                    piece = rows.slice(first, step)
                    here = codes[start : start + piece.num_rows]
                    start += piece.num_rows
                    yield from split(piece.filter(pa.array(here >= 0)), here[here >= 0])

    def _pieces(self, wanted: set[str] | None) -> Iterator[pa.Table]:
        for part in self._parts:
            yield from _read(self._storage, part, wanted)


def _no_rows(batch: Batch) -> pa.Table:
    keyed = batch.schema.append(pa.field(RECORD_KEY, pa.string()))
    return keyed.empty_table()


def rows_of(batch: Batch, parts: Sequence[StagedRows | pa.Table]) -> Iterator[pa.Table]:
    """Yield all rows of some parts, piece by piece, as they are."""
    for part in parts:
        yield from _read(batch.table.storage, part, None)


def _read(
    storage: Storage, part: StagedRows | pa.Table, wanted: set[str] | None
) -> Iterator[pa.Table]:
    """Yield the rows of a part, piece by piece; all columns if `wanted` is None."""
    if isinstance(part, pa.Table):
        yield part.select([n for n in part.column_names if wanted is None or n in wanted])
        return
    with open_checked(storage, part.path, part.checksum, _REMEDY) as source:
        with _reading(part):
            file = pa.ipc.open_file(source)
            if wanted is not None:
                fields = [n for n, name in enumerate(file.schema.names) if name in wanted]
                options = pa.ipc.IpcReadOptions(included_fields=fields)
                file = pa.ipc.open_file(source, options=options)
        every = range(file.num_record_batches)
        for number in every if part.batches is None else part.batches:
            with _reading(part):
                rows = pa.Table.from_batches([file.get_batch(number)])
            yield rows


@contextmanager
def _reading(part: StagedRows) -> Iterator[None]:
    """Say which file it is that cannot be read, though it was whole when it was compared."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(
            f"{part.path} cannot be read as it was written ({str(error)[:200]}); {_REMEDY}"
        ) from error
