"""Tables written by Apache Hudi read as its own reader reads them, and take what we write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError, OptionError, UnsupportedTableError
from tests.golden.golden_tables import (
    assert_rows_equal,
    expected_rows,
    golden_names,
    notation,
    unzip_table,
)
from tests.golden.test_golden_tables import BEYOND_HUDI_RS
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.tables import tree

VERSION_6 = golden_names("v6_")
LATER = [name for name in golden_names() if name not in VERSION_6]
LOSABLE = [name for name in LATER if "failed" not in name and "virtual" not in name]
"""Tables whose newest file is in the snapshot, and named by a column of it."""

BUCKETS = {"hoodie.bucket.index.num.buckets": "2"}
"""Apache Hudi does not record the number of buckets in the table."""

REFUSED: dict[str, tuple[type[HoodieError], str]] = {
    "v6_cow_no_keys": (OptionError, "has no record keys"),
    "v6_mor_consistent_buckets_split": (UnsupportedTableError, "buckets that Hudi splits"),
    "v6_mor_consistent_buckets_splitting": (UnsupportedTableError, "buckets that Hudi splits"),
}
"""Tables that take no upsert, with what it is refused with."""

CLUSTERINGS = {name for name in golden_names() if name.endswith("clustering_requested")}
WRITABLE = sorted({*golden_names()} - {*REFUSED, *CLUSTERINGS})
BUCKETED = {
    *("v6_mor_bucket", "v6_mor_bucket_rules", "v6_mor_history"),
    *("v6_mor_failed_open", "v6_mor_failed_rolled_back"),
    *(name for name in golden_names() if "_mor_undone_" in name),
    *("v8_mor_bucket", "v9_mor_bucket", "v9_mor_cdc_compacted", "v9_mor_history"),
    *("v9_mor_failed_open", "v9_mor_failed_rolled_back"),
}
LOOKED_UP = [
    *("v6_cow_complex_keys", "v6_cow_types", "v6_cow_url_encoded", "v6_mor_types_parquet"),
    *("v9_cow_types", "v9_mor_types_parquet"),
]


@pytest.mark.parametrize("number", ["3", "64"])
@pytest.mark.parametrize("name", ["v6_mor_bucket", "v8_mor_bucket", "v9_mor_bucket"])
def test_another_number_of_buckets_than_that_of_its_writers_is_refused(
    name: str, number: str, tmp_path: Path
) -> None:
    """Else all keys may come to buckets that are not there yet, and are stored twice."""
    path = str(unzip_table(name, tmp_path))
    rows = HoodieTable(path).read()
    again = rows.drop_columns([c for c in rows.column_names if c.startswith("_hoodie_")])
    table = HoodieTable(path, {"hoodie.bucket.index.num.buckets": number})
    with pytest.raises(UnsupportedTableError, match=f"of {number}; the table was written with"):
        table.upsert(again)
    assert_rows_equal(HoodieTable(path).read(), expected_rows(name))


@pytest.mark.parametrize("name", golden_names())
def test_every_version_reads_equal(name: str, tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    assert_rows_equal(table.read(), expected_rows(name))


@pytest.mark.parametrize("name", LOSABLE)
def test_a_file_that_was_lost_is_missed(name: str, tmp_path: Path) -> None:
    """Whatever file a snapshot is made of, also where its newest commits wrote no base file."""
    path = unzip_table(name, tmp_path)
    table = HoodieTable(str(path))
    names = set(table.read()["_hoodie_file_name"].to_pylist())
    group = min(names).partition("_")[0]
    files = [found for found in path.rglob(f"*{group}_*") if ".hoodie" not in found.parts]
    live = [found for found in files if ".marker" not in found.name and ".cdc" not in found.name]
    newest = max(live, key=lambda found: re.findall(r"_([0-9]{17})", found.name)[-1])
    newest.unlink()
    with pytest.raises(HoodieError, match=re.escape(newest.name)):
        HoodieTable(str(path)).read()


@pytest.mark.parametrize("name", [name for name in golden_names() if "virtual" in name])
def test_columns_of_a_table_without_meta_columns(name: str, tmp_path: Path) -> None:
    """Also none of those by which rows are merged, and none at all."""
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    expected = sorted(str(row["name"]) for row in expected_rows(name))
    assert sorted(map(str, table.read(["name"])["name"].to_pylist())) == expected
    assert table.read([]).num_rows == len(expected)
    assert table.read(filter=pc.field("id") == "k01").num_rows == 1
    assert not any(column.startswith("_hoodie_") for column in table.schema.names)


def test_columns_alone_beside_a_rule_for_whole_rows_are_refused(tmp_path: Path) -> None:
    path = unzip_table("v9_mor_columns_updated", tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    mode = "\nhoodie.table.partial.update.mode=IGNORE_DEFAULTS\n"
    properties.write_text(properties.read_text() + mode)
    with pytest.raises(UnsupportedTableError, match="rows with some of the columns only"):
        HoodieTable(str(path)).read()


@pytest.mark.parametrize("field", ["name", "nothing"])
def test_rows_that_a_column_marks_as_deletes(field: str, tmp_path: Path) -> None:
    """As Hudi stores `AWSDmsAvroPayload` in version 9; here it is a name that marks a delete."""
    name = "v9_mor_virtual_keys"
    path = unzip_table(name, tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    prefix = "hoodie.record.merge.property.hoodie.payload.delete"
    marks = f"\n{prefix}.field={field}\n{prefix}.marker=name 1 r2\n"
    properties.write_text(properties.read_text() + marks)
    left = [row for row in expected_rows(name) if field != "name" or row["id"] != "k01"]
    assert_rows_equal(HoodieTable(str(path)).read(), left)
    assert len(left) == len(expected_rows(name)) - (field == "name")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_to_stays_as_it_is(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    before = tree(path)
    kind, words = REFUSED[name]
    rows = pa.table({"id": ["k01"], "city": ["ams"], "name": ["x"], "qty": [1], "ts": [99]})
    with pytest.raises(kind, match=words):
        HoodieTable(str(path)).upsert(rows)
    assert tree(path) == before


def test_buckets_are_refused_where_the_table_has_none(tmp_path: Path) -> None:
    path = unzip_table("v6_mor_commit_time", tmp_path)
    before = tree(path)
    table = HoodieTable(str(path), {"hoodie.index.type": "BUCKET", **BUCKETS})
    with pytest.raises(UnsupportedTableError, match="has another index"):
        table.upsert(user_rows(table))
    assert tree(path) == before


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE"])
@pytest.mark.parametrize("name", LOOKED_UP)
def test_every_key_of_a_table_is_found_again(name: str, index: str, tmp_path: Path) -> None:
    """All rows upserted once more: their number stays, and no file group is added."""
    table = HoodieTable(str(unzip_table(name, tmp_path)), {"hoodie.index.type": index})
    before = table.read()
    table.upsert(user_rows(table))
    after = table.read()
    assert by_key(after) == by_key(before)
    assert file_groups(after) <= file_groups(before)


@pytest.mark.parametrize("name", WRITABLE)
def test_a_table_goes_on_here(name: str, tmp_path: Path) -> None:
    """A row changed, a row deleted, a row added: these differ, to us and to hudi-rs."""
    path = unzip_table(name, tmp_path)
    table = HoodieTable(str(path), BUCKETS if name in BUCKETED else {})
    rows, expected = user_rows(table).sort_by("id"), by_key(table.read())
    changed, deleted = rows.slice(0, 1), rows.slice(1, 1)
    added = changed.set_column(rows.schema.get_field_index("id"), "id", pa.array(["new"]))
    later = pc.add(changed["ts"], 1000)
    changed = changed.set_column(rows.schema.get_field_index("ts"), "ts", later)
    table.upsert(pa.concat_tables([changed, added]))
    table.delete(deleted.select(dict.fromkeys(["id", *keys_of(table)])))

    after = table.read()
    found = by_key(after)
    assert sorted(row["id"] for row in found.values()) == sorted(
        ["new", *(row["id"] for row in rows.to_pylist()[2:]), changed["id"][0].as_py()]
    )
    differing = [key for key in found if found[key] != expected.get(key)]
    assert [found[key] for key in sorted(differing)] == notation(
        pa.concat_tables([changed, added]).to_pylist()
    )
    if name not in BEYOND_HUDI_RS:
        assert_rows_equal(read_with_hudi_rs(path), notation(after.to_pylist()))


def keys_of(table: HoodieTable) -> tuple[str, ...]:
    return (*table.properties.record_key_fields, *table.properties.partition_fields)


def user_rows(table: HoodieTable) -> pa.Table:
    return table.read().drop_columns([c for c in table.schema.names if c.startswith("_hoodie_")])


def by_key(rows: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows without meta columns, by partition path and record key, each of which is there once."""
    names = ("_hoodie_record_key", "_hoodie_partition_path")
    key, path = names if names[0] in rows.column_names else ("id", "city")
    found = {
        (row[key], row[path]): {
            column: value for column, value in row.items() if not column.startswith("_hoodie_")
        }
        for row in notation(rows.to_pylist())
    }
    assert len(found) == rows.num_rows
    return found


def file_groups(rows: pa.Table) -> set[str]:
    return {name.split("_")[0] for name in rows["_hoodie_file_name"].to_pylist()}
