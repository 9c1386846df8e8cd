"""The schema of a table: that of its newest commit, else the one that it was created with.

Only commits of writes count: a compaction or a clustering was planned with an earlier schema, and
may complete after a write that added a column.
"""

from __future__ import annotations

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
    LATEST_SCHEMA_KEY,
    check_found_by_name,
    check_history,
    refuse_to_write,
)
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import PROPERTIES, commit_path
from hoodie_ds.timeline.timeline import Timeline, once_per_timeline


def table_schema(table: Table, timeline: Timeline, *, to_write: bool = False) -> pa.Schema | None:
    """Return a table's user columns as of a timeline, by whose names its files can be read.

    None for a table that has no schema yet. `to_write` says that files and a commit with these
    columns will be written. Raises `UnsupportedTableError` if columns are found by number; see
    `hoodie_ds.table.schema_on_read`.
    """
    instant = schema_instant(table, timeline)
    _check_names(table, timeline, instant, to_write)
    return _columns_by(table, instant)


def check_columns_have_names(table: Table, timeline: Timeline, *, to_write: bool) -> None:
    """Raise the error of `table_schema`, if there is one."""
    _check_names(table, timeline, schema_instant(table, timeline), to_write)


def _check_names(table: Table, timeline: Timeline, instant: Instant | None, to_write: bool) -> None:
    if instant is None:
        return
    commit, path = read_commit(table.storage, instant), commit_path(instant)
    numbered = commit.extra.get(LATEST_SCHEMA_KEY)
    if numbered and to_write:
        refuse_to_write(table.storage, path)
    if numbered:
        check_found_by_name(table.storage, numbered, path)
    elif not commit.is_ours:  # our commits check the same before they are made
        check_history(table.storage, timeline, path)


def declared_schema(table: Table, timeline: Timeline) -> pa.Schema | None:
    """Return what `table_schema` does, whether or not files can be read by it."""
    return _columns_by(table, schema_instant(table, timeline))


def _columns_by(table: Table, instant: Instant | None) -> pa.Schema | None:
    avro = _declared_by(table, instant)
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
    return _declared_by(table, schema_instant(table, timeline))


def _declared_by(table: Table, instant: Instant | None) -> str | None:
    if instant is not None:
        return file_changes(table.storage, instant).schema
    return table.properties.raw.get(CREATE_SCHEMA) or None


def avro_schema(table: Table, timeline: Timeline, columns: pa.Schema) -> str:
    """Return columns, meta columns or not, as Avro JSON with all that a table says of them."""
    return evolved_avro(columns, table.properties.name, declared_avro(table, timeline))


def schema_instant(table: Table, timeline: Timeline) -> Instant | None:
    """Return the commit that has a table's schema; None if no commit of a timeline has it.

    If all commits of writes are archived, it is that of the newest rewrite.
    """
    return _schema_instant(table.storage, timeline)


@once_per_timeline
def _schema_instant(storage: Storage, timeline: Timeline) -> Instant | None:
    rewrite = None
    for instant in timeline.commits_backwards():
        changes = file_changes(storage, instant)
        if not changes.schema:
            continue
        if not changes.is_rewrite:
            return instant
        rewrite = rewrite or instant
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
