"""The schema of a table: what its newest commit says, else what it was created with.

Of the commits count those of writes: a compaction or a clustering was planned with the schema of
an earlier time, and may complete after a write that added a column.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from hoodie_ds.config.properties.keys import CREATE_SCHEMA
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.meta_columns import without_meta_columns
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.commit_metadata import SCHEMA_KEY
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import PROPERTIES, commit_path
from hoodie_ds.timeline.timeline import Timeline, read_commit


def table_schema(table: Table, timeline: Timeline) -> pa.Schema | None:
    """Return a table's user columns as of a timeline.

    Returns
    -------
    pyarrow.Schema or None
        Without meta columns; None for a table that has no schema yet.
    """
    instant = schema_instant(table, timeline)
    if instant is not None:
        avro = read_commit(table.storage, instant).extra[SCHEMA_KEY]
        return _user_columns(avro, commit_path(instant))
    created = table.properties.raw.get(CREATE_SCHEMA)
    return _user_columns(created, PROPERTIES) if created else None


def schema_instant(table: Table, timeline: Timeline) -> Instant | None:
    """Return the commit that says a table's schema; None if no commit of a timeline does.

    Where all commits of writes have been archived, it is that of the newest rewrite.
    """
    rewrite = None
    for instant in timeline.commits_backwards():
        commit = read_commit(table.storage, instant)
        if not commit.extra.get(SCHEMA_KEY):
            continue
        if not commit.is_rewrite:
            return instant
        rewrite = rewrite or instant
    return rewrite


@lru_cache(maxsize=64)
def _user_columns(avro: str, path: str) -> pa.Schema:
    try:
        return without_meta_columns(avro_to_arrow(avro, path))
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error
