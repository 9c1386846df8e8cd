"""Rows about a table, for programs, notebooks and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from itertools import islice
from typing import Any, Final, Generic, TypeVar, overload

import pyarrow as pa

from hoodie_ds.columns.html_table import html_table

T_co = TypeVar("T_co", covariant=True)

_SHOWN: Final = 200
"""Rows that a notebook shows."""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(Sequence[T_co], Generic[T_co]):
    """Rows of one kind, each a dataclass; a notebook shows them as a table.

    Parameters
    ----------
    title : str
        What they are.
    rows : tuple
        The rows.
    """

    title: str
    rows: tuple[T_co, ...] = ()

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...

    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Listing {self.title}: {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        return html_table(self.title, map(plain, self.rows[:_SHOWN]), len(self.rows))


def listed(title: str, rows: Iterable[T_co], limit: int | None) -> Listing[T_co]:
    """Return the first rows up to a limit; all if it is None."""
    return Listing(title, tuple(islice(rows, limit)))


def plain(value: object) -> Any:  # noqa: ANN401
    """Return a value as JSON represents it: dataclasses as objects of their fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, pa.DataType):
        return str(value)
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, (Sequence, frozenset)) and not isinstance(value, (bytes, bytearray)):
        return [plain(one) for one in value]
    return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)
