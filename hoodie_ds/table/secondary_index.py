"""Secondary indexes of a metadata table, and the strings that they have of a column's values.

Those are what Java makes of the values of Spark's rows: of a date its days, of a timestamp its
microseconds. Of other types than these the string depends on the engine, or on the release of Java.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.properties.table_properties import SECONDARY_INDEX
from hoodie_ds.errors import SchemaError
from hoodie_ds.hints import command
from hoodie_ds.table.index_definitions import index_definition
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import declared_schema

_REMEDY: Final = "restore the file, or drop the index with Hudi and create it again"
_SPECIAL: Final = r"[\\$\x00]"
_NULL: Final = "\0"
_VALUE: Final = re.compile(r"(?:[^\\$]|\\.)*\$", re.DOTALL)
"""The escaped value of a key, with what separates it from the record key."""
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
FIRST_VERSION: Final = "V1"
"""Of a definition that says none, too."""


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """An index of the values of a column; `partition` is that of the metadata table."""

    partition: str
    column: str
    version: str

    @property
    def is_hashed_by_value(self) -> bool:
        """Whether the value of a key decides about its file group, and not the whole key."""
        return self.version != FIRST_VERSION

    def keys(self, values: pa.Array, record_keys: pa.Array) -> pa.Array:
        """Return the keys of the records of rows, from their values and record keys."""
        found = _escaped(value_strings(values)).fill_null(_NULL)
        return pc.binary_join_element_wise(found, _escaped(record_keys), "$")

    def hashed(self, key: str) -> str:
        """Return the part of a key that decides about its file group."""
        value = _VALUE.match(key) if self.is_hashed_by_value else None
        return key if value is None else value[0]

    def starts(self, values: pa.Array) -> list[str]:
        """Return what the keys of all rows with some values start with, and no others."""
        found: list[str] = self.keys(values, pa.array([""] * len(values), pa.string())).to_pylist()
        return found

    @staticmethod
    def record_key(key: str) -> str:
        """Return the record key that is in a key."""
        return _ESCAPED.sub(r"\1", _VALUE.sub("", key, count=1))


def secondary_indexes(table: Table) -> Iterator[SecondaryIndex]:
    """Yield the indexes that have a definition; `CorruptFileError` of a damaged one."""
    for name in table.properties.metadata_partitions:
        if name.startswith(SECONDARY_INDEX):
            found = index_definition(table, name, partial(_index, name), _REMEDY)
            if found is not None:
                yield found


def _index(name: str, definition: Mapping[str, Any]) -> SecondaryIndex:
    (column,) = definition["sourceFields"]
    return SecondaryIndex(name, str(column), str(definition.get("version") or FIRST_VERSION))


def value_strings(values: pa.Array) -> pa.Array:
    """Return the strings of values whose type has a `kind_of_strings`."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return values.cast(pa.string())


def kind_of_strings(schema: pa.Schema, column: str) -> int | None:
    """Return which of the kinds of strings a column has; None if they are not known."""
    if schema.get_field_index(column) < 0:
        return None
    given = schema.field(column).type
    return next((number for number, holds in enumerate(_KINDS) if holds(given)), None)


def kept_indexes(table: Table) -> Iterator[SecondaryIndex]:
    """Yield the indexes of a table of whose columns the strings are known."""
    indexes = [*secondary_indexes(table)]
    schema = declared_schema(table, table.load_timeline()) if indexes else None
    for index in indexes:
        if schema is None or kind_of_strings(schema, index.column) is not None:
            yield index


def check_indexed_columns(
    table: Table, partitions: Collection[str], before: pa.Schema | None, after: pa.Schema
) -> None:
    """Refuse columns of a write whose values would be other strings in a secondary index.

    `partitions` are those that the write leaves of the metadata table.
    """
    for index in secondary_indexes(table):
        if index.partition not in partitions:
            continue
        kinds = {kind_of_strings(schema, index.column) for schema in (before or after, after)}
        if len(kinds) > 1 or None in kinds:
            drop = command("metadata", "drop", table.storage.root, "--partition", index.partition)
            raise SchemaError(
                f"the values of column {index.column} would be other strings in the metadata "
                f"table's {index.partition}: keep the column and its type, or drop the index with "
                f"{drop}"
            )


def _escaped(strings: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(strings, _SPECIAL, r"\\\0")


def _is_in_micros(given: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(given)) and given.unit == "us"


_KINDS: Final = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_date32,
    _is_in_micros,
)
