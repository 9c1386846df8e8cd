"""Which columns have statistics in a metadata table, and in which version of the index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hoodie_ds.columns.meta_columns import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.errors import OptionError
from hoodie_ds.formats.avro.tree import VECTOR, AvroType, Kind, parse_avro
from hoodie_ds.hints import command
from hoodie_ds.metadata_table.column_records import FIRST_VERSION, SECOND_VERSION
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.metadata_table.stored_records import REBUILD
from hoodie_ds.table.index_definitions import define_index, index_definition
from hoodie_ds.table.schema_on_read import NumberedColumns, check_same_names
from hoodie_ds.table.table import Table

_ALWAYS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_MOST: Final = 32
"""Columns that Hudi indexes by default."""
_SECOND_SINCE: Final = 9
"""Table version whose index is of the second version."""
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


def define_columns(
    table: Table, avro_schema: str, chosen: Sequence[str] | None, now_ms: int
) -> Table:
    """Store Hudi's definition of the index of a table that gets one, of its first columns.

    One that is there from before is kept, unless columns are chosen.
    Of the types that its two kinds of writers record differently none is among those of the first
    version: the ends of a partition would be too narrow after a write that leaves a column out.
    """
    version = SECOND_VERSION if table.properties.version >= _SECOND_SINCE else FIRST_VERSION
    before = index_definition(table, COLUMN_STATS, _named, REBUILD)
    if chosen is None and before is not None and before[1] in (FIRST_VERSION, version):
        return table
    columns = parse_avro(avro_schema, "the table's schema")
    kinds = _BYTES if version == FIRST_VERSION else ()
    known = list(_indexed(columns, kinds, len(columns.names)))
    if strange := [name for name in chosen or () if name not in known]:
        raise OptionError(
            MetadataOptions.columns.key,
            ",".join(chosen or ()),
            f"{', '.join(strange)}: no column of the table whose statistics are recorded; those "
            f"are {', '.join(known)}",
        )
    definition = {
        **dict.fromkeys(("indexName", "indexType", "indexFunction"), COLUMN_STATS),
        "sourceFields": [*_always(table), *(chosen or known[:_MOST])],
        "indexOptions": {},
        "version": version,
    }
    return define_index(table, COLUMN_STATS, definition, REBUILD, now_ms)


def check_named(table: Table, columns: NumberedColumns | None, partitions: Collection[str]) -> None:
    """Refuse statistics of columns beside files that have columns under other names.

    Hudi looks for those of the present names, and takes a file without them for one of nulls.
    Raises `UnsupportedTableError`.
    """
    if columns is not None and {COLUMN_STATS, PARTITION_STATS} & {*partitions}:
        drop = command("metadata", "drop", table.storage.root, "--partition", COLUMN_STATS)
        remedy = f"{drop} drops statistics by names; leave {MetadataOptions.column_stats.key} out"
        check_same_names(table.storage, columns, remedy)


def has_types(table: Table) -> bool:
    """Whether a table has statistics of columns with their types, which version 9 has first."""
    if COLUMN_STATS not in table.properties.metadata_partitions:
        return False
    definition = index_definition(table, COLUMN_STATS, _named, REBUILD)
    return definition is not None and definition[1] != FIRST_VERSION


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
        node = child.optional or child
        has_statistics = node.kind not in (*_NESTED, *without) and node.logical != VECTOR
        if most and has_statistics and name not in META_COLUMNS:
            most -= 1
            yield name


def _named(definition: Mapping[str, Any]) -> tuple[list[str], str]:
    """The columns and the version of a definition."""
    version = str(definition.get("version") or FIRST_VERSION)
    return [str(name) for name in definition["sourceFields"]], version
