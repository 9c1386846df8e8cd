"""Records of a metadata table: their binary form, and combining an older and a newer one of a key.

The rules are those of Hudi's ``HoodieMetadataPayload``. Records are dicts with the field names of
``HoodieMetadataRecord``. A value in one of the wrappers of its unions is a dict whose only key is
the number of the union's branch, as text: ``{"4": 1.5}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

from hoodie_ds.columns.java_order import java_order
from hoodie_ds.formats.avro.container import DatumWriter
from hoodie_ds.formats.avro.decoder import DatumReader
from hoodie_ds.formats.avro.tree import AvroType, Kind, parse_avro
from hoodie_ds.metadata_table.record_schema import NAMES, VALUE_TYPE, WRAPPERS, record_schema

Record: TypeAlias = dict[str, Any]
Change: TypeAlias = tuple[str, Record | None]
"""A key with a newer record, None where it was deleted."""


class RecordType(IntEnum):
    """What a record is of: its field ``type``."""

    PARTITION_LIST = 1
    FILE_LIST = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


FILES: Final = "filesystemMetadata"
STATS: Final = "ColumnStatsMetadata"
BLOOM_FILTER: Final = "BloomFilterMetadata"
SECONDARY_INDEX: Final = "SecondaryIndexMetadata"
_LISTS: Final = (RecordType.PARTITION_LIST, RecordType.FILE_LIST)
_STATISTICS: Final = (RecordType.COLUMN_STATS, RecordType.PARTITION_STATS)
_SUMS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_DECIMAL: Final = "9"
_DECIMAL_TYPE: Final = 10
"""The type of a decimal in the wrapper of bytes."""
_STRING: Final = "7"


def record_reader(schema: str | bytes, name: str) -> Callable[[str, bytes | memoryview], Record]:
    """Return what decodes the value of a key in the file `name`."""
    datum = DatumReader(_numbered(parse_avro(schema, name)), name, plain=True)

    def read(key: str, value: bytes | memoryview) -> Record:
        record: Record = datum.read(value)
        record["key"] = key
        return record

    return read


def encode_record(record: Record) -> bytes:
    """Return the value of a record by `record_schema`; its key is that of the entry alone.

    Fields that it lacks are null. The same record gives the same bytes.
    """
    return _writer().write({**record, "key": "", **_named(record)}, "the metadata table")


def _named(record: Record) -> Record:
    """The parts of a record, with the names of those that the encoder would have to compare."""
    parts = {name: record[name] for name in NAMES if record.get(name) is not None}
    if STATS in parts:
        ends = {end: _with_name(parts[STATS][end]) for end in ("minValue", "maxValue")}
        kind = parts[STATS].get("valueType")
        parts[STATS] = {**parts[STATS], **ends, "valueType": kind and (VALUE_TYPE, kind)}
    return {name: (NAMES[name], part) for name, part in parts.items()}


def _with_name(wrapped: Record | None) -> tuple[str, Record] | None:
    return None if wrapped is None else (WRAPPERS[next(iter(wrapped))], wrapped)


@cache
def _writer() -> DatumWriter:
    return DatumWriter(record_schema(numbered=True))


def combined(older: Record | None, newer: Record) -> Record:
    """Return the record of a key of which a newer one was written."""
    if older is None or older["type"] != newer["type"]:
        return newer
    if newer["type"] in _LISTS:
        return {**newer, FILES: _combined_files(older[FILES] or {}, newer[FILES] or {})}
    if newer["type"] in _STATISTICS:
        return {**newer, STATS: _combined_stats(older[STATS], newer[STATS])}
    return newer


def folded(found: dict[str, Record], changes: Iterable[Change]) -> dict[str, Record]:
    """Return records by their keys after changes to them, the oldest of which come first."""
    for key, record in changes:
        if record is None:
            found.pop(key, None)
        else:
            found[key] = combined(found.get(key), record)
    return found


def without_deletes(record: Record) -> Record | None:
    """Return a record, below which there is no older one, without deletes; None if it is one."""
    if record["type"] in _LISTS:
        there = {name: one for name, one in (record[FILES] or {}).items() if not one["isDeleted"]}
        return {**record, FILES: there}
    parts = (record.get(name) for name in (STATS, BLOOM_FILTER, SECONDARY_INDEX))
    return None if any(part is not None and part["isDeleted"] for part in parts) else record


def _combined_files(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """Return both lists: a delete removes a file, and a file never shrinks.

    A delete of a file that is not there yet is kept: the file may be in an older list.
    """
    files = dict(older)
    for name, entry in newer.items():
        known = files.pop(name, None)
        if known is None:
            files[name] = entry
        elif not entry["isDeleted"]:
            files[name] = {**entry, "size": max(entry["size"], known["size"])}
    return files


def _combined_stats(older: Record, newer: Record) -> Record:
    """Return statistics of a file's blocks, or those of what has replaced it."""
    is_whole = newer.get("isTightBound") or newer["isDeleted"] or older["isDeleted"]
    if is_whole:
        return newer
    sums = {name: (older[name] or 0) + (newer[name] or 0) for name in _SUMS}
    ends = {
        "minValue": _extreme(min, "minValue", older, newer),
        "maxValue": _extreme(max, "maxValue", older, newer),
    }
    return {**newer, **sums, **ends}


def _extreme(choose: Callable[..., Record], end: str, *among: Record) -> Record | None:
    """Return the lowest or highest of two ends; without one of them, the other."""
    known = [one for one in among if one[end] is not None]
    return choose(known, key=lambda one: _rank(one, end))[end] if known else None


def _rank(statistics: Record, end: str) -> Any:  # noqa: ANN401
    """What an end is compared by, as Java does; NaN is the highest number."""
    ((branch, value),) = statistics[end].items()
    kind = statistics.get("valueType")
    if branch == _DECIMAL or (kind is not None and kind["typeOrdinal"] == _DECIMAL_TYPE):
        return int.from_bytes(value, "big", signed=True)
    if isinstance(value, float):
        return value != value, value
    return java_order(value) if branch == _STRING else value


def _with_numbered_wrappers(node: AvroType) -> AvroType:
    """Name the only field of each record of a union by its branch, to tell them apart."""
    children = tuple(map(_with_numbered_wrappers, node.children))
    if node.kind is Kind.UNION and node.optional is None:
        children = tuple(
            replace(child, names=(str(branch),)) if len(child.names) == 1 else child
            for branch, child in enumerate(children)
        )
    return replace(node, children=children)


# Each file of a metadata table repeats its schema, for which `parse_avro` returns the same node.
_numbered = lru_cache(maxsize=8)(_with_numbered_wrappers)
