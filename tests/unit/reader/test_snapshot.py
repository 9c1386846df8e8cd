"""Reading: which log blocks count, which columns are fetched, what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    CorruptFileError,
    HoodieError,
    SchemaError,
    UnsupportedTableError,
)
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.loading import load_timeline
from tests.tables import BUCKETS, TRIPS, TYPE, found, trips

OLD = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0))
NEW = trips(("b", "x", 2, 2.0), ("c", "x", 2, 2.0))
MERGED = [("a", "x", 1, 1.0), ("b", "x", 2, 2.0), ("c", "x", 2, 2.0)]


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """A merge-on-read table of one file group: a base file and a log file."""
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"})
    table.upsert(OLD)
    table.upsert(NEW)
    return table


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def log_path(storage: Storage) -> str:
    (path,) = [f.path for f in storage.list("x") if ".log." in f.path]
    return path


def next_log(storage: Storage, *blocks: bytes) -> None:
    storage.put_if_absent(log_path(storage).replace(".log.1_", ".log.2_"), b"".join(blocks))


def with_fare(data: bytes, fare: float, instead: float) -> bytes:
    """A block with other rows, which would be seen if they were read."""
    changed = data.replace(struct.pack("<d", fare), struct.pack("<d", instead))
    assert changed != data
    return changed


def test_log_records_lie_on_the_base_file(table: HoodieTable, storage: Storage) -> None:
    assert log_path(storage)
    assert found(table) == MERGED


def test_only_the_columns_that_were_asked_for_come_back(table: HoodieTable) -> None:
    assert table.read(columns=["fare"]).sort_by("fare").to_pylist() == [
        {"fare": 1.0},
        {"fare": 2.0},
        {"fare": 2.0},
    ]
    assert table.read(columns=["_hoodie_partition_path", "id"]).column_names == [
        "_hoodie_partition_path",
        "id",
    ]
    assert table.read(columns=[]).num_rows == 3


def test_a_filter_may_use_other_columns(table: HoodieTable) -> None:
    rows = table.read(columns=["id"], filter=pc.field("ts") == 2)
    assert rows.sort_by("id").to_pylist() == [{"id": "b"}, {"id": "c"}]


def test_an_unknown_column_is_named_with_those_there_are(table: HoodieTable) -> None:
    with pytest.raises(SchemaError, match=r"'fair' is not in the table.* ts, fare"):
        table.read(columns=["fair"])


@pytest.mark.parametrize(
    ("wrong", "kind", "told"),
    [
        (pc.field("cty") == "x", SchemaError, r"filter \(cty == \"x\"\) .* ts, fare: .*cty"),
        (pc.field("fare") == "x", SchemaError, "does not fit the table's columns"),
    ],
)
def test_a_filter_that_arrow_cannot_apply_is_an_error_of_ours(
    table: HoodieTable, wrong: pc.Expression, kind: type[HoodieError], told: str
) -> None:
    with pytest.raises(kind, match=told):
        table.read(filter=wrong)


def test_a_table_without_a_commit_has_no_rows(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(OLD.slice(0, 0))
    assert table.read().num_rows == 0
    assert table.read(columns=["id"]).schema == pa.schema({"id": pa.string()})
    assert not table.timeline.completed


def test_a_snapshot_stays_at_its_moment(table: HoodieTable, storage: Storage) -> None:
    snapshot = PinnedTable.latest(storage)
    table.upsert(trips(("z", "x", 9, 9.0)))
    ids = [row["id"] for row in Scanner(SnapshotQuery(snapshot), ["id"]).to_table().to_pylist()]
    assert sorted(ids) == ["a", "b", "c"]


def test_a_block_of_an_instant_that_is_not_committed_does_not_count(
    table: HoodieTable, storage: Storage
) -> None:
    data = storage.read(log_path(storage))
    newest = load_timeline(storage, 1).commits[-1].time
    (other,) = {newest[:-3] + digits for digits in ("998",)} - {newest}
    next_log(storage, with_fare(data, 2.0, 7.0).replace(newest.encode(), other.encode()))
    assert found(table) == MERGED


def test_a_block_that_its_commit_does_not_name_does_not_count(
    table: HoodieTable, storage: Storage
) -> None:
    """A late task's log file, under an instant that completed without it."""
    table.upsert(trips(("b", "x", 3, 3.0)))
    late = next(f.path for f in storage.list("x") if ".log.2_" in f.path)
    expected = found(table)
    body = storage.read(late)
    storage.put_if_absent(f"{late.rpartition('_')[0]}_5-0-9", with_fare(body, 3.0, 7.0))
    assert found(table) == expected


