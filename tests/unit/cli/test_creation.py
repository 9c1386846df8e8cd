"""A table is made and loaded without Spark."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from tests.cli_runs import done, run
from tests.golden.golden_tables import FOLDER
from tests.tables import found, trips

NEW = ["--key", "id", "--partition", "city", "--ordering", "ts", "--type", "mor", "--buckets", "2"]
ROWS = trips(("a", "oslo", 1, 1.5), ("b", "rome", 1, 2.5))
WHOLE = trips(("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0))


def written(folder: Path, kind: str, rows: pa.Table = ROWS) -> Path:
    file = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(rows, file)
    elif kind == "csv":
        pyarrow.csv.write_csv(rows, file)
    else:
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))
    return file


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_files_are_loaded_into_a_new_table(kind: str, tmp_path: Path) -> None:
    file, path = written(tmp_path, kind), tmp_path / "trips"
    told = done("load", path, file, *NEW).lines
    assert told[0] == "new table trips, version 6, record key id"
    first = told[-1]
    assert first.endswith(": 2 inserted, 0 updated, 0 deleted")
    table = HoodieTable(path)
    assert found(table) == [("a", "oslo", 1, 1.5), ("b", "rome", 1, 2.5)]
    assert (table.properties.name, table.properties.num_buckets) == ("trips", 2)
    (again,) = done("load", path, file).lines  # the table knows the rest
    assert again.endswith(": 0 inserted, 2 updated, 0 deleted")
    assert done("verify", path).lines[-1].endswith("2 rows: 0 damages")
    done("load", path, file, "--operation", "overwrite")
    assert len(found(table)) == 2


def test_vectors_come_as_lists_of_json(tmp_path: Path) -> None:
    zipfile.ZipFile(FOLDER.with_name("types") / "vector.zip").extractall(tmp_path / "t")
    file, new = tmp_path / "rows.json", {"id": 2, "v": [0.25, -1, 3], "ts": 1}
    file.write_text(f"{json.dumps(new)}\n{json.dumps({**new, 'id': 3, 'v': None})}\n")
    done("load", tmp_path / "t", file, "--conf", "hoodie.index.type=SIMPLE")
    vectors = HoodieTable(tmp_path / "t").read(columns=["id", "v"]).sort_by("id")
    assert vectors["v"].to_pylist() == [[0.5, 1.5, 2.5], [0.25, -1.0, 3.0], None]


def test_digits_that_begin_with_a_zero_are_strings(tmp_path: Path) -> None:
    one, other, path = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "t"
    one.write_text("id,zip,count,part\n7,,0,1\n10,10115,-5,2\n")
    other.write_text("id,zip,count,part\n007,01234,10,2\n7,99999,20,1\n")
    done("load", path, one, other, "--key", "id", "--partition", "part")
    rows = HoodieTable(path).read(columns=["id", "zip", "count"]).sort_by("count").to_pylist()
    values = [tuple(row.values()) for row in rows]
    assert values == [("10", "10115", -5), ("007", "01234", 10), ("7", "99999", 20)]
    numbers = tmp_path / "numbers"
    done("create", numbers, "--key", "id", "--columns", "id int, zip int, count int, part int")
    done("load", numbers, other)
    assert sorted(HoodieTable(numbers).read(columns=["id"])["id"].to_pylist()) == [7]


def test_several_files_are_one_commit(tmp_path: Path) -> None:
    one = written(tmp_path, "parquet")
    (tmp_path / "more").mkdir()
    other = written(tmp_path / "more", "parquet", trips(("c", "oslo", 3, 3.0)))
    done("load", tmp_path / "t", one, other.parent)
    table = HoodieTable(tmp_path / "t")
    assert len(table.timeline.commits) == 1
    assert table.read().num_rows == 3
    assert table.properties.record_key_fields == ()


def test_an_empty_table_is_created(tmp_path: Path) -> None:
    path = tmp_path / "t"
    assert done("create", path, *NEW, "--columns", "id string, city string, ts int64, fare double")
    table = HoodieTable(path)
    assert table.read().num_rows == 0
    assert [c.name for c in table.inspect.columns()] == ["id", "city", "ts", "fare"]
    again = run("create", path, "--columns", "id string")
    assert (again.code, again.err.count("holds a table already")) == (1, 1)
    done("load", path, written(tmp_path, "csv", WHOLE))  # as numbers of the table's type
    assert len(found(table)) == 2
    done("create", tmp_path / "like", "--like", written(tmp_path, "parquet"), "--name", "x")
    assert HoodieTable(tmp_path / "like").properties.name == "x"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "{0}/t"], "either --columns or --like"),
        (["create", "{0}/t", "--columns", "id strin"], "write a name and a type"),
        (["load", "{0}/t", "{0}/rows.csv", "{0}/rows.parquet"], "several formats"),
        (["load", "{0}/t", "{0}/rows.txt"], "give --format"),
        (["load", "{0}/t", "{0}/rows.txt", "--format", "parquet"], "rows.txt"),
        (["load", "{0}/t", "{0}/none.csv"], "does not exist"),
    ],
)
def test_unusable_arguments_print_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        written(tmp_path, kind)
    (tmp_path / "rows.txt").write_text("x")
    ended = run(*(argument.format(tmp_path) for argument in arguments))
    assert (ended.code, said in ended.err) == (2, True)
    assert not (tmp_path / "t").exists()


def test_a_line_of_another_type_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    """It is found while the rows are read, and is no bug of the command."""
    path, file = tmp_path / "t", written(tmp_path, "csv", WHOLE)
    done("load", path, file, *NEW)
    file.write_text(f"{file.read_text()}c,oslo,2,dear\n")
    ended = run("load", path, file)
    assert (ended.code, "dear" in ended.err, len(ended.err.splitlines())) == (2, True, 1)
    table = HoodieTable(path)
    assert found(table) == [("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0)]
    assert len(table.timeline.commits) == 1
    assert list(table.inspect.plans()) == []


def test_a_folder_of_several_formats_is_refused(tmp_path: Path) -> None:
    """Else lines of JSON are read as CSV, and become rows of nulls."""
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder, "csv")
    for hidden in ("_SUCCESS", ".rows.csv.crc"):
        (folder / hidden).touch()
    assert (
        done("load", tmp_path / "t", folder).lines[-1].endswith("2 inserted, 0 updated, 0 deleted")
    )
    for name, said in (("b.json", "several formats, csv, json"), ("README", "give --format")):
        (folder / name).write_text('{"id": "x"}\n')
        refused = run("load", tmp_path / "t", folder)
        assert (refused.code, said in refused.err) == (2, True)
        (folder / name).unlink()


def test_columns_have_the_names_of_sql_and_those_that_schema_prints(tmp_path: Path) -> None:
    types = {
        "a": ("bigint", pa.int64()),
        "b": ("int", pa.int32()),
        "c": ("boolean", pa.bool_()),
        "d": ("date", pa.date32()),
        "e": ("timestamp", pa.timestamp("us", "UTC")),
        "f": ("decimal(10, 2)", pa.decimal128(10, 2)),
        "g": ("timestamp_ntz", pa.timestamp("us")),
    }
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in types.items())
    done("create", tmp_path / "t", "--columns", columns, "--type", "MOR")
    made = HoodieTable(tmp_path / "t").schema
    assert [made.field(name).type for name in types] == [kind for _, kind in types.values()]
    printed = ", ".join(f"{name} {made.field(name).type}" for name in types)
    done("create", tmp_path / "u", "--columns", printed)
    assert HoodieTable(tmp_path / "u").schema == made


def test_a_file_that_is_not_parquet_is_a_usage_error(tmp_path: Path) -> None:
    file = written(tmp_path, "csv")
    answer = run("create", tmp_path / "t", "--like", file)
    assert answer.code == 2
    assert "name a Parquet file" in answer.err


def test_help_and_tables_agree_on_the_index_without_buckets(tmp_path: Path) -> None:
    done("create", tmp_path / "t", "--columns", "id string", "--key", "id")
    assert HoodieTable(tmp_path / "t").properties.num_buckets == 4
    assert "4 by default, where there is a record key" in " ".join(
        done("load", "--help").out.split()
    )
