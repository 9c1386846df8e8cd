"""Bad input gets an error that says key, value and remedy, and leaves every file as it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    CorruptFileError,
    HoodieError,
    OptionError,
    RecordKeyError,
    SchemaError,
    TableNotFoundError,
    UnsupportedTableError,
)
from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TRIPS, TYPE, found, tree, trips

ROWS = trips(("a", "x", 1, 1.5), ("b", "y", 1, 2.5))
PROPERTIES = ".hoodie/hoodie.properties"


@pytest.fixture(params=["new", "existing"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where a table is to be, or is."""
    path = tmp_path / "table"
    if request.param == "existing":
        HoodieTable(str(path), TRIPS).upsert(ROWS)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table's folder."""
    path = tmp_path / "table"
    HoodieTable(str(path), TRIPS).upsert(ROWS)
    return path


def refused(
    path: Path,
    kind: type[HoodieError],
    *shown: str,
    rows: pa.Table = ROWS,
    options: Mapping[str, str] = TRIPS,
) -> None:
    """An upsert is refused; the message shows all of `shown`, and no file or folder changed."""
    before = tree(path)
    with pytest.raises(kind) as caught:
        HoodieTable(str(path), options).upsert(rows)
    for text in shown:
        assert text in str(caught.value)
    assert tree(path) == before


def test_an_unknown_option_names_the_nearest_known(place: Path) -> None:
    wrong = "hoodie.bucket.index.num.bucket"
    refused(place, OptionError, wrong, BUCKETS, options={**TRIPS, wrong: "2"})


def test_a_malformed_number(place: Path) -> None:
    options = {**TRIPS, BUCKETS: "two"}
    refused(place, OptionError, BUCKETS, "'two'", "whole number", options=options)


def test_a_value_outside_a_closed_set(place: Path) -> None:
    options = {**TRIPS, TYPE: "MOR"}
    refused(place, OptionError, TYPE, "'MOR'", "COPY_ON_WRITE", options=options)


def test_another_table_version_as_option(place: Path) -> None:
    options = {**TRIPS, "hoodie.write.table.version": "10"}
    refused(place, OptionError, "hoodie.write.table.version", "'10'", "6, 8 or 9", options=options)


def test_a_partition_delete_without_partitions(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, PARTITION: ""})
    table.upsert(ROWS)
    before = tree(tmp_path)
    with pytest.raises(OptionError, match=r"delete_partition.*no partitions"):
        table.delete_partitions(["x"])
    assert tree(tmp_path) == before


def test_a_metadata_table_is_asked_for(place: Path) -> None:
    """It is made, and changes no rows."""
    table = HoodieTable(str(place), {**TRIPS, "hoodie.metadata.enable": "true"})
    for _ in range(2):  # the first one may make the table
        table.upsert(ROWS)
    assert found(table) == [("a", "x", 1, 1.5), ("b", "y", 1, 2.5)]
    assert table.properties.metadata_partitions == ("files",)


def test_a_new_table_without_a_name(tmp_path: Path) -> None:
    options = {key: value for key, value in TRIPS.items() if key != "hoodie.table.name"}
    refused(tmp_path / "t", OptionError, "hoodie.table.name", "needs a name", options=options)


@pytest.mark.parametrize("column", ["id", "city", "ts"])
def test_a_column_of_key_partition_or_ordering_is_missing(place: Path, column: str) -> None:
    rows = ROWS.drop_columns([column])
    refused(place, SchemaError, f"'{column}'", ", ".join(rows.column_names), rows=rows)


@pytest.mark.parametrize("value", [None, ""])
def test_a_null_or_empty_key(place: Path, value: str | None) -> None:
    rows = ROWS.set_column(0, "id", pa.array(["a", value], pa.string()))
    refused(place, RecordKeyError, "'id'", "row 1", f"id={value!r}", "filter", rows=rows)


def test_a_partition_that_hudi_on_the_jvm_cannot_open(place: Path) -> None:
    rows = ROWS.set_column(1, "city", pa.array(["x", "10:30"]))
    refused(place, RecordKeyError, "'10:30'", "urlencode=true", rows=rows)


def test_columns_that_differ_only_in_case(place: Path) -> None:
    rows = ROWS.append_column("City", pa.array(["x", "y"]))
    refused(place, SchemaError, "'city'", "'City'", "rename", rows=rows)


