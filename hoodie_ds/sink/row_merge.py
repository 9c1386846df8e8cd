"""What a merge does: rows of the table and of a source become updates, deletes and inserts.

A row of the table and one of the source match if all pairs of `RowMerge.pairs` are equal, of which
null never is. Of the clauses for a row, the first whose condition is true takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import OptionError
from hoodie_ds.filters.given import Filter, predicate_of
from hoodie_ds.filters.joined import SOURCE, TARGET, joined, of_target, side_column
from hoodie_ds.filters.predicate import Or, Predicate
from hoodie_ds.filters.rows import are_true
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.record.schema import check_case
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.numbered_rows import NumberedRows, RowIndex, comparable
from hoodie_ds.sink.row_change import (
    NewValue,
    check_given,
    fixed_columns,
    statement_of,
    typed_values,
)
from hoodie_ds.sink.source_summary import SourceSummary

On: TypeAlias = str | Iterable[str] | Mapping[str, str]
"""A column of both, an equality such as ``target.id = source.trip_id``, several joined by ``and``,
an iterable of these, or a mapping from columns of the table to columns of the source."""

_EQUALITY: Final = re.compile(r"\s*(source|target)\.(\S+?)\s*==?\s*(source|target)\.(\S+)\s*")


class Matching(Enum):
    """Which rows a clause is for."""

    MATCHED = "when_matched"
    NOT_MATCHED = "when_not_matched"
    NOT_MATCHED_BY_SOURCE = "when_not_matched_by_source"


class Effect(Enum):
    """What a clause does."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class GivenClause:
    """A clause as users give it; without values it takes those of the source's columns."""

    matching: Matching
    effect: Effect
    where: Filter | None
    values: Mapping[str, NewValue] | None = None

    @property
    def name(self) -> str:
        """The method that made it."""
        every = "_all" if self.values is None and self.effect is not Effect.DELETE else ""
        return f"{self.matching.value}_{self.effect.value}{every}"


