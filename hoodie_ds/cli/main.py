"""The group of all commands of ``hoodie-py``."""

from __future__ import annotations

from typing import Final

import click

import hoodie_ds
from hoodie_ds.cli import alteration, changes, checks, creation, views
from hoodie_ds.cli.examples import EXAMPLES
from hoodie_ds.cli.target import FAILED, FOUND, MISUSED, NARROWEST, STOPPED, Commands

SECTIONS: Final = {
    "Look": views.COMMANDS,
    "Check": checks.COMMANDS,
    "Change": (*changes.COMMANDS, alteration.alter),
    "Make": creation.COMMANDS,
}

_HELP: Final = """Inspect a Hudi table, check it and repair it, without Spark or a JVM.

    PATH is the table's folder, or a URL such as s3://bucket/table. A command that changes a table
    shows what it would do and asks first."""

_EXIT_CODES: Final = (
    ("0", "done"),
    (str(FAILED), "refused or failed"),
    (str(MISUSED), "the command line or an option is wrong"),
    (str(FOUND), "a check found something"),
    (str(STOPPED), "stopped by Ctrl-C"),
)
_FIRST: Final = {
    "show": "the table at a glance",
    "read": "rows, as JSON",
    "verify": "check files, rows and keys",
    "compact": "what a compaction would do",
    "load": "make a table of a CSV file",
}
"""Commands whose examples the help of all has, and what they do."""


def exit_codes() -> str:
    """Return what the exit codes of all commands mean, in a line."""
    return f"Exit codes: {', '.join(map(' '.join, _EXIT_CODES))}."


@click.group(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(hoodie_ds.__version__, prog_name="hoodie-py")
@click.option(
    "--width",
    type=click.IntRange(min=NARROWEST),
    envvar="HOODIE_PY_WIDTH",
    show_envvar=True,
    help="Columns of the output; those of the terminal by default.",
)
@click.option("--columns-of-shell", envvar="COLUMNS", hidden=True)
def main(width: int | None, columns_of_shell: str | None) -> None:
    """Hold the options of all commands; `console` takes the width from the context."""
    columns = columns_of_shell or ""  # may be nonsense: some shells say 0
    if width is None and columns.isdecimal() and int(columns) >= NARROWEST:
        click.get_current_context().params["width"] = int(columns)


main.notes = {
    "Examples": tuple((EXAMPLES[name], what) for name, what in _FIRST.items()),
    "Exit codes": _EXIT_CODES,
}
main.sections = {title: tuple(c.name or "" for c in found) for title, found in SECTIONS.items()}
for _command in (one for found in SECTIONS.values() for one in found):
    _command.epilog = f"\b\nExample: {EXAMPLES[_command.name or '']}\n\n{exit_codes()}"
    main.add_command(_command)
