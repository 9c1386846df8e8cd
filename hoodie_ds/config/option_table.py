"""The option tables of ``conf/README.md``, made from the `Option` objects.

``python -m hoodie_ds.config.option_table conf/README.md`` brings a file up to date.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from hoodie_ds.config.known_options import READ_OPTIONS, WRITE_OPTIONS
from hoodie_ds.config.option import BYTES, MEGABYTES, Option

_SECTIONS: Final = {"write": WRITE_OPTIONS, "read": READ_OPTIONS}
_SECTION: Final = re.compile(
    r"(?P<begin><!-- options: (?P<name>\w+) -->\n).*?(?P<end><!-- end of options -->)", re.DOTALL
)
_MEGABYTE: Final = 1 << 20


def option_table(options: Sequence[Option[Any]]) -> str:
    """Return a Markdown table of options, one line each, in the order given."""
    lines = ["| option | what it says | value | default |", "|---|---|---|---|"]
    for option in options:
        names = "<br>".join(
            [f"`{option.key}`", *(f"also `{alias}`" for alias in sorted(option.aliases))]
        )
        cells = (names, option.doc, option.kind.allowed, _default(option))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def with_option_tables(text: str) -> str:
    """Return Markdown with the tables between its ``<!-- options: ... -->`` marks redone."""
    return _SECTION.sub(
        lambda found: found["begin"] + option_table(_SECTIONS[found["name"]]) + found["end"], text
    )


def _default(option: Option[Any]) -> str:
    value = option.default
    if value in (None, ()):
        return ""
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if option.kind in (BYTES, MEGABYTES) and isinstance(value, int):
        return f"{value // _MEGABYTE} MB"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    return f"`{value}`"


def main(arguments: Sequence[str] | None = None) -> None:
    """Bring the option tables of a Markdown file up to date, as the command line says."""
    parser = argparse.ArgumentParser(
        "python -m hoodie_ds.config.option_table",
        description="Bring the option tables of a Markdown file up to date.",
    )
    parser.add_argument("path", type=Path, help="the file, conf/README.md")
    path = parser.parse_args(arguments).path
    try:
        path.write_text(with_option_tables(path.read_text("utf-8")), "utf-8")
    except OSError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
