"""Changes of rows by a filter and merges that did something else than what was asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, SchemaError, expr
from hoodie_ds.testing import MemoryStorage
from tests.tables import TRIPS, found, trips

ROW = ("a", "x", 1, 1.0)


@pytest.fixture
def table() -> HoodieTable:
    made = HoodieTable("/t", TRIPS, storage=MemoryStorage())
    made.upsert(trips(ROW))
    return made


def test_of_two_source_columns_that_differ_in_case_sql_took_the_first(table: HoodieTable) -> None:
    source = pa.table({"id": ["a"], "new": [2.0], "NEW": [3.0]})
    merge = table.merge(source, "id").when_matched_update({"fare": expr("source.NEW"), "ts": 2})
    with pytest.raises(SchemaError, match="'new' and 'NEW' differ in nothing but case"):
        merge.execute()
    assert found(table) == [ROW]


def test_a_source_column_in_another_case_was_left_out_in_silence(table: HoodieTable) -> None:
    source = pa.table({"id": ["a"], "FARE": [2.0]})
    with pytest.raises(SchemaError, match="'fare' and 'FARE' differ in nothing but case"):
        table.merge(source, "id").when_matched_update_all().execute()
    assert found(table) == [ROW]
    named = table.merge(source, "id").when_matched_update({"fare": "source.FARE"})
    assert named.execute().updated == 1
