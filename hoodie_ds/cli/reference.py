"""The reference of all commands, `docs/reference/commands.md`, made from the commands themselves.

``python -m hoodie_ds.cli.reference docs/reference/commands.md`` brings a file up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import click

from hoodie_ds.cli.examples import EXAMPLES
from hoodie_ds.cli.main import SECTIONS, exit_codes

_SECTION: Final = re.compile(
    r"(?P<begin><!-- commands -->\n).*?(?P<end><!-- end of commands -->)", re.DOTALL
)
_OF_ALL: Final = ("props", "conf", "storage_option", "as_json", "dry_run", "yes")
"""Options that the paragraph above the table describes."""


def command_table() -> str:
    """Return the exit codes, and a Markdown table of the commands, by kind."""
    lines = [exit_codes(), "", "| command | what it does | options |", "|---|---|---|"]
    for title, commands in SECTIONS.items():
        lines.append(f"| **{title}** | | |")
        lines += [_line(command) for command in commands]
    return "\n".join(lines) + "\n"


def with_commands(document: str) -> str:
    """Return a Markdown document with what is between its ``<!-- commands -->`` marks made anew."""
    return _SECTION.sub(lambda found: found["begin"] + command_table() + found["end"], document)


def _line(command: click.Command) -> str:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    usage = " ".join([command.name or "", *(_argument(one) for one in arguments)])
    options = [
        f"`{_option(one)}`: {one.help or ''}"
        for one in command.params
        if isinstance(one, click.Option) and one.name not in _OF_ALL
    ]
    summary = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    summary += f"<br>`{EXAMPLES[command.name or '']}`"
    cells = (f"`{usage}`", summary, "<br>".join(options))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _argument(argument: click.Argument) -> str:
    name = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> str:
    return option.opts[0] + ("" if option.is_flag else f" {option.metavar or _value(option)}")


def _value(option: click.Option) -> str:
    kind = option.type
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    return "N" if isinstance(kind, click.types.IntParamType) else "TEXT"


def main(path: str) -> None:
    """Bring the reference in a Markdown file up to date."""
    file = Path(path)
    file.write_text(with_commands(file.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
