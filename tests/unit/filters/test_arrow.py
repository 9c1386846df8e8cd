"""Filters of Arrow: what is ruled out never matches, and what can be ruled out is."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import reduce
from io import BytesIO
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given as by_chance
from hypothesis import settings
from hypothesis import strategies as st

from hoodie_ds.filters import arrow
from hoodie_ds.filters.arrow import from_arrow
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.filters.predicate import Opaque, Predicate, allowed_values, columns_used
from hoodie_ds.filters.pruning import may_match
from hoodie_ds.filters.rows import matching
from hoodie_ds.formats.parquet.statistics import column_bounds

F = pc.field
SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "l": pa.int64(),
        "f": pa.float64(),
        "g": pa.float32(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("ns"),
        "m": pa.decimal128(9, 2),
        "x": pa.binary(),
        "r": pa.struct({"i": pa.int32()}),
        "absent": pa.int32(),
    }
)
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
ROW: dict[str, Any] = {
    "i": 5,
    "l": 1 << 60,
    "f": 1.5,
    "g": 0.5,
    "s": "m",
    "b": True,
    "d": date(2026, 1, 1),
    "t": NOON,
    "n": NOON.replace(tzinfo=None),
    "m": Decimal("1.25"),
    "x": b"m",
    "r": {"i": 5},
}


def may_be_in(rows: pa.Table, given: pc.Expression | Predicate) -> bool:
    """Whether the footer of a file with these rows leaves it to be read."""
    file = BytesIO()
    pq.write_table(rows, file)
    opened = pq.ParquetFile(file)

    def known(column: str) -> Bounds | None:
        return column_bounds(opened.metadata, opened.schema_arrow, 0, SCHEMA.field(column))

    return may_match(predicate_of(given, SCHEMA), known)


@pytest.fixture
def unknown_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expressions cannot be taken apart, as when another pyarrow pickles them in another form."""

    def refuse(_: object) -> None:
        raise ValueError("not known")

    monkeypatch.setattr(arrow, "taken_apart", refuse)


def one_row(**changed: object) -> pa.Table:
    stored = pa.schema([field for field in SCHEMA if field.name != "absent"])
    return pa.Table.from_pylist([{**ROW, **changed}], stored)


RULED_OUT = [
    F("i") > 5,
    F("i") < 5,
    F("i") >= 6,
    F("i") <= 4,
    F("i") == 6,
    pc.scalar(5) < F("i"),
    ~(F("i") <= 5),
    (F("i") == 5) & (F("s") == "z"),
    (F("i") == 6) | (F("s") == "z"),
    ~((F("i") == 6) | (F("i") <= 5)),
    F("i").isin([1, 2, 3]),
    F("i").isin([1, None]),
    F("i") == pa.scalar(None, pa.int32()),
    F("i").is_null(),
    ~F("i").is_valid(),
    F("l") > (1 << 60),
    F("f") < 1.5,
    F("f") == 2.0,
    F("g") == 0.25,
    F("s") == "a \"quoted\", (text)\n: 'b'",
    F("s") < "m",
    F("s").isin(["a", "b"]),
    pc.starts_with(F("s"), "n"),
    pc.starts_with(F("s"), "mm"),
    ~F("b"),
    F("b") == False,  # noqa: E712
    F("d") > date(2026, 1, 1),
    F("t") < NOON,
    F("n") > datetime(2026, 1, 1, 12),
    F("n").isin([datetime(2025, 1, 1)]),
    F("m") > Decimal("1.25"),
    F("x") == b"n",
    F("i") != 5,
    F("t") != NOON,
    ~F("i").isin([4, 5]),
    ~pc.starts_with(F("s"), "m"),
    F("absent") == 1,
    F("absent").is_valid(),
    pc.scalar(False),
]


@pytest.mark.parametrize("expression", RULED_OUT, ids=str)
def test_what_no_row_can_match_is_ruled_out(expression: pc.Expression) -> None:
    rows = one_row()
    if "absent" not in str(expression):
        assert rows.filter(expression).num_rows == 0
    assert not may_be_in(rows, expression)


