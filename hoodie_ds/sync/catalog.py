"""A table's entries in a catalog, and the requests that read and change them."""

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
    """A table of a catalog."""

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
    """A database of a catalog; each request raises `CatalogError` if it fails."""

    extra_properties: Mapping[str, str]
    """Further properties of tables in this catalog."""

    def location(self, path: str) -> str:
        """Return a base path as the catalog spells it."""
        ...

    def has_database(self) -> bool:
        """Whether the database exists."""
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
        """Replace a table's entry; if columns have changed, its partitions' too."""
        ...

    def drop_table(self, name: str) -> None:
        """Drop a table without its files."""
        ...

    def partitions(
        self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None
    ) -> list[CatalogPartition]:
        """Return the partitions that have some of the values; all if None."""
        ...

    def add_partitions(self, table: CatalogTable, added: Sequence[CatalogPartition]) -> None:
        """Add partitions; existing ones stay as they are."""
        ...

    def change_partitions(self, table: CatalogTable, changed: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions."""
        ...

    def drop_partitions(self, table: CatalogTable, dropped: Sequence[CatalogPartition]) -> None:
        """Drop partitions without their files."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def is_same_place(one: str, other: str) -> bool:
    """Whether two locations are the same folder, with any schemes, such as s3 and s3a.

    Buckets are compared unless one of the locations is a path without a host.
    """
    (host, path), (other_host, other_path) = _place(one), _place(other)
    hosts = {name for name in (host, other_host) if name}
    return path == other_path and len(hosts) < 2


def _place(location: str) -> tuple[str, str]:
    found = re.fullmatch(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://([^/]*))?(.*)", location, re.DOTALL)
    assert found is not None
    return found[1] or "", found[2].rstrip("/")
