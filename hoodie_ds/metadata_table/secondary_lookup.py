"""Which record keys the rows of some values have, by a metadata table: ``secondary_index_*``.

Only indexes of copy-on-write tables are used: of several in a merge-on-read table Hudi 1.2 updates
only the first from log files, and nothing says whether a table has had another.
"""

from __future__ import annotations

from datetime import date
from typing import Final

import pyarrow as pa

from hoodie_ds.config.enums import TableType
from hoodie_ds.filters.bounds import kind_of
from hoodie_ds.filters.predicate import Predicate, allowed_values
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.secondary_index import SecondaryIndex, kind_of_strings, secondary_indexes
from hoodie_ds.table.table import Table

_MOST: Final = 10_000
"""Entries of an index that are read: more keys are likely in all file groups."""
_FIRST_DAY: Final = date(1582, 10, 15)
"""Files of old writers may count earlier days otherwise."""


def keys_of_values(
    table: Table, metadata: MetadataTable, predicate: Predicate, schema: pa.Schema
) -> frozenset[str] | None:
    """Return the record keys of rows that can match; None if no index has few of its values."""
    is_right = table.properties.table_type is TableType.COPY_ON_WRITE
    if not is_right or record_index(table) != "table":
        return None
    found: frozenset[str] | None = None
    for index in secondary_indexes(table):
        values = _values(index, predicate, schema)
        if values is None or index.partition not in metadata.partitions:
            continue
        keys = metadata.keys_starting_with(
            index.partition, index.starts(values), index.is_hashed_by_value, _MOST
        )
        if keys is not None:
            here = frozenset(map(index.record_key, keys))
            found = here if found is None else found & here
    return found


def _values(index: SecondaryIndex, predicate: Predicate, schema: pa.Schema) -> pa.Array | None:
    """The values of an indexed column that a predicate allows; None if any other may match.

    No timestamps, whose unit a file may have wrong.
    """
    given = allowed_values(predicate, index.column)
    if given is None or kind_of_strings(schema, index.column) is None:
        return None
    type_ = schema.field(index.column).type
    if pa.types.is_timestamp(type_) or any(kind_of(one.type) != kind_of(type_) for one in given):
        return None
    values = [one.as_py() for one in given]
    if pa.types.is_date32(type_) and any(one is None or one < _FIRST_DAY for one in values):
        return None
    try:
        return pa.array(values, type_)
    except pa.ArrowInvalid:  # too large for the column
        return None
