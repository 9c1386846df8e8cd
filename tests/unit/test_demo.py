"""The demo's verdict: a reading of the flights table is equal to the rows wanted, or is not."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from hoodie_ds.demo import difference
from hoodie_ds.flights import EVENTS


def flights(*numbers: int, status: str = "arrived") -> pa.Table:
    row = dict.fromkeys(EVENTS.names) | {
        "year": 2013, "month": 1, "day": 1, "carrier": "UA", "origin": "EWR", "status": status,
        "event_ts": datetime(2013, 1, 1, tzinfo=timezone.utc),
    }  # fmt: skip
    return pa.Table.from_pylist([row | {"flight": number} for number in numbers], EVENTS)


def test_order_of_rows_and_columns_and_further_columns_do_not_count() -> None:
    found = flights(3, 1, 2).select(EVENTS.names[::-1])
    found = found.append_column("_hoodie_file_name", pa.array(["x"] * 3))
    assert difference(found, flights(1, 2, 3)) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (flights(1, 2), "it has 2 rows"),
        (flights(1, 2, 2), "it has {"),
        (flights(1, 2, 3, status="departed"), "'departed'"),
        (flights(1, 2, 3).drop_columns(["tailnum"]), "it lacks the columns tailnum"),
        (flights(1, 2, 3).set_column(7, "tailnum", pa.array(["x", None, None])), "'tailnum': 'x'"),
    ],
)
def test_any_other_row_is_told(found: pa.Table, words: str) -> None:
    assert words in difference(found, flights(1, 2, 3))
