"""Secondary indexes that Apache Hudi made: their keys, and that writes and services keep them."""

from __future__ import annotations

import json
import logging
import re
import shlex
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, OptionError, SchemaError
from hoodie_ds.metadata_table.record_keys import file_groups_of
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.secondary_index import SecondaryIndex, secondary_indexes
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.paths import INDEX_DEFINITIONS, METADATA_TABLE
from tests.cli_runs import done
from tests.golden.test_metadata_tables import FOLDER, opened, unzipped
from tests.rows import without_meta

INDEXED = ("v9_mor_files_ri_si", "v8_cow_files_ri_si")
MERGED, COPIED = INDEXED
OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.metadata.compact.max.delta.commits": "100",
}


def rows_of(table: HoodieTable, **changes: object) -> pa.Table:
    """All rows of a table, some of whose columns are another value."""
    rows = without_meta(table.read())
    for name, value in changes.items():
        at, kind = rows.schema.get_field_index(name), rows.schema.field(name).type
        rows = rows.set_column(at, name, pa.array([value] * rows.num_rows, kind))
    return rows


def sound(table: HoodieTable) -> bool:
    """Whether each index says what the rows do."""
    return not table.inspect.verify_metadata_table().findings


@pytest.mark.parametrize("name", INDEXED)
def test_keys_are_in_the_file_groups_in_which_hudi_has_them(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    metadata, indexes = opened(path), list(secondary_indexes(open_table(open_storage(path))))
    assert {one.version for one in indexes} == {"V1" if name.startswith("v8") else "V2"}
    for index in indexes:
        groups = list(metadata.records(index.partition))
        for number, group in enumerate(groups):
            hashed = pa.array(map(index.hashed, group), pa.string())
            assert {*file_groups_of(hashed, len(groups))} <= {number}
    assert sound(HoodieTable(path))


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (pa.array(["plain", "a$b\\c\0", "", None]), ["plain", "a\\$b\\\\c\\\0", "", "\0"]),
        (pa.array([-1, None], pa.int64()), ["-1", "\0"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([19_724], pa.date32()), ["19724"]),
        (pa.array([1_704_067_201_123_456], pa.timestamp("us", "UTC")), ["1704067201123456"]),
    ],
)
def test_values_are_the_strings_of_java(values: pa.Array, keys: list[str]) -> None:
    index = SecondaryIndex("secondary_index_of", "c", "V2")
    made = index.keys(values, pa.array(["k$1"] * len(values))).to_pylist()
    assert made == [f"{key}$k\\$1" for key in keys]
    assert [index.hashed(key) for key in made] == [f"{key}$" for key in keys]


@pytest.mark.parametrize("name", [MERGED, pytest.param(COPIED, marks=pytest.mark.slow)])
def test_writes_and_a_rollback_keep_the_values(tmp_path: Path, name: str) -> None:
    table = HoodieTable(unzipped(name, tmp_path), OPTIONS)
    table.upsert(rows_of(table, name="a$b", ts=10, city="moved"))
    assert sound(table)
    table.delete(rows_of(table, ts=12).slice(0, 2))
    assert sound(table)
    table.rollback()
    assert set(table.read().column("name").to_pylist()) == {"a$b"}
    assert sound(table)


def test_a_row_that_moves_keeps_its_value(tmp_path: Path) -> None:
    table = HoodieTable(unzipped(MERGED, tmp_path), OPTIONS)
    table.upsert(rows_of(table, ts=10, city="moved").slice(0, 1))
    assert sound(table)


def test_a_check_names_what_an_index_lacks_and_has_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(unzipped(MERGED, tmp_path), OPTIONS)
    monkeypatch.setattr("hoodie_ds.metadata_table.follower.secondary_changes", lambda *_: {})
    table.upsert(rows_of(table, name="new", ts=10).slice(0, 1))
    found = table.inspect.verify_metadata_table().findings
    assert [one.where for one in found] == [".hoodie/metadata/secondary_index_by_name"] * 2
    no_row, missing = (one.message for one in found)
    assert "of no row: 1, such as" in no_row
    assert "missing or wrong: 1, such as 'new$" in missing
    assert table.repair_metadata_table().dropped == ("secondary_index_by_name",)


def test_a_column_keeps_the_strings_of_its_values(tmp_path: Path) -> None:
    path = Path(unzipped(COPIED, tmp_path))
    redefine(path, {"sourceFields": ["qty"]})
    rows = rows_of(HoodieTable(str(path)))
    at = rows.schema.get_field_index("qty")
    rows = rows.set_column(at, "qty", rows.column("qty").cast(pa.float64()))
    with pytest.raises(SchemaError, match=r"qty.*secondary_index_by_name.*metadata drop"):
        HoodieTable(str(path)).upsert(rows)
    HoodieTable(str(path)).upsert(
        rows, {"hoodie.metadata.global.record.level.index.enable": "false"}
    )


def test_a_column_keeps_its_name(tmp_path: Path) -> None:
    """One that is added under its name has none of its values."""
    table = HoodieTable(unzipped(MERGED, tmp_path))
    for change in (
        table.alter().rename("name", "title"),
        table.alter().drop("name").add("name", pa.string()),
    ):
        with pytest.raises(SchemaError, match=r"name.*secondary_index_by_name.*metadata drop"):
            change.execute()
    without = {"hoodie.metadata.enable": "false"}
    assert change.execute(without, dry=True)
    assert change.execute(without)
    assert not table.properties.metadata_partitions


