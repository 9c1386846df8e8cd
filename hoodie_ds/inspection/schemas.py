"""Changes of a table's columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hoodie_ds.columns.meta_columns import without_meta_columns
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.inspection.archived_instants import archived_backwards
from hoodie_ds.inspection.overview import Column, columns_of
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The first commit with other columns than the commit before; without meta columns."""

    time: str
    columns: tuple[Column, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    retyped: tuple[str, ...]  # as "name: from -> to"


def schema_changes(table: Table, timeline: Timeline) -> tuple[SchemaChange, ...]:
    """Return the schemas that a table has had, the oldest first."""
    found: list[tuple[str, str, str]] = []  # the first commit of each run with the same schema
    for time, path, commit in _commits_backwards(table, timeline):
        avro = commit.extra.get(SCHEMA_KEY)
        if not avro or commit.is_rewrite:
            continue
        if found and found[-1][2] == avro:
            found.pop()
        found.append((time, path, avro))
    changes: list[SchemaChange] = []
    for time, path, avro in reversed(found):
        columns = columns_of(without_meta_columns(avro_to_arrow(avro, path)))
        before = changes[-1].columns if changes else ()
        if columns != before:
            changes.append(_change(time, before, columns))
    return tuple(changes)


def _commits_backwards(
    table: Table, timeline: Timeline
) -> Iterator[tuple[str, str, CommitMetadata]]:
    for instant in timeline.commits_backwards():
        yield instant.time, commit_path(instant), read_commit(table.storage, instant)
    for found in archived_backwards(table, bodies=True):
        if found.instant.action in WRITE_ACTIONS and (commit := found.commit()) is not None:
            yield found.instant.time, commit_path(found.instant), commit


def _change(time: str, before: tuple[Column, ...], after: tuple[Column, ...]) -> SchemaChange:
    old, new = ({column.name: column.type for column in part} for part in (before, after))
    return SchemaChange(
        time,
        after,
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
        tuple(
            f"{name}: {old[name]} -> {kind}"
            for name, kind in new.items()
            if old.get(name, kind) != kind
        ),
    )
