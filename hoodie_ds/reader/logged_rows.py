"""The rows of a file slice that its log files affect, and no others.

Readers that read base files by other means, as Spark does, need only these: the slice is the rows
of its base file without those that are replaced, and the rows from here.
"""

from __future__ import annotations

from collections import deque
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
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.slices.base_rows import BaseRows
from hoodie_ds.slices.file_slice_reader import KEY_FIELD, FileSliceReader, MergeCounts
from hoodie_ds.slices.key_groups import row_groups_with
from hoodie_ds.slices.late_columns import Places
from hoodie_ds.slices.located_records import surely_wins
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
                outcome = MergeOutcome.of([*self._without(base, keys)], {})
            self._outcomes.put(key, outcome)
        return ~outcome.staying()

    def read(self, slice_: FileSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a slice, read whole, beside those that are not `replaced`.

        Nothing is read of the base file if its statistics show that every record of the log files
        is newer; else the compared columns, and whole rows only where they are merged.
        """
        logs = self.reader.open_logs(slice_)
        key, outcomes = self.reader.outcome_key(slice_, logs), self._outcomes
        records = None if key is None else outcomes.get(("records", key))
        if records is not None:
            yield from self.reader.rows_at(logs, records.records, columns)
            return
        known = self.reader.outcome(slice_, logs, columns)
        if known is not None:
            yield from known[1]
            return
        places = None if key is None else Places()
        logged = self.reader.logged(slice_, logs, columns, columns, MergeCounts(), places=places)
        if logged is None:
            return
        merger, newest = logged
        if slice_.base is None:
            yield merger.over(newest).new_rows().select(columns)
            return
        with self._base(slice_) as base:
            if not isinstance(merger, Merger):
                yield from (rows.select(columns) for rows in self._merged(base, merger, newest))
                return
            wins = self._surely_wins(merger, newest, base)
            sure, unsure = newest.take(np.flatnonzero(wins)), newest.take(np.flatnonzero(~wins))
            merge = merger.over(unsure)
            deque(self._stays(base, merge, unsure), maxlen=0)
        found = pa.concat_tables([sure.changed_rows(), merge.new_rows()])
        yield found.select(columns)
        if places is not None:
            outcomes.put(("records", key), MergeOutcome.of([], places.of(found)))

    def _outcome(self, slice_: FileSlice, logs: OpenLogs) -> MergeOutcome | None:
        """What the merge of a slice comes to; None if whole rows are merged."""
        key, outcomes = self.reader.outcome_key(slice_, logs), self._outcomes
        if key is None:
            return None
        known = self.reader.outcome(slice_, logs)
        if known is not None:
            return known[0]
        places = Places()
        logged = self.reader.logged(slice_, logs, (), (), MergeCounts(), places=places)
        if logged is None or not isinstance(logged[0], Merger):
            return None
        records, merge = logged[1], logged[0].over(logged[1])
        with self._base(slice_) as base:
            if self._surely_wins(logged[0], records, base).all():
                stays = [*self._without(base, records.rows.column(RECORD_KEY))]
                found = records.changed_rows()
            else:
                stays, found = [*self._stays(base, merge, records)], merge.new_rows()
        outcome = MergeOutcome.of(stays, places.of(found))
        outcomes.put(key, outcome)
        return outcome

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
    def _base(self, slice_: FileSlice) -> Iterator[BaseFileReader]:
        assert slice_.base is not None
        path, trusted = slice_.base.path, slice_.base.trusted
        renaming = self.reader.history.renaming(slice_.base.name.instant_time)
        with self.reader.view.storage.open_input(path) as source:
            yield BaseFileReader(
                source, self.reader.schema, path, trusted=trusted, renaming=renaming
            )

    def _surely_wins(self, merger: Merger, records: RecordSet, base: BaseFileReader) -> Mask:
        return surely_wins(merger, self.reader.ordering_fields, records, base)

    def _without(self, base: BaseFileReader, keys: pa.ChunkedArray) -> Iterator[Mask]:
        """Yield which rows of a base file have none of some keys, piece by piece."""
        return BaseRows(base, None, None).stays([RECORD_KEY], keys, lambda r: ~_hits(r, keys))

    def _stays(self, base: BaseFileReader, merge: AnyMerge, new: RecordSet) -> Iterator[Mask]:
        """Merge records into the rows of a base file; yield which of them stay, piece by piece."""

        def keep(rows: pa.Table) -> Mask:
            return merge.keep(self.reader.stored(rows, is_complete=False))

        keys = new.rows.column(RECORD_KEY)
        return BaseRows(base, None, None).stays(self.reader.compared.names, keys, keep)

    def _merged(
        self, base: BaseFileReader, merger: AnyMerger, records: RecordSet
    ) -> Iterator[pa.Table]:
        """The rows under the keys of records, where whole rows are merged; with all columns."""
        merge, keys = merger.over(records), records.rows.column(RECORD_KEY)
        for number in sorted(row_groups_with(base, keys, range(base.num_row_groups))):
            at = np.flatnonzero(_hits(self._group(base, number, [RECORD_KEY]), keys))
            if len(at):
                rows = self._group(base, number, self.reader.schema.names).take(at)
                keep = merge.keep(self.reader.stored(rows, is_complete=True))
                yield rows.filter(pa.array(keep))
        yield merge.new_rows()

    def _group(self, base: BaseFileReader, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a row group, which may be without rows."""
        empty = pa.schema(map(self.reader.schema.field, columns)).empty_table()
        return pa.concat_tables([empty, *base.pieces(list(columns), [number])])


def _hits(rows: pa.Table, keys: pa.ChunkedArray) -> Mask:
    return as_numpy(pc.is_in(rows.column(RECORD_KEY), value_set=keys))
