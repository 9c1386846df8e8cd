"""Conditions as people write them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hoodie_ds import OptionError
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.filters.rows import matching

ROWS = pa.table(
    {
        "city": ["oslo", "rome", None],
        "fare": [1.5, 10.0, 3.0],
        "day": [dt.date(2026, 1, 1), dt.date(2026, 2, 1), None],
        "a b": ["it's", "", "x"],
    }
)


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([], [0, 1, 2]),
        (["city = oslo"], [0]),
        (["city=='oslo'"], [0]),
        (['city = "oslo"'], [0]),
        (["city != oslo"], [1]),
        (["city <> 'oslo'"], [1]),
        (["fare > 1.5"], [1, 2]),
        (["fare>=1.5", "fare<10"], [0, 2]),
        (["fare <= 3"], [0, 2]),
        (["day >= 2026-02-01"], [1]),
        (["city is null"], [2]),
        (["city IS NOT NULL"], [0, 1]),
    ],
)
def test_rows_that_conditions_keep(texts: list[str], kept: list[int]) -> None:
    assert matching(ROWS, predicate_of(texts, ROWS.schema)) == ROWS.take(kept)


@pytest.mark.parametrize("text", ["", "city", "city ~ oslo", "nope = 1", "fare = much"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="'--where' = "):
        predicate_of([text], ROWS.schema, "--where")


@pytest.mark.parametrize(
    "text",
    [
        "city = 'oslo' and fare > 8",
        "city = 'oslo' OR city = 'rome'",
        "city = oslo and fare > 8",
        "fare > 8 and city = oslo",
        "city = 'oslo",
        "city = 'it's'",
        "city =< oslo",
        "city => 'oslo'",
        "city === oslo",
        "city <=> oslo",
    ],
)
def test_two_conditions_in_one_are_refused_rather_than_compared_as_a_text(text: str) -> None:
    with pytest.raises(OptionError, match="each condition by itself"):
        predicate_of(text, ROWS.schema)


@pytest.mark.parametrize("value", ["rock and roll", "'rock and roll = 1'", "this or that"])
def test_a_text_may_have_an_and_in_it(value: str) -> None:
    rows = pa.table({"what": [value.strip("'"), "x"]})
    assert matching(rows, predicate_of(f"what = {value}", rows.schema)).num_rows == 1
