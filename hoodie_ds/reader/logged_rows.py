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
from hoodie_ds.record.merge.hook_merger import AnyMerge, AnyMerger
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.slices.base_rows import BaseRows
from hoodie_ds.slices.file_slice_reader import KEY_FIELD, FileSliceReader, MergeCounts, RowPruner
from hoodie_ds.slices.key_groups import row_groups_with
from hoodie_ds.slices.keyed_records import without
from hoodie_ds.slices.late_columns import Places
from hoodie_ds.slices.log_reader import LogReader, OpenLogs
from hoodie_ds.slices.merge_outcomes import MergeOutcome, MergeOutcomes, merge_outcomes
from hoodie_ds.table.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class LoggedRows:
    """Reads what log files have changed in slices of a table whose files have record keys."""

    reader: FileSliceReader

    def replaced(self, slice_: FileSlice) -> Mask:
        """Return which rows of a slice's base file do not count; `read` yields what does instead.

        They are those that records replace, and, where whole rows are merged, all that have the key
        of a record.
        """
        assert slice_.base is not None
        logs = self.reader.open_logs(slice_)
        rule = self.reader.outcome_key(slice_, logs), self.reader.delete_marker
        key = "keys", slice_.base, logs.places, rule, self.reader.history.version
        outcome = self._outcomes.get(key) or self._outcome(slice_, logs)
        if outcome is None:
            with self._base(slice_) as base:
                keys = pa.chunked_array([self.keys(logs)])
                outcome = MergeOutcome.of([*without(base, keys)], {})
            self._outcomes.put(key, outcome)
        return ~outcome.staying()

    def read(
        self, slice_: FileSlice, columns: Sequence[str], pruner: RowPruner | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a slice, read whole, beside those that are not `replaced`.

        Nothing is read of the base file if its statistics show that every record of the log files
        is newer; else the compared columns, and whole rows only where they are merged. Rows that
        `pruner` rules out may lack.
        """
        logs = self.reader.open_logs(slice_)
        key, outcomes = self.reader.outcome_key(slice_, logs), self._outcomes
        records = None if key is None else outcomes.get(("records", key))
        if records is not None:
            yield from self.reader.rows_at(slice_, logs, records.records, columns, pruner)
            return
        known = self.reader.outcome(slice_, logs, columns, pruner)
        if known is not None:
            yield from known[1]
            return
        places = None if key is None else Places()
        logged = self.reader.logged(slice_, logs, columns, MergeCounts(), pruner, places)
        if logged is None:
            return
        with self._base(slice_) as base:
            if places is None:
                yield from (rows.select(columns) for rows in self._merged(base, *logged))
                return
            found = self.reader.keyed(logged[1]).rows(base)
        yield places.shown(found).select(columns)
        if pruner is None or pruner.keys is None:
            outcomes.put(("records", key), MergeOutcome.of([], places.of(found)))

    def _outcome(self, slice_: FileSlice, logs: OpenLogs) -> MergeOutcome | None:
        """What the merge of a slice comes to; None if whole rows are merged."""
        if self.reader.outcome_key(slice_, logs) is None:
            return None
        known = self.reader.outcome(slice_, logs)
        if known is not None:
            return known[0]
        with self._base(slice_) as base:
            return self.reader.outcome_by_keys(slice_, logs, (), base)[0]

    @property
    def _outcomes(self) -> MergeOutcomes:
        return merge_outcomes(self.reader.view.storage)

    def keys(self, logs: OpenLogs) -> pa.Array:
        """Return the record keys of all records that count, each once."""
        marker = self.reader.delete_marker
        columns, history = pa.schema([KEY_FIELD]), self.reader.history
        reader = LogReader(self.reader.view, columns, (), marker, history=history)
        keys = [part.records.rows.column(RECORD_KEY) for part in reader.records(logs)]
        chunks = [chunk for column in keys for chunk in column.chunks]
        return pc.unique(pa.chunked_array(chunks, KEY_FIELD.type))

    @contextmanager
    def _base(self, slice_: FileSlice) -> Iterator[BaseRows]:
        """The base file, which is compared with no checksum."""
        base = slice_.base
        if base is None:
            yield BaseRows(None, None, None)
            return
        renaming = self.reader.history.renaming(base.name.instant_time)
        with self.reader.view.storage.open_input(base.path) as source:
            reader = BaseFileReader(
                source, self.reader.schema, base.path, trusted=base.trusted, renaming=renaming
            )
            yield BaseRows(reader, None, None)

    def _merged(self, base: BaseRows, merger: AnyMerger, records: RecordSet) -> Iterator[pa.Table]:
        """The rows under the keys of records, where whole rows are merged; with all columns."""
        merge, keys = merger.over(records), records.rows.column(RECORD_KEY)
        if base.reader is not None:
            yield from self._stored(base.reader, merge, keys)
        yield merge.new_rows()

    def _stored(
        self, base: BaseFileReader, merge: AnyMerge, keys: pa.ChunkedArray
    ) -> Iterator[pa.Table]:
        """The rows of a base file under some keys that stay as they are."""
        for number in sorted(row_groups_with(base, keys, range(base.num_row_groups))):
            stored = self._group(base, number, [RECORD_KEY]).column(RECORD_KEY)
            at = np.flatnonzero(as_numpy(pc.is_in(stored, value_set=keys)))
            if len(at):
                rows = self._group(base, number, self.reader.schema.names).take(at)
                keep = merge.keep(self.reader.stored(rows, is_complete=True))
                yield rows.filter(pa.array(keep))

    def _group(self, base: BaseFileReader, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a row group, which may be without rows."""
        empty = pa.schema(map(self.reader.schema.field, columns)).empty_table()
        return pa.concat_tables([empty, *base.pieces(list(columns), [number])])
