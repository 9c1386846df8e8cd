"""The body of a commit: JSON in timeline layout 1, an Avro container in layout 2.

Both have the field names of Hudi's ``HoodieCommitMetadata`` and ``HoodieWriteStat``. The schemas
next to this module are those that Apache Hudi 1.2 embeds, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from hoodie_ds.formats.avro.container import write_record

_STAT_ONLY_IN_AVRO: Final = {"totalLogReadTimeMs": 0, "numUpdates": 0}
"""Counters of a write stat that Hudi's class has and our JSON leaves out."""

_STAT_ONLY_IN_JSON: Final = frozenset({"recordsStats"})
"""Fields of a write stat that Hudi's Avro schema lacks."""


def json_body(body: Mapping[str, Any]) -> bytes:
    """Return a body, fields by the names of Hudi's JSON, as JSON."""
    return json.dumps(body).encode()  # in one line, as an indent would take Python's slow encoder


def avro_body(body: Mapping[str, Any], *, replaces: bool) -> bytes:
    """Return a body as an Avro container; `replaces` for ``HoodieReplaceCommitMetadata``."""
    record = {
        **body,
        "partitionToWriteStats": {
            partition: [_stat(stat) for stat in stats]
            for partition, stats in body["partitionToWriteStats"].items()
        },
        "version": None,
    }
    if replaces:
        record.setdefault("partitionToReplaceFileIds", {})  # Hudi reads no null there
    return write_record(_schema("replace_" if replaces else ""), record)


def avro_of_json(body: Mapping[str, Any], *, replaces: bool) -> bytes:
    """Return any engine's JSON, which may lack fields, as an Avro container."""
    schema = _schema("replace_" if replaces else "")
    stats = body.get("partitionToWriteStats") or {}
    known = _known_of_stat(replaces)
    kept = {
        partition: [{k: v for k, v in stat.items() if k in known} for stat in listed]
        for partition, listed in stats.items()
    }
    names = {field["name"] for field in schema["fields"]}
    rest = {key: value for key, value in body.items() if key in names and value is not None}
    return avro_body({**rest, "partitionToWriteStats": kept}, replaces=replaces)


@cache
def _known_of_stat(replaces: bool) -> frozenset[str]:
    (partitions,) = (
        field["type"]
        for field in _schema("replace_" if replaces else "")["fields"]
        if field["name"] == "partitionToWriteStats"
    )
    (by_partition,) = (kind for kind in partitions if isinstance(kind, dict))
    return frozenset(field["name"] for field in by_partition["values"]["items"]["fields"])


def _stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in stat.items() if name not in _STAT_ONLY_IN_JSON}
    return _STAT_ONLY_IN_AVRO | kept


@cache
def _schema(prefix: str) -> dict[str, Any]:
    text = files(__package__).joinpath(f"{prefix}commit_metadata.avsc").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
