"""The record keys of a file slice: of all its rows, or those in the log files of one write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.record.merge.hook_merger import HookMerger
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.slices.file_slice_reader import FileSliceReader, MergeCounts
from hoodie_ds.slices.late_columns import Places
from hoodie_ds.slices.merge_outcomes import MergeOutcome, merge_outcomes
from hoodie_ds.table.file_slice import FileSlice

NO_KEYS: Final = pa.array([], pa.string())


def live_keys(reader: FileSliceReader, slice_: FileSlice) -> pa.Array:
    """Return the record keys (string) of the rows of a slice, its log files merged."""
    return _joined(reader.read(slice_, [RECORD_KEY]))


def _joined(pieces: Iterable[pa.Table]) -> pa.Array:
    """The record keys of rows that come in pieces."""
    chunks = [chunk for rows in pieces for chunk in rows.column(RECORD_KEY).chunks]
    return pa.chunked_array(chunks, pa.string()).combine_chunks()


def split_keys(reader: FileSliceReader, slice_: FileSlice) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the record keys (string) of a slice: of its rows, of deleted rows, of its base file.

    The base file is read once, and what log files replace in it is remembered.
    """
    logs, alone = reader.open_logs(slice_), replace(slice_, logs=())
    known, keys = reader.outcome(slice_, logs, [RECORD_KEY]), [RECORD_KEY]
    if known is not None:
        base = live_keys(reader, alone)
        return _split(base, known[0].staying(), _joined(known[1]))
    key = reader.outcome_key(slice_, logs)
    places = None if key is None else Places()
    found = reader.logged(slice_, logs, keys, MergeCounts(), places=places)
    if found is None:
        base = live_keys(reader, alone)
        return base, NO_KEYS, base
    merger, records = found
    if slice_.base is None and not isinstance(merger, HookMerger):
        return _joined([records.changed_rows()]), NO_KEYS, NO_KEYS
    if not isinstance(merger, Merger):
        base, live = live_keys(reader, alone), live_keys(reader, slice_)
        return live, without(base, live), base
    merge = merger.over(records)
    pieces = reader.read(alone, reader.compared.names)
    rows = pa.concat_tables([reader.compared.empty_table(), *pieces])
    stays = merge.keep(reader.stored(rows, is_complete=False))
    if places is not None:
        outcome = MergeOutcome.of([stays], places.of(merge.new_rows()))
        merge_outcomes(reader.view.storage).put(key, outcome)
    return _split(_joined([rows]), stays, _joined([merge.new_rows()]))


def _split(base: pa.Array, stays: Mask, logged: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    live = pa.chunked_array([base.filter(pa.array(stays)), logged]).combine_chunks()
    return live, without(base.filter(pa.array(~stays)), live), base


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
        live = among(keys, merger.combine(RecordSet.concat(parts)).live_rows().column(RECORD_KEY))
    is_known = is_plain and (slice_.base is None or not reader.ordering_fields)
    if len(live) < len(keys) and not is_known:
        live = among(keys, live_keys(reader, slice_))
    return live, without(keys, live)


def sole_keys(reader: FileSliceReader, slice_: FileSlice) -> tuple[pa.Array, pa.Array] | None:
    """Return the record keys of log files alone: of rows, and of deletes that nothing outlives.

    None if other files decide about a delete, which may be too old, or about a row.
    """
    parts = [block.records for block in reader.blocks(reader.open_logs(slice_))]
    merger, is_partial = reader.merger, any(part.lacking is not None for part in parts)
    if is_partial or not (parts and isinstance(merger, Merger)):
        return None
    records = merger.combine(RecordSet.concat(parts))
    gone = pa.array(records.deleted)
    if any(len(values.filter(gone).drop_null()) for values in records.ordering):
        return None
    keys = records.rows.column(RECORD_KEY).combine_chunks()
    return keys.filter(pc.invert(gone)), keys.filter(gone)


def without(keys: pa.Array, others: pa.Array) -> pa.Array:
    """Return the keys that are not among others."""
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def among(keys: pa.Array, others: pa.Array) -> pa.Array:
    """Return the keys that are among others."""
    return keys.filter(pc.is_in(keys, value_set=others))
