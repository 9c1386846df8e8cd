"""The file ``tests/golden/new_tables.json.gz``: the properties that Hudi gives to new tables.

For versions 8 and 9 and for many kinds of tables it has the options of the first write, and the
entries of ``hoodie.properties`` that it makes.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_ds.config.properties.java_properties import parse_properties
from tests.golden.golden_tables import NEW_TABLES
from tests.golden.make.keys_and_types import COMPLEX, with_column
from tests.golden.make.recipe import BUCKET, COW, KEYGEN, MOR, VERSION, WRITE, always, rows
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError

PAYLOADS = "org.apache.hudi.common.model."
MODE = "hoodie.write.record.merge.mode"
KEY, PARTITION, ORDERING = (
    f"{WRITE}{name}.field" for name in ("recordkey", "partitionpath", "precombine")
)
HIVE_STYLE = f"{WRITE}hive_style_partitioning"
BY_MONTH = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
}
BY_KEY_AND_TIME = {KEY: "id", ORDERING: "ts"}
DELETES = {"hoodie.payload.delete.field": "name", "hoodie.payload.delete.marker": "gone"}
MERGER = {
    MODE: "CUSTOM",
    "hoodie.write.record.merge.strategy.id": "1897ef5f-18bc-4557-939c-9d6a8afd1519",
    "hoodie.write.record.merge.custom.implementation.classes": "unheard.of",
}

KINDS: dict[str, dict[str, str]] = {
    "of no partitions": {},
    "of no partitions by an empty list": {PARTITION: ""},
    "of no partitions in Hive's style": {HIVE_STYLE: "true"},
    "of partitions": {PARTITION: "city"},
    "of partitions in Hive's style": {PARTITION: "city", HIVE_STYLE: "true"},
    "of encoded partitions": {PARTITION: "city", f"{WRITE}partitionpath.urlencode": "true"},
    "of two partition fields": {KEY: "id,qty", PARTITION: "city,name"},
    "of two partition fields in Hive's style": {
        KEY: "id,qty",
        PARTITION: "city,name",
        HIVE_STYLE: "true",
    },
    "of two key fields": {KEY: "id,qty"},
    "of two key fields and partitions": {**COMPLEX, PARTITION: "city"},
    "of complex keys of one field": {
        PARTITION: "city,name",
        f"{WRITE}keygenerator.class": f"{KEYGEN}ComplexKeyGenerator",
    },
    "of partitions by time": {
        PARTITION: "ts",
        f"{WRITE}keygenerator.class": f"{KEYGEN}TimestampBasedKeyGenerator",
        **BY_MONTH,
    },
    "of typed partitions": {
        PARTITION: "city:SIMPLE,ts:TIMESTAMP",
        f"{WRITE}keygenerator.class": f"{KEYGEN}CustomKeyGenerator",
        **BY_MONTH,
    },
    "of a typed partition in Hive's style": {
        PARTITION: "city:SIMPLE",
        f"{WRITE}keygenerator.class": f"{KEYGEN}CustomKeyGenerator",
        HIVE_STYLE: "true",
    },
    "of a database": {"hoodie.database.name": "mine"},
    "of log files": {**MOR, PARTITION: "city"},
    "of buckets": {**MOR, **BUCKET, PARTITION: "city"},
    "without keys": {KEY: "", ORDERING: ""},
    "without keys, of partitions": {KEY: "", ORDERING: "", PARTITION: "city"},
    "without ordering": {ORDERING: ""},
    "without ordering, by commit time": {ORDERING: "", MODE: "COMMIT_TIME_ORDERING"},
    "by commit time": {MODE: "COMMIT_TIME_ORDERING"},
    "by event time": {MODE: "EVENT_TIME_ORDERING"},
    "by two fields": {ORDERING: "ts,qty"},
    "of a payload and mode CUSTOM": {
        f"{WRITE}payload.class": f"{PAYLOADS}PartialUpdateAvroPayload",
        MODE: "CUSTOM",
    },
    "of a payload without ordering": {
        ORDERING: "",
        f"{WRITE}payload.class": f"{PAYLOADS}OverwriteNonDefaultsWithLatestAvroPayload",
    },
    **{
        f"of {name.rpartition('.')[2]}": {f"{WRITE}payload.class": f"{PAYLOADS}{name}"}
        for name in (
            "OverwriteWithLatestAvroPayload",
            "DefaultHoodieRecordPayload",
            "EventTimeAvroPayload",
            "PartialUpdateAvroPayload",
            "OverwriteNonDefaultsWithLatestAvroPayload",
            "debezium.PostgresDebeziumAvroPayload",
            "debezium.MySqlDebeziumAvroPayload",
            "AWSDmsAvroPayload",
            "HoodieJsonPayload",
        )
    },
    "of a column that marks deletes": DELETES,
    "of a merger": MERGER,
}
"""Options that make a table; an empty text takes one out."""


def write_new_tables(oracle: JvmHudi, folder: Path) -> None:
    """Make the tables in a folder and store their properties."""
    text = json.dumps(_new_tables(oracle, folder), indent=0, sort_keys=True)
    NEW_TABLES.write_bytes(gzip.compress(text.encode(), mtime=0))


def differences(oracle: JvmHudi, folder: Path) -> list[str]:
    """Return a line for each kind of table whose properties are not the stored ones."""
    stored = json.loads(gzip.decompress(NEW_TABLES.read_bytes()))
    made = _new_tables(oracle, folder)
    return [
        f"new_tables: {kind}: {stored.get(kind)} became {made.get(kind)}"[:2000]
        for kind in sorted({*stored, *made})
        if stored.get(kind) != made.get(kind)
    ]


def _new_tables(oracle: JvmHudi, folder: Path) -> dict[str, Any]:
    return {
        f"v{version} {kind}": _new_table(oracle, folder / f"{version}_{number}", version, more)
        for version in "89"
        for number, (kind, more) in enumerate(KINDS.items())
    }


def _new_table(
    oracle: JvmHudi, path: Path, version: str, more: dict[str, str]
) -> dict[str, dict[str, str]]:
    given = {**COW, **BY_KEY_AND_TIME, "hoodie.table.name": "trips", VERSION: version, **more}
    given = {key: text for key, text in given.items() if text or key == PARTITION}
    others = {
        **always(),
        "hoodie.table.timeline.timezone": "UTC",
        f"{WRITE}operation": "upsert" if KEY in given else "insert",
    }
    try:
        oracle.write(path, _rows(), {**others, **given})
    except JvmHudiError:  # of a merge that it lacks the class for: the table is made all the same
        assert (path / ".hoodie/hoodie.properties").exists()
    file = path / ".hoodie/hoodie.properties"
    entries = dict(parse_properties(file.read_bytes(), str(file)))
    return {"options": given, "properties": entries}


def _rows() -> pa.Table:
    """Two rows, with the columns by which tools that capture changes order and mark rows."""
    texts = ("Op", "_change_operation_type", "_event_bin_file")
    data = with_column(rows(range(2), 1), "name", ["a", "b"])
    for name in texts:
        data = data.append_column(name, pa.array(["c", "c"]))
    for name in ("_event_lsn", "_event_pos"):
        data = data.append_column(name, pa.array([1, 2], pa.int64()))
    return data
