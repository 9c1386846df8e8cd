"""Hudi's definitions of the indexes of a table, which are in one file beside its metadata table."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.table_properties import EXPRESSION_INDEX, SECONDARY_INDEX
from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.table.table import Table, update_properties
from hoodie_ds.timeline.paths import INDEX_DEFINITIONS

T = TypeVar("T")

_OF_COLUMNS: Final = (SECONDARY_INDEX, EXPRESSION_INDEX)
"""Beginnings of the names of indexes that users create of columns."""


def index_definition(
    table: Table,
    name: str,
    parse: Callable[[Mapping[str, Any]], T],
    remedy: str,
    consequence: str = "",
) -> T | None:
    """Return what `parse` reads in Hudi's definition of an index; None if there is none.

    A `CorruptFileError` of a damaged file has the remedy.
    """
    with _damage_of_definitions(table, remedy, consequence):
        definition = _definitions(table).get(name)
        return None if definition is None else parse(definition)


def define_index(
    table: Table, name: str, definition: Mapping[str, Any], remedy: str, now_ms: int
) -> Table:
    """Store Hudi's definition of an index beside the others, in place of an older one."""
    with _damage_of_definitions(table, remedy):
        content = {"indexDefinitions": {**_definitions(table), name: definition}}
    table.storage.replace(INDEX_DEFINITIONS, json.dumps(content, indent=2).encode())
    if keys.INDEX_DEFINITIONS in table.properties.raw:
        return table
    return update_properties(table, {keys.INDEX_DEFINITIONS: INDEX_DEFINITIONS}, (), now_ms)


def undefine_indexes(table: Table, names: Collection[str]) -> None:
    """Delete definitions of indexes of columns, by which Hudi would make them again."""
    with _damage_of_definitions(table, "restore the file"):
        there = _definitions(table)
        gone = {name for name in names if name.startswith(_OF_COLUMNS)}
        left = {name: one for name, one in there.items() if name not in gone}
    if left != there:
        content = {"indexDefinitions": left}
        table.storage.replace(INDEX_DEFINITIONS, json.dumps(content, indent=2).encode())


def _definitions(table: Table) -> dict[str, Any]:
    if keys.INDEX_DEFINITIONS not in table.properties.raw:
        return {}
    try:
        data = table.storage.read(INDEX_DEFINITIONS)
    except NotFoundError:
        return {}
    return dict(json.loads(data)["indexDefinitions"])


@contextmanager
def _damage_of_definitions(table: Table, remedy: str, consequence: str = "") -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(
            f"{table.storage.root}/{INDEX_DEFINITIONS}: not Hudi's definitions of indexes "
            f"({type(error).__name__}: {error}){consequence}",
            remedy,
        ) from error
