"""Log blocks of changes and merges say where their records are in the base file, as Hudi's do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.delete_block import decode_delete_block
from hoodie_ds.formats.log.log_block import BlockType, LogBlock, read_blocks
from hoodie_ds.formats.log.record_positions import positions_base, record_positions
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table import block_order
from hoodie_ds.timeline.instant_time import following
from tests.faults.foreign import plan_compaction
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

MOR = {
    **TRIPS,
    BUCKETS: "1",
    TYPE: "MERGE_ON_READ",
    VERSION: "9",
    "hoodie.parquet.block.size": "16k",
}
BLOOM = {**{k: v for k, v in MOR.items() if k != BUCKETS}, "hoodie.index.type": "BLOOM"}
ID = pc.field("id")
STORED = [(f"k{number:04}", "x", 5, float(number)) for number in range(1_000)]


def keys_of(block: LogBlock) -> list[str]:
    if block.block_type is BlockType.DELETE:
        return decode_delete_block(block, "").column("record_key").to_pylist()
    return decode_data_block(block, "").column(RECORD_KEY).to_pylist()


def blocks_of(path: Path) -> Iterator[tuple[str, list[str], LogBlock]]:
    """Each block of each slice: the slice's base file as its blocks name it, its keys, the block.

    The keys are those of all rows of the base file.
    """
    for slice_ in PinnedTable.latest(open_storage(str(path))).slices():
        base = slice_.base
        stored: list[str] = []
        if base is not None:
            with (path / base.path).open("rb") as file:
                schema = pa.schema([pa.field(RECORD_KEY, pa.string())])
                stored = BaseFileReader(file, schema, "").read().column(0).to_pylist()
        for log in slice_.logs:
            for block in read_blocks((path / log.path).read_bytes(), log.path):
                yield "" if base is None else base.name.instant_time, stored, block


def check_positions(path: Path) -> list[bool]:
    """Which blocks name positions; those that do name the rows that have their records' keys."""
    named = []
    for instant, stored, block in blocks_of(path):
        keys = keys_of(block)
        at = record_positions(block.header, len(keys))
        named.append(positions_base(block.header) == instant != "")
        assert named[-1] == (at is not None)
        if at is not None:
            assert [stored[position] for position in at] == keys
            assert all(stored.count(key) == 1 for key in keys)
    return named


def rows_of(path: Path, columns: list[str]) -> list[dict[str, Any]]:
    return sorted(HoodieTable(str(path)).read(columns).to_pylist(), key=repr)


