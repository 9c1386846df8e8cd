"""A checkpoint of a Delta log: the state after a version, in a Parquet file.

It has no removed files: only a vacuum reads those, and by the table's properties none is ever old
enough to be deleted.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_STRINGS: Final = pa.map_(pa.string(), pa.string())
_NAMES: Final = pa.list_(pa.string())
_FORMAT: Final = pa.struct({"provider": pa.string(), "options": _STRINGS})
_SCHEMA: Final = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _STRINGS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "remove": pa.struct(
            {
                "path": pa.string(),
                "deletionTimestamp": pa.int64(),
                "dataChange": pa.bool_(),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": _FORMAT,
                "schemaString": pa.string(),
                "partitionColumns": _NAMES,
                "createdTime": pa.int64(),
                "configuration": _STRINGS,
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": _NAMES,
                "writerFeatures": _NAMES,
            }
        ),
    }
)
_MAPS: Final = {"partitionValues", "configuration"}


def write_checkpoint(actions: Sequence[dict[str, Any]]) -> tuple[bytes, int]:
    """Return the file of some actions, and their number."""
    buffer = io.BytesIO()
    rows = [{kind: _packed(body) for kind, body in action.items()} for action in actions]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), buffer)
    return buffer.getvalue(), len(actions)


def read_checkpoint(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the actions of a file, as those of a version."""
    for row in pq.read_table(pa.BufferReader(data)).to_pylist():
        for kind, body in row.items():
            if body is not None:
                yield {kind: _unpacked(body)}


def _packed(body: dict[str, Any]) -> dict[str, Any]:
    packed = {key: list(v.items()) if key in _MAPS else v for key, v in body.items()}
    if "format" in body:
        packed["format"] = {"provider": body["format"]["provider"], "options": []}
    return packed


def _unpacked(body: dict[str, Any]) -> dict[str, Any]:
    present = {key: value for key, value in body.items() if value is not None}
    unpacked = {key: dict(v) if key in _MAPS else v for key, v in present.items()}
    if "format" in unpacked:
        unpacked["format"] = {"provider": unpacked["format"]["provider"], "options": {}}
    return unpacked
