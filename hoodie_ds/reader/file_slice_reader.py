"""One file slice to rows: the base file with its log files merged in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_ds.formats.base_file import read_base_file
from hoodie_ds.reader.log_reader import LogReader
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merger import Merger, RecordSet
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView


@dataclass(frozen=True)
class FileSliceReader:
    """Reads slices of one table as of one timeline.

    Parameters
    ----------
    view : FileSystemView
        The table at that moment.
    schema : pyarrow.Schema
        All columns of the table, meta columns first.
    merger : Merger
        Decides between base and log records.
    ordering_fields : tuple of str
        Fields that the merger compares.
    """

    view: FileSystemView
    schema: pa.Schema
    merger: Merger
    ordering_fields: tuple[str, ...]

    def read(self, slice_: FileSlice, columns: Sequence[str]) -> pa.Table:
        """Return the rows of a slice.

        As in Hudi's own readers, the records of the log files are combined first, and their
        outcome is merged over the base file.

        Parameters
        ----------
        slice_ : FileSlice
            The slice.
        columns : sequence of str
            Columns to return, in this order.

        Raises
        ------
        CorruptFileError
            A file is damaged; names it.
        """
        needed = self._needed(slice_, columns)
        schema = pa.schema([field for field in self.schema if field.name in needed])
        base = self._base(slice_, schema)
        if slice_.logs:
            parts = LogReader(self.view, schema, self.ordering_fields).read(slice_.logs)
            if parts:
                base = self._merged(base, self.merger.combine(RecordSet.concat(parts)))
        return base.select(list(columns))

    def _needed(self, slice_: FileSlice, columns: Sequence[str]) -> set[str]:
        if not slice_.logs:
            return set(columns)
        names = self.schema.names
        ordering = {p if p in names else p.partition(".")[0] for p in self.ordering_fields}
        return {*columns, RECORD_KEY, *ordering}

    def _base(self, slice_: FileSlice, schema: pa.Schema) -> pa.Table:
        if slice_.base is None:
            return schema.empty_table()
        with self.view.storage.open_input(slice_.base.path) as source:
            return read_base_file(source, schema, None, slice_.base.path)

    def _merged(self, base: pa.Table, records: RecordSet) -> pa.Table:
        ordering = tuple(resolve(base, path) for path in self.ordering_fields)
        old = RecordSet(base, np.zeros(base.num_rows, dtype=np.bool_), ordering)
        merge = self.merger.merge(old, records)
        kept = base if merge.keep_old.all() else base.filter(pa.array(merge.keep_old))
        return pa.concat_tables([kept, records.rows.filter(pa.array(merge.take_new))])
