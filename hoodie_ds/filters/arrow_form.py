"""An expression of `pyarrow.compute`, taken apart.

It shows its parts only in the form in which it is pickled, which is private to Arrow: an Arrow file
whose columns are the literals and the options, in their own types, and whose metadata is the tree,
in prefix order: ``call``, ``field_ref``, ``nested_field_ref``, ``literal``, ``options``, ``end``.
Keys repeat, so the metadata is read by Arrow's C data interface.

Substrait, the public form, does not do. For pyarrow it has no timestamps of nanoseconds, no casts,
and few of the functions that take options, and one such part makes the whole expression fail.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_INT: Final = struct.Struct("=i")


@dataclass(slots=True)
class Node:
    """A call, a column (`path`) or a literal (`value`)."""

    function: str = ""
    arguments: list[Node] = field(default_factory=list)
    options: pa.StructScalar | None = None
    path: tuple[str, ...] = ()
    value: pa.Scalar | None = None

    def option(self, name: str, default: object) -> object:
        """Return an option of a call."""
        return default if self.options is None else self.options[name].as_py()

    def columns(self) -> frozenset[str]:
        """Return the columns at the top of the table that the expression looks at."""
        return frozenset(self.path[:1]).union(*(part.columns() for part in self.arguments))


def taken_apart(expression: pc.Expression) -> Node:
    """Return the root of an expression; a ValueError is one of many that another form raises.

    Columns that are named by their places have another form, too.
    """
    _, (buffer,) = expression.__reduce__()
    with pa.ipc.open_file(buffer) as file:
        batch = file.get_batch(0)
    entries = iter(_entries(batch.schema))
    root = _node(next(entries, ("", "")), entries, batch)
    if next(entries, None) is not None:
        raise ValueError("there is more than one expression")
    return root


def _node(
    entry: tuple[str, str], entries: Iterator[tuple[str, str]], batch: pa.RecordBatch
) -> Node:
    kind, text = entry
    if kind == "literal":
        return Node(value=batch.column(int(text))[0])
    if kind == "field_ref":
        return Node(path=(text,))
    if kind == "nested_field_ref":
        return Node(path=tuple(name for _, name in islice(entries, int(text))))
    if kind != "call":
        raise ValueError(f"{kind} is not known")
    node = Node(text)
    while (entry := next(entries, ("", "")))[0] != "end":
        if entry[0] == "options":
            node.options = batch.column(int(entry[1]))[0]
        else:
            node.arguments.append(_node(entry, entries, batch))
    return node


class _ArrowSchema(ctypes.Structure):
    """The beginning of an ``ArrowSchema`` of the C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _entries(schema: pa.Schema) -> list[tuple[str, str]]:
    """The metadata of a schema, in order and with repeated keys."""
    capsule = schema.__arrow_c_schema__()
    at = _ArrowSchema.from_address(_pointer(capsule, b"arrow_schema")).metadata

    def integer() -> int:
        nonlocal at
        (number,) = _INT.unpack(ctypes.string_at(at, _INT.size))
        at += _INT.size
        return int(number)

    def text() -> str:
        nonlocal at
        size = integer()
        content = ctypes.string_at(at, size)
        at += size
        return content.decode()

    found = [(text(), text()) for _ in range(integer())] if at else []
    del capsule  # what it held is copied
    return found
