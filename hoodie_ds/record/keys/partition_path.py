"""From partition values to the folders of a table, which never leave it.

Invariant: every path stays below the table's base path and out of its hidden folders, and two
different combinations of values share a folder only if Hudi itself merges them: null and the empty
string. Only distinct values are looked at, never rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.errors import RecordKeyError

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\\]")
_NAME_BYTES_MAX = 255  # of a file system's names
_PATH_BYTES_MAX = 768  # an object's key has 1024, for base path, markers and file names too
_ESCAPED = str.maketrans(
    {c: f"%{ord(c):02X}" for c in [*map(chr, range(0x20)), "\x7f", *"\"#%'*/:=?\\{[]^"]}
)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as its distinct strings and, for each row, the position of its string.

    Strings made from distinct ones may repeat.
    """

    codes: Numbers
    strings: tuple[str | None, ...]


def distinct(column: pa.ChunkedArray) -> tuple[Numbers, pa.Array]:
    """Split a column into row codes and its distinct values, null being one of them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    chunks = pc.dictionary_encode(column, null_encoding="encode").chunks
    if not chunks:
        return np.empty(0, np.int64), pa.array([], column.type)
    # The chunks of one encoding share its dictionary.
    codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate(codes).astype(np.int64), chunks[0].dictionary


def escape(text: str) -> str:
    r"""Escape the characters that Hudi escapes under ``partitionpath.urlencode``: ``%3A``.

    Control characters, DEL and ``" # % ' * / : = ? \ { [ ] ^`` become two hexadecimal digits after
    a percent sign; since ``%`` is one of them, different strings stay different.
    """
    return text.translate(_ESCAPED)


def folders(field: str, values: Coded, hive_style: bool, url_encode: bool, sole: bool) -> Coded:
    """Turn the values of one partition field into its part of the path.

    Null and ``""`` become the default partition. If the field is the `sole` one, a ``/`` in a
    value, which makes nested folders, is unambiguous even without `url_encode`. Otherwise it is a
    `RecordKeyError`, as is the default partition's own name: such values share a folder with
    others. So is a value that cannot be a folder, see `check_inside`.
    """
    prefix = f"{field}=" if hive_style else ""
    parts: list[str] = []
    for text in values.strings:
        if text == DEFAULT_PARTITION:
            raise _refused(field, text, "it is the folder of null")
        if text and "/" in text and not (url_encode or sole):
            raise _refused(field, text, "a '/' makes folders that other values can reach too")
        encoded = escape(text) if text and url_encode else text
        parts.append(prefix + (encoded or DEFAULT_PARTITION))
        check_inside(parts[-1], field)
    return Coded(values.codes, tuple(parts))


def joined(parts: Sequence[Coded]) -> pa.DictionaryArray:
    """Join the parts of all partition fields to the path of each row, without repeated paths.

    A path that leaves the base path, or reaches hidden folders, is a `RecordKeyError`.
    """
    codes, paths = parts[0].codes, [part or "" for part in parts[0].strings]
    for part in parts[1:]:
        # Renumber after each field: the product of all cardinalities could overflow.
        pairs = pa.chunked_array([pa.array(codes * len(part.strings) + part.codes)])
        codes, combinations = distinct(pairs)
        numbers = combinations.to_pylist()
        width = len(part.strings)
        paths = [f"{paths[number // width]}/{part.strings[number % width]}" for number in numbers]
    for path in paths:
        check_inside(path)
    encoded = pa.array(paths, pa.string()).dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int64)
    return pa.DictionaryArray.from_arrays(numbers[codes], encoded.dictionary)


def check_inside(path: str, field: str = "") -> None:
    """Refuse a partition path, or a field's part of it, that leaves the table's partitions.

    It is a `RecordKeyError` if a component is empty, ``.`` or ``..``, begins with ``.`` (such as
    ``.hoodie``), or begins with ``_`` and is not ``_field=value``: readers skip such folders. So it
    is if it has a backslash or a control character, with which other readers fail to open the whole
    table, or is longer than file systems allow.
    """
    if path == "":
        return
    if len(path.encode()) > _PATH_BYTES_MAX:
        raise _too_long(path, field, "path", _PATH_BYTES_MAX)
    for component in path.split("/"):
        hidden = component.startswith("_") and "=" not in component
        if not component or component.startswith(".") or _UNUSABLE.search(component):
            raise _jailed(path, field, component)
        if hidden and component != DEFAULT_PARTITION:
            raise _jailed(path, field, component)
        if len(component.encode()) > _NAME_BYTES_MAX:
            raise _too_long(path, field, "folder name", _NAME_BYTES_MAX)


def _jailed(path: str, field: str, component: str) -> RecordKeyError:
    return RecordKeyError(
        f"partition path {path[:200]!r}{_of(field)} is refused for its part "
        f"{component[:200]!r}: a part must not be empty, hidden (a leading '.' or '_'), or hold "
        "control characters or a backslash; correct the value, or create the table with "
        "hoodie.datasource.write.hive_style_partitioning=true and "
        "hoodie.datasource.write.partitionpath.urlencode=true"
    )


def _of(field: str) -> str:
    return f" of field {field!r}" if field else ""


def _too_long(path: str, field: str, what: str, limit: int) -> RecordKeyError:
    return RecordKeyError(
        f"partition path {path[:200]!r}...{_of(field)} is refused: no {what} may have more than "
        f"{limit} bytes; choose a partition field with short values"
    )


def _refused(field: str, text: str, reason: str) -> RecordKeyError:
    return RecordKeyError(
        f"partition field {field!r} holds {text[:200]!r}, which is refused: {reason}; correct the "
        "value, or for '/' create the table with "
        "hoodie.datasource.write.partitionpath.urlencode=true"
    )
