"""Log blocks whose positions do not count are merged by record keys, whatever they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.formats.log.log_block import HeaderKey
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from tests.positions import Header, bitmap, locate_records, located, of_positions
from tests.tables import BUCKETS, TRIPS, TYPE, trips

MOR = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"}
UNCHECKED = {"hoodie.py.read.verify.checksums": "false"}
STORED = [("a", "x", 5, 1.0), ("b", "x", 6, 1.0), ("c", "x", 7, 1.0), ("d", "x", 7, 1.0)]
FARES = {"a": 2.0, "b": 1.0, "d": 1.0}

ODD: dict[str, Header] = {
    "of another base file": lambda _, positions: of_positions(
        "20200101000000000", [3 - number for number in positions]
    ),
    "without a base file": lambda base, positions: {
        HeaderKey.RECORD_POSITIONS: of_positions(base, positions)[HeaderKey.RECORD_POSITIONS]
    },
    "beyond the base file": lambda base, positions: of_positions(
        base, [number + 3 for number in positions]
    ),
    "fewer than records": lambda base, positions: of_positions(base, positions[1:] or [0, 1]),
    "damaged": lambda base, positions: located(base, bitmap(positions)[:-1]),
}


def made(path: Path) -> HoodieTable:
    table = HoodieTable(str(path), MOR)
    table.upsert(trips(*STORED))
    table.upsert(trips(("b", "x", 5, 2.0), ("a", "x", 6, 2.0)))
    table.delete(trips(("c", "x", 7, None)).select(["id", "city", "ts"]))
    return HoodieTable(str(path), UNCHECKED)


def fares(table: HoodieTable) -> dict[str, float]:
    rows = table.read(["id", "fare"])
    return dict(zip(rows["id"].to_pylist(), rows["fare"].to_pylist(), strict=True))


@pytest.mark.parametrize("odd", ODD)
def test_odd_positions_do_not_count(odd: str, tmp_path: Path) -> None:
    table = made(tmp_path)
    assert locate_records(tmp_path, ODD[odd]) >= 1
    assert fares(table) == FARES


def test_positions_decide_where_all_blocks_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    assert locate_records(tmp_path) == 2
    read: list[str] = []
    inner: Callable[..., object] = BaseFileReader.pieces

    def noted(reader: BaseFileReader, columns: list[str], *rest: object) -> object:
        read.extend(columns)
        return inner(reader, columns, *rest)

    monkeypatch.setattr(BaseFileReader, "pieces", noted)
    assert fares(table) == FARES
    assert read == ["ts", "id", "fare"]
    read.clear()
    assert fares(table) == FARES
    assert read == ["id", "fare"]
    HoodieTable(str(tmp_path), MOR).upsert(trips(("e", "x", 7, 3.0)))
    assert fares(table) == {**FARES, "e": 3.0}
    assert "_hoodie_record_key" in read
