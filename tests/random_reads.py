"""Random tables, written by all that changes rows, files or columns, and random reads of them."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError
from hoodie_ds.slices.merge_outcomes import merge_outcomes
from tests.golden.histories import BLOCKS
from tests.merge_hooks import HOOK, MODE
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, VERSION

Row = dict[str, Any]
RULES = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "hook", "partial")
INDEXES = ("BUCKET", "BLOOM", "SIMPLE", "RECORD_INDEX")
NAN = math.nan
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "city": pa.string(),
        "ts": pa.int64(),
        "fare": pa.float64(),
        "number": pa.int32(),
        "text": pa.string(),
        "amount": pa.decimal128(10, 2),
        "at": pa.timestamp("us", "UTC"),
    }
)
VALUES: dict[str, list[Any]] = {
    "fare": [None, 0.0, -0.0, NAN, 1.5, -1.5, math.inf, -math.inf],
    "number": [None, 0, -1, 1, 7, 2**31 - 1, -(2**31)],
    "text": [None, "", "a", "A", "é", "\U0001f600", "\uffff", "z" * 70, "null"],
    "amount": [None, Decimal("0.00"), Decimal("-0.01"), Decimal("99999999.99")],
    "at": [
        None,
        datetime(1500, 1, 1, tzinfo=timezone.utc),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc),
        datetime(2026, 3, 1, 1, 2, 3, 4, tzinfo=timezone.utc),
    ],
}
ADDED = ("fare", "number", "text")
"""Columns of whose types others are added."""
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CHANGES = {
    "upsert": 6,
    "delete": 2,
    "mark": 1,
    "update": 1,
    "delete by filter": 1,
    "add": 2,
    "rename": 1,
    "drop": 1,
    "compact": 1,
    "clean": 1,
    "cluster": 1,
    "rollback": 1,
}


def ordered(value: Any) -> Any:
    """What a value is compared by in Spark: NaN is the greatest number, zeros are equal."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value or 0.0)
    return value.encode() if isinstance(value, str) else value


class Condition(NamedTuple):
    """What a row of an answer has in a column; `value` is None if it is, or is not, null."""

    column: str
    sign: str
    value: Any

    def holds(self, row: Row) -> bool:
        """Whether a row has it, by the rules of Spark."""
        stored = row[self.column]
        if self.value is None:
            return (stored is None) == (self.sign == "is null")
        if stored is None:
            return False
        if self.sign in SIGNS:
            return bool(SIGNS[self.sign](ordered(stored), ordered(self.value)))
        return (ordered(stored) in map(ordered, self.value)) == (self.sign == "in")

    @property
    def given(self) -> object:
        """It as a filter of this library."""
        return tuple(self) if self.value is not None else f"{self.column} {self.sign}"

    def expression(self, kind: pa.DataType) -> pc.Expression:
        """It as a filter of Arrow's, whose rules it has."""
        column = pc.field(self.column)
        if self.value is None:
            return column.is_null() if self.sign == "is null" else column.is_valid()
        if self.sign in SIGNS:
            return SIGNS[self.sign](column, pa.scalar(self.value, kind))
        among = column.isin(pa.array(self.value, kind))
        return among if self.sign == "in" else ~among


class Query(NamedTuple):
    """Some columns of the rows that have all of some conditions."""

    columns: list[str] | None
    conditions: list[Condition]

    @property
    def filters(self) -> Any:
        """The conditions as filters of this library."""
        return [condition.given for condition in self.conditions] or None

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """The conditions as one filter of Arrow's."""
        every = (one.expression(schema.field(one.column).type) for one in self.conditions)
        return reduce(operator.and_, every, pc.scalar(True))

    def of(self, rows: list[Row]) -> list[str]:
        """The answer of a table with some rows; see `shown`."""
        return shown([r for r in rows if all(c.holds(r) for c in self.conditions)], self.columns)


def shown(rows: list[Row], columns: list[str] | None) -> list[str]:
    """Some columns of rows in an order, as text, since NaN is unequal to itself."""
    return sorted(repr([row[name] for name in columns or row]) for row in rows)


