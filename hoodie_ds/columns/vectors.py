"""Hudi's VECTOR columns: in files bytes of a fixed length, in Arrow lists of a fixed size.

The bytes are the elements in order, each little-endian, as it is in Arrow's memory. So no value is
copied. In the types of a table's columns each list of a fixed size is a VECTOR.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hoodie_ds.errors import SchemaError

_ELEMENTS: Final = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
"""Arrow types of the elements by their names in Hudi."""
_NAMES: Final = {kind: name for name, kind in _ELEMENTS.items()}


def is_vector(kind: pa.DataType) -> bool:
    """Whether a type is a list of a fixed size of numbers that a VECTOR may have."""
    return bool(pa.types.is_fixed_size_list(kind) and kind.value_type in _NAMES)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is binary of any layout."""
    types = pa.types
    plain = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(plain or types.is_fixed_size_binary(kind))


def vector_type(element: str, dimension: int, size: int) -> pa.DataType | None:
    """Return the type of vectors of `size` bytes; None if those do not hold the elements."""
    kind = _ELEMENTS.get(element)
    if kind is None or dimension < 1 or dimension * kind.byte_width != size:
        return None
    return pa.list_(kind, dimension)


def element_name(kind: pa.FixedSizeListType) -> str:
    """Return Hudi's name of the type of a vector's elements."""
    return _NAMES[kind.value_type]


def vector_names(schema: pa.Schema) -> str:
    """Return the vectors among some columns with their types, as footers of Hudi's files do."""
    found = [field for field in schema if is_vector(field.type)]
    return ",".join(f"{field.name}:{_type_text(field.type)}" for field in found)


def _type_text(kind: pa.FixedSizeListType) -> str:
    """Return a type in Hudi's notation."""
    name = element_name(kind)
    return f"VECTOR({kind.list_size})" if name == "FLOAT" else f"VECTOR({kind.list_size}, {name})"


def bytes_type(kind: pa.FixedSizeListType) -> pa.DataType:
    """Return the type that files store vectors in."""
    return pa.binary(kind.list_size * kind.value_type.byte_width)


def vectors_of(stored: pa.FixedSizeBinaryArray, kind: pa.FixedSizeListType) -> pa.Array:
    """Return the vectors of some bytes, which are of `bytes_type`."""
    validity, data = stored.buffers()
    count = (stored.offset + len(stored)) * kind.list_size
    elements = pa.Array.from_buffers(kind.value_type, count, [None, data or pa.py_buffer(b"")])
    return pa.Array.from_buffers(
        kind, len(stored), [validity], offset=stored.offset, children=[elements]
    )


def bytes_of(vectors: pa.FixedSizeListArray, path: str) -> pa.FixedSizeBinaryArray:
    """Return the bytes of vectors; a `SchemaError` names the column if an element is null."""
    if vectors.flatten().null_count:
        raise SchemaError(
            f"column {path!r} has a vector with a null in it, for which Hudi's VECTOR has no "
            "bytes; fill the null, or let the whole vector be null"
        )
    validity, elements = vectors.buffers()[0], vectors.values
    data = elements.buffers()[1] or pa.py_buffer(b"")
    data = data.slice(elements.offset * elements.type.byte_width)
    kind = bytes_type(vectors.type)
    return pa.Array.from_buffers(kind, len(vectors), [validity, data], offset=vectors.offset)
