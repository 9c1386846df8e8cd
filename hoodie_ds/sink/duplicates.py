"""Inserted rows whose key is stored: added, left out or refused (``insert.dup.policy``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.kinds import DuplicatePolicy, Operation
from hoodie_ds.errors import RecordKeyError
from hoodie_ds.index.stored_keys import SliceKeys
from hoodie_ds.reader.file_slice_reader import FileSliceReader
from hoodie_ds.record.merger import RecordSet
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.sink.batch import Batch
from hoodie_ds.table.file_slice import FileSlice


def apply_policy(batch: Batch, records: RecordSet, latest: FileSlice | None) -> RecordSet:
    """Treat rows of an insert whose key is in their file group already.

    Parameters
    ----------
    batch : Batch
        The batch.
    records : RecordSet
        The rows.
    latest : FileSlice or None
        The latest slice of their file group.

    Returns
    -------
    RecordSet
        The rows to insert.

    Raises
    ------
    RecordKeyError
        The policy is ``fail`` and a key is stored; names the key.
    """
    policy = batch.options.duplicate_policy
    wanted = batch.operation is Operation.INSERT and policy is not DuplicatePolicy.NONE
    if latest is None or not wanted:
        return records
    stored = stored_keys(batch, latest)
    keys = records.rows.column(RECORD_KEY)
    known = pc.is_in(keys, value_set=stored).combine_chunks()
    if policy is DuplicatePolicy.FAIL and pc.any(known).as_py():
        key = keys.filter(known)[0].as_py()
        raise RecordKeyError(
            f"record key {key!r} is stored in {latest.group} already, and "
            "hoodie.datasource.insert.dup.policy is 'fail'; upsert the row, or insert with 'drop'"
        )
    return records.take(np.flatnonzero(~known.to_numpy(zero_copy_only=False)))


def stored_keys(batch: Batch, latest: FileSlice) -> pa.Array:
    """Return the record keys (string) of the rows of a slice, its log files merged."""
    view = batch.view
    reader = FileSliceReader(view, batch.stored_schema, batch.stored_merger, batch.ordering_fields)
    pieces = [rows.column(RECORD_KEY) for rows in reader.read(latest, [RECORD_KEY])]
    chunks = [chunk for piece in pieces for chunk in piece.chunks]
    return pa.chunked_array(chunks, pa.string()).combine_chunks()


def known_keys(batch: Batch, latest: FileSlice) -> SliceKeys:
    """Return the record keys that a slice is the place of, those that log files delete apart."""
    live, base = stored_keys(batch, latest), stored_keys(batch, replace(latest, logs=()))
    return SliceKeys.of(live, base.filter(pc.invert(pc.is_in(base, value_set=live))))
