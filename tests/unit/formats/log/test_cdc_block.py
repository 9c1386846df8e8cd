from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.config.enums import SupplementalLogging
from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.log.cdc_block import cdc_schema, decode_cdc_block, encode_cdc_block
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock, read_blocks
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata
from tests.golden.golden_tables import golden_file, golden_names

TIME = "20261122114931824"
ROW = {"id": "k01", "city": "ams", "name": None, "qty": 102, "ts": 20}
SCHEMA = arrow_to_avro(
    pa.schema(
        {
            "_hoodie_record_key": pa.string(),
            "id": pa.string(),
            "city": pa.string(),
            "name": pa.string(),
            "qty": pa.int32(),
            "ts": pa.int64(),
        }
    ),
    "t",
)


def only_block(data: bytes) -> LogBlock:
    (block,) = read_blocks(data, "x.cdc")
    return block


CDC_TABLES = [name for name in golden_names() if "_cdc" in name]


@pytest.mark.parametrize("name", CDC_TABLES)
def test_blocks_of_hudi_are_what_ours_would_be(name: str) -> None:
    """Byte by byte: the header, its schema, and the records."""
    logging = golden_logging(name)
    data = golden_file(name, r"\.cdc$")
    block = only_block(data)
    instant = block.header[HeaderKey.INSTANT_TIME]
    commit = golden_file(name, rf"/{instant}(_\d+)?\.(delta)?commit$")
    schema = CommitMetadata.from_bytes(commit, name).extra[SCHEMA_KEY]

    assert json.loads(cdc_schema(logging, schema)) == json.loads(block.header[HeaderKey.SCHEMA])
    changes = decode_cdc_block(block, name)
    assert encode_cdc_block(changes, cdc_schema(logging, schema), instant) == data


def golden_logging(name: str) -> SupplementalLogging:
    properties = golden_file(name, r"^\.hoodie/hoodie\.properties$").decode()
    (line,) = (line for line in properties.splitlines() if "supplemental.logging" in line)
    return SupplementalLogging(line.partition("=")[2])


def test_changes_that_hudi_logged() -> None:
    data = golden_file("v9_cow_cdc", r"\.log\.1_0-4553-6595\.cdc$")
    rows = decode_cdc_block(only_block(data), "x.cdc").to_pylist()
    insert, update = sorted(rows, key=lambda row: str(row["op"]))
    assert (insert["op"], insert["before"], insert["after"]["id"]) == ("i", None, "k05")
    assert (update["op"], update["ts_ms"]) == ("u", "20261122114943712")
    assert [update["before"]["qty"], update["after"]["qty"]] == [101, 102]


@pytest.mark.parametrize(
    ("logging", "change"),
    [
        (SupplementalLogging.OP_KEY_ONLY, {"op": "d", "record_key": "k01"}),
        (SupplementalLogging.DATA_BEFORE, {"op": "i", "record_key": "k01", "before": None}),
        (SupplementalLogging.DATA_BEFORE, {"op": "u", "record_key": "k01", "before": ROW}),
        (
            SupplementalLogging.DATA_BEFORE_AFTER,
            {"op": "u", "ts_ms": TIME, "before": ROW, "after": {**ROW, "qty": None}},
        ),
        (
            SupplementalLogging.DATA_BEFORE_AFTER,
            {"op": "d", "ts_ms": TIME, "before": ROW, "after": None},
        ),
    ],
)
def test_round_trip(logging: SupplementalLogging, change: dict[str, Any]) -> None:
    schema = cdc_schema(logging, SCHEMA)
    block = only_block(encode_cdc_block(pa.Table.from_pylist([change]), schema, TIME))
    assert block.block_type is BlockType.CDC_DATA
    assert block.header == {HeaderKey.INSTANT_TIME: TIME, HeaderKey.SCHEMA: schema}
    assert decode_cdc_block(block, "x.cdc").to_pylist() == [change]


def test_a_block_may_hold_no_change() -> None:
    schema = cdc_schema(SupplementalLogging.OP_KEY_ONLY, SCHEMA)
    nothing = pa.table({"op": pa.array([], pa.string()), "record_key": pa.array([], pa.string())})
    block = only_block(encode_cdc_block(nothing, schema, TIME))
    assert decode_cdc_block(block, "x.cdc").num_rows == 0


def test_a_name_with_its_namespace_in_it() -> None:
    schema = {**json.loads(SCHEMA), "name": "hoodie.t.t_record", "namespace": ""}
    found = json.loads(cdc_schema(SupplementalLogging.DATA_BEFORE_AFTER, json.dumps(schema)))
    assert found == json.loads(cdc_schema(SupplementalLogging.DATA_BEFORE_AFTER, SCHEMA))


@pytest.mark.parametrize(
    ("block", "kind", "words"),
    [
        (LogBlock(BlockType.AVRO_DATA, {}, b""), CorruptFileError, "has a AVRO_DATA block"),
        (LogBlock(BlockType.CDC_DATA, {}, b"\0\0\0\3\0\0\0\0"), CorruptFileError, "no schema"),
        (
            LogBlock(BlockType.CDC_DATA, {HeaderKey.SCHEMA: SCHEMA}, b"\0\0\0\2\0\0\0\0"),
            UnsupportedTableError,
            "content version 2",
        ),
        (
            LogBlock(BlockType.CDC_DATA, {HeaderKey.SCHEMA: SCHEMA}, b"\0\0\0\3\0\0\0\1"),
            CorruptFileError,
            "fewer than 1 records",
        ),
    ],
)
def test_damage(block: LogBlock, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        decode_cdc_block(block, "x.cdc")