def test_a_delete_where_there_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "table"
    with pytest.raises(TableNotFoundError, match="delete from"):
        HoodieTable(str(path), TRIPS).delete(ROWS.select(["id", "city"]))
    assert tree(path) == {}


def test_a_column_type_that_no_table_holds(place: Path) -> None:
    months = pa.array([None, None], pa.month_day_nano_interval())
    rows = ROWS.append_column("span", months)
    refused(place, SchemaError, "'span'", "month_day_nano_interval", "cast", rows=rows)


def test_an_ordering_column_without_an_order(tmp_path: Path) -> None:
    rows = ROWS.set_column(2, "ts", pa.array([b"1", b"2"]))
    refused(tmp_path / "t", SchemaError, "'ts'", "binary", "timestamps", rows=rows)


def test_a_delete_mark_that_is_not_boolean(place: Path) -> None:
    rows = ROWS.append_column("_hoodie_is_deleted", pa.array([1, 0]))
    refused(place, SchemaError, "_hoodie_is_deleted", "int64", "boolean", rows=rows)


def test_a_column_name_that_avro_does_not_allow(place: Path) -> None:
    rows = ROWS.append_column("a-b", pa.array([1, 0]))
    refused(place, SchemaError, "'a-b'", "rename", rows=rows)


def test_an_incompatible_change_of_a_column(table: Path) -> None:
    rows = ROWS.set_column(3, "fare", pa.array(["1", "2"]))
    refused(table, SchemaError, "'fare'", "double", "string", "cast", rows=rows)


def test_a_column_of_the_table_is_missing(table: Path) -> None:
    key = "hoodie.write.set.null.for.missing.columns"
    refused(table, SchemaError, "'fare'", key, rows=ROWS.drop_columns(["fare"]))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.name", "other"),
        (KEY, "fare"),
        (PARTITION, "fare"),
        (ORDERING, "fare"),
        (TYPE, "MERGE_ON_READ"),
        (BUCKETS, "3"),
    ],
)
def test_an_option_that_the_table_contradicts(table: Path, key: str, value: str) -> None:
    options = {**TRIPS, key: value}
    refused(table, OptionError, key, f"'{value}'", "another table", options=options)


def test_a_base_path_that_holds_other_files(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("mine")
    refused(tmp_path, OptionError, "'path'", str(tmp_path), "name another")


def test_reading_where_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="check the path"):
        HoodieTable(str(tmp_path / "none")).read()
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("version", ["5", "8", "9"])
def test_a_table_of_another_version(table: Path, version: str) -> None:
    edit(table, "hoodie.table.version=6", f"hoodie.table.version={version}")
    refused(table, UnsupportedTableError, f"version {version}")


def test_a_table_with_a_metadata_table(table: Path) -> None:
    there = "hoodie.table.metadata.partitions=files,strange"
    edit(table, "hoodie.table.name", f"{there}\nhoodie.table.name")
    refused(table, OptionError, "hoodie.metadata.enable", "files", "false")


def test_properties_whose_checksum_does_not_fit(table: Path) -> None:
    edit(table, "hoodie.table.checksum=", "hoodie.table.checksum=1")
    refused(table, CorruptFileError, PROPERTIES)


def test_properties_cut_off(table: Path) -> None:
    (table / PROPERTIES).write_bytes(b"#Properties")
    refused(table, CorruptFileError, PROPERTIES)


def test_a_table_that_lost_its_properties(table: Path) -> None:
    (table / PROPERTIES).unlink()
    refused(table, CorruptFileError, "hoodie.properties", "restore it")


def test_an_interrupted_creation_is_done_again(tmp_path: Path) -> None:
    (tmp_path / ".hoodie" / ".temp").mkdir(parents=True)
    (tmp_path / ".hoodie" / ".hoodie.properties-1.tmp").write_bytes(b"hoodie.table.na")
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS)
    assert [row[0] for row in found(table)] == ["a", "b"]


def edit(table: Path, old: str, new: str) -> None:
    """Replace text once in a table's properties."""
    path = table / PROPERTIES
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_date_format_that_cannot_be_read(tmp_path: Path) -> None:
    key = "hoodie.keygen.timebased."
    options = {
        **TRIPS,
        PARTITION: "ts",
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        f"{key}timestamp.type": "EPOCHMILLISECONDS",
        f"{key}output.dateformat": "yyyy'unclosed",
    }
    refused(tmp_path / "t", OptionError, f"{key}output.dateformat", "unclosed", options=options)