def test_deletes_of_one_field_are_refused_where_several_order(
    table: HoodieTable, storage: Storage
) -> None:
    path = ".hoodie/hoodie.properties"
    text = storage.read(path)
    several = text.replace(b"precombine.field=ts", b"precombine.field=ts,fare")
    assert several != text
    storage.replace(path, several)
    assert found(table) == MERGED
    storage.replace(path, text)
    table.delete(OLD.select(["id", "city", "ts"]))
    storage.replace(path, several)
    with pytest.raises(UnsupportedTableError, match=r"\.log\.2_.* ordering fields ts, fare"):
        table.read()


def test_a_rolled_back_block_does_not_count(table: HoodieTable, storage: Storage) -> None:
    newest = load_timeline(storage, 1).commits[-1].time
    command: dict[int, str] = {
        HeaderKey.INSTANT_TIME: "29990101000000000",
        HeaderKey.TARGET_INSTANT_TIME: newest,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    next_log(storage, encode_block(BlockType.COMMAND, command, b""))
    assert found(table) == [("a", "x", 1, 1.0), ("b", "x", 1, 1.0)]


def _committed_log(storage: Storage, block_type: BlockType, header: dict[int, str]) -> None:
    path = log_path(storage)
    body = storage.read(path) + encode_block(block_type, header, b"")
    storage.replace(path, body)


def test_a_kind_of_block_that_is_not_read_is_named(table: HoodieTable, storage: Storage) -> None:
    newest = load_timeline(storage, 1).commits[-1].time
    _committed_log(storage, BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: newest})
    with pytest.raises(UnsupportedTableError, match=r"\.log\.1_.*compact the table"):
        table.read()


def test_a_block_without_instant_is_damage(table: HoodieTable, storage: Storage) -> None:
    _committed_log(storage, BlockType.PARQUET_DATA, {})
    with pytest.raises(CorruptFileError, match=r"\.log\.1_.*no instant time"):
        table.read()


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_log_file_that_was_cut_off_is_named(
    table: HoodieTable, storage: Storage, cut: int
) -> None:
    path = log_path(storage)
    storage.replace(path, storage.read(path)[:-cut])
    with pytest.raises(CorruptFileError, match=r"\.log\.1_"):
        table.read()


def test_a_base_file_that_was_cut_off_is_named(table: HoodieTable, storage: Storage) -> None:
    (path,) = [f.path for f in storage.list("x") if f.path.endswith(".parquet")]
    storage.replace(path, storage.read(path)[:-9])
    with pytest.raises(CorruptFileError, match=r"x/.*\.parquet"):
        table.read()


def test_rows_come_in_the_newest_schema(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"})
    table.upsert(OLD)
    wider = NEW.append_column("note", pa.array(["n", None]))
    table.upsert(wider)
    rows = table.read(columns=["id", "note"]).sort_by("id").to_pylist()
    assert rows == [
        {"id": "a", "note": None},
        {"id": "b", "note": "n"},
        {"id": "c", "note": None},
    ]
    assert table.schema.names[5:] == ["id", "city", "ts", "fare", "note"]


def test_a_moment_before_the_first_commit_is_told(
    table: HoodieTable, caplog: pytest.LogCaptureFixture
) -> None:
    first = table.timeline.commits[0].time
    assert table.read(as_of="2020-01-01").num_rows == 0
    (warned,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warned.endswith(
        f": as of 20200101000000999 the table is empty; its first commit is {first}"
    )
    caplog.clear()
    table.read(as_of=first)
    assert not caplog.records
