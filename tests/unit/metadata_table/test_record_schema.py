"""Records of the metadata table in their binary form, byte for byte as Hudi writes them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zipfile import ZipFile

import fastavro
import pytest

from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, read_blocks
from hoodie_ds.metadata_table.payload import encode_record, record_reader
from hoodie_ds.metadata_table.record_schema import SCHEMA

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.zip"))


@cache
def entries(name: str) -> list[tuple[str, bytes, bytes, str]]:
    """Path, key, value and schema of each stored record of a golden metadata table."""
    return list(_entries(name))


def paths(name: str) -> list[str]:
    """The files of a golden table."""
    with ZipFile(GOLDEN / f"{name}.zip") as files:
        return files.namelist()


def _entries(name: str) -> Iterator[tuple[str, bytes, bytes, str]]:
    with ZipFile(GOLDEN / f"{name}.zip") as files:
        for path in files.namelist():
            if path.endswith(".hfile"):
                file = HFile(io.BytesIO(files.read(path)), path)
                yield from ((path, *entry, file.info["schema"].decode()) for entry in file.scan())
            elif "/metadata/" in path and ".log." in path:
                for block in read_blocks(files.read(path), path):
                    if block.block_type is BlockType.HFILE_DATA:
                        file = HFile(io.BytesIO(block.content), path)
                        schema = block.header[HeaderKey.SCHEMA]
                        yield from ((path, *entry, schema) for entry in file.scan())


def without_docs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_docs(part) for part in schema]
    if isinstance(schema, dict):
        return {key: without_docs(part) for key, part in schema.items() if key != "doc"}
    return schema


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_encoded_as_hudi_has_it(name: str) -> None:
    for path, key, value, schema in entries(name):
        record = record_reader(schema, path)(key.decode(), value)
        assert encode_record(record) == value, (path, key)


@pytest.mark.parametrize(
    ("branch", "value"),
    [(1, True), *((n, 7) for n in (2, 3, 8, 10, 11, 12)), *((n, 0.5) for n in (4, 5)),
     *((n, b"\1") for n in (6, 9)), (7, "a"), (13, [{"2": 1}, {"7": "b"}])],
)  # fmt: skip
def test_each_value_is_in_its_wrapper(branch: int, value: object) -> None:
    end = {str(branch): value}
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    statistics = {
        "fileName": "f",
        "columnName": "c",
        "minValue": end,
        "maxValue": end,
        **dict.fromkeys(counts, 1),
        "isDeleted": False,
        "isTightBound": False,
        "valueType": None,
    }
    record = {"type": 3, "ColumnStatsMetadata": statistics}
    found = record_reader(SCHEMA, "f")("k", encode_record(record))
    assert found["ColumnStatsMetadata"] == statistics


def test_the_schema_is_that_of_hudi() -> None:
    schemas = {schema for name in NAMES for *_, schema in entries(name)}
    assert [without_docs(json.loads(schema)) for schema in schemas] == [json.loads(SCHEMA)]


def test_a_schema_that_all_files_repeat_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Mock(wraps=fastavro.parse_schema)
    monkeypatch.setattr(fastavro, "parse_schema", prepare)
    (path, key, value, schema), *_ = entries(NAMES[0])
    own = json.dumps({**json.loads(schema), "doc": "of this test"})
    for number in range(3):
        record_reader(own, f"{path}.{number}")(key.decode(), value)
    assert prepare.call_count == 1
