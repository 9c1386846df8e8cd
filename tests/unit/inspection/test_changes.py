"""What two states of a table differ in."""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.inspection.changes import rows_diff
from tests.tables import trips


def test_rows_that_are_there_more_than_once_are_counted() -> None:
    one = pa.table({"id": ["a", "b"], "fare": [1.0, 2.0]})
    thrice = pa.table({"id": ["a", "b", "a", "a"], "fare": [1.0, 2.0, 1.0, 1.0]})
    come = rows_diff(one, thrice, ["id"])
    assert come.to_pylist() == [{"change": "insert", "id": "a", "fare": 1.0}] * 2
    assert rows_diff(thrice, one, ["id"])["change"].to_pylist() == ["delete"] * 2
    assert rows_diff(thrice, thrice.take([3, 0, 1, 2]), ["id"]).num_rows == 0
    none = one.slice(0, 0)
    assert rows_diff(none, none, ["id"]).num_rows == 0


def test_an_insert_of_a_row_that_is_there_is_an_insert() -> None:
    table = HoodieTable(
        "memory://diff",
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.index.type": "BLOOM",
        },
    )
    table.insert(trips(("a", "x", 1, 1.0)))
    first = table.timeline.commits[0].time
    table.insert(trips(("a", "x", 1, 1.0)))
    found = table.inspect.diff(first)
    assert (found.inserted, found.updated, found.deleted) == (1, 0, 0)
