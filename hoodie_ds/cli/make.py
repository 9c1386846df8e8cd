"""Commands that make a table and load it."""

from __future__ import annotations

from typing import Final

import click

COMMANDS: Final[tuple[click.Command, ...]] = ()
