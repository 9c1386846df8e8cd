"""The ranges of columns in the data files of a table, read from the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.formats.column_ranges import ColumnRange, ColumnRanges
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.log_block import BlockType, read_blocks
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.table import Table

Ranges = Mapping[str, ColumnRange]
_DATA: Final = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)


def stored_ranges(table: Table, path: str, avro_schema: str, columns: Iterable[str]) -> Ranges:
    """Read the ranges of columns in a data file, whose rows have the columns of a schema."""
    name = path.rpartition("/")[2]
    if BaseFileName.parse(name) is not None:
        schema = with_meta_columns(avro_to_arrow(avro_schema))
        with table.storage.open_input(path) as source:
            return BaseFileReader(source, schema, path, trusted=True).ranges(columns)
    found = ColumnRanges(columns)
    for block in read_blocks(table.storage.read(path), path):
        if block.block_type in _DATA:
            found.add(decode_data_block(block, path, lambda: True))
    return found.found
