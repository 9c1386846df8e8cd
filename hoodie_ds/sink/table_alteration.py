"""A commit without rows that changes the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.errors import SchemaError
from hoodie_ds.metadata_table.column_index import check_named
from hoodie_ds.metadata_table.creation import left_partitions
from hoodie_ds.sink.replay.replay import is_committed
from hoodie_ds.sink.write_plan import ColumnChange, WritePlan
from hoodie_ds.table.alteration import AlteredColumns
from hoodie_ds.table.schema_on_read import (
    NumberedColumns,
    as_json,
    check_never_numbered,
    check_same_names,
)
from hoodie_ds.table.secondary_index import check_indexed_columns
from hoodie_ds.table.table_schema import added_columns, numbered_columns

Alter: TypeAlias = partial[None]
"""One change of a table's columns: a method of `AlteredColumns` with its arguments by name."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of a table's columns that was made, or would be; false if nothing changes.

    Parameters
    ----------
    instant_time : str or None
        Its commit; None if it is not made.
    before, after : pyarrow.Schema
        The table's columns, without Hudi's own.
    changes : bool
        Whether there is anything to change.
    already_committed : bool
        Whether a numbered alteration was found in the table; then nothing was changed.
    """

    instant_time: str | None
    before: pa.Schema
    after: pa.Schema
    changes: bool = True
    already_committed: bool = False

    def __bool__(self) -> bool:
        return self.changes

    def __str__(self) -> str:
        if self.already_committed:
            return "the alteration is committed already, nothing to do"
        if not self.changes:
            return "the columns are so already, nothing to do"
        names = ", ".join(f"{field.name} {field.type}" for field in self.after)
        if self.instant_time is None:
            return f"columns would be {names}"
        return f"altered at {self.instant_time}, columns are {names}"


def altered(changes: Sequence[Alter], plan: WritePlan) -> WritePlan:
    """Return the plan of a write without rows that makes changes one after another.

    Each change finds the names that the ones before have left. Raises `SchemaError` if one cannot
    be made, and `UnsupportedTableError` if statistics or a Delta log find columns by their names.
    Changes of a number that the table has are not made again.
    """
    table = plan.table
    if not changes or plan.declared is None:
        raise SchemaError(f"{table.storage.root}: no change of columns is given")
    statement = tuple(f"{one.func.__name__} {one.keywords}".encode() for one in changes)
    repeated = replace(plan, columns=ColumnChange(statement, plan.schema, is_committed=True))
    if is_committed(repeated):
        return repeated
    numbered = numbered_columns(table, plan.timeline)
    if numbered is None:
        check_never_numbered(table.storage, plan.timeline)
    properties = table.properties
    marker = () if properties.delete_marker is None else properties.delete_marker[:1]
    keys = (*properties.record_key_fields, *properties.partition_fields)
    fixed = {*keys, *properties.ordering_fields, *marker}
    now = None if numbered is None else numbered.now
    columns = AlteredColumns(now, plan.declared, plan.schema, fixed)
    for make in changes:
        make(columns)
    known = (columns.before,) if numbered is None else numbered.all
    became = NumberedColumns(columns.numbered, known)
    partitions = left_partitions(table, plan.options)
    check_named(table, became, partitions)
    check_indexed_columns(table, partitions, plan.schema, columns.same)
    if plan.options.catalog.delta_sync:
        check_same_names(table.storage, became, f"leave {CatalogOptions.delta_sync.key} out")
    before = "" if numbered is not None else as_json(columns.before)
    added = columns.renamed(added_columns(table, plan.timeline))
    is_other = columns.numbered != columns.before
    return replace(
        plan,
        schema=columns.columns,
        declared=columns.avro,
        numbered=as_json(columns.numbered),
        columns=ColumnChange(statement, plan.schema, before, added, is_other),
    )
