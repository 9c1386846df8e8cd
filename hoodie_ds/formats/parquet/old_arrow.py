"""Files of Hudi on the JVM that older releases of pyarrow report as damaged."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hoodie_ds.errors import UnsupportedTableError

_FIRST: Final = 24
"""The release of pyarrow that reads arrays of maps in Parquet's old form, of two levels."""
_SAID: Final = (
    "MAP-annotated groups must have a single child",
    "Group with one repeated child must be LIST-annotated",
)
"""Messages of earlier releases, which cannot even read the columns of such a file."""


def refuse_arrays_of_maps(
    error: pa.ArrowInvalid, schema: pa.Schema, name: str, version: str
) -> None:
    """Raise `UnsupportedTableError` if Arrow's `error` means that a newer pyarrow is needed.

    Hudi's writers on the JVM store arrays in two levels by default. The error names the file, its
    columns of arrays of maps and the first release that reads them.
    """
    is_old = int(version.partition(".")[0]) < _FIRST
    if not is_old or not any(said in str(error) for said in _SAID):
        return
    found = ", ".join(repr(field.name) for field in schema if _has_array_of_maps(field.type))
    raise UnsupportedTableError(
        f"{name}: pyarrow {version} opens no file with arrays of maps as Hudi on the JVM stores "
        f"them{f' (here column {found})' if found else ''}; the file is whole: install pyarrow "
        f"{_FIRST} or newer"
    ) from error


def _has_array_of_maps(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) and pa.types.is_map(kind.value_type):
        return True
    below = (kind.field(number).type for number in range(kind.num_fields))
    return any(_has_array_of_maps(inner) for inner in below)
