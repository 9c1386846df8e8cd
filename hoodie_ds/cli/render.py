"""Rows on the terminal: as tables that fit its width, or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hoodie_ds.cli.target import NARROWEST
from hoodie_ds.inspection.listing import plain
from hoodie_ds.services.results import size_text

_PAGE: Final = 500
"""Rows whose widths are computed together; more are shown page by page."""
_PIPED: Final = 200
"""Width of the output where it is no terminal."""
_USUAL: Final = 80
"""Width of a terminal that does not report one."""
_SHORT: Final = 24
"""Columns up to this width are never cut in favour of wider ones."""
_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE

Format = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Show:
    """A column of a table for the terminal."""

    field: str
    title: str = ""  # the field's name if empty
    format: Format | None = None
    right: bool = False  # aligned to the right
    whole: bool = False  # folded rather than cut
    rank: int = 0  # a narrow terminal drops the highest rank first, and never 0

    @property
    def head(self) -> str:
        """The head of the column."""
        return self.title or self.field.replace("_", " ")

    def cell(self, row: Mapping[str, Any]) -> str:
        """Return a row's value as it is shown, without control characters."""
        value = row.get(self.field)
        shown = (self.format or as_text)(value)
        return _printable(shown)


def _printable(shown: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)


def number(field: str, title: str = "", rank: int = 0) -> Show:
    """Return a column of numbers."""
    return Show(field, title, _count, right=True, rank=rank)


def size(field: str, title: str = "", rank: int = 0) -> Show:
    """Return a column of sizes in bytes."""
    return Show(field, title, lambda v: size_text(v) if v else "", right=True, rank=rank)


def ratio(field: str, title: str = "", rank: int = 0) -> Show:
    """Return a column of ratios."""
    return Show(field, title, lambda v: f"{v:.2f}" if v else "", right=True, rank=rank)


def as_text(value: object) -> str:
    """Return a value as it is shown: nested ones as JSON."""
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, (Mapping, list, tuple)):
        if not value:
            return ""
        if all(isinstance(one, str) for one in value) and not isinstance(value, Mapping):
            return ", ".join(value)
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def as_value(value: object) -> str:
    """Return a value of a row as it is shown: null, false and an empty string differ."""
    if value is None or isinstance(value, (bool, Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) and value else ""


def duration(value: int | None) -> str:
    """Return milliseconds in units for people."""
    if value is None:
        return ""
    if value < _SECOND:
        return f"{value} ms"
    if value < _MINUTE:
        return f"{value / _SECOND:.1f} s"
    if value < _HOUR:
        return f"{value // _MINUTE} min {value % _MINUTE // _SECOND} s"
    return f"{value // _HOUR} h {value % _HOUR // _MINUTE} min"


def print_rows(
    rows: Iterable[object], columns: Sequence[Show], as_json: bool, limit: int | None = None
) -> int:
    """Print rows as they come, at most `limit`, and return how many; JSON has all their fields."""
    one_more = map(plain, islice(rows, None if limit is None else limit + 1))
    shown = islice(one_more, limit)
    count = _print_json(shown) if as_json else _print_table(shown, columns)
    if not as_json and next(iter(one_more), None) is not None:
        click.echo(f"and more: the first {count:,} are shown; --limit N or --all", err=True)
    return count


def print_object(value: object, as_json: bool, pairs: Iterable[tuple[str, object]]) -> None:
    """Print one dataclass as JSON, or the names and values of a table for it."""
    if as_json:
        click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))
        return
    rows = ({"what": name, "value": value} for name, value in pairs if value not in ("", None, ()))
    _print_table(rows, (Show("what", " ", whole=True), Show("value", " ", whole=True)), heads=False)


def print_hints(hints: Iterable[tuple[str, str]]) -> None:
    """Print hints, each behind its subject on one line, which only the terminal wraps."""
    for about, hint in hints:
        click.echo(f"{_printable(about)}: {_printable(hint)}")


def console() -> Console:
    """Return standard output, as wide as ``--width`` says, else as the terminal."""
    context = click.get_current_context(silent=True)
    given = None if context is None else context.find_root().params.get("width")
    found = Console(highlight=False, width=given)
    if given is None and not found.is_terminal:
        return Console(highlight=False, width=_PIPED)
    # Rich believes the shell's COLUMNS, also 0.
    return found if found.width >= NARROWEST else Console(highlight=False, width=_USUAL)


def _print_json(rows: Iterator[Any]) -> int:
    count = 0
    for row in rows:
        click.echo(("[" if not count else ",\n ") + json.dumps(row, ensure_ascii=False), nl=False)
        count += 1
    click.echo("]" if count else "[]")
    return count


def _print_table(rows: Iterator[Any], columns: Sequence[Show], heads: bool = True) -> int:
    out, count, widths = console(), 0, dict.fromkeys(columns, 0)
    left_out: dict[str, None] = {}
    while page := list(islice(rows, _PAGE)):
        texts = [[column.cell(row) for column in columns] for row in page]
        for number_, column in enumerate(columns):
            longest = max(len(line[number_]) for line in texts)
            widths[column] = max(widths[column], longest, len(column.head) if heads else 0)
        kept = _fitting(columns, widths, out.width)
        gone = (n for n in range(len(columns)) if n not in kept and any(line[n] for line in texts))
        left_out.update(dict.fromkeys(columns[n].head for n in gone))
        table = Table(box=None, show_header=heads and not count, pad_edge=False)
        for at in kept:
            column = columns[at]
            table.add_column(
                column.head,
                justify="right" if column.right else "left",
                overflow="fold" if column.whole else "ellipsis",
                no_wrap=not column.whole,
                min_width=widths[column] if widths[column] <= _SHORT else None,
            )
        for line in texts:
            table.add_row(*(Text(line[at]) for at in kept))
        out.print(table)
        count += len(page)
    if left_out:
        message = f"no room for: {', '.join(left_out)} (--json has all; hoodie-py --width N)"
        click.echo(textwrap.fill(message, out.width), err=True)
    return count


def _fitting(columns: Sequence[Show], widths: Mapping[Show, int], room: int) -> list[int]:
    """Return the positions of the columns that fit; empty ones go first, then the highest rank."""
    kept = [n for n, column in enumerate(columns) if widths[column] or not column.rank]
    for rank in sorted({column.rank for column in columns} - {0}, reverse=True):
        if sum(widths[columns[n]] + 2 for n in kept) <= room:
            break
        kept = [n for n in kept if columns[n].rank != rank]
    return kept


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of long work on a terminal; yields a function of parts done and total."""
    console = Console(stderr=True)
    parts = (TextColumn(what), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    if not console.is_terminal:  # before rich 15 a bar that is disabled leaves an empty line
        yield lambda _done, _total: None
        return
    with Progress(*parts, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
