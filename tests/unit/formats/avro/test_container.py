from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hoodie_ds.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.avro.container import read_record, write_record

INSTANT = {
    "type": "record",
    "name": "HoodieInstantInfo",
    "fields": [
        {"name": "commitTime", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "action", "type": "string"},
    ],
}
SCHEMA = {
    "type": "record",
    "name": "HoodieRestorePlan",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "instants", "type": {"type": "array", "items": INSTANT}, "default": []},
        {"name": "again", "type": ["null", "HoodieInstantInfo"], "default": None},
        {"name": "counts", "type": ["null", {"type": "map", "values": "long"}], "default": None},
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}
INFO = {"commitTime": "20250101000000000", "action": "commit"}
RECORD = {"instants": [INFO, INFO], "again": INFO, "counts": {"a": 1, "b": -1}, "version": 2}


def test_a_record_comes_back() -> None:
    assert read_record(write_record(SCHEMA, RECORD), "f") == RECORD


def test_fastavro_reads_the_container_and_finds_the_schema_as_given() -> None:
    reader = fastavro.reader(io.BytesIO(write_record(SCHEMA, RECORD)))
    assert list(reader) == [RECORD]
    assert set(reader.metadata) == {"avro.schema"}
    assert json.loads(reader.metadata["avro.schema"]) == SCHEMA


def test_the_same_record_gives_the_same_bytes() -> None:
    assert write_record(SCHEMA, RECORD) == write_record(SCHEMA, dict(reversed(RECORD.items())))
    assert write_record(SCHEMA, RECORD)[-16:] != write_record(SCHEMA, {})[-16:]


def test_defaults_fill_what_is_left_out() -> None:
    defaults: dict[str, Any] = {"instants": [], "again": None, "counts": None, "version": 1}
    assert read_record(write_record(SCHEMA, {}), "f") == defaults


@pytest.mark.parametrize(
    "record",
    [
        {"instants": 5},
        {"unknown": 1},
        {"instants": [{"action": "x"}]},
        {"version": "a"},
        {"version": 2**40},
    ],
)
def test_a_record_that_does_not_fit_is_refused(record: Any) -> None:
    with pytest.raises(SchemaError, match="HoodieRestorePlan"):
        write_record(SCHEMA, record)


def test_a_container_cut_anywhere_is_corrupt() -> None:
    data = write_record(SCHEMA, RECORD)
    for length in range(len(data)):
        with pytest.raises(CorruptFileError, match="dir/f"):
            read_record(data[:length], "dir/f")
    with pytest.raises(CorruptFileError, match="dir/f"):
        read_record(data + b"\0", "dir/f")


def container(schema: object, datum: bytes, count: int = 1) -> bytes:
    data = bytearray(
        write_record(
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}, {"a": b""}
        )
    )
    sync = bytes(data[-16:])
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return (
        b"Obj\1\x02\x16avro.schema"
        + long(len(text))
        + text
        + b"\0"
        + sync
        + long(count)
        + long(len(datum))
        + datum
        + sync
    )


def long(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), b""
    while rest > 127:
        out, rest = out + bytes([rest & 127 | 128]), rest >> 7
    return out + bytes([rest])


def record_of(kind: object) -> dict[str, object]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


SELF = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}


@pytest.mark.parametrize(
    "data",
    [
        container(record_of("int"), b"\x02", count=2),
        container(record_of("int"), b"\x02", count=0),
        container(record_of("int"), b"\x02\x02"),
        container(record_of("int"), b"\xff" * 100),
        container("int", b"\x02"),
        container(SELF, b"\x02" * 1_000_000),
        container(record_of({"type": "array", "items": "null"}), long(2**62) + b"\0"),
        container(record_of({"type": "array", "items": "int"}), long(2**62) + b"\0"),
        container(record_of({"type": "map", "values": "int"}), long(2**62) + b"\0"),
        container(record_of("string"), long(2**62) + b"\0"),
        container(record_of("string"), b"\x04\xff\xfe"),
        container(record_of({"type": "enum", "name": "e", "symbols": ["A"]}), b"\x04"),
        container(record_of({"type": "enum", "name": "e", "symbols": ["A", "A"]}), b"\0"),
        container(record_of({"type": "enum", "name": "e", "symbols": ["é "]}), b"\0"),
        container(b'{"type":"array","items":' * 10_000 + b'"int"' + b"}" * 10_000, b"\0"),
        container(b"\xff", b"\0"),
        b"Obj\1" + long(2**62),
        b"Obj\1" + long(-(2**62)) + long(0),
        b"Obj\1" + b"\xff" * 50,
        b"Obj\1" + long(1) + long(2**40),
        b"PAR1",
        b"",
    ],
    ids=range(22),
)
def test_hostile_containers_are_corrupt(data: Any) -> None:
    with pytest.raises(CorruptFileError, match="f:"):
        read_record(data, "f")


def test_a_compressed_container_is_refused() -> None:
    buffer = io.BytesIO()
    fastavro.writer(buffer, SCHEMA, [RECORD], codec="deflate")
    with pytest.raises(UnsupportedTableError, match="deflate"):
        read_record(buffer.getvalue(), "f")


def test_containers_of_hudi_come_back_but_for_their_sync_marker(
    golden: Callable[[str], list[Path]],
) -> None:
    checked = 0
    for path in golden(""):
        data = path.read_bytes()
        if not data.startswith(b"Obj\1"):
            continue
        record = read_record(data, path.name)
        reader = fastavro.reader(io.BytesIO(data))
        assert record == next(reader)
        again = write_record(json.loads(reader.metadata["avro.schema"]), record)
        assert again[-16:] not in data
        assert again.replace(again[-16:], data[-16:]) == data
        checked += 1
    assert checked > 50


def test_of_two_files_with_one_schema_the_damaged_one_is_named() -> None:
    whole = write_record(SCHEMA, RECORD)
    assert read_record(whole, "whole") == read_record(whole, "again")
    # The last two bytes of the datum, the version, become the beginning of a longer number.
    damaged = whole[:-17] + b"\xff" + whole[-16:]
    with pytest.raises(CorruptFileError, match=r"^damaged"):
        read_record(damaged, "damaged")