def by_keys(path: Path, columns: list[str], patched: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rows that a process reads that knows of no positions."""
    with patched.context() as without:
        without.setattr(block_order, "positions_base", lambda _: None)
        return rows_of(path, columns)


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("options", [MOR, BLOOM], ids=["buckets", "bloom"])
def test_changes_name_positions_from_version_8_on(
    options: dict[str, str], version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), {**options, VERSION: version})
    table.upsert(trips(*STORED))
    table.update(set={"fare": -1.0}, where=(ID >= "k0990") | (ID < "k0003"))
    table.delete(where=((ID >= "k0500") & (ID <= "k0505")) | (ID == "k0001"))
    table.merge(
        trips(("k0007", "x", 6, 7.5), ("k0500", "x", 6, 0.5), ("k0002", "x", 6, 2.5)),
        on="id",
    ).when_matched_update_all().execute()
    assert check_positions(tmp_path) == [version != "6"] * 3
    read: list[str] = []
    inner = BaseFileReader.pieces

    def noted(reader: BaseFileReader, columns: Any = None, *rest: Any) -> Any:
        read.extend(columns)
        return inner(reader, columns, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(BaseFileReader, "pieces", noted)
        rows = rows_of(tmp_path, ["id", "fare"])
    assert (RECORD_KEY in read) == (version == "6")
    fares = {key: fare for key, _, _, fare in STORED}
    fares |= dict.fromkeys([f"k0{number}" for number in range(990, 1_000)], -1.0)
    fares |= {"k0000": -1.0, "k0007": 7.5, "k0002": 2.5}
    for gone in ("k0001", *(f"k050{number}" for number in range(6))):
        del fares[gone]
    assert {row["id"]: row["fare"] for row in rows} == fares


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "FLINK_STATE"])
def test_lookups_name_the_positions_that_they_have_found(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**BLOOM, "hoodie.index.type": index, "index.global.enabled": "false"}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(trips(*STORED, ("other", "y", 5, 1.0)))
    table.upsert(trips(("k0700", "x", 6, -1.0), ("k0003", "x", 6, -2.0), ("k0005", "x", 4, -3.0)))
    table.delete(trips(("k0004", "x", 7, None)).select(["id", "city", "ts"]))
    table.upsert(trips(("k0004", "x", 7, -4.0), ("k0003", "x", 8, -5.0), ("k0005", "x", 9, -6.0)))
    assert check_positions(tmp_path) == [True, True, True]
    rows = rows_of(tmp_path, ["id", "fare"])
    assert rows == by_keys(tmp_path, ["id", "fare"], monkeypatch)
    fares = {key: fare for key, _, _, fare in STORED} | {"other": 1.0}
    fares |= {"k0700": -1.0, "k0003": -5.0, "k0004": -4.0, "k0005": -6.0}
    assert {row["id"]: row["fare"] for row in rows} == fares


def test_only_row_groups_with_changed_rows_are_read_for_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(trips(*STORED))
    read: list[tuple[list[str], list[int]]] = []
    inner = BaseFileReader.pieces

    def noted(reader: BaseFileReader, columns: Any = None, row_groups: Any = None) -> Any:
        assert reader.num_row_groups > 3
        read.append((list(columns), list(row_groups)))
        return inner(reader, columns, row_groups)

    monkeypatch.setattr(BaseFileReader, "pieces", noted)
    table.delete(where="id = 'k0001'")
    assert [groups for columns, groups in read if columns == [RECORD_KEY]] == [[0]]
    read.clear()
    HoodieTable(str(tmp_path), {**MOR, "hoodie.write.record.positions": "false"}).delete(
        where="id = 'k0002'"
    )
    assert not [groups for columns, groups in read if columns == [RECORD_KEY]]
    assert check_positions(tmp_path) == [True, False]


def test_rows_whose_place_is_not_one_row_have_no_positions(tmp_path: Path) -> None:
    twice = {**BLOOM, "hoodie.datasource.write.operation": "insert"}
    HoodieTable(str(tmp_path), {**twice, "hoodie.combine.before.insert": "false"}).insert(
        trips(*STORED[:5], STORED[3])
    )
    table = HoodieTable(str(tmp_path), BLOOM)
    table.update(set={"fare": -1.0}, where="id = 'k0003'")
    table.update(set={"fare": -2.0}, where=ID.isin(["k0001", "k0003"]))
    table.update(set={"fare": -3.0}, where="id = 'k0001'")
    table.upsert(trips(("k0003", "x", 6, -4.0)))
    table.upsert(trips(("k0001", "x", 6, -5.0)))
    assert check_positions(tmp_path) == [False, False, True, False, True]
    assert rows_of(tmp_path, ["id", "fare"]) == [
        {"id": "k0000", "fare": 0.0},
        {"id": "k0001", "fare": -5.0},
        {"id": "k0002", "fare": 2.0},
        {"id": "k0003", "fare": -4.0},
        {"id": "k0004", "fare": 4.0},
    ]


def test_rows_of_log_files_alone_have_no_positions(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(trips(*STORED[:5]))
    table.upsert(trips(("new", "x", 6, 1.0)))
    table.update(set={"fare": -1.0}, where=ID.isin(["new", "k0001"]))
    table.delete(where="id = 'new'")
    assert check_positions(tmp_path) == [False, False, False]


@pytest.mark.parametrize("version", ["8", "9"])
def test_positions_are_those_of_the_base_file_before_a_compaction(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), {**MOR, VERSION: version})
    table.upsert(trips(*STORED))
    table.delete(where="id < 'k0100'")
    pinned, now = PinnedTable.latest(open_storage(str(tmp_path))), table.timeline.latest_time
    assert now is not None
    plan_compaction(pinned.table.storage, following(now), list(pinned.slices()))
    table.update(set={"fare": -1.0}, where=ID.isin(["k0150", "k0160"]))
    assert check_positions(tmp_path) == [True, True]
    expected = by_keys(tmp_path, ["id", "fare"], monkeypatch)
    assert rows_of(tmp_path, ["id", "fare"]) == expected
    table.compact()
    table.update(set={"fare": -2.0}, where="id = 'k0170'")
    assert check_positions(tmp_path) == [True]
    after = by_keys(tmp_path, ["id", "fare"], monkeypatch)
    assert rows_of(tmp_path, ["id", "fare"]) == after
    expected = [row | {"fare": -2.0} if row["id"] == "k0170" else row for row in expected]
    assert after == sorted(expected, key=repr)
