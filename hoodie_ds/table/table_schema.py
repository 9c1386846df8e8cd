"""The schema of a table: what its newest commit says, else what it was created with.

Of the commits count those of writes: a compaction or a clustering was planned with the schema of
an earlier time, and may complete after a write that added a column.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from hoodie_ds.config.table_keys import CREATE_SCHEMA
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro_schema import avro_to_arrow
from hoodie_ds.record.meta_columns import without_meta_columns
from hoodie_ds.table.opened import Table
from hoodie_ds.timeline.commit_metadata import SCHEMA_KEY
from hoodie_ds.timeline.paths import PROPERTIES, commit_path
from hoodie_ds.timeline.timeline import Timeline, read_commit


def table_schema(table: Table, timeline: Timeline) -> pa.Schema | None:
    """Return a table's user columns as of a timeline.

    Returns
    -------
    pyarrow.Schema or None
        Without meta columns; None for a table that has no schema yet.
    """
    rewritten: tuple[str, str] | None = None
    for instant in reversed(timeline.commits):
        commit, path = read_commit(table.storage, instant), commit_path(instant)
        avro = commit.extra.get(SCHEMA_KEY)
        if avro and not commit.is_rewrite:
            return _user_columns(avro, path)
        if avro and rewritten is None:
            rewritten = avro, path
    if rewritten is not None:  # all commits of writes have been archived
        return _user_columns(*rewritten)
    created = table.properties.raw.get(CREATE_SCHEMA)
    return _user_columns(created, PROPERTIES) if created else None


@lru_cache(maxsize=64)
def _user_columns(avro: str, path: str) -> pa.Schema:
    try:
        return without_meta_columns(avro_to_arrow(avro, path))
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error
