"""Which columns have statistics in a metadata table, and in which version of the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hoodie_ds.columns.meta_columns import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie_ds.formats.avro.tree import AvroType, Kind, parse_avro
from hoodie_ds.metadata_table.column_records import FIRST_VERSION
from hoodie_ds.metadata_table.statistics import COLUMN_STATS
from hoodie_ds.metadata_table.stored import REBUILD
from hoodie_ds.table.metadata_table import index_definition
from hoodie_ds.table.table import Table

_ALWAYS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_MOST: Final = 32
"""Columns that Hudi indexes by default."""
_NESTED: Final = (Kind.RECORD, Kind.ARRAY, Kind.MAP, Kind.ENUM)
_BYTES: Final = (Kind.BYTES, Kind.FIXED)


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """The columns whose statistics are recorded.

    `of_files` may be more than Hudi's definition of the index names, which has the `defined` ones:
    Hudi adds columns to it that the table gets later.
    """

    of_files: tuple[str, ...]
    defined: frozenset[str]
    version: str

    @classmethod
    def of(cls, table: Table, avro_schema: str) -> ColumnIndex:
        """Return the index of a table with the columns of a schema, which has no meta columns.

        Releases before 1.0 define none, and index all columns.
        """
        columns = parse_avro(avro_schema, "the table's schema")
        definition = index_definition(table, COLUMN_STATS, _named, REBUILD)
        if definition is None:
            every = (*_always(table), *_indexed(columns, (), len(columns.names)))
            return cls(every, frozenset(every), FIRST_VERSION)
        named, version = definition
        chosen = [name for name in named if name not in META_COLUMNS]
        without = ((), _BYTES) if version == FIRST_VERSION else ((),)  # by the writer's record type
        found = [list(_indexed(columns, kinds, _MOST)) for kinds in without]
        if any(chosen == default[: len(chosen)] for default in found):
            chosen = list(dict.fromkeys(name for default in found for name in default))
        return cls((*_always(table), *chosen), frozenset(named), version)


def indexed_columns(table: Table, avro_schema: str) -> tuple[str, ...]:
    """Return the columns whose statistics writers gather, as `ColumnIndex.of` does."""
    if COLUMN_STATS not in table.properties.metadata_partitions:
        return ()
    return ColumnIndex.of(table, avro_schema).of_files


def _always(table: Table) -> tuple[str, ...]:
    return _ALWAYS if table.properties.populate_meta_fields else ()


def _indexed(columns: AvroType, without: tuple[Kind, ...], most: int) -> Iterator[str]:
    """Yield the first columns of types that have statistics."""
    for name, child in zip(columns.names, columns.children, strict=True):
        kind = (child.optional or child).kind
        if most and kind not in (*_NESTED, *without) and name not in META_COLUMNS:
            most -= 1
            yield name


def _named(definition: Mapping[str, Any]) -> tuple[list[str], str]:
    """The columns and the version of a definition."""
    version = str(definition.get("version") or FIRST_VERSION)
    return [str(name) for name in definition["sourceFields"]], version
