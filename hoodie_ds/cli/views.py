"""Commands that show a table and change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from hoodie_ds.cli.target import Ended, Misused, Target, as_json, on_table, with_limit

if TYPE_CHECKING:
    import pyarrow as pa

_NAMED: Final = 10
"""Partitions that a message names at most."""


@click.command()
@on_table
@click.option("--properties", is_flag=True, help="All properties of the table, too.")
@as_json
def show(target: Target, properties: bool, as_json: bool) -> None:
    """The table at a glance: properties, columns, sizes, health."""
    from hoodie_ds.cli.render import print_hints, print_object
    from hoodie_ds.services.results import counted, size_text

    found = target.table().inspect.show()
    found = replace(found, remarks=tuple(map(target.reached, found.remarks)))
    files = found.files
    older = f"{counted(files.older_files, 'file')} ({size_text(files.older_bytes)})"
    pairs: list[tuple[str, object]] = [
        ("table", found.name),
        ("path", found.path),
        ("type", f"{found.table_type}, version {found.version}"),
        ("record key", found.record_keys),
        ("partitioned by", found.partition_fields),
        ("ordered by", found.ordering_fields),
        ("merge mode", found.merge_mode),
        ("index", found.index + (f", {found.num_buckets} buckets" if found.num_buckets else "")),
        ("columns", tuple(f"{column.name} {column.type}" for column in found.columns)),
        ("commits", f"{found.commits:,}, latest {found.latest or 'none'}"),
        ("pending", found.pending or ""),
        ("savepoints", found.savepoints),
        ("partitions", f"{found.num_partitions:,}, {counted(files.file_groups, 'file group')}"),
        ("base files", f"{files.base_files:,} ({size_text(files.base_bytes)})"),
        ("log files", f"{files.log_files:,} ({size_text(files.log_bytes)})"),
        ("small files", f"{counted(files.small_files, 'base file')} below 100 MB"),
        ("older files", older if files.older_files else ""),
        *(sorted(found.properties.items()) if properties else ()),
    ]
    print_object(found, as_json, pairs)
    if not as_json:
        print_hints(("look at", remark) for remark in found.remarks)


@click.command()
@on_table
@click.option("--action", help="Only this action: commit, deltacommit, clean, ...")
@click.option("--state", help="Only requested, inflight or completed instants.")
@click.option("--active", is_flag=True, help="Only the active timeline.")
@with_limit(50)
@as_json
def timeline(
    target: Target,
    action: str | None,
    state: str | None,
    active: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Instants of the active timeline and of the archive, the newest first."""
    from hoodie_ds.cli.render import Show, duration, print_rows

    columns = (
        Show("time", whole=True),
        Show("action"),
        Show("state"),
        Show("completion_time", "completed", rank=2),
        Show("duration_ms", "took", duration, right=True),
        Show("archived", rank=1),
    )
    rows = target.table().inspect.instants(action, state, not active)
    print_rows(rows, columns, as_json, limit)


@click.command()
@on_table
@click.option("--active", is_flag=True, help="Only the active timeline.")
@with_limit(50)
@as_json
def commits(target: Target, active: bool, limit: int | None, as_json: bool) -> None:
    """What each commit did: rows, files, bytes, write amplification, micro-batch."""
    from hoodie_ds.cli.render import Show, number, print_rows, ratio, size

    columns = (
        Show("time", whole=True),
        Show("operation", rank=1),
        number("inserted", "", 2),
        number("updated", "", 2),
        number("deleted", "", 2),
        number("files", "", 3),
        size("bytes", "", 4),
        ratio("write_amplification", "amplification", 5),
        number("rows_written", "", 6),
        number("partitions", "", 7),
        number("replaced", "replaced groups", 7),
        Show("query", rank=8),
        Show("batch", right=True, rank=4),
        Show("archived", rank=9),
    )
    print_rows(target.table().inspect.writes(not active), columns, as_json, limit)


@click.command()
@on_table
@click.option("--partition", help="Only this partition, and its file groups one by one.")
@click.option("--groups", is_flag=True, help="File groups, rather than partitions.")
@with_limit(100)
@as_json
def files(
    target: Target, partition: str | None, groups: bool, limit: int | None, as_json: bool
) -> None:
    """Partitions or file groups, their files, sizes, small files and log ratio."""
    from hoodie_ds.cli.render import Show, number, print_rows, ratio, size

    found = target.table().inspect.files()
    if not groups and partition is None:
        columns = (
            Show("partition", whole=True),
            number("file_groups"),
            size("base_bytes", "base size"),
            number("log_files"),
            size("log_bytes", "log size"),
            ratio("log_ratio"),
            number("small_files", "", 1),
            number("older_files", "", 2),
            size("older_bytes", "older size", 2),
        )
        print_rows(found.partitions, columns, as_json, limit)
        return
    known = [row.partition for row in found.partitions]
    if partition is not None and partition not in known:
        there = ", ".join(map(repr, known[:_NAMED])) + (", ..." if len(known) > _NAMED else "")
        raise Misused(f"there is no partition {partition!r}; there are {there or 'none'}")
    rows = [g for g in found.groups if partition in (None, g.partition)]
    columns = (
        Show("partition", rank=4 if partition is not None else 0),
        Show("file_id"),
        Show("base_instant", rank=3),
        size("base_bytes", "base size"),
        number("log_files"),
        size("log_bytes", "log size"),
        ratio("log_ratio", "", 1),
        number("older_files", "", 2),
        size("older_bytes", "older size", 2),
    )
    print_rows(rows, columns, as_json, limit)


