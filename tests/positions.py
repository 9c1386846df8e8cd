"""Log blocks that name the positions of their records in the base file, as Hudi's do."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.log.data_block import (
    decode_data_block,
    encode_avro_block,
    encode_parquet_block,
)
from hoodie_ds.formats.log.delete_block import decode_delete_block, encode_delete_block
from hoodie_ds.formats.log.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_block,
    read_blocks,
)
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.file_slice import BaseFile

Header: TypeAlias = Callable[[str, list[int]], dict[int, str]]
LISTED = 4096
"""The most numbers of 16 bits that a bitmap lists."""


def bitmap(positions: Iterable[int], with_runs: bool = False) -> bytes:
    """A portable Roaring64 bitmap, by its specification, of numbers below 2**32.

    Parameters
    ----------
    positions : iterable of int
        The numbers, in any order.
    with_runs : bool, optional
        Whether all of them are stored as runs.

    Returns
    -------
    bytes
    """
    parts: dict[int, list[int]] = {}
    for position in sorted(set(positions)):
        parts.setdefault(position >> 16, []).append(position & 0xFFFF)
    count = len(parts)
    if with_runs:
        head = struct.pack("<I", 12347 | (count - 1) << 16) + b"\xff" * (-(-count // 8))
    else:
        head = struct.pack("<II", 12346, count)
    head += b"".join(struct.pack("<HH", high, len(low) - 1) for high, low in parts.items())
    contents = [_runs(low) if with_runs else _members(low) for low in parts.values()]
    if not with_runs or count >= 4:
        at = len(head) + 4 * count
        for content in contents:
            head += struct.pack("<I", at)
            at += len(content)
    return struct.pack("<QI", 1, 0) + head + b"".join(contents)


def _runs(low: list[int]) -> bytes:
    runs: list[list[int]] = []
    for number in low:
        if runs and sum(runs[-1]) + 1 == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 0])
    return struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)


def _members(low: list[int]) -> bytes:
    if len(low) <= LISTED:
        return struct.pack(f"<{len(low)}H", *low)
    return sum(1 << number for number in low).to_bytes(8192, "little")


def located(base_instant: str, positions: bytes) -> dict[int, str]:
    """What the header of a block says of the positions of its records.

    Parameters
    ----------
    base_instant : str
        Of the base file.
    positions : bytes
        The `bitmap`.

    Returns
    -------
    dict
    """
    return {
        HeaderKey.RECORD_POSITIONS: base64.b64encode(positions).decode(),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base_instant,
    }


def of_positions(base_instant: str, positions: Sequence[int]) -> dict[int, str]:
    """As `located`, of the positions themselves."""
    return located(base_instant, bitmap(positions))


def locate_records(path: Path, header: Header = of_positions) -> int:
    """Rewrite a table's log files of today: blocks all of whose keys are stored name positions.

    Parameters
    ----------
    path : pathlib.Path
        The table; its commits have the checksums of the former files.
    header : callable, optional
        What headers say of a base file's instant and positions.

    Returns
    -------
    int
        Number of such blocks.
    """
    pinned, count = PinnedTable.latest(open_storage(str(path))), 0
    reader = pinned.reader()
    for found in pinned.slices():
        if found.base is None:
            continue
        rows = pa.concat_tables(reader.read(replace(found, logs=()), [RECORD_KEY]))
        keys = rows.column(RECORD_KEY).combine_chunks()
        for log in found.logs:
            file = path / log.path
            read = read_blocks(file.read_bytes(), log.path)
            blocks = [_located(block, keys, found.base, header) for block in read]
            count += sum(HeaderKey.RECORD_POSITIONS in block.header for block in blocks)
            file.write_bytes(
                b"".join(encode_block(b.block_type, b.header, b.content) for b in blocks)
            )
    return count


def _located(block: LogBlock, keys: pa.Array, base: BaseFile, header: Header) -> LogBlock:
    if block.block_type is BlockType.DELETE:
        records = decode_delete_block(block, "")
        named = records.column("record_key")
    elif block.block_type in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA):
        records = decode_data_block(block, "")
        named = records.column(RECORD_KEY)
    else:
        return block
    at = pc.index_in(named, value_set=keys)
    if at.null_count or len(at.unique()) < len(at):
        return block
    records = records.take(pc.sort_indices(at))
    positions = sorted(at.to_pylist())
    more = header(base.name.instant_time, positions)
    return replace(_encoded(block, records), header={**block.header, **more})


def _encoded(block: LogBlock, records: pa.Table) -> LogBlock:
    schema, instant = block.header[HeaderKey.SCHEMA], block.header[HeaderKey.INSTANT_TIME]
    if block.block_type is BlockType.DELETE:
        ordering = records.column("ordering").combine_chunks()
        if pa.types.is_struct(ordering.type):
            kinds = [f.with_type(pa.int64()) if f.type == pa.null() else f for f in ordering.type]
            ordering = ordering.cast(pa.struct(kinds))
        values = None if ordering.null_count == len(ordering) else ordering
        data = encode_delete_block(
            records.column("record_key"), records.column("partition_path"), values, instant, schema
        )
    elif block.block_type is BlockType.AVRO_DATA:
        data = encode_avro_block(records, schema, instant)
    else:
        data = encode_parquet_block(records, schema, instant, "snappy")
    return next(read_blocks(data, ""))
