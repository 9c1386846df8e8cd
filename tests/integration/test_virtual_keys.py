"""Tables without stored record keys (``hoodie.populate.meta.fields`` false)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieError, HoodieTable, OptionError
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.log_block import BlockType, read_blocks
from tests.golden.golden_tables import unzip_table
from tests.tables import KEY, ORDERING, PARTITION, TYPE, TYPES, found, trips

VIRTUAL, VERSION, INDEX = (
    "hoodie.populate.meta.fields",
    "hoodie.write.table.version",
    "hoodie.index.type",
)
KEYED = {"hoodie.table.name": "trips", KEY: "id", PARTITION: "city", ORDERING: "ts"}
OPTIONS = {**KEYED, VIRTUAL: "false"}
META = [
    *("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"),
    *("_hoodie_partition_path", "_hoodie_file_name"),
]
Row = tuple[str, str, int, float]


class Rows(dict[tuple[str, str], Row]):
    """What a table with unique keys in each partition holds, by event-time ordering."""

    def upsert(self, *rows: Row) -> pa.Table:
        for row in rows:
            stored = self.get(row[:2])
            if stored is None or row[2] >= stored[2]:
                self[row[:2]] = row
        return trips(*rows)

    def move(self, row: Row) -> pa.Table:
        """Upsert a row by its key alone."""
        for stored in [key for key in self if key[0] == row[0]]:
            del self[stored]
        return self.upsert(row)

    def expected(self) -> list[Row]:
        return sorted(self.values())


def data_files(path: Path) -> Iterable[pa.Table]:
    """All rows of base files and data blocks as they are stored; no base file has a footer."""
    files = [file for file in path.rglob("*") if ".hoodie" not in file.parts]
    for file in (file for file in files if file.suffix == ".parquet"):
        stored = pq.ParquetFile(file)
        assert not any(b"hoodie_" in key or b"bloom" in key for key in stored.metadata.metadata)
        yield stored.read()
    for file in (file for file in files if ".log." in file.name and file.suffix != ".crc"):
        for block in read_blocks(file.read_bytes(), str(file)):
            if block.block_type is not BlockType.DELETE:
                yield decode_data_block(block, str(file))


@pytest.mark.parametrize("version", ["6", pytest.param("8", marks=pytest.mark.slow), "9"])
@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "GLOBAL_SIMPLE", "FLINK_STATE"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_table_without_stored_keys_lives_on(
    tmp_path: Path, kind: str, index: str, version: str
) -> None:
    table = HoodieTable(str(tmp_path), {**OPTIONS, TYPE: kind, VERSION: version, INDEX: index})
    rows = Rows()
    table.upsert(rows.upsert(*((f"k{n}", "xy"[n % 2], 5, float(n)) for n in range(12))))
    table.upsert(rows.upsert(("k1", "y", 6, 100.0), ("k2", "x", 4, 100.0), ("new", "x", 1, 1.0)))
    table.delete(trips(("k3", "y", 9, None)).select(["id", "city"]))
    del rows["k3", "y"]
    table.insert(rows.upsert(("k20", "y", 1, 2.0)))
    assert found(table) == rows.expected()
    if index == "GLOBAL_SIMPLE":
        table.upsert(rows.move(("k4", "y", 7, 4.5)))
        assert found(table) == rows.expected()
    if kind == "MERGE_ON_READ":
        assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
        assert found(table) == rows.expected()
    table.upsert(rows.upsert(("k5", "y", 7, 5.5), ("k1", "y", 5, 0.0)))
    if index == "BUCKET":
        table.overwrite(trips(("k0", "x", 1, 9.0)), partitions_only=True)
        for stored in [key for key in rows if key[1] == "x"]:
            del rows[stored]
        rows.upsert(("k0", "x", 1, 9.0))
    else:
        assert table.cluster() or kind == "COPY_ON_WRITE"
    assert found(table) == rows.expected()
    assert table.read().column_names == ["id", "city", "ts", "fare"]
    for stored in data_files(tmp_path):
        assert stored.column_names[:5] == META
        assert all(stored[name].null_count == stored.num_rows for name in META)
    assert HoodieTable(str(tmp_path)).properties.raw[VIRTUAL] == "false"


@pytest.mark.parametrize("version", ["6", "9"])
def test_keys_of_several_fields(tmp_path: Path, version: str) -> None:
    """As COMPLEX and NON_PARTITION have them, one of the fields inside a struct."""
    for partition in ("city", ""):
        options = {**OPTIONS, KEY: "id,place.house", VERSION: version, INDEX: "SIMPLE"}
        options |= {PARTITION: partition} if partition else {}
        if not partition:
            del options[PARTITION]
        table = HoodieTable(str(tmp_path / f"by_{partition}"), options)
        rows = trips(("a", "x", 1, 1.0), ("a", "x", 1, 2.0), ("b", "x", 1, 3.0))
        houses = pa.StructArray.from_arrays([pa.array([1, 2, 1])], ["house"])
        rows = rows.append_column("place", houses)
        table.upsert(rows)
        table.upsert(rows.slice(1, 1).set_column(3, "fare", pa.array([20.0])))
        assert sorted(table.read()["fare"].to_pylist()) == [1.0, 3.0, 20.0]


def test_a_field_whose_key_is_a_text_of_numbers(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**OPTIONS, TYPE: "MERGE_ON_READ"})
    rows = trips(*((str(n), "x", 1, float(n)) for n in range(300)))
    rows = rows.set_column(0, "id", pa.array(range(300), pa.int64()))
    table.upsert(rows)
    table.upsert(rows.slice(7, 2).set_column(3, "fare", pa.array([-1.0, -2.0])))
    fares = {row["id"]: row["fare"] for row in table.read().to_pylist()}
    assert fares == {**{n: float(n) for n in range(300)}, 7: -1.0, 8: -2.0}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({PARTITION: "city:SIMPLE"}, "key generator CUSTOM"),
        ({INDEX: "BLOOM"}, "index BLOOM .take SIMPLE or BUCKET"),
        ({INDEX: "GLOBAL_BLOOM"}, "take GLOBAL_SIMPLE or BUCKET"),
        ({KEY: None, ORDERING: None}, "without record key fields"),
    ],
)
def test_what_needs_stored_keys_is_refused(
    tmp_path: Path, options: dict[str, str | None], words: str
) -> None:
    given = {key: text for key, text in {**OPTIONS, **options}.items() if text is not None}
    with pytest.raises(OptionError, match=words):
        HoodieTable(str(tmp_path), given).insert(trips(("a", "x", 1, 1.0)))
    assert not [*tmp_path.rglob("*")]


@pytest.mark.parametrize(
    "given",
    [
        {VIRTUAL: "true"},
        {INDEX: "BLOOM"},
        {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"},
        {"hoodie.write.complex.keygen.new.encoding": "false"},
    ],
)
def test_options_that_make_other_keys_are_refused(tmp_path: Path, given: dict[str, str]) -> None:
    HoodieTable(str(tmp_path), {**OPTIONS, INDEX: "SIMPLE"}).upsert(trips(("a", "x", 1, 1.0)))
    table = HoodieTable(str(tmp_path), given)
    with pytest.raises(OptionError, match=next(iter(given))):
        table.upsert(trips(("a", "x", 2, 2.0)))
    assert found(table) == [("a", "x", 1, 1.0)]


def test_a_table_with_stored_keys_keeps_them(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), KEYED)
    table.upsert(trips(("a", "x", 1, 1.0)))
    with pytest.raises(OptionError, match=VIRTUAL):
        HoodieTable(str(tmp_path), OPTIONS).upsert(trips(("a", "x", 2, 2.0)))
    assert table.read()["_hoodie_record_key"].to_pylist() == ["a"]


def test_a_table_of_another_engine_that_needs_stored_keys_is_refused(tmp_path: Path) -> None:
    path = unzip_table("v6_cow_virtual_keys", tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    properties.write_text(
        properties.read_text().replace("generator.type=SIMPLE", "generator.type=CUSTOM")
    )
    rows = pa.table({"id": ["k01"], "city": ["ams"], "name": ["x"], "qty": [1], "ts": [99]})
    with pytest.raises(HoodieError, match="virtual keys and the key generator CUSTOM"):
        HoodieTable(str(path)).upsert(rows)


def test_the_index_of_a_table_of_another_engine_is_one_that_reads_keys(tmp_path: Path) -> None:
    """Nothing in the table says its index, and Hudi's bloom filters are not in its files."""
    table = HoodieTable(str(unzip_table("v6_cow_virtual_keys", tmp_path)))
    before = table.read()
    table.upsert(before.slice(0, 3))
    after = table.read()
    assert sorted(after.to_pylist(), key=str) == sorted(before.to_pylist(), key=str)
