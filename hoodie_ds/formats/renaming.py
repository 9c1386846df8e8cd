"""Columns and struct fields that a file has under other names than its table.

Only names are changed, and no value is copied; `hoodie_ds.formats.schema_conversion` brings the
columns into the table's order and types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

_OF_HUDI: Final = "_hoodie_"
"""Start of columns that have the same name in all files, and may be without a number."""
_GONE: Final = "\0"
"""Start of the names of struct fields that the table has no more."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """The fields of a struct by their names in a file: each one's name in the table, and within it.

    A field that is missing here is none of the table's, whatever its name. Lists and maps are
    passed through: within a list of structs is what is within a struct.
    """

    fields: Mapping[str, tuple[str, Renaming | None]]

    def stored(self, names: Collection[str]) -> frozenset[str]:
        """Return the names in the file of some of the table's columns, as far as it has them."""
        renamed = {name for name, (now, _) in self.fields.items() if now in names}
        return frozenset({*renamed, *filter(_is_of_hudi, names)})

    def renamed(self, rows: pa.Table) -> pa.Table:
        """Return rows of the file with the table's names, and its columns only."""
        kept = [name for name in rows.column_names if name in self.fields or _is_of_hudi(name)]
        rows = rows.select(kept)
        for at, name in enumerate(kept):
            now, within = self.fields.get(name, (name, None))
            column = rows.column(at)
            if within is not None:
                kind = _renamed(column.type, within)
                column = pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
            rows = rows.set_column(at, now, column)
        return rows


def _is_of_hudi(name: str) -> bool:
    return name.startswith(_OF_HUDI)


def _renamed(kind: pa.DataType, within: Renaming) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([_field(field, within) for field in kind])
    if types.is_map(kind):
        item = kind.item_field.with_type(_renamed(kind.item_type, within))
        return pa.map_(kind.key_field, item, kind.keys_sorted)
    if types.is_list(kind) or types.is_large_list(kind):
        element = kind.value_field.with_type(_renamed(kind.value_type, within))
        return pa.list_(element) if types.is_list(kind) else pa.large_list(element)
    return kind


def _field(field: pa.Field, renaming: Renaming) -> pa.Field:
    now, within = renaming.fields.get(field.name, (f"{_GONE}{field.name}", None))
    kind = field.type if within is None else _renamed(field.type, within)
    return field.with_name(now).with_type(kind)
