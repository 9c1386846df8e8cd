"""Columns by name, dots descending into structs.

Invariant: a column whose own name contains the dots takes precedence over a path through structs,
and a null struct yields null for every field below it, as in Hudi's key generators.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import SchemaError


def resolve(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return the column of a field path, a name or ``column.field.field`` into nested structs.

    A `SchemaError` means that no column, or more than one, has that name.
    """
    descended = ""
    remaining = path
    column: pa.ChunkedArray | None = None
    while True:
        names = table.column_names if column is None else _field_names(column.type)
        name = _longest_prefix(names, remaining)
        if name is None or names.count(name) > 1:
            raise _unresolved(path, descended, names, remaining)
        column = table.column(name) if column is None else pc.struct_field(column, name)
        if name == remaining:
            return column
        descended, remaining = f"{descended}{name}.", remaining[len(name) + 1 :]


def _field_names(kind: pa.DataType) -> list[str]:
    return [field.name for field in kind] if pa.types.is_struct(kind) else []


def _longest_prefix(names: list[str], path: str) -> str | None:
    """Return the longest name that is the path or its beginning up to a dot."""
    fitting = [name for name in names if name and (path == name or path.startswith(f"{name}."))]
    return max(fitting, key=len, default=None)


def _unresolved(path: str, descended: str, names: list[str], missing: str) -> SchemaError:
    within = f"below {descended[:-1][:200]!r}" if descended else "in the rows"
    problem = "is ambiguous" if missing in names else "does not exist"
    return SchemaError(
        f"field {path[:200]!r} {problem}: {within} there are {', '.join(names) or 'no fields'}; "
        "name one of them, with dots between the levels of a struct"
    )
