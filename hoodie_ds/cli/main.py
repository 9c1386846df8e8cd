"""The group of all commands of ``hoodie-py``."""

from __future__ import annotations

from typing import Final

import click

import hoodie_ds
from hoodie_ds.cli import alteration, changes, checks, creation, views
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
EXAMPLES: Final = (
    ("hoodie-py show /tmp/trips", "the table at a glance"),
    ("hoodie-py read /tmp/trips --where 'city = oslo' --json", "rows, as JSON"),
    ("hoodie-py verify s3://bucket/trips", "check files, rows and keys"),
    ("hoodie-py compact /tmp/trips --dry-run", "what a compaction would do"),
    ("hoodie-py load /tmp/rides rides.csv --key id", "make a table of a CSV file"),
)


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


main.notes = {"Examples": EXAMPLES, "Exit codes": _EXIT_CODES}
main.sections = {title: tuple(c.name or "" for c in found) for title, found in SECTIONS.items()}
for _command in (one for found in SECTIONS.values() for one in found):
    main.add_command(_command)
