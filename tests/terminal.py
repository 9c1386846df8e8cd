"""What a table for the terminal shows."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def cells(table: Table) -> list[list[str]]:
    console = Console(width=200, record=True, quiet=True)
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    console.print(table)
    return [list(line) for line in zip(*columns, strict=True)]