@dataclass(frozen=True, slots=True)
class GivenMerge:
    """A merge as users give it."""

    source: NumberedRows
    on: On
    clauses: tuple[GivenClause, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause whose condition and values are over joined rows; a delete has no values."""

    matching: Matching
    where: Predicate
    values: Mapping[str, NewValue]
    deletes: bool = False

    @property
    def statement(self) -> list[bytes]:
        """The clause itself, by which it is recognised."""
        what = f"{self.matching.value} {self.deletes}".encode()
        return [what, *statement_of(self.where, self.values)]


@dataclass(frozen=True)
class RowMerge:
    """Merges a source into a table: the `clauses` in order, for rows that `pairs` of columns match.

    `pairs` are from columns of the table to columns of the source.
    """

    source: NumberedRows
    columns: pa.Schema  # that rows of the table are matched by
    pairs: Mapping[str, str]
    clauses: tuple[Clause, ...]
    whole: SourceSummary | None = None  # of all rows, where `source` has those of one task

    @classmethod
    def of(
        cls,
        given: GivenMerge,
        readable: pa.Schema,
        schema: pa.Schema,
        properties: TableProperties,
    ) -> RowMerge:
        """Return a merge into a table with the columns of `schema`; `readable` ones have others."""
        pairs = _pairs(given.on, readable, given.source.schema)
        if not given.clauses:
            raise OptionError("merge", None, "say what to do, as by when_matched_update_all()")
        check_case(pa.schema([]), given.source.schema)  # SQL would take the first of the two
        parse = _ClauseParser(readable, schema, given.source.schema, properties)
        clauses = tuple(map(parse.clause, given.clauses))
        columns = pa.schema([readable.field(name) for name in pairs])
        return cls(given.source, columns, pairs, clauses)

    def of_rows(self, matching: Matching) -> list[Clause]:
        """Return the clauses for some rows."""
        return [clause for clause in self.clauses if clause.matching is matching]

    def index(self) -> RowIndex:
        """Return what finds the rows of the source that match."""
        return RowIndex(self._keys)

    @cached_property
    def _keys(self) -> NumberedRows:
        pieces = (self.matched_by(rows, self.pairs.values()) for _, rows in self.source.pieces())
        return NumberedRows(self.columns, chain.from_iterable(p.to_batches() for p in pieces))

    def matched_by(self, rows: pa.Table, names: Iterable[str]) -> pa.Table:
        """Return the columns by which rows match, of the source or the table, in equal types."""
        found = rows.select([*names]).rename_columns(self.columns.names)
        return comparable(conform(found, self.columns))

    @cached_property
    def where(self) -> Predicate:
        """The rows of the table on which the outcome of the merge depends."""
        others = self.of_rows(Matching.NOT_MATCHED_BY_SOURCE)
        matched = self._summary.where(self.columns)
        return Or((matched, *(of_target(clause.where) for clause in others)))

    def finds_keys(self, properties: TableProperties) -> bool:
        """Whether the table has no record key of a row that is inserted, as no row matched."""
        inserts = self.of_rows(Matching.NOT_MATCHED)
        return not self._summary.has_nulls and all(
            name in properties.record_key_fields
            and all(_is_column(clause.values[name], other) for clause in inserts)
            for name, other in self.pairs.items()
        )

    @cached_property
    def statement(self) -> list[bytes]:
        """The merge itself, by which a repeated one is recognised."""
        digests = (InputDigest.of(rows) for _, rows in self.source.pieces())
        total = self.whole.digest if self.whole else reduce(add, digests, InputDigest())
        pairs = [f"{name} {self.pairs[name]}".encode() for name in sorted(self.pairs)]
        clauses = [part for clause in self.clauses for part in clause.statement]
        return [b"merge", total.to_text().encode(), *pairs, *clauses]

    @cached_property
    def _summary(self) -> SourceSummary:
        parts = (SourceSummary.of(rows) for _, rows in self._keys.pieces())
        return self.whole or reduce(add, parts, SourceSummary.of(self.columns.empty_table()))


def taken(clauses: Iterable[Clause], rows: pa.Table) -> Iterator[tuple[Clause, Numbers]]:
    """Yield each clause with the positions of the joined rows that it takes, unless it has none."""
    left = np.arange(rows.num_rows)
    for clause in clauses:
        true = are_true(
            rows if len(left) == rows.num_rows else rows.take(pa.array(left)), clause.where
        )
        if true.any():
            yield clause, left[true]
        left = left[~true]


def _is_column(value: NewValue, source: str) -> bool:
    """Whether a new value is a column of the source."""
    return isinstance(value, pc.Expression) and value.equals(pc.field(f"{SOURCE}.{source}"))


def _pairs(on: On, target: pa.Schema, source: pa.Schema) -> dict[str, str]:
    """Return the columns of the table by which rows match, and the columns of the source."""
    if isinstance(on, Mapping):
        pairs = {str(name): str(other) for name, other in on.items()}
    else:
        given = [on] if isinstance(on, str) else [*on]
        if not all(isinstance(part, str) for part in given):
            raise OptionError("on", on, _REMEDY)
        parts = [part for one in given for part in re.split(r"\s+and\s+", one, flags=re.I)]
        pairs = dict(_pair(part) for part in parts)
        if len(pairs) < len(parts):
            raise OptionError("on", on, "name each column of the table once")
    if not pairs:
        raise OptionError("on", on, _REMEDY)
    for side, schema, names in ((TARGET, target, pairs), (SOURCE, source, pairs.values())):
        for name in names:
            if name not in schema.names:
                shown = ", ".join(schema.names)
                raise OptionError("on", f"{side}.{name}", f"the {side}'s columns are {shown}")
            if pa.types.is_nested(schema.field(name).type):
                raise OptionError("on", f"{side}.{name}", "nested columns do not match by equality")
    return pairs


_REMEDY: Final = (
    'name a column of table and source, write "target.id = source.trip_id", several joined by '
    '"and", or give a mapping from columns of the table to columns of the source'
)


def _pair(part: str) -> tuple[str, str]:
    match = _EQUALITY.fullmatch(part)
    if match is None and not re.search(r"[=<>\s]", part.strip()):
        return part.strip(), part.strip()
    if match is None or match[1] == match[3]:
        raise OptionError("on", part, _REMEDY)
    names = {match[1]: match[2], match[3]: match[4]}
    return names[TARGET], names[SOURCE]


@dataclass(frozen=True, slots=True)
class _ClauseParser:
    """Reads clauses over rows of a table and a source."""

    readable: pa.Schema
    schema: pa.Schema
    source: pa.Schema
    properties: TableProperties

    def clause(self, given: GivenClause) -> Clause:
        """Return a clause; `OptionError` for what does not fit the columns."""
        by_source = given.matching is Matching.NOT_MATCHED_BY_SOURCE
        target = None if given.effect is Effect.INSERT else self.readable.empty_table()
        rows = joined(target, None if by_source else self.source.empty_table()).schema
        where = predicate_of(given.where, rows, f"{given.name}, where")
        if given.effect is Effect.DELETE:
            return Clause(given.matching, where, {}, deletes=True)
        values = given.values
        if values is None:
            check_case(self.schema, self.source)  # as a batch of an upsert
            both = [name for name in self.schema.names if name in self.source.names]
            values = {name: f"{SOURCE}.{name}" for name in both}
            if not values:
                raise OptionError(given.name, None, "the source has no column of the table")
        fixed = fixed_columns(self.properties)
        is_explicit = given.values is not None and given.effect is Effect.UPDATE
        unset = fixed if is_explicit else ()
        typed = typed_values(_with_columns(values, rows), self.schema, unset, rows)
        if given.effect is Effect.INSERT:
            needed = {*fixed, *self.properties.ordering_fields} & {*self.schema.names}
            for name in sorted(needed - {*typed}):
                raise OptionError(given.name, None, f"an inserted row needs a value of {name}")
        return Clause(given.matching, where, typed)


def _with_columns(values: Mapping[str, NewValue], rows: pa.Schema) -> Mapping[str, NewValue]:
    """Return new values with expressions for strings that name columns of joined rows."""
    check_given(values)
    try:
        names = {name: side_column(value, rows) for name, value in values.items()}
    except OptionError as error:
        raise OptionError("set", error.value, error.remedy) from error
    return {
        name: value if names[name] is None else pc.field(names[name])
        for name, value in values.items()
    }