NOT_UNDERSTOOD = [
    F("i") + 1 == 7,
    F("i").cast(pa.string()) == "7",
    F("i") == 5.5,
    F("g") == 0.1,
    F("s") > F("s"),
    F("r", "i") == 6,
    F("f").is_null(nan_is_null=True),
    F("f") != 1.5,
    F("f") != math.nan,
    ~F("f").isin([1.5]),
    ~(F("f") <= 1.5),
    pc.starts_with(F("s"), "N", ignore_case=True),
    pc.match_like(F("s"), "z%"),
    pc.scalar(True),
    F("t") == datetime(2026, 1, 1),
]


@pytest.mark.parametrize("expression", NOT_UNDERSTOOD, ids=str)
def test_what_is_not_understood_rules_nothing_out(expression: pc.Expression) -> None:
    assert may_be_in(one_row(), expression)


@pytest.mark.usefixtures("unknown_form")
@pytest.mark.parametrize("expression", RULED_OUT, ids=str)
def test_arrow_rules_out_what_cannot_be_taken_apart(expression: pc.Expression) -> None:
    rows = one_row()
    known = from_arrow(expression, SCHEMA)
    assert columns_used(known) is None
    assert allowed_values(known, "i") is None
    if not any(beyond in str(expression) for beyond in ("starts_with", "(f ", "(g ")):
        assert not may_be_in(rows, expression)


@pytest.mark.parametrize("as_it_is", [True, False])
def test_a_null_is_in_no_list_of_arrow(as_it_is: bool) -> None:
    rows = pa.table({"i": pa.array([5, None], pa.int32())})
    expression = ~F("i").isin([5])
    assert rows.filter(expression).num_rows == 1
    assert may_be_in(rows, Opaque(expression, SCHEMA, None, None) if as_it_is else expression)


@pytest.mark.parametrize("expression", [F("f") != 1.5, ~(F("f") <= 1.5), ~F("f").isin([1.5])])
def test_a_column_may_have_nan_whatever_its_bounds_are(expression: pc.Expression) -> None:
    rows = pa.table({"f": [1.5, math.nan]})
    assert rows.filter(expression).num_rows == 1
    assert may_be_in(rows, expression)
    assert may_be_in(rows, Opaque(expression, SCHEMA, None, None))


@pytest.mark.parametrize("count", [400, 2000])
def test_hundreds_of_conditions_are_no_deep_tree(count: int) -> None:
    expression = reduce(or_, (F("i") == 10 + number for number in range(count)))
    assert not may_be_in(one_row(), expression)
    assert may_be_in(one_row(), expression | (F("i") == 5))


def test_columns_that_are_named_by_their_places_are_not_known() -> None:
    assert columns_used(from_arrow(F(0) == 1, SCHEMA)) is None


def test_the_columns_of_a_filter_are_known() -> None:
    expression = ((F("i") + F("l")) > 3) & F("r", "i").is_valid() & F("s").isin(["a"])
    assert columns_used(from_arrow(expression, SCHEMA)) == frozenset("ilrs")


def test_values_that_rows_must_have() -> None:
    expression = F("s").isin(["a", "b", "c"]) & ((F("s") == "b") | (F("s") == "c")) & (F("i") == 1)
    predicate = from_arrow(expression, SCHEMA)
    assert {value.as_py() for value in allowed_values(predicate, "s") or ()} == {"b", "c"}
    assert {value.as_py() for value in allowed_values(predicate, "i") or ()} == {1}
    assert allowed_values(predicate, "l") is None
    for unbounded in (
        F("s") > "a",
        F("s").is_null(),
        pc.starts_with(F("s"), "a"),
        (F("s") == "a") | (F("i") == 1),
        F("s") != "a",
        ~F("s").isin(["a"]),
        F("r", "i") == 1,
    ):
        assert allowed_values(from_arrow(unbounded, SCHEMA), "s") is None


