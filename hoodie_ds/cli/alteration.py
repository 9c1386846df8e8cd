"""The command that alters a table's columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from hoodie_ds.cli.changes import Step, changing
from hoodie_ds.cli.creation import COLUMN_TYPES, type_named
from hoodie_ds.cli.target import Misused

if TYPE_CHECKING:
    from hoodie_ds.api.hoodie_table import HoodieTable
    from hoodie_ds.api.table_alteration import TableAlteration
    from hoodie_ds.services.context import Progress

_PATH: Final = r"(?P<path>\S+)"
_PLACE: Final = r"(?: (?P<first>first)| after (?P<after>\S+))"
_FORMS: Final = {
    "add": ("add", rf"{_PATH} (?P<kind>.+?){_PLACE}?(?: comment (?P<comment>.+))?"),
    "rename": ("rename", rf"{_PATH} to (?P<name>\S+)"),
    "drop": ("drop", _PATH),
    "move": ("move", rf"{_PATH}{_PLACE}"),
    "type": ("retype", rf"{_PATH} (?P<kind>.+)"),
    "comment": ("comment", rf"{_PATH} (?P<text>.+)"),
    "nullable": ("make_nullable", _PATH),
}
"""What changes begin with: the method that makes them, and its arguments."""

_USAGE: Final = (
    'write "add tip double after fare", "rename fare to cost", "drop note", "move tip first", '
    '"type fare string", "comment fare in euros" or "nullable fare"'
)


@click.command()
@changing
@click.argument("changes", nargs=-1, required=True)
def alter(changes: tuple[str, ...]) -> Step:
    """Make CHANGES of columns, such as "rename fare to cost", as one commit without new files."""

    def step(table: HoodieTable, dry: bool, _: Progress | None) -> object:
        alteration = table.alter()
        for change in changes:
            _add(alteration, change)
        return alteration.execute(dry=dry)

    return step


def _add(alteration: TableAlteration, change: str) -> None:
    verb, _, rest = " ".join(change.split()).partition(" ")
    method, form = _FORMS.get(verb.lower(), ("", "(?!)"))
    found = re.fullmatch(form, rest)
    if found is None:
        raise Misused(f"{change!r} is no change of columns; {_USAGE}")
    given: dict[str, Any] = {key: text for key, text in found.groupdict().items() if text}
    if "kind" in given:
        try:
            given["kind"] = type_named(given["kind"].lower())
        except ValueError:
            raise Misused(f"{change!r} names no type; {COLUMN_TYPES}") from None
    if "first" in given:
        given["first"] = True
    getattr(alteration, method)(**given)
