"""Commands that check a table."""

from __future__ import annotations

from typing import Final

import click

COMMANDS: Final[tuple[click.Command, ...]] = ()
