"""Values that a filter compares with, in the types of columns."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

from hoodie_ds.filters.bounds import kind_of


def as_type(value: object, kind: pa.DataType) -> pa.Scalar | None:
    """Return a value in the type of a column; None if it is another there, or compares otherwise.

    Arrow would cut 2.5 to 2, and a moment to its day; and an integer is less exact as a double.
    """
    try:
        given = value if isinstance(value, pa.Scalar) else pa.scalar(_as_stored_kind(value, kind))
        if not given.is_valid:
            return pa.scalar(None, kind)
        if kind_of(kind) is None or kind_of(given.type) != kind_of(kind):
            return None
        cast = given.cast(kind)
        same = cast.cast(given.type).equals(given) or given.as_py() != given.as_py()  # NaN
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return cast if same else None


def as_array(values: Iterable[object], kind: pa.DataType) -> pa.Array | None:
    """Return values in the type of a column; None if one is another there."""
    typed = [as_type(value, kind) for value in values]
    return None if None in typed else pa.array(typed, kind)


def _as_stored_kind(value: object, kind: pa.DataType) -> object:
    """An integer of Python as the number that it is in a column of other numbers."""
    if type(value) is not int:
        return value
    if pa.types.is_decimal128(kind):
        return Decimal(value)
    return float(value) if pa.types.is_floating(kind) and abs(value) <= 1 << 53 else value
