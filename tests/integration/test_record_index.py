"""Tables of Hudi with a record index: what writes keep unique once it is gone."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError, OptionError, UnsupportedTableError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table, update_properties
from tests.cli_runs import done
from tests.golden.golden_tables import unzip_table
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, found, tree, trips

INDEX = "hoodie.index.type"
PARTITIONS = "hoodie.table.metadata.partitions"
DROPPING = {"hoodie.metadata.enable": "false"}
FIRST = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))
MOVED = trips(("a", "y", 2, 2.0), ("c", "x", 2, 2.0))
ONCE = [("a", "y", 2, 2.0), ("b", "y", 1, 1.0), ("c", "x", 2, 2.0)]
TWICE = [("a", "x", 1, 1.0), *ONCE]


def indexed(
    path: Path, options: Mapping[str, str], scope: str = "undefined", *, dropped: bool = False
) -> Path:
    """A table in which Hudi keeps a record index, with the definition of Hudi 1.1 and later."""
    HoodieTable(str(path), {**TRIPS, **options}).upsert(FIRST)
    changes = {} if dropped else {PARTITIONS: "column_stats,record_index"}
    if scope != "undefined":
        changes["hoodie.table.index.defs.path"] = ".hoodie/.index_defs/index.json"
        (path / ".hoodie/.index_defs").mkdir()
        definition = {"indexOptions": {"isPartitioned": str(scope == "partition").lower()}}
        whole = {"indexDefinitions": {"column_stats": {}, "record_index": definition}}
        (path / ".hoodie/.index_defs/index.json").write_text(json.dumps(whole))
    table = open_table(LocalStorage(str(path)))
    # What our creation records of an index is not there in tables of Hudi's.
    own = [key for key in table.properties.raw if key == INDEX or ".bucket.index." in key]
    update_properties(table, changes, own, 0)
    return path


def refused(path: Path, error: type[HoodieError], match: str, **options: str) -> None:
    before = tree(path)
    with pytest.raises(error, match=match):
        HoodieTable(str(path), {**DROPPING, **options}).upsert(MOVED)
    assert tree(path) == before


@pytest.mark.parametrize(
    ("kind", "version", "scope", "rows"),
    [
        *((kind, version, "table", ONCE) for kind in TYPES for version in "69"),
        ("MERGE_ON_READ", "8", "undefined", ONCE),  # as Hudi 0.14 to 1.0 has them
        ("COPY_ON_WRITE", "6", "undefined", ONCE),
        ("COPY_ON_WRITE", "8", "partition", TWICE),
        ("MERGE_ON_READ", "9", "partition", TWICE),
    ],
)
def test_a_key_is_stored_once_where_hudi_indexes_keys(
    tmp_path: Path, kind: str, version: str, scope: str, rows: list[tuple[str, str, int, float]]
) -> None:
    options = {TYPE: kind, VERSION: version, INDEX: "BLOOM"}
    path = indexed(tmp_path / "t", options, scope)
    table = HoodieTable(str(path), DROPPING)
    assert table.upsert(FIRST).instant_time
    assert not table.properties.metadata_partitions
    # The index is gone, and Hudi's next job builds it again.
    HoodieTable(str(path)).upsert(MOVED)
    assert found(table) == rows


def test_a_golden_table_with_a_record_index(tmp_path: Path) -> None:
    path = unzip_table("v9_mor_metadata", tmp_path)
    table = HoodieTable(str(path), DROPPING)
    before = table.read()
    row = before.slice(0, 1).select([n for n in before.column_names if not n.startswith("_hoodie")])
    at = row.schema.get_field_index("city")
    row = row.set_column(at, "city", pa.array(["elsewhere"], pa.string()))
    table.upsert(row)
    rows = table.read()
    assert rows.num_rows == before.num_rows
    assert len(pc.unique(rows["id"])) == rows.num_rows


def test_the_command_keeps_keys_unique(tmp_path: Path) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table")
    pq.write_table(MOVED, tmp_path / "rows.parquet")
    done("load", path, tmp_path / "rows.parquet", "--conf", "hoodie.metadata.enable=false")
    assert found(HoodieTable(str(path))) == ONCE


def test_a_record_index_that_hudi_dropped_is_still_a_promise(tmp_path: Path) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table", dropped=True)
    HoodieTable(str(path)).upsert(MOVED)
    assert found(HoodieTable(str(path))) == ONCE


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "FLINK_STATE"])
def test_an_index_that_keeps_no_key_unique_is_refused(tmp_path: Path, index: str) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table")
    state = {"index.global.enabled": "false"}
    refused(
        path,
        OptionError,
        rf"{INDEX}.*{index}.*record_index.*GLOBAL_BLOOM",
        **{INDEX: index, **state},
    )


@pytest.mark.parametrize("index", ["GLOBAL_BLOOM", "GLOBAL_SIMPLE", "FLINK_STATE"])
def test_an_index_that_keeps_keys_unique_is_taken(tmp_path: Path, index: str) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table")
    HoodieTable(str(path), {**DROPPING, INDEX: index}).upsert(MOVED)
    assert found(HoodieTable(str(path))) == ONCE


def test_buckets_keep_no_key_unique(tmp_path: Path) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BUCKET"}, "table")
    refused(path, UnsupportedTableError, "BUCKET.*DROP INDEX record_index", **{BUCKETS: "2"})
    assert found(HoodieTable(str(path))) == [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)]


def test_any_index_keeps_keys_unique_without_partitions(tmp_path: Path) -> None:
    whole = {"hoodie.datasource.write.partitionpath.field": ""}
    path = indexed(tmp_path / "t", {INDEX: "BUCKET", **whole}, "table")
    HoodieTable(str(path), {**DROPPING, BUCKETS: "2"}).upsert(MOVED)
    assert found(HoodieTable(str(path))) == ONCE


def test_the_refusal_says_what_becomes_of_the_record_index(tmp_path: Path) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table")
    table = HoodieTable(str(path))
    for work in (lambda: table.upsert(MOVED), table.clean):
        with pytest.raises(HoodieError, match=r"record_index.*keys unique.*GLOBAL_BLOOM.*false"):
            work()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"indexDefinitions": {"record_index": {}}}'])
def test_damaged_definitions_are_no_consent(tmp_path: Path, content: str) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table")
    (path / ".hoodie/.index_defs/index.json").write_text(content)
    refused(path, CorruptFileError, "index.json.*restore")
    (finding,) = HoodieTable(str(path)).inspect.verify().findings
    assert (finding.kind.value, finding.where) == (
        "damaged-file",
        ".hoodie/.index_defs/index.json",
    )


@pytest.mark.parametrize("lacking", ["file", "entry"])
def test_without_a_definition_the_index_is_one_of_the_table(tmp_path: Path, lacking: str) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "partition")
    definitions = path / ".hoodie/.index_defs/index.json"
    if lacking == "file":
        definitions.unlink()
    else:
        definitions.write_text(json.dumps({"indexDefinitions": {"column_stats": {}}}))
    HoodieTable(str(path), DROPPING).upsert(FIRST)
    HoodieTable(str(path)).upsert(MOVED)
    assert found(HoodieTable(str(path))) == ONCE


def test_a_record_index_dropped_in_hudi_asks_for_nothing(tmp_path: Path) -> None:
    """As DROP INDEX leaves it: no definition, and no partition of the metadata table."""
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, "table")
    HoodieTable(str(path), DROPPING).upsert(FIRST)
    (path / ".hoodie/.index_defs/index.json").write_text('{"indexDefinitions": {}}')
    HoodieTable(str(path), {INDEX: "BLOOM"}).upsert(MOVED)
    assert found(HoodieTable(str(path))) == TWICE


def test_verify_finds_a_key_in_two_partitions(tmp_path: Path) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, dropped=True)
    HoodieTable(str(path)).upsert(MOVED)
    table = HoodieTable(str(path), DROPPING)
    assert table.inspect.verify()
    changes = {PARTITIONS: "record_index"}
    update_properties(open_table(LocalStorage(str(path))), changes, (), 0)
    assert [f.kind.value for f in HoodieTable(str(path)).inspect.verify().findings] == [
        "duplicate-key"
    ]


@pytest.mark.parametrize("scope", ["table", "partition"])
def test_inserts_say_that_copies_are_in_the_indexs_way(
    tmp_path: Path, scope: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = indexed(tmp_path / "t", {INDEX: "BLOOM"}, scope)
    table = HoodieTable(str(path), DROPPING)
    policy = {"hoodie.datasource.insert.dup.policy": "drop"}
    table.upsert(MOVED)
    table.insert(MOVED, policy)
    table.delete_partitions(["z"])
    assert not [r for r in caplog.records if "record index" in r.getMessage()]
    table.insert(MOVED)
    table.insert(MOVED)
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len([text for text in told if "insert does not look" in text and "upsert" in text]) == 1
