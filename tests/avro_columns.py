"""A table whose Avro schema says more than Arrow has a place for, as Hudi Streamer makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.config.properties.keys import CREATE_SCHEMA
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import create_table
from hoodie_ds.testing import MemoryStorage
from tests.tables import KEY, ORDERING

KEPT = {"hoodie.table.name": "kept", KEY: "id", ORDERING: "ts"}


def _optional(kind: object) -> dict[str, Any]:
    return {"type": ["null", kind], "default": None}


_DECIMAL = {"logicalType": "decimal", "precision": 10, "scale": 2}
_SHARED = {
    "type": "record",
    "name": "Place",
    "doc": "where",
    "fields": [
        {"name": "street", "type": "string", "doc": "with number", "aliases": ["road"]},
        {"name": "token", "type": {"type": "fixed", "name": "Token", "size": 4}},
        {"name": "more", "type": {"type": "array", "items": "Token"}},
        {"name": "by_name", "type": {"type": "map", "values": "int"}},
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [
            {"name": "sure", "type": "boolean"}, {"name": "maybe", "type": ["long", "null"]},
        ]}},
    ],
}  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "namespace": "com.acme",
    "doc": "all events",
    "fields": [
        {"name": "id", "type": "string", "doc": "the key"},
        {"name": "ts", "type": ["long", "null"], "default": 7, "source": "clock"},
        {"name": "state", **_optional(
            {"type": "enum", "name": "State", "symbols": ["ON", "OFF"], "default": "ON"})},
        {"name": "states", "type": {"type": "array", "items": "State"}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4, "doc": "of all"}},
        {"name": "uid", **_optional({"type": "string", "logicalType": "uuid"})},
        {"name": "java", **_optional({"type": "string", "avro.java.string": "String"})},
        {"name": "at", **_optional({"type": "long", "logicalType": "timestamp-millis"})},
        {"name": "price", **_optional({"type": "bytes", **_DECIMAL})},
        {"name": "cost", **_optional({"type": "fixed", "name": "Cost", "size": 9, **_DECIMAL})},
        {"name": "count", **_optional("int")},
        {"name": "place", **_optional(_SHARED)},
        {"name": "other", **_optional("Place")},
        {"name": "places", **_optional({"type": "array", "items": "com.acme.Place"})},
        {"name": "named", **_optional({"type": "map", "values": ["null", "Place"]})},
    ],
}  # fmt: skip
AVRO = json.dumps(SCHEMA)
COLUMNS = avro_to_arrow(AVRO)
PLACE: dict[str, Any] = {
    "street": "x 1",
    "token": b"abcd",
    "more": [b"1234", b"5678"],
    "by_name": [("k", 1)],
    "inner": {"sure": True, "maybe": None},
}
FULL: dict[str, Any] = {
    "state": "OFF",
    "states": ["ON", "OFF"],
    "hash": b"\0\1\2\3",
    "uid": "u",
    "java": "j",
    "at": 1_700_000_000_123,
    "price": Decimal("1.50"),
    "cost": Decimal("-2.25"),
    "count": 3,
    "place": PLACE,
    "other": PLACE,
    "places": [PLACE, PLACE],
    "named": [("a", PLACE), ("b", None)],
}
BARE: dict[str, Any] = {"states": [], "hash": b"abcd"}


def events(*rows: Mapping[str, Any]) -> pa.Table:
    """Rows of `COLUMNS`; what they do not say is null."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=COLUMNS)


def made(storage: Storage, options: Mapping[str, str], avro: str = AVRO) -> None:
    """Create an empty table with a schema of Avro's."""
    like = HoodieTable("/t", options, storage=MemoryStorage())
    like.upsert(events({"id": "0", "ts": 1, **BARE}))
    properties = like.properties.with_changes({CREATE_SCHEMA: avro})
    create_table(storage, properties, 1_700_000_000_000)
