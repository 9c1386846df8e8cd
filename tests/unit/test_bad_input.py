"""Bad input: an error of ours that names key, value and remedy; the table stays as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
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

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
ROWS = pa.table({"id": ["a", "b"], "ts": [1, 1], "v": ["x", "y"]})


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    HoodieTable(str(tmp_path / "t"), OPTIONS).upsert(ROWS)
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("options", "rows", "error", "words"),
    [
        ({"hoodie.datasource.write.recordkey.feild": "id"}, ROWS, OptionError, ["recordkey.field"]),
        ({"hoodie.bucket.index.num.buckets": "four"}, ROWS, OptionError, ["num.buckets", "four"]),
        ({"hoodie.bucket.index.num.buckets": "8"}, ROWS, OptionError, ["num.buckets", "8", "4"]),
        ({"hoodie.table.name": "other"}, ROWS, OptionError, ["hoodie.table.name", "other", "t"]),
        ({"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, ROWS, OptionError, ["type"]),
        ({"hoodie.index.type": "BLOOM"}, ROWS, OptionError, ["hoodie.index.type", "BLOOM"]),
        ({"hoodie.datasource.write.operation": "insert"}, ROWS, OptionError, ["operation"]),
        ({"hoodie.metadata.enable": "true"}, ROWS, OptionError, ["hoodie.metadata.enable"]),
        ({}, ROWS.drop_columns(["id"]), SchemaError, ["id"]),
        ({}, ROWS.drop_columns(["ts"]), SchemaError, ["ts"]),
        ({}, ROWS.drop_columns(["v"]), SchemaError, ["'v'", "set.null.for.missing.columns"]),
        (
            {},
            ROWS.set_column(2, "v", pa.array([1.5, 2.5])),
            SchemaError,
            ["'v'", "string", "double"],
        ),
        ({}, ROWS.append_column("d", pa.array([1, 2], pa.duration("us"))), SchemaError, ["'d'"]),
        ({}, ROWS.set_column(0, "id", pa.array(["a", None])), RecordKeyError, ["id"]),
        ({}, ROWS.set_column(0, "id", pa.array(["a", ""])), RecordKeyError, ["id"]),
    ],
)
def test_refused_writes_leave_the_table_as_it_was(
    folder: Path, options: dict[str, str], rows: pa.Table, error: type, words: list[str]
) -> None:
    before = tree(folder)
    table = HoodieTable(str(folder), {**OPTIONS, **options})
    with pytest.raises(error) as caught:
        table.upsert(rows)
    assert isinstance(caught.value, HoodieError)
    for word in words:
        assert word in str(caught.value)
    assert tree(folder) == before


def _damage(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / ".hoodie" / name
        path.write_text(change(path.read_text()))

    return apply


def _drop(key: str) -> Callable[[str], str]:
    return lambda text: "\n".join(line for line in text.splitlines() if not line.startswith(key))


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (
            _damage("hoodie.properties", lambda text: text.replace("version=6", "version=8", 1)),
            UnsupportedTableError,
            ["version 8"],
        ),
        (
            _damage("hoodie.properties", _drop("hoodie.table.name")),
            CorruptFileError,
            ["hoodie.properties", "hoodie.table.name"],
        ),
        (
            _damage("hoodie.properties", lambda text: text.replace("name=t", "name=u", 1)),
            CorruptFileError,
            ["checksum"],
        ),
        (_damage("hoodie.properties", lambda _: ""), CorruptFileError, ["hoodie.properties"]),
        (
            lambda folder: (folder / ".hoodie/hoodie.properties").unlink(),
            CorruptFileError,
            ["hoodie.properties"],
        ),
        (
            _damage(
                "hoodie.properties", lambda text: text + "\nhoodie.table.metadata.partitions=files"
            ),
            OptionError,
            ["hoodie.metadata.enable", "files", "false"],
        ),
    ],
)
def test_damaged_tables_are_refused(
    folder: Path, damage: Callable[[Path], None], error: type, words: list[str]
) -> None:
    damage(folder)
    before = tree(folder)
    with pytest.raises(error) as caught:
        HoodieTable(str(folder), OPTIONS).upsert(ROWS)
    for word in words:
        assert word in str(caught.value)
    assert tree(folder) == before


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=r"no .*table"):
        HoodieTable(str(tmp_path / "none")).read()


def test_a_folder_of_other_files_is_not_made_a_table(tmp_path: Path) -> None:
    (tmp_path / "part-0.csv").write_text("1,2")
    with pytest.raises(OptionError, match="path"):
        HoodieTable(str(tmp_path), OPTIONS).upsert(ROWS)
    assert tree(tmp_path).keys() == {"part-0.csv"}


def test_the_metadata_table_is_dropped_on_request(folder: Path) -> None:
    _damage("hoodie.properties", lambda t: t + "\nhoodie.table.metadata.partitions=files")(folder)
    (folder / ".hoodie/metadata").mkdir()
    (folder / ".hoodie/metadata/x").write_text("stale")
    HoodieTable(str(folder), {**OPTIONS, "hoodie.metadata.enable": "false"}).upsert(ROWS)
    assert "metadata.partitions" not in (folder / ".hoodie/hoodie.properties").read_text()
    assert not (folder / ".hoodie/metadata/x").exists()
    assert HoodieTable(str(folder)).read().num_rows == 2
