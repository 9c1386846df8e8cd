"""CDC blocks: the changes of a commit in a file group, next to the base file that it rewrote.

They are stored in files of their own (``.cdc``), which snapshots do not read. How much of a change
is logged is a property of the table, and each of the three modes has a schema (RFC-51).

Invariant: an image is a row's user columns, in the types of the table's schema at that commit.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.config.enums import SupplementalLogging
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.log.data_block import decode_avro_rows, encode_avro_block
from hoodie_ds.formats.log.log_block import BlockType, LogBlock
from hoodie_ds.hints import COPY

OP: Final = "op"
TS_MS: Final = "ts_ms"
KEY: Final = "record_key"
BEFORE: Final = "before"
AFTER: Final = "after"

INSERT: Final = "i"
UPDATE: Final = "u"
DELETE: Final = "d"

_STRING_FIRST: Final = ["string", "null"]
_NULL_FIRST: Final = ["null", "string"]


def cdc_schema(logging: SupplementalLogging, avro_schema: str) -> str:
    """Return the Avro JSON of a table's changes; its rows' schema may have meta columns or not."""
    if logging is SupplementalLogging.OP_KEY_ONLY:
        fields = [{"name": name, "type": _STRING_FIRST} for name in (OP, KEY)]
        return _json({"type": "record", "name": "Record", "fields": fields})
    row = json.loads(avro_schema)
    namespace, name = str(row.get("namespace") or ""), str(row["name"])
    if "." in name:
        namespace, _, name = name.rpartition(".")
    columns = [field for field in row["fields"] if field["name"] not in META_COLUMNS]
    image = {"type": "record", "name": name, "fields": columns}
    if logging is SupplementalLogging.DATA_BEFORE:
        types: dict[str, Any] = {OP: _NULL_FIRST, KEY: _NULL_FIRST, BEFORE: ["null", image]}
    else:
        images = {BEFORE: ["null", image], AFTER: ["null", name]}
        types = {OP: _NULL_FIRST, TS_MS: _NULL_FIRST, **images}
    listed = [{"name": n, "type": kind, "doc": "", "default": None} for n, kind in types.items()]
    change = {"type": "record", "name": "CDC", "namespace": namespace, "doc": "", "fields": listed}
    return _json(change)


def encode_cdc_block(changes: pa.Table, schema: str, instant: str) -> bytes:
    """Return a block of changes, with the columns of `schema`, which may be missing or null."""
    return encode_avro_block(changes, schema, instant, BlockType.CDC_DATA)


def decode_cdc_block(block: LogBlock, name: str) -> pa.Table:
    """Return the changes of a block, with the columns of its own schema.

    Errors are those of `decode_data_block`; a block of another type is a `CorruptFileError`.
    """
    if block.block_type is not BlockType.CDC_DATA:
        raise CorruptFileError(
            f"{name}: a file of change data has a {block.block_type.name} block", COPY, name
        )
    return decode_avro_rows(block, name)


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
