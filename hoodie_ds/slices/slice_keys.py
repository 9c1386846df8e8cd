"""The record keys of a file slice: of all its rows, or those in the log files of one write."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.table.file_slice import FileSlice

NO_KEYS: Final = pa.array([], pa.string())


def live_keys(reader: FileSliceReader, slice_: FileSlice) -> pa.Array:
    """Return the record keys (string) of the rows of a slice, its log files merged."""
    pieces = [rows.column(RECORD_KEY) for rows in reader.read(slice_, [RECORD_KEY])]
    chunks = [chunk for piece in pieces for chunk in piece.chunks]
    return pa.chunked_array(chunks, pa.string()).combine_chunks()


def logged_keys(reader: FileSliceReader, slice_: FileSlice, time: str) -> tuple[pa.Array, pa.Array]:
    """Return the record keys in the log blocks of an instant: those of rows, and those of none.

    The base file is read only where that depends on its ordering values: a delete may be too old.
    """
    parts: list[RecordSet] = []
    named: list[pa.Array] = []
    for block in reader.blocks(reader.open_logs(slice_)):
        parts.append(block.records)
        if block.instant == time:
            named += block.records.rows.column(RECORD_KEY).chunks
    keys = pa.chunked_array(named, pa.string()).unique()
    live, merger = NO_KEYS, reader.merger
    is_plain = isinstance(merger, Merger) and all(part.lacking is None for part in parts)
    if is_plain and parts:
        live = _among(keys, merger.combine(RecordSet.concat(parts)).live_rows().column(RECORD_KEY))
    is_known = is_plain and (slice_.base is None or not reader.ordering_fields)
    if len(live) < len(keys) and not is_known:
        live = _among(keys, live_keys(reader, slice_))
    return live, without(keys, live)


def without(keys: pa.Array, others: pa.Array) -> pa.Array:
    """Return the keys that are not among others."""
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def _among(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.is_in(keys, value_set=others))