_VALUES: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 5, 2**31 - 1],
    "l": [-(2**63), 2**53 + 1, 0, 2**63 - 1],
    "f": [-math.inf, -0.0, 0.0, 1.5, math.nan, math.inf],
    "g": [-0.0, 0.5, math.nan, 3.0],
    "s": ["", "a", "ab", "b", "\uffff", "\U00010000"],
    "b": [True, False],
    "d": [date(1, 1, 1), date(2026, 1, 1)],
    "t": [NOON, NOON.replace(year=1900)],
    "m": [Decimal("-1.25"), Decimal("0.00"), Decimal("3.50")],
    "x": [b"", b"\x00", b"\xff"],
}


@st.composite
def _leaves(draw: st.DrawFn) -> pc.Expression:
    column = draw(st.sampled_from(sorted(_VALUES)))
    value = st.sampled_from(_VALUES[column]).map(lambda v: pa.scalar(v, SCHEMA.field(column).type))
    left, right = F(column), draw(value)
    match draw(st.integers(0, 9)):
        case 0:
            return left.is_null(nan_is_null=draw(st.booleans()))
        case 1:
            return left.is_valid()
        case 2:
            some = draw(st.lists(value, max_size=3))
            return left.isin(pa.array([v.as_py() for v in some], SCHEMA.field(column).type))
        case 3:
            return pc.starts_with(F("s"), draw(st.sampled_from(["", "a", "\uffff", "z"])))
        case 4:
            return left != right
        case 5:
            return right < left
    comparisons = [left < right, left <= right, left == right, left >= right, left > right]
    return draw(st.sampled_from(comparisons))


_expressions = st.recursive(
    _leaves(),
    lambda parts: st.one_of(
        st.builds(lambda a, b: a & b, parts, parts),
        st.builds(lambda a, b: a | b, parts, parts),
        st.builds(lambda a: ~a, parts),
    ),
    max_leaves=6,
)
_rows = st.lists(
    st.fixed_dictionaries(
        {name: st.none() | st.sampled_from(values) for name, values in _VALUES.items()}
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@by_chance(_rows, _expressions)
def test_a_file_with_a_row_that_matches_is_never_ruled_out(
    rows: list[dict[str, Any]], expression: pc.Expression
) -> None:
    table = pa.Table.from_pylist(rows, pa.schema([SCHEMA.field(name) for name in _VALUES]))
    expected = table.filter(expression)
    assert repr(matching(table, from_arrow(expression, SCHEMA))) == repr(expected)
    if expected.num_rows:
        assert may_be_in(table, expression), expression
        assert may_be_in(table, Opaque(expression, SCHEMA, None, None)), expression


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (pa.int16(), True),
        (pa.int64(), True),
        (pa.string(), False),
        (pa.float64(), False),
    ],
    ids=str,
)
def test_a_file_of_another_kind_of_values_tells_nothing(stored: pa.DataType, told: bool) -> None:
    rows = pa.table({"i": pa.array([5], pa.int16()).cast(stored)})
    assert may_be_in(rows, F("i") == 6) is not told


def test_a_file_without_statistics_tells_nothing() -> None:
    file = BytesIO()
    pq.write_table(pa.table({"i": pa.array([5], pa.int32())}), file, write_statistics=False)
    opened = pq.ParquetFile(file)
    assert column_bounds(opened.metadata, opened.schema_arrow, 0, SCHEMA.field("i")) is None
    rows = pa.table({"r": pa.array([{"i": 5}])})
    assert may_be_in(rows, F("r").is_null())


def test_a_column_of_nulls_has_no_values() -> None:
    rows = pa.table({"i": pa.nulls(3, pa.int32()), "s": pa.nulls(3, pa.string())})
    assert not may_be_in(rows, F("i") > 0)
    assert not may_be_in(rows, pc.starts_with(F("s"), "a"))
    assert may_be_in(rows, F("i").is_null())
