"""The actions of a Delta log that add and remove base files.

Statistics are read from a file's footer, so they are right for files of any writer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.hints import COPY
from hoodie_ds.storage.protocol import FileStatus, Storage

_LONGEST: Final = 128
"""Longest string among the statistics; longer ones are left out, never cut."""
_UNESCAPED: Final = "/=:@!$&'()*+,;-._~"

Action = dict[str, Any]


def add_action(
    storage: Storage, file: FileStatus, columns: Collection[str], *, changes: bool
) -> Action:
    """Return the ``add`` action of a base file."""
    return {
        "path": quote(file.path, safe=_UNESCAPED),
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified_ms,
        "dataChange": changes,
        "stats": json.dumps(_statistics(storage, file.path, columns)),
    }


def remove_action(path: str, now_ms: int, *, changes: bool) -> Action:
    """Return the ``remove`` action of a base file."""
    return {"path": path, "deletionTimestamp": now_ms, "dataChange": changes}


def escaped(paths: Iterable[str]) -> set[str]:
    """Return the paths as they are in actions."""
    return {quote(path, safe=_UNESCAPED) for path in paths}


def _statistics(storage: Storage, path: str, columns: Collection[str]) -> Action:
    try:
        with storage.open_input(path) as opened:
            footer = pq.read_metadata(opened)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(
            f"{storage.root}/{path} cannot be read as Parquet ({error})", COPY
        ) from error
    found: Action = {"numRecords": footer.num_rows, "minValues": {}, "maxValues": {}}
    found["nullCount"] = {}
    for number in range(footer.num_columns):
        name = footer.schema.column(number).path
        if name in columns:
            groups = (
                footer.row_group(group).column(number).statistics
                for group in range(footer.num_row_groups)
            )
            _add_statistics(found, name, list(groups))
    if not (found["minValues"].keys() == found["maxValues"].keys() == set(columns)):
        # If only some bounds are missing, deltalake's Arrow dataset finds no match.
        return {"numRecords": footer.num_rows}
    return found


def _add_statistics(found: Action, name: str, groups: list[Any]) -> None:
    """Add the statistics of a column that all row groups have."""
    if not groups or any(one is None or not one.has_null_count for one in groups):
        return
    found["nullCount"][name] = sum(one.null_count for one in groups)
    with_values = [one for one in groups if one.num_values]
    if not with_values or not all(one.has_min_max for one in with_values):
        return
    low, high = min(one.min for one in with_values), max(one.max for one in with_values)
    for bound, value in (("minValues", low), ("maxValues", high)):
        if type(value) is int or (isinstance(value, str) and len(value) <= _LONGEST):
            found[bound][name] = value
