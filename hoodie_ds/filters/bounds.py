"""What statistics and partition paths say of the values of a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

_KINDS: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_integer,
    pa.types.is_floating,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
    pa.types.is_boolean,
    pa.types.is_date32,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    pa.types.is_decimal128,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the values of a column in some rows.

    No value but NaN is less than `low` or greater than `high`, as `sortable` gives them; None if
    that is not known. `nulls` and `values` say whether there may be some.
    """

    low: object = None
    high: object = None
    nulls: bool = True
    values: bool = True


Known: TypeAlias = Callable[[str], Bounds | None]
"""What is known of a column at the top of the table."""


def kind_of(type_: pa.DataType) -> int | None:
    """Return a number that types share whose values compare alike; None if they do not compare."""
    return next((number for number, has in enumerate(_KINDS) if has(type_)), None)


def sortable(value: pa.Scalar) -> object:
    """Return a value of a type with a kind as Python compares it the way Arrow does."""
    if pa.types.is_temporal(value.type):
        return value.value
    return value.as_py()