def test_the_values_of_some_types_are_not_kept(tmp_path: Path) -> None:
    path = Path(unzipped(MERGED, tmp_path))
    redefine(path, {"sourceFields": ["fare"], "version": "V2"})
    with pytest.raises(OptionError, match="cannot keep secondary_index_by_name up to date"):
        HoodieTable(str(path)).clean()


def redefine(path: Path, definition: dict[str, object] | None) -> None:
    """Store another definition of the index, or none."""
    stored = json.loads((path / INDEX_DEFINITIONS).read_text())
    stored["indexDefinitions"].pop("secondary_index_by_name", None)
    if definition is not None:
        stored["indexDefinitions"]["secondary_index_by_name"] = definition
    (path / INDEX_DEFINITIONS).write_text(json.dumps(stored))


def test_an_index_without_a_whole_definition_is_refused(tmp_path: Path) -> None:
    path = Path(unzipped(MERGED, tmp_path))
    redefine(path, None)
    with pytest.raises(OptionError, match="cannot keep secondary_index_by_name up to date"):
        HoodieTable(str(path)).clean()
    redefine(path, {"sourceFields": []})
    with pytest.raises(CorruptFileError, match=r"index\.json"):
        HoodieTable(str(path)).clean()


def test_an_index_that_is_dropped_is_not_made_again(tmp_path: Path) -> None:
    path = Path(unzipped(MERGED, tmp_path))
    done("metadata", "drop", path, "--partition", "secondary_index_by_name", "--yes")
    defined = json.loads((path / INDEX_DEFINITIONS).read_text())["indexDefinitions"]
    assert set(defined) == {"record_index"}
    assert HoodieTable(str(path)).properties.metadata_partitions == ("files", "record_index")


def test_the_record_index_is_dropped_with_the_indexes_that_are_read_by_it(tmp_path: Path) -> None:
    table = HoodieTable(unzipped(MERGED, tmp_path))
    gone = table.drop_metadata_table(["record_index"]).dropped
    assert gone == ("record_index", "secondary_index_by_name")
    assert table.properties.metadata_partitions == ("files",)


def test_a_record_index_that_is_made_anew_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(unzipped(MERGED, tmp_path), OPTIONS)
    with monkeypatch.context() as patched:
        patched.setattr("hoodie_ds.metadata_table.follower.record_changes", lambda *_: {})
        table.upsert(rows_of(table, id="new", ts=10).slice(0, 1))
    assert not sound(table)
    assert table.repair_metadata_table().dropped == ("record_index",)
    assert sound(table)


def test_a_downgrade_drops_what_the_earlier_version_does_not_know(tmp_path: Path) -> None:
    path = Path(unzipped(MERGED, tmp_path))
    HoodieTable(str(path)).downgrade(8)
    defined = json.loads((path / INDEX_DEFINITIONS).read_text())["indexDefinitions"]
    assert set(defined) == {"record_index"}
    assert HoodieTable(str(path)).properties.metadata_partitions == ("files", "record_index")


def with_expression_index(path: Path) -> Path:
    with zipfile.ZipFile(FOLDER / "refused/v9_cow_files_ei.zip") as archive:
        archive.extractall(path)
    return path


def test_a_write_drops_an_expression_index_alone_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = with_expression_index(tmp_path)
    table = HoodieTable(str(path), OPTIONS)
    assert "writes drop expr_index_by_day by default" in table.inspect.show().remarks
    assert table.upsert(rows_of(table, ts=10)).instant_time
    (warning,) = (one for one in caplog.records if one.levelno >= logging.WARNING)
    assert "of its metadata table expr_index_by_day is dropped" in warning.getMessage()
    assert table.properties.metadata_partitions == ("files",)
    assert not (path / METADATA_TABLE / "expr_index_by_day").exists()
    assert json.loads((path / INDEX_DEFINITIONS).read_text()) == {"indexDefinitions": {}}
    assert sound(table)


@pytest.mark.parametrize(
    "kept",
    [
        {"hoodie.metadata.index.expression.enable": "true"},
        pytest.param({"hoodie.metadata.auto.delete.partitions": "false"}, marks=pytest.mark.slow),
    ],
)
def test_an_expression_index_is_dropped_alone_on_request(
    tmp_path: Path, kept: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    path = with_expression_index(tmp_path)
    table = HoodieTable(str(path), {**OPTIONS, **kept})
    rows = rows_of(table, ts=10)
    with pytest.raises(OptionError, match="cannot keep expr_index_by_day up to date") as refused:
        table.upsert(rows)
    drop = re.findall("`.*?`", str(refused.value))[0]
    assert any(f"{drop} drops that alone" in one for one in table.inspect.show().remarks)
    named = shlex.split(drop.strip("`"))
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
    done(*named[1:], "--yes")
    (warning,) = (one for one in caplog.records if one.levelno >= logging.WARNING)
    assert "expr_index_by_day is dropped" in warning.getMessage()
    assert table.upsert(rows).instant_time
    assert table.properties.metadata_partitions == ("files",)
    assert sound(table)