@click.command()
@on_table
@click.option("--history", is_flag=True, help="Every schema that the table has had.")
@as_json
def schema(target: Target, history: bool, as_json: bool) -> None:
    """Columns and types, or how they have changed."""
    from hoodie_ds.cli.render import Show, print_rows

    inspect = target.table().inspect
    if history:
        columns = (Show("time", whole=True), Show("added"), Show("removed"), Show("retyped"))
        print_rows(inspect.schema_history(), columns, as_json)
        return
    print_rows(inspect.columns(), (Show("name", whole=True), Show("type", whole=True)), as_json)


@click.command()
@on_table
@click.option("--columns", help="Names, with commas between them.")
@click.option("--where", multiple=True, help='Condition such as "city = oslo"; all must hold.')
@click.option("--as-of", metavar="INSTANT", help="The table as it was at this write, or date.")
@click.option("--meta", is_flag=True, help="The _hoodie_* columns, too.")
@with_limit(20)
@as_json
def read(
    target: Target,
    columns: str | None,
    where: tuple[str, ...],
    as_of: str | None,
    meta: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Rows of the table."""
    from hoodie_ds.errors import OptionError
    from hoodie_ds.filters.given import predicate_of

    inspect = target.table().inspect
    names = [name.strip() for name in columns.split(",")] if columns else None
    schema_ = inspect.schema(as_of)
    for name in names or ():
        if name not in schema_.names:
            there = f"{name} is no column; there are {', '.join(schema_.names)}"
            raise OptionError("--columns", columns, there)
    predicate = predicate_of([*where], schema_, "--where")
    tables = inspect.rows(names, predicate, as_of, meta=meta or bool(names))
    print_tables(tables, as_json, limit)


@click.command()
@click.argument("query")
@on_table
@click.option("--as-of", metavar="INSTANT", help="The table as it was at this write, or date.")
@with_limit(100)
@as_json
def sql(target: Target, query: str, as_of: str | None, limit: int | None, as_json: bool) -> None:
    """Rows of a SELECT of DuckDB, such as "SELECT city, sum(fare) FROM t GROUP BY city"."""
    print_tables(target.table().inspect.sql(query, as_of), as_json, limit)


@click.command()
@on_table
@click.argument("key")
@click.option("--partition", help="Path of the only partition to look in.")
@as_json
def locate(target: Target, key: str, partition: str | None, as_json: bool) -> None:
    """Where the record KEY is: partition, file group, files."""
    from hoodie_ds.cli.render import Show, print_rows

    columns = (
        Show("partition", whole=True),
        Show("file_id", whole=True),
        Show("commit_time", "written at", rank=1),
        Show("base_file", rank=3),
        Show("log_files", right=True),
        Show("row", rank=2),
    )
    found = target.table().inspect.locate(key, partition)
    print_rows(found, columns, as_json)
    if not found:
        where = "" if partition is None else f" in the partition {partition!r}"
        raise Ended(f"no row has the key {key!r}{where}")


@click.command()
@on_table
@as_json
def plan(target: Target, as_json: bool) -> None:
    """Pending instants: planned services, open writes, and what carries them out."""
    from hoodie_ds.cli.render import Show, number, print_hints, print_rows

    columns = (
        Show("time", whole=True),
        Show("service"),
        Show("action", rank=2),
        Show("state", rank=1),
        number("file_groups"),
        number("files"),
        Show("target", rank=1),
    )
    rows = [
        replace(row, remedy=target.reached(row.remedy)) for row in target.table().inspect.plans()
    ]
    if not print_rows(rows, columns, as_json) and not as_json:
        click.echo("nothing is pending")
    if not as_json:
        print_hints((row.time, row.remedy) for row in rows)


@click.command()
@on_table
@click.argument("key")
@as_json
def trace(target: Target, key: str, as_json: bool) -> None:
    """The history of the record KEY: commits, files, writers, and its row each time."""
    from hoodie_ds.cli.render import Show, print_rows

    columns = (
        Show("time", whole=True),
        Show("what"),
        Show("partition", rank=2),
        Show("operation", rank=1),
        Show("query", rank=4),
        Show("batch", right=True, rank=1),
        Show("row"),
        Show("file", rank=5),
    )
    found = target.table().inspect.trace(key)
    print_rows(found, columns, as_json)
    if not found:
        raise Ended(f"no file of the table has the key {key!r}")


@click.command()
@on_table
@click.argument("before")
@click.argument("after", required=False)
@with_limit(50)
@as_json
def diff(target: Target, before: str, after: str | None, limit: int | None, as_json: bool) -> None:
    """Rows that changed between the instants BEFORE and AFTER, or up to now."""
    found = target.table().inspect.diff(before, after)
    print_tables([found.rows], as_json, limit)
    numbers = f"{found.inserted:,} inserted, {found.updated:,} updated, {found.deleted:,} deleted"
    click.echo(numbers, err=as_json)


def print_tables(tables: Iterable[pa.Table], as_json: bool, limit: int | None) -> None:
    """Print rows of Arrow tables; only rows that are shown become Python objects."""
    from hoodie_ds.cli.render import Show, as_value, print_rows

    pieces = iter(tables)
    first = next(pieces, None)
    names = [] if first is None else first.column_names
    columns = tuple(
        Show(name, name, as_value, rank=1 if name.startswith("_hoodie_") else 0) for name in names
    )
    print_rows(_dicts(chain([first] if first is not None else [], pieces)), columns, as_json, limit)


def _dicts(tables: Iterable[pa.Table]) -> Iterator[dict[str, Any]]:
    for rows in tables:
        for batch in rows.to_batches(max_chunksize=500):
            yield from batch.to_pylist()


COMMANDS: Final = (show, timeline, commits, files, schema, read, sql, locate, plan, trace, diff)