@dataclass
class RandomTable:
    """A table of forty keys, of which a seed decides the options and what happens to it."""

    path: Path
    seed: int
    schema: pa.Schema = SCHEMA
    kinds: dict[str, str] = field(default_factory=lambda: {name: name for name in VALUES})
    """Which of `VALUES` a column has."""

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        rule, choice = RULES[self.seed % 4], self.draw.choice
        index = choice(INDEXES)
        if rule == "hook" and index == "RECORD_INDEX":
            index = "SIMPLE"  # a merge-on-read table refuses the two
        self.options = {
            **TRIPS,
            TYPE: choice(["MERGE_ON_READ"] * 4 + ["COPY_ON_WRITE"]),
            VERSION: "689"[self.seed // 4 % 3],
            BUCKETS: choice("12"),
            BLOCKS: choice(["avro", "parquet"]),
            "hoodie.index.type": index,
            "hoodie.metadata.enable": choice(["true", "false"]),
            "hoodie.parquet.block.size": choice(["4k", "1m"]),
            "hoodie.clean.commits.retained": "1",
        }
        if index == "RECORD_INDEX":
            self.options |= {
                "hoodie.metadata.enable": "true",
                "hoodie.metadata.record.index.enable": "true",
            }
        if rule == "COMMIT_TIME_ORDERING":
            del self.options[ORDERING]
        if rule == "hook":
            self.options[HOOK] = "tests.merge_hooks:fill"
        elif rule == "partial":
            self.options |= {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", VERSION: "9"}
        else:
            self.options[MODE] = rule
        self.table.upsert(self.batch(30))

    @property
    def table(self) -> HoodieTable:
        """The table, for somebody who has not seen it yet."""
        return HoodieTable(self.path, self.options)

    @property
    def whole(self) -> pa.Table:
        """All columns of all rows, as a process reads them that knows no slice of the table."""
        merge_outcomes.cache_clear()
        return self.table.read().select(self.schema.names)

    def change(self) -> None:
        """Let something happen; some of it is refused."""
        what = self.draw.choices([*CHANGES], [*CHANGES.values()])[0]
        before = self.schema, self.kinds
        try:
            getattr(self, "_" + what.replace(" ", "_"))()
        except HoodieError:
            self.schema, self.kinds = before
        stored = {*self.table.schema.names}
        self.schema = pa.schema([column for column in self.schema if column.name in stored])
        self.kinds = {name: kind for name, kind in self.kinds.items() if name in stored}

    def query(self, rows: list[Row]) -> Query:
        """Ask for something that some rows may have."""
        names = self.schema.names
        columns = self.draw.choice([None, self.draw.sample(names, self.draw.randint(1, 5))])
        number = self.draw.choice([0, 1, 1, 2])
        return Query(columns, [self._condition(rows) for _ in range(number)])

    def batch(self, num_rows: int) -> pa.Table:
        """Rows of some keys; one key is always in one city."""
        rows = []
        for number in self.draw.sample(range(40), num_rows):
            row = {name: self.draw.choice(VALUES[kind]) for name, kind in self.kinds.items()}
            key = {"id": f"k{number:02}", "city": ["oslo", "a b", "ü"][number % 3]}
            rows.append({**key, "ts": self.draw.randint(0, 3), **row})
        return pa.Table.from_pylist(rows, schema=self.schema)

    def _condition(self, rows: list[Row]) -> Condition:
        name = self.draw.choice(self.schema.names)
        pool = [row[name] for row in rows if row[name] is not None]
        pool += [value for value in VALUES.get(self.kinds.get(name, ""), ()) if value is not None]
        sign = self.draw.choice([*SIGNS, "in", "not in", "is null", "is not null"])
        if "null" in sign or not pool:
            return Condition(name, self.draw.choice(["is null", "is not null"]), None)
        several = self.draw.choices(pool, k=3)
        return Condition(name, sign, several if sign.endswith("in") else several[0])

    def _upsert(self) -> None:
        self.table.upsert(self.batch(self.draw.choice([1, 4, 10, 25])))

    def _delete(self) -> None:
        rows = self.batch(self.draw.choice([1, 10]))
        self.table.delete(rows.select(["id", "city"] + ["ts"] * self.draw.randint(0, 1)))

    def _mark(self) -> None:
        """Delete some rows by Hudi's column."""
        rows = self.batch(10)
        marks = pa.array([self.draw.random() < 0.6 for _ in range(10)])
        self.table.upsert(rows.append_column("_hoodie_is_deleted", marks))

    def _update(self) -> None:
        names = [name for name, kind in self.kinds.items() if kind == "text"]
        self.table.update({self.draw.choice(names): "U"}, where=("ts", "<", 2))

    def _delete_by_filter(self) -> None:
        self.table.delete(where=("ts", "=", self.draw.randint(0, 9)))

    def _add(self) -> None:
        kind = self.draw.choice(ADDED)
        added = pa.field(f"more{len(self.schema)}", SCHEMA.field(kind).type)
        if self.draw.random() < 0.5:
            self.table.alter().add(added.name, added.type).execute()
        self.schema, self.kinds = self.schema.append(added), {**self.kinds, added.name: kind}
        if added.name not in self.table.schema.names:
            self._upsert()

    def _rename(self) -> None:
        name = self._loose()
        self.table.alter().rename(name, f"new_{name}").execute()
        at = self.schema.get_field_index(name)
        self.schema = self.schema.set(at, self.schema.field(at).with_name(f"new_{name}"))
        kind = self.kinds[name]
        self.kinds = {**self.kinds, f"new_{name}": kind}

    def _drop(self) -> None:
        name = self._loose()
        self.table.alter().drop(name).execute()
        self.schema = self.schema.remove(self.schema.get_field_index(name))

    def _loose(self) -> str:
        """A column that nothing else needs; hooks need the fare."""
        return self.draw.choice([name for name in self.kinds if name not in ("fare", "text")])

    def _compact(self) -> None:
        self.table.compact()

    def _clean(self) -> None:
        self.table.clean()

    def _cluster(self) -> None:
        self.table.cluster()

    def _rollback(self) -> None:
        """Take the newest commit back, and the columns that it added, unless it is the only one."""
        if len(self.table.timeline.commits) > 1:
            self.table.rollback()
