"""What becomes of the records of a key: the rule record by record, and nothing of this library.

A copy-on-write table forgets a delete as soon as it is applied; a merge-on-read slice remembers it
until compaction, and its readers fold the log records first and lay the outcome over the base row.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

UTC = dt.timezone.utc
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-(2**31), -7, 0, 3, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -7, 0, 3, 2**63 - 1]),
    "double": (pa.float64(), [-math.inf, -1.5, -0.0, 0.0, 1e12, math.nan]),
    "string": (pa.string(), ["", "a", "b", "zz", "ä"]),
    "decimal": (pa.decimal128(10, 2), [Decimal("-3.10"), Decimal(0), Decimal("99.99")]),
    "date": (pa.date32(), [dt.date(1955, 1, 1), dt.date(1970, 1, 1), dt.date(2030, 1, 1)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(year, 1, 1, tzinfo=UTC) for year in (1955, 1970, 2030)],
    ),
}
"""Types of an ordering column, with some values, from the lowest to the greatest."""


def orders(kind: str) -> st.SearchStrategy[Any]:
    """Ordering values, nulls among them."""
    return st.sampled_from([None, *KINDS[kind][1]])


@dataclass(frozen=True)
class Record:
    """One version of a key: its ordering value, its payload, and whether it deletes.

    Parameters
    ----------
    order
        A value or a tuple of them, None for no value.
    value
        The payload.
    deleted : bool
        Whether the record deletes.
    is_zero : bool
        Whether the ordering value is the 32-bit integer 0 (or the date that is stored as such),
        with which Hudi marks a delete without a value.
    """

    order: Any
    value: Any
    deleted: bool = False
    is_zero: bool = False

    @property
    def unconditional(self) -> bool:
        return self.deleted and (self.order is None or self.is_zero)

    def wins_over(self, old: Record) -> bool:
        if self.unconditional or old.unconditional:
            return True
        return rank(self.order) >= rank(old.order)


def rank(order: Any) -> tuple[Any, ...]:
    """Compares as ordering values do: null below all, doubles as in Java, texts by their bytes."""
    match order:
        case None:
            return (0,)
        case tuple():
            return tuple(map(rank, order))
        case float():
            return (2,) if math.isnan(order) else (1, order, math.copysign(1, order))
        case str():
            return (1, order.encode(errors="surrogateescape"))
        case _:
            return (1, order)


def fold(records: Iterable[Record], *, loses_orders: bool = False) -> Record:
    """What is left of the records of a key in a batch; `loses_orders` as of a `Model`."""
    left, *others = records
    for record in others:
        if record.wins_over(left):
            lost = loses_orders and record.deleted
            left = replace(record, order=None) if lost else record
    return left


def parts(records: list[Record]) -> list[list[Record]]:
    """Cut the records of a key in a batch after each delete without a value, which is applied.

    Deletes right after one find the key deleted, as in a batch of their own, and are passed over.
    """
    found: list[list[Record]] = [[]]
    for record in records:
        if found[:-1] and not found[-1] and record.deleted:
            continue
        found[-1].append(record)
        if record.deleted and record.order is None:
            found.append([])
    return [part for part in found if part]


@dataclass
class Model:
    """A table as dictionaries from key to base row and log outcome.

    Parameters
    ----------
    merge_on_read : bool
        The type of the table, whose first batch writes the base file.
    event_time : bool
        Whether ordering values decide; otherwise the later record wins.
    loses_orders : bool
        Whether a delete that takes the place of another record of its batch is stored without its
        ordering value, as by Hudi 1.2 on the JVM where it writes parquet log blocks.
    """

    merge_on_read: bool
    event_time: bool = True
    loses_orders: bool = False
    base: dict[Any, Record] = field(default_factory=dict)
    log: dict[Any, Record] = field(default_factory=dict)
    began: bool = False

    def write(self, batch: Iterable[tuple[Any, Record]]) -> None:
        """Take a batch: keys and records, in order."""
        by_key: dict[Any, list[Record]] = {}
        for key, record in batch:
            if not self.event_time:
                record = replace(record, order=None)
                by_key.pop(key, None)  # the last one wins
            by_key.setdefault(key, []).append(record)
        for key, records in by_key.items():
            for part in parts(records):
                self._take(key, self._stored(part))
        self.began = self.began or bool(by_key)

    def _stored(self, part: list[Record]) -> Record:
        found = fold(part, loses_orders=self.loses_orders)
        return replace(found, order=None, is_zero=False) if found.unconditional else found

    def _take(self, key: Any, record: Record) -> None:
        old = self.log.get(key)
        # Hudi's ``deltaMergeDeleteRecord`` keeps the delete, in the log of a first batch too.
        if old is not None and old.unconditional and record.deleted:
            return
        if self.merge_on_read and self.began:
            if old is None or self._wins(record, old):
                self.log[key] = record
            return
        old = self.base.get(key)
        if old is not None and not self._wins(record, old):
            return
        self.base.pop(key, None)
        self.log.pop(key, None)
        if not record.deleted:
            self.base[key] = record
        elif self.merge_on_read:
            self.log[key] = record  # the first batch has written it beside the base file

    def _wins(self, new: Record, old: Record) -> bool:
        return not self.event_time or new.wins_over(old)

    def rows(self) -> dict[Any, Any]:
        """The payload of each key that is there."""
        found = {key: record.value for key, record in self.base.items()}
        for key, record in self.log.items():
            old = self.base.get(key)
            if old is not None and not self._wins(record, old):
                continue
            found.pop(key, None)
            if not record.deleted:
                found[key] = record.value
        return found
