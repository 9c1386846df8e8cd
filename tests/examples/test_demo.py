"""The demo's verdict on a reading, its counts, and the options of its table."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from examples.flights.demo import cross_table, demo_options, difference
from examples.flights.events import EVENTS, KEY
from hoodie_ds.config.enums import Operation, TableType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from tests.terminal import cells


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


def test_counts_by_two_columns() -> None:
    counts = pa.table({"month": [2, 10, 2], "status": ["b", "a", "a"], "rows": [1, 2000, 3]})
    assert cells(cross_table(counts, "x")) == [
        ["month", "a", "b"],
        ["2", "3", "1"],
        ["10", "2,000", "0"],
    ]


def test_the_tables_options_make_a_keyed_table_of_either_type() -> None:
    for kind in TableType:
        options = WriteOptions.parse(demo_options("/t", kind))
        properties = TableProperties.create(options)
        assert properties.table_type is kind
        assert properties.record_key_fields == KEY
        assert options.operation is Operation.UPSERT
