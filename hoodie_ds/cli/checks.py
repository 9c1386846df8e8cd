"""Commands that check a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hoodie_ds.cli.target import FOUND, Misused, Target, as_json, on_table

if TYPE_CHECKING:
    from hoodie_ds.inspection.comparison import Side
    from hoodie_ds.inspection.verify import Verification


@click.command()
@on_table
@click.option(
    "--against",
    metavar="PATH|QUERY",
    help="Compare its rows with a table, Parquet files, or a SELECT of DuckDB's SQL.",
)
@as_json
def verify(target: Target, against: str | None, as_json: bool) -> None:
    """Check every promise of a table at rest: files, checksums, rows, keys, buckets, batches."""
    if against is not None:
        _compare(target, against, as_json)
        return
    from hoodie_ds.cli.render import progress
    from hoodie_ds.services.results import counted

    inspect = target.table().inspect
    with progress("checking") as advance:
        found = inspect.verify(advance)
    show(target, found, f", {counted(found.rows, 'row')}", as_json)


def show(target: Target, found: Verification, more: str = "", as_json: bool = False) -> None:
    """Print what a check found, and how much it has checked; the exit code says if it is damage."""
    from hoodie_ds.cli.render import print_hints, print_object
    from hoodie_ds.services.results import counted, size_text

    findings = (replace(one, remedy=target.reached(one.remedy)) for one in found.findings)
    found = replace(found, findings=tuple(findings))
    if as_json:
        print_object(found, True, ())
    else:
        print_hints(
            (
                f"{one.severity.value} {one.kind.value} {one.where}".rstrip(),
                f"{one.message}; {one.remedy}",
            )
            for one in found.findings
        )
        looked = f"{counted(found.files, 'file')} ({size_text(found.bytes)})"
        click.echo(f"{looked}{more}: {counted(len(found.damage), 'damage')}")
    if not found:
        raise click.exceptions.Exit(FOUND)


def _compare(target: Target, against: str, as_json: bool) -> None:
    """Print the rows of a table that differ from those of another, by its record key."""
    from hoodie_ds.cli.views import print_tables

    inspect = target.table().inspect
    other = _side(target, against)
    found = inspect.compare(other)
    print_tables([found.rows], as_json, None)
    numbers = f"{found.inserted:,} more, {found.updated:,} others, {found.deleted:,} missing"
    click.echo(f"compared with {against}: {numbers}", err=as_json)
    if found.inserted or found.updated or found.deleted:
        raise click.exceptions.Exit(FOUND)


def _side(target: Target, against: str) -> Side:
    """Return the rows of a query, of another table, or of files."""
    from hoodie_ds.errors import TableNotFoundError
    from hoodie_ds.inspection.comparison import is_query, query_side

    if is_query(against):
        return query_side(against)
    try:
        return Target(against, target.options).table().inspect.as_side()
    except TableNotFoundError:
        return _files(against)


def _files(path: str) -> Side:
    """Return the rows of Parquet files."""
    import pyarrow as pa
    import pyarrow.dataset as pads

    from hoodie_ds.columns.meta_columns import without_meta_columns
    from hoodie_ds.inspection.comparison import Side

    with _readable(path):
        rows = pads.dataset(path, format="parquet")
    schema = without_meta_columns(rows.schema)

    def read() -> Iterator[pa.Table]:
        with _readable(path):
            for batch in rows.to_batches(columns=schema.names):
                yield pa.Table.from_batches([batch])

    return Side(path, schema, read)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Name the other possible arguments where there are no Parquet files."""
    import pyarrow as pa

    from hoodie_ds.errors import CorruptFileError, TableNotFoundError

    query = "a query begins with SELECT, FROM or WITH and reads others"
    try:
        yield
    except FileNotFoundError as error:
        remedy = f"no Hudi table, no Parquet file and no query; check it ({query})"
        raise TableNotFoundError(f"--against {path}: {remedy}") from error
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(
            f"--against {path}: no Hudi table, and it cannot be read as Parquet ({error})", query
        ) from error


@click.command()
@on_table
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("hudi-report.html"),
    show_default=True,
    help="Where to write the page.",
)
@click.option("--verify/--no-verify", default=True, help="Check the table, which reads all of it.")
def report(target: Target, output: Path, verify: bool) -> None:
    """A page of the table for a browser: timeline, growth, files, services, what is broken."""
    from hoodie_ds.cli.render import progress

    inspect = target.table().inspect
    with progress("checking") as advance:
        page = inspect.report(verify=verify, progress=advance)
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Misused(
            f"{output} cannot be written: {error.strerror}; give another --output"
        ) from error
    click.echo(f"{output}: {len(page) >> 10:,} KB")


COMMANDS: Final = (verify, report)
