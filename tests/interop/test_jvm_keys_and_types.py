"""Record keys, partition paths and column types mean the same to Apache Hudi on the JVM."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi
from tests.interop.test_types import rows as rows_of_all_types
from tests.rows import assert_same_rows, without_meta
from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

WRITE = "hoodie.datasource.write."
CLASS = f"{WRITE}keygenerator.class"
TIMEBASED = "hoodie.keygen.timebased."
TABLE = {
    "hoodie.table.name": "t",
    ORDERING: "ts",
    "hoodie.index.type": "BUCKET",
    BUCKETS: "3",
    "hoodie.compact.inline": "false",
}
JVM_ONLY = ("hoodie.compact.inline",)
GENERATORS = {
    "simple": {KEY: "id", PARTITION: "city"},
    "hive-urlencoded": {
        KEY: "id",
        PARTITION: "city",
        f"{WRITE}hive_style_partitioning": "true",
        f"{WRITE}partitionpath.urlencode": "true",
    },
    "complex": {
        KEY: "id,n",
        PARTITION: "city,n",
        CLASS: "org.apache.hudi.keygen.ComplexKeyGenerator",
    },
    "nonpartitioned": {KEY: "id,day", CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
    "timestamp": {
        KEY: "id",
        PARTITION: "millis",
        CLASS: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        f"{TIMEBASED}timestamp.type": "EPOCHMILLISECONDS",
        f"{TIMEBASED}output.dateformat": "yyyy/MM/dd",
    },
    "custom": {
        KEY: "id,price",
        PARTITION: "city:SIMPLE,millis:TIMESTAMP",
        CLASS: "org.apache.hudi.keygen.CustomKeyGenerator",
        f"{TIMEBASED}timestamp.type": "EPOCHMILLISECONDS",
        f"{TIMEBASED}output.dateformat": "yyyyMM",
    },
    "nested": {KEY: "s.k", PARTITION: "s.p"},
}


def batch(ts: int, odd_city: str) -> pa.Table:
    cities = ["Oslo", "São Paulo", odd_city, None, "", "50%"]
    keys = [f"k{i}" for i in range(5)] + ["a:b,c"]
    count = len(keys)
    return pa.table(
        {
            "id": keys,
            "n": pa.array(range(count), pa.int64()),
            "ts": pa.array([ts] * count, pa.int64()),
            "city": pa.array(cities),
            "day": [date(1969 + i, 12, 31) for i in range(count)],
            "millis": pa.array([1_700_000_000_000 + i * 10**10 for i in range(count)], pa.int64()),
            "price": pa.array([0.1, 1e7, 1e-5, 100.0, -2.5, 1e21], pa.float64()),
            "s": [{"k": key, "p": f"p{i % 2}"} for i, key in enumerate(keys)],
        }
    )


def locations(rows: pa.Table) -> list[tuple[str, str]]:
    return sorted(
        (row["_hoodie_record_key"], row["_hoodie_partition_path"]) for row in rows.to_pylist()
    )


def ours(path: Path, options: dict[str, str]) -> HoodieTable:
    return HoodieTable(str(path), {k: v for k, v in options.items() if k not in JVM_ONLY})


@pytest.mark.parametrize("name", GENERATORS)
def test_keys_and_partitions_are_the_same(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    """Each finds the other's rows again: no key is there twice, none is left behind."""
    options = {**TABLE, **GENERATORS[name], TYPE: "COPY_ON_WRITE"}
    # Hudi itself fails at a colon in the path of a partition.
    first, second = (batch(ts, "a:/b" if "urlencoded" in name else "x=y'z") for ts in (1, 2))
    table = ours(tmp_path / "ours", options)
    table.upsert(first)
    here = locations(table.read())
    jvm_hudi.write(tmp_path / "ours", second, options)
    assert locations(table.read()) == here
    assert set(table.read()["ts"].to_pylist()) == {2}

    jvm_hudi.write(tmp_path / "theirs", first, options)
    theirs = ours(tmp_path / "theirs", options)
    assert locations(theirs.read()) == here
    theirs.upsert(second)
    assert locations(theirs.read()) == here
    read_by_jvm = jvm_hudi.read(tmp_path / "theirs")
    assert locations(read_by_jvm) == here
    assert set(read_by_jvm["ts"].to_pylist()) == {2}


