"""The group of all commands of ``hoodie-py``."""

from __future__ import annotations

import os
from typing import Final

import click

import hoodie_ds
from hoodie_ds.cli import change, check, look, make
from hoodie_ds.cli.target import Commands

SECTIONS: Final = {
    "Look": look.COMMANDS,
    "Check": check.COMMANDS,
    "Change": change.COMMANDS,
    "Make": make.COMMANDS,
}

_NARROWEST: Final = 20
_HELP: Final = """Look into a Hudi table, check it and mend it, without Spark or a JVM.

    PATH is the table's folder, or a URL such as s3://bucket/table. Exit codes: 0 done, 1 refused
    or failed, 2 the command line or an option is at fault, 3 a check found something, 130 stopped
    by Ctrl-C."""


@click.group(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(hoodie_ds.__version__, prog_name="hoodie-py")
@click.option(
    "--width",
    type=click.IntRange(min=_NARROWEST),
    envvar="HOODIE_PY_WIDTH",
    help="Columns of the output; those of the terminal by default.",
)
def main(width: int | None) -> None:
    """Hold the options of all commands; `console` takes the width from the context."""
    if width is None:
        click.get_current_context().params["width"] = _columns()


def _columns() -> int | None:
    """Return what the environment says, which may be nonsense: 0 is what some shells say."""
    found = os.environ.get("COLUMNS", "")
    if found.isdecimal() and int(found) >= _NARROWEST:
        return int(found)
    os.environ.pop("COLUMNS", None)  # rich would believe it
    return None


main.sections = {title: tuple(c.name or "" for c in found) for title, found in SECTIONS.items()}
for _command in (one for found in SECTIONS.values() for one in found):
    main.add_command(_command)
