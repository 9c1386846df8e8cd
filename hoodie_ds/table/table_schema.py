"""The schema of a table: that of its newest commit, else the one that it was created with.

Only commits of writes count: a compaction or a clustering was planned with an earlier schema, and
may complete after a write that added a column.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache

import pyarrow as pa

from hoodie_ds.columns.meta_columns import RECORD_KEY, without_meta_columns
from hoodie_ds.config.properties.keys import CREATE_SCHEMA
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import CorruptFileError, SchemaError
from hoodie_ds.formats.avro.evolution import evolved_avro
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.schema_on_read import (
    ALL_AS_NOW,
    LATEST_SCHEMA_KEY,
    ColumnHistory,
    NumberedColumns,
    as_json,
    check_history,
    check_same_names,
    columns_of,
    refuse_to_change_version,
)
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import PROPERTIES, commit_path
from hoodie_ds.timeline.timeline import Timeline, once_per_timeline


def table_schema(table: Table, timeline: Timeline) -> pa.Schema | None:
    """Return a table's user columns as of a timeline; None for a table that has no schema yet.

    Raises as `column_history`.
    """
    column_history(table, timeline)
    return declared_schema(table, timeline)


def column_history(table: Table, timeline: Timeline) -> ColumnHistory:
    """Return under which names files have the columns of `table_schema`.

    Raises `UnsupportedTableError` if that is not known; see `hoodie_ds.table.schema_on_read`.
    """
    columns = numbered_columns(table, timeline)
    return ALL_AS_NOW if columns is None else columns.history()


def numbered_columns(table: Table, timeline: Timeline) -> NumberedColumns | None:
    """Return the columns with their numbers, if they have; raises as `column_history`."""
    return _numbered_columns(table.storage, timeline)


@once_per_timeline
def _numbered_columns(storage: Storage, timeline: Timeline) -> NumberedColumns | None:
    declared = _declared_by_commit(storage, timeline)
    if declared is None:
        return None
    instant, _ = declared
    commit, path = read_commit(storage, instant), commit_path(instant)
    numbered = commit.extra.get(LATEST_SCHEMA_KEY)
    if numbered:
        return columns_of(storage, timeline, numbered, path)
    if not commit.is_ours:  # our commits check the same before they are made
        check_history(storage, timeline, path)
    return None


def numbered_by(numbered: str, table: Table, timeline: Timeline, time: str) -> str:
    """Return numbered columns as a commit of a time carries them: its own, if they are new."""
    if numbered == str(numbered_columns(table, timeline)):
        return numbered
    return as_json({**json.loads(numbered), "version_id": int(time)})


def check_version_may_change(table: Table, timeline: Timeline) -> None:
    """Raise `UnsupportedTableError` if columns have numbers, or had before the newest commit."""
    if numbered_columns(table, timeline) is not None:
        refuse_to_change_version(table.storage)


def planned_columns(table: Table, timeline: Timeline, time: str) -> Timeline:
    """Return the timeline that has the columns of the files that a plan of a time makes.

    As in Hudi, numbered columns are found there by that time, whatever has changed since.
    """
    if numbered_columns(table, timeline) is None:
        return timeline
    return timeline.past(time, lambda instant: padded(instant.time) >= padded(time))


def check_files_as_now(table: Table, timeline: Timeline, remedy: str) -> None:
    """Raise `UnsupportedTableError` unless files have the present names and types of all columns.

    Engines need that which find columns by name.
    """
    columns = numbered_columns(table, timeline)
    if columns is not None:
        check_same_names(table.storage, columns, remedy)


def declared_schema(table: Table, timeline: Timeline) -> pa.Schema | None:
    """Return what `table_schema` does, whether or not files can be read by it."""
    instant, avro = _declared(table, timeline)
    if avro is None:
        return None
    with suppress(CorruptFileError, SchemaError):
        return _user_columns(avro, "")  # all commits of one schema, whose paths differ
    path = PROPERTIES if instant is None else commit_path(instant)
    return _user_columns(avro, path)  # the same error, with the path


def declared_avro(table: Table, timeline: Timeline) -> str | None:
    """Return the Avro JSON of `table_schema`, with everything that Arrow cannot hold.

    `hoodie_ds.formats.avro.evolution` makes the next schema from it.
    """
    return _declared(table, timeline)[1]


def _declared(table: Table, timeline: Timeline) -> tuple[Instant | None, str | None]:
    """Return the commit that has a table's schema, and the schema."""
    created_with = None, table.properties.raw.get(CREATE_SCHEMA) or None
    return _declared_by_commit(table.storage, timeline) or created_with


def avro_schema(table: Table, timeline: Timeline, columns: pa.Schema) -> str:
    """Return columns, meta columns or not, as Avro JSON with all that a table says of them."""
    return evolved_avro(columns, table.properties.name, declared_avro(table, timeline))


def schema_instant(table: Table, timeline: Timeline) -> Instant | None:
    """Return the commit that has a table's schema; None if no commit of a timeline has it.

    If all commits of writes are archived, it is that of the newest rewrite.
    """
    return _declared(table, timeline)[0]


@once_per_timeline
def _declared_by_commit(storage: Storage, timeline: Timeline) -> tuple[Instant, str] | None:
    rewrite = None
    for instant in timeline.commits_backwards():
        changes = file_changes(storage, instant)
        if not changes.schema:
            continue
        if not changes.is_rewrite:
            return instant, changes.schema
        rewrite = rewrite or (instant, changes.schema)
    return rewrite


def added_columns(table: Table, timeline: Timeline) -> frozenset[str]:
    """Return the columns that batches added to those that a table had at first.

    Each write of ours repeats them, so that they are known when the commit is archived.
    """
    for instant in timeline.commits_backwards():
        commit = read_commit(table.storage, instant)
        if commit.is_ours and not commit.is_rewrite:
            return commit.added_columns
    return frozenset()


def added_with(table: Table, timeline: Timeline, columns: pa.Schema) -> list[str]:
    """Return the same of the columns that a table has once a commit has them."""
    stored = declared_schema(table, timeline)
    first = columns if stored is None else stored
    known = added_columns(table, timeline)
    return [name for name in columns.names if name in known or name not in first.names]


@lru_cache(maxsize=64)
def _user_columns(avro: str, path: str) -> pa.Schema:
    try:
        return without_meta_columns(avro_to_arrow(avro, path))
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def virtual_keys(properties: TableProperties, schema: pa.Schema) -> MadeColumn | None:
    """Return what makes record keys, unless files have them (``hoodie.populate.meta.fields``).

    The invariant: a stored row and an incoming row have the same key if and only if their record
    key fields are equal, since one key generator makes both keys. None for a table without keys.
    """
    fields = properties.record_key_fields
    if properties.populate_meta_fields or not fields:
        return None
    columns = {p if p in schema.names else p.partition(".")[0] for p in fields}
    made_from = pa.schema([field for field in schema if field.name in columns])
    spec = KeySpec(
        properties.key_generator, fields, complex_key_prefixed=properties.makes_prefixed_keys
    )
    return MadeColumn(RECORD_KEY, made_from, KeyGenerator(spec, None).record_keys)
