"""What a catalog knows of a table, and the few requests by which it is told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column of a table in a catalog."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table as a catalog has it."""

    name: str
    location: str
    columns: tuple[CatalogColumn, ...]
    partition_keys: tuple[CatalogColumn, ...]
    input_format: str
    output_format: str
    serde: str
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition of a table in a catalog."""

    values: tuple[str, ...]
    location: str


class Catalog(Protocol):
    """A database of a catalog, in few requests; each raises `CatalogError` where it fails."""

    extra_properties: Mapping[str, str]
    """What tables of this catalog have besides."""

    def location(self, path: str) -> str:
        """Return a base path as the catalog spells it."""
        ...

    def has_database(self) -> bool:
        """Whether the database is there."""
        ...

    def create_database(self) -> None:
        """Create the database."""
        ...

    def table(self, name: str) -> CatalogTable | None:
        """Return a table; None if there is none."""
        ...

    def create_table(self, table: CatalogTable) -> None:
        """Create a table."""
        ...

    def change_table(self, table: CatalogTable, *, columns_changed: bool) -> None:
        """Make a table what is said here; where columns have changed, its partitions too."""
        ...

    def drop_table(self, name: str) -> None:
        """Drop a table, and no file."""
        ...

    def partitions(
        self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None
    ) -> list[CatalogPartition]:
        """Return those of the partitions with some values that are there; all if None."""
        ...

    def add_partitions(self, table: CatalogTable, added: Sequence[CatalogPartition]) -> None:
        """Add partitions; those that are there are left as they are."""
        ...

    def change_partitions(self, table: CatalogTable, changed: Sequence[CatalogPartition]) -> None:
        """Give partitions other locations."""
        ...

    def drop_partitions(self, table: CatalogTable, dropped: Sequence[CatalogPartition]) -> None:
        """Drop partitions, and no file."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def is_same_place(one: str, other: str) -> bool:
    """Whether two locations name one folder, whatever their schemes: s3, s3a.

    A bucket is part of the place, unless one of them is a path without a host.
    """
    (host, path), (other_host, other_path) = _place(one), _place(other)
    hosts = {name for name in (host, other_host) if name}
    return path == other_path and len(hosts) < 2


def _place(location: str) -> tuple[str, str]:
    found = re.fullmatch(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://([^/]*))?(.*)", location, re.DOTALL)
    assert found is not None
    return found[1] or "", found[2].rstrip("/")
