"""The group of all commands of ``hoodie-py``."""

from __future__ import annotations

from typing import Final

import click

import hoodie_ds
from hoodie_ds.cli import changes, checks, creation, views
from hoodie_ds.cli.target import NARROWEST, Commands

SECTIONS: Final = {
    "Look": views.COMMANDS,
    "Check": checks.COMMANDS,
    "Change": changes.COMMANDS,
    "Make": creation.COMMANDS,
}

_HELP: Final = """Inspect a Hudi table, check it and repair it, without Spark or a JVM.

    PATH is the table's folder, or a URL such as s3://bucket/table. Exit codes: 0 done, 1 refused
    or failed, 2 the command line or an option is wrong, 3 a check found something, 130 stopped
    by Ctrl-C."""


@click.group(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(hoodie_ds.__version__, prog_name="hoodie-py")
@click.option(
    "--width",
    type=click.IntRange(min=NARROWEST),
    envvar="HOODIE_PY_WIDTH",
    help="Columns of the output; those of the terminal by default.",
)
@click.option("--columns-of-shell", envvar="COLUMNS", hidden=True)
def main(width: int | None, columns_of_shell: str | None) -> None:
    """Hold the options of all commands; `console` takes the width from the context."""
    columns = columns_of_shell or ""  # may be nonsense: some shells say 0
    if width is None and columns.isdecimal() and int(columns) >= NARROWEST:
        click.get_current_context().params["width"] = int(columns)


main.sections = {title: tuple(c.name or "" for c in found) for title, found in SECTIONS.items()}
for _command in (one for found in SECTIONS.values() for one in found):
    main.add_command(_command)
