"""Commands that change a table: each says what it would do, and asks before it does it."""

from __future__ import annotations

from typing import Final

import click

COMMANDS: Final[tuple[click.Command, ...]] = ()
