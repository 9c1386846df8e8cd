"""Data blocks of log files: rows as Parquet or as Avro.

Invariant: a block's rows have the types of the Avro schema in the block's header, in both
encodings, and round trip exactly.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.avro.decoder import decode_rows
from hoodie_ds.formats.avro.encoder import encode_avro, join, joined_bytes
from hoodie_ds.formats.avro.schema import arrow_schema_of, avro_to_arrow
from hoodie_ds.formats.avro.tree import AvroType, parse_avro
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock, encode_block
from hoodie_ds.formats.log.record_positions import NOWHERE
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import read_base_file
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.hints import COPY

_CONTENT_VERSION: Final = 3
_TWO_INTS: Final = struct.Struct(">ii")
_INT: Final = struct.Struct(">i")


def encode_parquet_block(
    table: pa.Table,
    avro_schema: str,
    instant: str,
    codec: str,
    located: Mapping[int, str] = NOWHERE,
) -> bytes:
    """Return a block that holds rows as a Parquet file (Hudi tech spec, "Log File Format").

    `table` has the columns of `avro_schema`, meta columns included; `instant` is the time of the
    deltacommit, and `located` what the header says of positions. A `SchemaError` names a column
    that does not fit the schema.
    """
    schema = avro_to_arrow(avro_schema)
    sink = pa.BufferOutputStream()
    writer = BaseFileWriter(sink, schema, avro_schema, codec, max(1, table.nbytes))
    writer.write(table)
    writer.close()
    content = memoryview(sink.getvalue())
    return _data_block(BlockType.PARQUET_DATA, avro_schema, instant, content, located)


def encode_avro_block(
    table: pa.Table,
    avro_schema: str,
    instant: str,
    block_type: BlockType = BlockType.AVRO_DATA,
    located: Mapping[int, str] = NOWHERE,
) -> bytes:
    """Return a block that holds rows as Avro records; see `encode_parquet_block`."""
    table = conform(table, avro_to_arrow(avro_schema))
    node = parse_avro(avro_schema, "table schema")
    parts = [_avro_records(batch, node) for batch in table.to_batches()]
    head = _TWO_INTS.pack(_CONTENT_VERSION, table.num_rows)
    content = b"".join([head, *parts])
    return _data_block(block_type, avro_schema, instant, content, located)


def in_blocks(rows: pa.Table, block_bytes: int) -> list[pa.Table]:
    """Cut rows into parts of about `block_bytes` Arrow bytes, one per block; none without rows."""
    if not rows.num_rows:
        return []
    count = max(1, -(-rows.nbytes // block_bytes))
    step = -(-rows.num_rows // count)
    return [rows.slice(start, step) for start in range(0, rows.num_rows, step)]


def decode_data_block(
    block: LogBlock,
    name: str,
    trusted: Callable[[], bool] = lambda: False,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Return the rows of a data block, in the types of the block's own schema.

    `trusted` says whether the block is known to be as committed; see `BaseFileReader`. `columns`
    are the required ones; others may be returned too, and some be missing.

    A `CorruptFileError` names the file if the content is damaged, a `SchemaError` a column without
    an Arrow type. Other block types, and Avro content from before Hudi 0.10, are an
    `UnsupportedTableError`.
    """
    match block.block_type:
        case BlockType.AVRO_DATA:
            return decode_avro_rows(block, name, columns)
        case BlockType.PARQUET_DATA:
            schema = arrow_schema_of(_schema(block, name), name)
            source = pa.BufferReader(pa.py_buffer(block.content))
            if columns is not None:
                schema = pa.schema([field for field in schema if field.name in columns])
            return read_base_file(source, schema, None, name, trusted())
    raise UnsupportedTableError(
        f"{name}: a {block.block_type.name} block does not hold rows that this release reads; "
        "compact the table with Hudi on the JVM first"
    )


def decode_avro_rows(
    block: LogBlock, name: str, columns: Collection[str] | None = None
) -> pa.Table:
    """Return the rows of a block that holds Avro records; see `decode_data_block`."""
    records = _split_records(memoryview(block.content), name)
    return decode_rows(records, _schema(block, name), name, columns)


def _schema(block: LogBlock, name: str) -> AvroType:
    if HeaderKey.SCHEMA not in block.header:
        raise CorruptFileError(f"{name}: a data block has no schema in its header", COPY, name)
    return parse_avro(block.header[HeaderKey.SCHEMA], name)


def _data_block(
    block_type: BlockType,
    avro_schema: str,
    instant: str,
    content: bytes | memoryview,
    located: Mapping[int, str],
) -> bytes:
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: avro_schema, **located}
    return encode_block(block_type, header, content)


def _avro_records(batch: pa.RecordBatch, node: AvroType) -> memoryview:
    rows = encode_avro(batch.to_struct_array(), node, "")
    lengths = pc.binary_length(rows).to_numpy().astype(">i4")
    buffers = [None, pa.py_buffer(lengths)]
    prefixes = pa.Array.from_buffers(pa.binary(_INT.size), len(rows), buffers)
    return joined_bytes(join(prefixes.cast(rows.type), rows))


def _split_records(content: memoryview, name: str) -> Iterator[memoryview]:
    if len(content) < _TWO_INTS.size:
        raise _damage(name, "it has no record count")
    version, count = _TWO_INTS.unpack_from(content)
    if version != _CONTENT_VERSION:
        raise UnsupportedTableError(
            f"{name}: an Avro block has content version {version}, only {_CONTENT_VERSION} (Hudi "
            "0.10 and later) is read; compact the table with Hudi on the JVM first"
        )
    if count < 0:
        raise _damage(name, f"it has {count} records")
    at = _TWO_INTS.size
    for _ in range(count):
        if at + _INT.size > len(content):
            raise _damage(name, f"it has fewer than {count} records")
        (length,) = _INT.unpack_from(content, at)
        at += _INT.size
        if not 0 <= length <= len(content) - at:
            raise _damage(name, f"a record of {length} bytes runs past its end")
        yield content[at : at + length]
        at += length
    if at != len(content):
        raise _damage(name, f"it has more than {count} records")


def _damage(name: str, what: str) -> CorruptFileError:
    return CorruptFileError(f"{name}: an Avro block is damaged: {what}", COPY, name)
