"""The rows of a file slice that its log files affect, and no others.

Readers that read base files by other means, as Spark does, need only these: the slice is the rows
of its base file without those that are replaced, and the rows from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, as_numpy
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.record.merge.hook_merger import AnyMerge
from hoodie_ds.record.merge.merger import Merger
from hoodie_ds.slices.file_slice_reader import KEY_FIELD, FileSliceReader, MergeCounts
from hoodie_ds.slices.late_columns import Places
from hoodie_ds.slices.located_records import surely_wins
from hoodie_ds.slices.log_reader import LogReader, OpenLogs
from hoodie_ds.slices.merge_outcomes import MergeOutcome, merge_outcomes
from hoodie_ds.table.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class LoggedRows:
    """Reads what log files have changed in slices of a table whose files have record keys."""

    reader: FileSliceReader

    def replaced(self, slice_: FileSlice) -> Mask:
        """Return which rows of a slice's base file do not count: `read` yields what does.

        They are those that records replace, if log blocks name their positions; else all that have
        the key of a record that counts.
        """
        assert slice_.base is not None
        logs = self.reader.open_logs(slice_)
        located = self.reader.located(slice_, logs)
        if located is not None:
            return ~located.staying()
        outcomes = merge_outcomes(self.reader.view.storage)
        marker = self.reader.delete_marker, self.reader.history.version
        key = "keys", slice_.base, logs.places, marker
        known = outcomes.get(key)
        if known is None:
            with self._base(slice_) as base:
                keys = pa.chunked_array([self.keys(logs)])
                groups = (self._group(base, at, [RECORD_KEY]) for at in range(base.num_row_groups))
                known = MergeOutcome.of([~_hits(group, keys) for group in groups], {})
            outcomes.put(key, known)
        return ~known.staying()

    def read(self, slice_: FileSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a slice beside those of its base file that are not `replaced`.

        Little is read of the base file: nothing if its statistics show that every record of the log
        files is newer, else the compared columns, and whole rows only where some stay or are
        merged.
        """
        logs = self.reader.open_logs(slice_)
        outcomes = merge_outcomes(self.reader.view.storage)
        key = self.reader.outcome_key(slice_, logs)
        known = None if key is None else outcomes.get(("records", key))
        known = known or self.reader.located(slice_, logs)
        if known is not None:
            yield from self.reader.rows_at(logs, known.records, columns)
            return
        places = None if key is None else Places()
        logged = self.reader.logged(slice_, logs, columns, columns, MergeCounts(), places=places)
        if logged is None:
            return
        merger, records = logged
        if slice_.base is None:
            yield merger.over(records).new_rows().select(columns)
            return
        with self._base(slice_) as base:
            if isinstance(merger, Merger):
                wins = surely_wins(merger, self.reader.ordering_fields, records, base)
                rows = records.take(np.flatnonzero(wins)).changed_rows()
                yield rows.select(columns)
                records = records.take(np.flatnonzero(~wins))
                if places is not None and not records.num_rows:
                    outcomes.put(("records", key), MergeOutcome.of([], places.of(rows)))
            if not records.num_rows:
                return
            merge, keys = merger.over(records), records.rows.column(RECORD_KEY)
            for number in range(base.num_row_groups):
                if merger.needs_complete_rows:
                    yield self._merged(base, number, merge, keys).select(columns)
                else:
                    yield self._staying(base, number, merge, keys, columns)
        yield merge.new_rows().select(columns)

    def keys(self, logs: OpenLogs) -> pa.Array:
        """Return the record keys of all records that count, each once."""
        marker = self.reader.delete_marker
        columns, history = pa.schema([KEY_FIELD]), self.reader.history
        reader = LogReader(self.reader.view, columns, (), marker, history=history)
        keys = [part.records.rows.column(RECORD_KEY) for part in reader.records(logs)]
        chunks = [chunk for column in keys for chunk in column.chunks]
        return pc.unique(pa.chunked_array(chunks, KEY_FIELD.type))

    @contextmanager
    def _base(self, slice_: FileSlice) -> Iterator[BaseFileReader]:
        assert slice_.base is not None
        path, trusted = slice_.base.path, slice_.base.trusted
        renaming = self.reader.history.renaming(slice_.base.name.instant_time)
        with self.reader.view.storage.open_input(path) as source:
            yield BaseFileReader(
                source, self.reader.schema, path, trusted=trusted, renaming=renaming
            )

    def _staying(
        self,
        base: BaseFileReader,
        number: int,
        merge: AnyMerge,
        keys: pa.ChunkedArray,
        columns: Sequence[str],
    ) -> pa.Table:
        """The rows of a row group with one of the keys that stay as they are."""
        compared = self._group(base, number, self.reader.compared.names)
        at = _positions(compared, keys)
        at = at[merge.keep(self.reader.stored(compared.take(at), is_complete=False))]
        if not len(at):
            return pa.schema(map(self.reader.schema.field, columns)).empty_table()
        return self._group(base, number, columns).take(at)

    def _merged(
        self, base: BaseFileReader, number: int, merge: AnyMerge, keys: pa.ChunkedArray
    ) -> pa.Table:
        """As `_staying`, where whole rows are merged; with all columns."""
        at = _positions(self._group(base, number, [RECORD_KEY]), keys)
        if not len(at):
            return self.reader.schema.empty_table()
        rows = self._group(base, number, self.reader.schema.names).take(at)
        keep = merge.keep(self.reader.stored(rows, is_complete=True))
        return rows.filter(pa.array(keep))

    def _group(self, base: BaseFileReader, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a row group, which may be without rows."""
        empty = pa.schema(map(self.reader.schema.field, columns)).empty_table()
        return pa.concat_tables([empty, *base.pieces(list(columns), [number])])


def _positions(rows: pa.Table, keys: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero(_hits(rows, keys)).astype(np.int64)


def _hits(rows: pa.Table, keys: pa.ChunkedArray) -> Mask:
    return as_numpy(pc.is_in(rows.column(RECORD_KEY), value_set=keys))
