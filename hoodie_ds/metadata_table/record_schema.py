"""The Avro schema of a metadata table's records, Hudi 1.2's ``HoodieMetadataRecord``.

Java decodes strings by ``avro.java.string``. Descriptions are left out, as no reader needs them.
"""

from __future__ import annotations

import json
from typing import Any, Final

_JAVA: Final = {"avro.java.string": "String"}
_STRING: Final = {"type": "string", **_JAVA}
_WRAPPED: Final = {
    "Boolean": "boolean",
    "Int": "int",
    "Long": "long",
    "Float": "float",
    "Double": "double",
    "Bytes": "bytes",
    "String": _STRING,
    "Date": "int",
    "Decimal": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicros": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicros": "long",
    "LocalDate": "int",
}
"""What the wrappers of values hold, in the order of the unions' branches, which begins with 1."""
_MODEL: Final = "org.apache.hudi.avro.model"
WRAPPERS: Final = {
    str(branch): f"{_MODEL}.{name}Wrapper" for branch, name in enumerate((*_WRAPPED, "Array"), 1)
}
"""The names of the wrappers, by the numbers of the unions' branches."""
VALUE_TYPE: Final = f"{_MODEL}.HoodieValueTypeInfo"
NAMES: Final = {
    "BloomFilterMetadata": f"{_MODEL}.HoodieMetadataBloomFilter",
    "ColumnStatsMetadata": f"{_MODEL}.HoodieMetadataColumnStats",
    "recordIndexMetadata": f"{_MODEL}.HoodieRecordIndexInfo",
    "SecondaryIndexMetadata": f"{_MODEL}.HoodieSecondaryIndexInfo",
}
"""The names of the records that fields hold."""
_DEFAULTS: Final = {"isTightBound": False, "fileIdEncoding": 0}
_META: Final = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")


def record_schema(*, numbered: bool = False, has_meta_fields: bool = True) -> str:
    """Return the schema as JSON; that in commits has no meta fields.

    If `numbered`, the only field of each wrapper has the number of its branch as its name, as in
    the records of `payload`; the binary form is the same.
    """
    files = _record("HoodieMetadataFileInfo", size="long", isDeleted="boolean")
    meta = _META if has_meta_fields else ()
    fields = {f"_hoodie_{name}": _optional("string") for name in meta} | {
        "key": _STRING,
        "type": "int",
        "filesystemMetadata": ["null", {"type": "map", "values": files, **_JAVA}],
        "BloomFilterMetadata": _optional(
            _record(
                "HoodieMetadataBloomFilter",
                type=_STRING,
                timestamp=_STRING,
                bloomFilter="bytes",
                isDeleted="boolean",
            )
        ),
        "ColumnStatsMetadata": _optional(_statistics(numbered)),
        "recordIndexMetadata": _optional(
            _record(
                "HoodieRecordIndexInfo",
                partitionName=_optional(_STRING),
                fileIdHighBits=_optional("long"),
                fileIdLowBits=_optional("long"),
                fileIndex=_optional("int"),
                fileId=_optional(_STRING),
                instantTime=_optional("long"),
                fileIdEncoding="int",
                position=_optional("long"),
            )
        ),
        "SecondaryIndexMetadata": _optional(
            _record("HoodieSecondaryIndexInfo", isDeleted="boolean")
        ),
    }
    schema = _record("HoodieMetadataRecord", **fields)
    return json.dumps({**schema, "namespace": _MODEL}, separators=(",", ":"))


def _statistics(numbered: bool) -> dict[str, Any]:
    values = [
        _record(f"{name}Wrapper", **{str(branch) if numbered else "value": kind})
        for branch, (name, kind) in enumerate(_WRAPPED.items(), 1)
    ]
    names = ["null", *(value["name"] for value in values)]
    several = str(len(names)) if numbered else "wrappedValues"
    array = _record("ArrayWrapper", **{several: _optional({"type": "array", "items": names})})
    kind = _record("HoodieValueTypeInfo", typeOrdinal="int", additionalInfo=_optional(_STRING))
    return _record(
        "HoodieMetadataColumnStats",
        fileName=_optional(_STRING),
        columnName=_optional(_STRING),
        minValue=["null", *values, array],
        maxValue=[*names, array["name"]],
        valueCount=_optional("long"),
        nullCount=_optional("long"),
        totalSize=_optional("long"),
        totalUncompressedSize=_optional("long"),
        isDeleted="boolean",
        isTightBound="boolean",
        valueType=_optional(kind),
    )


def _optional(kind: Any) -> list[Any]:  # noqa: ANN401
    return ["null", kind]


def _record(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    listed = [
        {"name": field, "type": kind, **_default(field, kind)} for field, kind in fields.items()
    ]
    return {"type": "record", "name": name, "fields": listed}


def _default(field: str, kind: Any) -> dict[str, Any]:  # noqa: ANN401
    """The default of a field, as Hudi has them: null, where it may be."""
    if isinstance(kind, list) and field != "filesystemMetadata":
        return {"default": None}
    return {"default": _DEFAULTS[field]} if field in _DEFAULTS else {}


SCHEMA: Final = record_schema()
"""The schema in files."""
