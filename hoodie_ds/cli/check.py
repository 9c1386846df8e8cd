"""Commands that check a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from hoodie_ds.cli.target import FOUND, Target, as_json, on_table


@click.command()
@on_table
@as_json
def verify(target: Target, as_json: bool) -> None:
    """Every promise of a table at rest: files, checksums, rows, keys, buckets, batches."""
    from hoodie_ds.cli.render import Show, print_object, print_rows
    from hoodie_ds.services.results import counted, size_text

    inspect = target.table().inspect
    with _progress() as advance:
        found = inspect.verify(advance)
    if as_json:
        print_object(found, True, ())
    else:
        columns = (
            Show("severity", rank=1),
            Show("kind", whole=True),
            Show("where", whole=True),
            Show("message", whole=True),
        )
        print_rows(found.findings, columns, False)
        looked = f"{counted(found.files, 'file')} ({size_text(found.bytes)})"
        damages = counted(len(found.damage), "damage")
        click.echo(f"{looked}, {counted(found.rows, 'row')}: {damages}")
    if not found:
        raise click.exceptions.Exit(FOUND)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far a check is, and how long it will take."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    parts = (TextColumn("checking"), BarColumn(), TimeRemainingColumn())
    quiet = not console.is_terminal
    with Progress(*parts, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("checking", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


COMMANDS: Final = (verify,)