def of_table(rows: pa.Table) -> pa.Table:
    """Rows as a table holds them: Avro, and so Hudi, has no smaller integer than int."""
    fields = [
        field.with_type(pa.int32()) if field.type in (pa.int8(), pa.int16()) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def without_null_elements(rows: pa.Table) -> pa.Table:
    """The JVM's writer refuses null elements of lists by default."""
    for name in ("items", "nested"):
        column = rows.column(name)
        values = [[1, 3], [], None]
        if name == "nested":
            values = [[{"x": None, "deep": {"y": ["a", ""]}}], [{"x": 2, "deep": None}], None]  # type: ignore[list-item]
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pa.array(values, column.type))
    return rows


@pytest.mark.parametrize(
    ("kind", "blocks"),
    by_day(
        [(TYPES[0], "parquet"), (TYPES[1], "parquet"), (TYPES[1], "avro")],
        {(TYPES[0], "parquet"), (TYPES[1], "avro")},
    ),
)
def test_all_types(jvm_hudi: JvmHudi, tmp_path: Path, kind: str, blocks: str) -> None:
    options = {
        **TABLE,
        KEY: "id",
        CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        TYPE: kind,
        "hoodie.logfile.data.block.format": blocks,
    }
    table = ours(tmp_path, options)
    for ts, write in enumerate([table.upsert, table.upsert, None, table.upsert]):
        rows = of_table(rows_of_all_types(ts))
        if write is None:
            rows = without_null_elements(rows)
            jvm_hudi.write(tmp_path, rows, options)
        else:
            write(rows)
        assert_same_rows(without_meta(table.read()), rows, ["id"])
        if ts:
            assert_same_rows(without_meta(jvm_hudi.read(tmp_path)), rows, ["id"])
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


@pytest.mark.parametrize("kind", TYPES)
def test_timestamps_without_zone(jvm_hudi: JvmHudi, tmp_path: Path, kind: str) -> None:
    """hudi-rs 0.5.0 panics on them, so it is not asked."""
    options = {
        **TABLE,
        KEY: "id",
        CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        TYPE: kind,
    }
    table = ours(tmp_path, options)
    values = pa.array([datetime(1969, 7, 20, 20, 17), None], pa.timestamp("us"))
    for ts in (1, 2):
        rows = pa.table({"id": ["a", "b"], "ts": [ts, ts], "local": values})
        table.upsert(rows)
        assert_same_rows(without_meta(jvm_hudi.read(tmp_path)), rows, ["id"])
        assert_same_rows(without_meta(table.read()), rows, ["id"])


@pytest.mark.parametrize("kind", TYPES)
def test_days_before_the_gregorian_calendar(jvm_hudi: JvmHudi, tmp_path: Path, kind: str) -> None:
    """Spark 3.5 refuses them where no footer says which calendar a file is in."""
    options = {
        **TABLE,
        KEY: "id",
        CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        TYPE: kind,
        "hoodie.logfile.data.block.format": "parquet",
    }
    table = ours(tmp_path, options)
    moment = datetime(1500, 1, 1, 12, tzinfo=timezone.utc)
    for ts in (1, 2):
        rows = pa.table({"id": ["a"], "ts": [ts], "day": [date(1500, 1, 1)], "at": [moment]})
        table.upsert(rows)
        assert_same_rows(without_meta(jvm_hudi.read(tmp_path)), without_meta(table.read()), ["id"])
        assert table.read(["day", "at"]).to_pylist() == [{"day": date(1500, 1, 1), "at": moment}]


@pytest.mark.parametrize("kind", TYPES)
def test_dates_as_ordering_field(jvm_hudi: JvmHudi, tmp_path: Path, kind: str) -> None:
    options = {
        **TABLE,
        KEY: "id",
        CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        TYPE: kind,
    }
    table = ours(tmp_path, options)
    for day, value in ((5, "old"), (4, "late"), (6, "new")):
        ts = [date(2026, 1, day), date(2026, 1, 10 - day)]
        table.upsert(pa.table({"id": ["a", "b"], "ts": ts, "v": [value, value]}))
    found = sorted((row["id"], row["v"]) for row in table.read().to_pylist())
    assert found == [("a", "new"), ("b", "late")]
    read_by_jvm = jvm_hudi.read(tmp_path)
    assert_same_rows(read_by_jvm, table.read())
