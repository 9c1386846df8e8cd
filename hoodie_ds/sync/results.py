"""Results of a sync into a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableSync:
    """What changed in one table of the catalog; false if nothing did.

    Parameters
    ----------
    name : str
        The table.
    created : bool
        Whether it did not exist, or had another location.
    columns : tuple of str
        Columns that were added or dropped or changed types.
    properties : bool
        Whether properties or formats changed.
    added, changed, dropped : tuple of str
        Locations of partitions.
    """

    name: str
    created: bool = False
    columns: tuple[str, ...] = ()
    properties: bool = False
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(
            (self.created, self.columns, self.properties, self.added, self.changed, self.dropped)
        )

    def __str__(self) -> str:
        partitions = {"added": self.added, "moved": self.changed, "dropped": self.dropped}
        changes = [
            *(["created"] if self.created else []),
            *([f"columns {', '.join(self.columns)}"] if self.columns else []),
            *(["properties"] if self.properties and not self.columns else []),
            *(f"{len(found)} partitions {what}" for what, found in partitions.items() if found),
        ]
        return f"{self.name}: {'; '.join(changes) or 'nothing new'}"


@dataclass(frozen=True, slots=True)
class CatalogSync:
    """What changed in the catalog's tables of one Hudi table.

    Parameters
    ----------
    database : str
        Their database.
    tables : tuple of TableSync
        The tables that changed.
    """

    database: str
    tables: tuple[TableSync, ...]

    def __bool__(self) -> bool:
        return bool(self.tables)

    def __iter__(self) -> Iterator[TableSync]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __str__(self) -> str:
        if not self.tables:
            return f"the table is up to date in the catalog's database {self.database}"
        return f"{len(self.tables)} tables synced into the catalog's database {self.database}"
