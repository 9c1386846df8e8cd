"""CDC blocks: what a commit changed in a file group, beside the base file that it wrote anew.

They lie in files of their own (``.cdc``), which snapshots do not look at. How much of a change is
logged is a property of the table, and each of the three modes has a schema (RFC-51).

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
    """Return the Avro schema of the changes of a table, as JSON.

    Parameters
    ----------
    logging : SupplementalLogging
        What the table logs of a change.
    avro_schema : str
        Avro JSON of the table's rows, with or without their meta columns.
    """
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
    """Return a block of changes; see `hoodie_ds.formats.log.data_block.encode_avro_block`.

    Parameters
    ----------
    changes : pyarrow.Table
        The columns of `schema`, any of which may be null.
    schema : str
        From `cdc_schema`.
    instant : str
        Time of the commit that made the changes.
    """
    return encode_avro_block(changes, schema, instant, BlockType.CDC_DATA)


def decode_cdc_block(block: LogBlock, name: str) -> pa.Table:
    """Return the changes of a block, with the columns that its own schema has.

    Parameters
    ----------
    block : LogBlock
        A block of type ``CDC_DATA``.
    name : str
        The file's path, for errors.

    Raises
    ------
    CorruptFileError
        The content is damaged, or the block is none of changes; names the file.
    UnsupportedTableError
        Content of a version before Hudi 0.10.
    SchemaError
        The block's schema has no Arrow counterpart; names the column.
    """
    if block.block_type is not BlockType.CDC_DATA:
        raise CorruptFileError(
            f"{name}: a file of change data has a {block.block_type.name} block; restore the file "
            "from a copy"
        )
    return decode_avro_rows(block, name)


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
