"""The changes to one base file, written to a file of change data (``HoodieCDCLogger``).

A change is a removed row, an added row, or both if they share a key. Removed rows come first and
are kept in memory, as far as the table logs them; added rows are matched with them in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import as_numpy, one_chunk
from hoodie_ds.columns.meta_columns import META_COLUMNS, RECORD_KEY
from hoodie_ds.config.enums import SupplementalLogging
from hoodie_ds.formats.log.cdc_block import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    KEY,
    OP,
    TS_MS,
    UPDATE,
    cdc_schema,
    encode_cdc_block,
)
from hoodie_ds.formats.log.data_block import in_blocks
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.handles.data_file import HashingOutput, open_data_file
from hoodie_ds.table.file_name import CdcFileName
from hoodie_ds.timeline.paths import in_partition


class ChangeLog:
    """Takes removed rows, then added rows; see `open_change_log`."""

    def __init__(
        self, context: WriteContext, logging: SupplementalLogging, path: str, output: HashingOutput
    ) -> None:
        self._context = context
        self._path = path
        self._output = output
        self._schema = cdc_schema(logging, context.avro_schema)
        user = [name for name in context.schema.names if name not in META_COLUMNS]
        self._old_columns = self._new_columns = pa.schema([context.schema.field(RECORD_KEY)])
        images = pa.schema([self._old_columns.field(0), *map(context.schema.field, user)])
        if logging is not SupplementalLogging.OP_KEY_ONLY:
            self._old_columns = images
        if logging is SupplementalLogging.DATA_BEFORE_AFTER:
            self._new_columns = images
        self._removed: list[pa.Table] = []
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0

    @property
    def stat(self) -> tuple[tuple[str, int], ...]:
        """The file's path and size, for the write stat."""
        return ((self._path, self._output.size),)

    @property
    def checksums(self) -> tuple[str, ...]:
        """The file's xxh64."""
        return (self._output.checksum,)

    def removed(self, rows: pa.Table) -> None:
        """Take stored rows that are removed or replaced, all before the first `added`."""
        if rows.num_rows:
            self._removed.append(conform(rows, self._old_columns))

    def added(self, rows: pa.Table) -> None:
        """Take added rows: user columns and ``_hoodie_record_key``, without repeated keys."""
        for part in in_blocks(rows, self._context.log_block_bytes):
            at = one_chunk(pc.index_in(part.column(RECORD_KEY), value_set=self._old_keys))
            self._readded[as_numpy(at.drop_null()).astype(np.int64)] = True
            op = pc.if_else(at.is_valid(), UPDATE, INSERT)
            self._log(op, conform(part, self._new_columns), self._old.take(at), at.is_null())

    def finish(self) -> None:
        """Log removed rows without an added row as deletes, and write what is pending."""
        deleted = self._old.filter(pa.array(~self._readded))
        for part in in_blocks(deleted, self._context.log_block_bytes):
            none = conform(part.select([RECORD_KEY]), self._new_columns)
            self._log(pa.repeat(DELETE, part.num_rows), none, part, None)
        if self._pending or not self._output.size:  # a file has a block, if an empty one
            self._flush()

    @cached_property
    def _old(self) -> pa.Table:
        return pa.concat_tables([self._old_columns.empty_table(), *self._removed]).combine_chunks()

    @cached_property
    def _old_keys(self) -> pa.Array:
        return one_chunk(self._old.column(RECORD_KEY))

    @cached_property
    def _readded(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which removed rows have an added row."""
        return np.zeros(self._old.num_rows, dtype=np.bool_)

    def _log(self, op: pa.Array, new: pa.Table, old: pa.Table, is_new: pa.Array | None) -> None:
        """Log changes: `is_new` says which have no old row; None if all are deletes."""
        count = new.num_rows
        changes = {OP: op, KEY: new.column(RECORD_KEY)}
        changes[TS_MS] = pa.repeat(self._context.instant_time, count)
        changes[BEFORE] = _images(old, is_new)
        changes[AFTER] = _images(new, None if is_new is not None else pa.repeat(True, count))
        table = pa.table(changes)
        self._pending.append(table)
        self._pending_bytes += table.nbytes
        if self._pending_bytes >= self._context.log_block_bytes:
            self._flush()

    def _flush(self) -> None:
        empty = pa.table({OP: pa.array([], pa.string())})
        changes = pa.concat_tables(self._pending) if self._pending else empty
        self._output.write(encode_cdc_block(changes, self._schema, self._context.instant_time))
        self._pending, self._pending_bytes = [], 0


@contextmanager
def open_change_log(
    context: WriteContext, partition_path: str, file_id: str
) -> Iterator[ChangeLog | None]:
    """Open the change data file of a file group's next base file; None if nothing is logged."""
    if context.logging is None:
        yield None
        return
    name = CdcFileName(file_id, context.instant_time, context.write_token)
    path = in_partition(partition_path, str(name))
    # No other instant or attempt uses this name, so a rollback of any engine may delete the file.
    with open_data_file(context, path, "CREATE") as output:
        log = ChangeLog(context, context.logging, path, output)
        yield log
        log.finish()


def _images(rows: pa.Table, missing: pa.Array | None) -> pa.Array:
    """User columns as structs, null where there is no row."""
    names = [name for name in rows.column_names if name != RECORD_KEY]
    if not names:
        return pa.nulls(rows.num_rows)
    columns = [one_chunk(rows.column(name)) for name in names]
    return pa.StructArray.from_arrays(columns, names, mask=missing)
