"""Tables put together as Spark does it: base files without replaced rows, and `LoggedRows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.file_slice import FileSlice

KEY = "_hoodie_record_key"


def recombined(
    path: Path, hook: str | Callable[..., object] | None = None, verify: bool = True
) -> pa.Table:
    """The rows of a table whose files have record keys."""
    pinned = PinnedTable.latest(open_storage(str(path)), hook, verify)
    parts = [rows for found in pinned.slices() for rows in _slice(pinned, found)]
    return pa.concat_tables([pinned.schema.empty_table(), *parts])


def _slice(pinned: PinnedTable, found: FileSlice) -> Iterator[pa.Table]:
    first, again = (list(_parts(pinned, found)) for _ in range(2))
    whole, remembered = map(pa.concat_tables, (first, again))
    assert whole.schema == remembered.schema
    assert repr(whole.to_pylist()) == repr(remembered.to_pylist())  # NaN is unequal to itself
    yield whole


def _parts(pinned: PinnedTable, found: FileSlice) -> Iterator[pa.Table]:
    reader, names = pinned.reader(), pinned.schema.names
    logged = LoggedRows(reader)
    logs = reader.open_logs(found)
    keys = logged.keys(logs)
    assert len(keys) == len(pc.unique(keys))
    yield pinned.schema.empty_table()
    alone = [row for rows in logged.read(found, names) for row in rows.to_pylist()]
    if found.base is not None:
        base = pa.concat_tables(
            [pinned.schema.empty_table(), *reader.read(replace(found, logs=()), names)]
        )
        replaced = pa.array(logged.replaced(found))
        logged_too = pc.is_in(base.column(KEY), value_set=keys).combine_chunks()
        if reader.outcome_key(found, logs) is None:
            assert replaced.equals(logged_too)
        assert not pc.any(pc.and_not(replaced, logged_too)).as_py()
        yield base.filter(pc.invert(replaced))
    parts = list(logged.read(found, names))
    again = [row for rows in parts for row in rows.to_pylist()]
    assert sorted(map(repr, again)) == sorted(map(repr, alone))
    for rows in parts:
        assert rows.column_names == names
        assert pc.all(pc.is_in(rows.column(KEY), value_set=keys)).as_py() in (True, None)
        yield rows
