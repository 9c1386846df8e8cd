"""Event time told by several fields."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError
from tests.tables import ORDERING, TRIPS, TYPE, found, trips

OPTIONS = {**TRIPS, ORDERING: "ts,fare"}


def test_the_first_field_decides_and_the_next_where_it_ties(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), OPTIONS)
    table.upsert(trips(("a", "x", 5, 5.0), ("a", "x", 5, 7.0), ("a", "x", 4, 9.0)))
    table.upsert(trips(("b", "x", 5, 5.0), ("c", "x", 5, 5.0)))
    assert found(table)[0] == ("a", "x", 5, 7.0)
    table.upsert(trips(("a", "x", 5, 6.0), ("b", "x", 6, 1.0), ("c", "x", 5, 5.5)))
    assert found(table) == [("a", "x", 5, 7.0), ("b", "x", 6, 1.0), ("c", "x", 5, 5.5)]


def test_deletes_take_part(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), OPTIONS)
    table.upsert(trips(("a", "x", 5, 5.0), ("b", "x", 5, 5.0), ("c", "x", 5, 5.0)))
    table.delete(trips(("a", "x", 5, 4.0), ("b", "x", 5, 5.0)))
    assert [row[0] for row in found(table)] == ["a", "c"]
    table.delete(pa.table({"id": ["a"], "city": ["x"]}))
    assert [row[0] for row in found(table)] == ["c"]


def test_log_files_have_no_room_for_them(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path / "t"), {**OPTIONS, TYPE: "MERGE_ON_READ"})
    with pytest.raises(OptionError, match=r"'ts,fare' is refused: .*COPY_ON_WRITE"):
        table.upsert(trips(("a", "x", 5, 5.0)))
    assert not (tmp_path / "t").exists()
