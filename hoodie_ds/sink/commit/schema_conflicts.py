"""The schema after a batch, if others changed the table's while it was written.

The newest commit holds the schema of the whole table. So a commit with fewer columns would remove
those that others have added, and their values with the next rewrite of a base file.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import SchemaError, WriteConflictError
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.schema import check_case, evolve
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.table_schema import schema_instant, table_schema
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.timeline import Timeline


def merged_schema(plan: WritePlan, time: str, timeline: Timeline) -> pa.Schema:
    """Return the table's user columns once a batch is committed after commits of others.

    These are the columns of the newest commit, then those that the batch adds; a column has the
    wider one of two types. Files with fewer or narrower columns stay readable. `WriteConflictError`
    if the schemas do not fit, or a commit with a later time than the batch would have to hold it.
    """
    stored = table_schema(plan.table, timeline, to_write=True)
    if stored is None or stored == plan.schema:
        return plan.schema
    instant = schema_instant(plan.table, timeline)
    by = f"commit {instant.time}" if instant else "another writer"
    try:
        check_case(stored, plan.schema)
        _check_same_text(stored, plan.schema, plan.table.properties)
        columns = evolve(stored, plan.schema, allow_missing=True)
    except SchemaError as error:
        raise _conflict(plan, by, str(error)) from error
    if instant is not None and padded(instant.time) > padded(time):
        added = _first_difference(evolve(stored, stored, allow_missing=True), columns)
        if added is not None:
            raise _conflict(plan, by, f"it is later than {time} and has {added}")
    return columns


def _check_same_text(stored: pa.Schema, batch: pa.Schema, properties: TableProperties) -> None:
    """Refuse other types of columns whose values are keys, paths or ranks already.

    Unlike before a write, nothing can be cast any more.
    """
    named = properties.record_key_fields + properties.partition_fields + properties.ordering_fields
    for path in named:
        one, other = (resolve(schema.empty_table(), path).type for schema in (stored, batch))
        if one != other and (pa.types.is_floating(one) or pa.types.is_floating(other)):
            raise SchemaError(f"column {path!r} is {one} in the table and {other} in the batch")


def _first_difference(stored: pa.Schema, columns: pa.Schema) -> str | None:
    """The first column that the batch adds or widens."""
    for field in columns:
        if field.name not in stored.names:
            return f"no column {field.name!r}"
        if field.type != (known := stored.field(field.name).type):
            return f"column {field.name!r} as {known}, not {field.type}"
    return None


def _conflict(plan: WritePlan, by: str, what: str) -> WriteConflictError:
    return WriteConflictError(
        f"{plan.table.storage.root}: the columns of {by} and of this batch do not fit: "
        f"{what}; the batch is not committed and can be run again"
    )
