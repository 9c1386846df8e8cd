"""`shuffle_by_file_group` sends rows where the table's own hash says."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.datasource.native_bucket import native_bucket
from hoodie_ds.datasource.python_bucket import task_mapper
from hoodie_ds.datasource.registration import prefer_large_arrow_batches
from hoodie_ds.datasource.shuffle import _first_task, shuffle_by_file_group
from hoodie_ds.errors import SchemaError
from hoodie_ds.index.buckets import Buckets, first_task
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec
from hoodie_ds.sink.hidden_columns import TASK_COLUMN

pytestmark = pytest.mark.spark

ODD = [
    "a,b:c",
    "a:b",
    "a,b",
    ":",
    ",",
    ",:",
    ":,",
    "x,id:5",
    "id:5,b:6",
    "a,b,c:d:e,id:f",
    "__null__",
]


def _texts(count: int) -> list[str]:
    """Strings over all Unicode planes, many of them with the key syntax's own characters."""
    draw = random.Random(7)
    alphabet = "ab0,:_ é日\U0001f600\U0010fffd\ue000"
    texts = ["".join(draw.choices(alphabet, k=draw.randint(1, 8))) for _ in range(count)]
    return [*ODD, "__empty__", *texts]


def _buckets(keys: tuple[str, ...], hashed: tuple[str, ...]) -> Buckets:
    return Buckets(97, hashed, keys)


@pytest.mark.parametrize(
    ("kind", "keys", "hashed", "prefixed"),
    [
        (KeyGeneratorType.SIMPLE, ("id",), ("id",), False),
        (KeyGeneratorType.COMPLEX, ("id",), ("id",), True),
        (KeyGeneratorType.COMPLEX, ("id",), ("id",), False),
        (KeyGeneratorType.COMPLEX, ("id", "b"), ("id", "b"), True),
        (KeyGeneratorType.COMPLEX, ("id", "b", "n"), ("id", "n"), True),
        (KeyGeneratorType.COMPLEX, ("n", "flag", "day"), ("n", "flag", "day"), True),
    ],
)
def test_the_native_hash_is_the_tables_own(
    spark: Any,
    kind: KeyGeneratorType,
    keys: tuple[str, ...],
    hashed: tuple[str, ...],
    prefixed: bool,
) -> None:
    texts = _texts(2000)
    draw = random.Random(3)
    rows = [
        (
            text,
            draw.choice([None, "", *texts[:200]]),
            draw.choice([None, draw.randint(-(2**63), 2**63 - 1)]),
            draw.choice([True, False]),
            draw.randint(-30000, 60000),
        )
        for text in texts
    ]
    df = spark.createDataFrame(
        rows, "id string, b string, n bigint, flag boolean, d int"
    ).selectExpr("id", "b", "n", "flag", "date_from_unix_date(d) as day")
    spec = KeySpec(kind, keys, ("p",), complex_key_prefixed=prefixed)
    buckets = _buckets(keys, hashed)
    column = native_bucket(df, buckets, spec)
    assert column is not None
    found = df.withColumn("bucket", column).toArrow()
    keys = KeyGenerator.of(spec).record_keys(found)
    expected = buckets.ids(keys, pa.array([""] * found.num_rows).dictionary_encode())
    assert np.array_equal(found.column("bucket").to_numpy(), expected)
    assert len(set(expected.tolist())) > 50


def test_types_whose_text_differs_are_left_to_python(spark: Any) -> None:
    df = spark.range(3).selectExpr("cast(id as double) as id")
    spec = KeySpec(KeyGeneratorType.SIMPLE, ("id",), ("p",))
    assert native_bucket(df, _buckets(("id",), ("id",)), spec) is None


def _options(path: Any, buckets: int) -> dict[str, str]:
    return {
        "path": str(path),
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.bucket.index.num.buckets": str(buckets),
    }


@pytest.mark.parametrize("rules", [None, "c[12]$,1;c,16"])
def test_rows_sit_in_the_task_that_their_column_names(
    spark: Any, tmp_path: Any, rules: str | None
) -> None:
    df = spark.range(1000).selectExpr("cast(id as string) id", "concat('c', id % 5) as city")
    options = _options(tmp_path / "t", 8)
    if rules is not None:
        options["hoodie.bucket.index.partition.expressions"] = rules
    rows = shuffle_by_file_group(df, options)
    if rules is not None:
        tasks = rows.groupBy("city").agg(sf.countDistinct(TASK_COLUMN)).collect()
        assert dict(map(tuple, tasks)) == {"c0": 2, "c1": 1, "c2": 1, "c3": 2, "c4": 2}
    found = rows.withColumn("here", sf.spark_partition_id()).toArrow()
    assert found.column("here").to_pylist() == found.column(TASK_COLUMN).to_pylist()
    assert set(found.column("here").to_pylist()) == {0, 1}


def test_64_buckets_of_one_partition_are_even_on_8_tasks() -> None:
    spec = KeySpec(KeyGeneratorType.SIMPLE, ("id",), ("city",))
    buckets = Buckets(64, ("id",), ("id",))
    rows = pa.table({"id": [str(i) for i in range(64000)], "city": ["x"] * 64000})
    (batch,) = list(task_mapper(buckets, spec, 8)(rows.to_batches()))
    counts = np.bincount(batch.column(TASK_COLUMN).to_numpy(), minlength=8)
    assert counts.max() <= 1.5 * counts.mean()


@pytest.mark.parametrize("path", ["2026-11-{:02}", "p{}", "{}"])
def test_ten_partitions_of_two_buckets_keep_ten_tasks_busy(spark: Any, path: str) -> None:
    spec = KeySpec(KeyGeneratorType.SIMPLE, ("id",), ("city",))
    buckets = Buckets(2, ("id",), ("id",))
    paths = [path.format(day) for day in range(10)]
    rows = pa.table({"id": [str(i) for i in range(5000)], "city": paths * 500})
    (batch,) = list(task_mapper(buckets, spec, 10)(rows.to_batches()))
    counts = np.bincount(batch.column(TASK_COLUMN).to_numpy(), minlength=10)
    assert counts.max() <= 1.5 * counts.mean()
    assert counts.min() > 0
    df = spark.createDataFrame(rows.slice(0, 10))
    native = df.select("city", (_first_task(df, buckets, spec, 10) % 10).alias("first")).collect()
    assert [row["first"] for row in native] == [first_task(p, 10, 2) for p in paths]


def test_a_table_without_keys_is_not_shuffled(spark: Any, tmp_path: Any) -> None:
    df = spark.range(3)
    assert shuffle_by_file_group(df, {"path": str(tmp_path / "t"), "hoodie.table.name": "t"}) is df


@pytest.mark.parametrize("key", ["cast(id as string)", "cast(id as decimal(12, 2))"])
def test_rows_of_a_stream_sit_in_the_task_that_their_column_names(
    spark: Any, tmp_path: Any, key: str
) -> None:
    """A text is hashed by the JVM, a decimal in Python."""
    source = str(tmp_path / "source")
    spark.range(500).selectExpr(f"{key} as id", "concat('c', id % 5) as city").write.parquet(source)
    stream = spark.readStream.schema(spark.read.parquet(source).schema).parquet(source)
    rows = shuffle_by_file_group(stream, _options(tmp_path / "t", 8))
    name = f"shuffled_{'decimal' in key}"
    query = (
        rows.withColumn("here", sf.spark_partition_id())
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.table(name).toArrow()
    assert found.num_rows == 500
    assert found.column("here").to_pylist() == found.column(TASK_COLUMN).to_pylist()
    assert set(found.column("here").to_pylist()) == {0, 1}


def test_timestamps_of_one_path_share_a_task_per_bucket(spark: Any, tmp_path: Any) -> None:
    """As text they end at the millisecond, so a thousand values share a partition path."""
    options = _options(tmp_path / "t", 1) | {
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    df = spark.range(1000).selectExpr("cast(id as string) id", "timestamp_micros(id) as at")
    rows = shuffle_by_file_group(df, options).toArrow()
    assert len(set(rows.column(TASK_COLUMN).to_pylist())) == 1


@pytest.mark.parametrize(
    ("option", "columns"), [("recordkey", ("city", "id")), ("partitionpath", ("id", "city"))]
)
def test_a_missing_column_is_refused_by_name(
    spark: Any, tmp_path: Any, option: str, columns: tuple[str, str]
) -> None:
    there, missing = columns
    df = spark.range(3).selectExpr(f"cast(id as string) as {there}")
    assert option in next(k for k, v in _options(tmp_path / "t", 8).items() if v == missing)
    with pytest.raises(SchemaError, match=f"'{missing}' does not exist"):
        shuffle_by_file_group(df, _options(tmp_path / "t", 8))


def test_a_byte_limit_of_the_user_stays(spark: Any) -> None:
    key = "spark.sql.execution.arrow.maxBytesPerBatch"
    session = spark.newSession()
    default = session.conf.get(key)
    session.conf.set(key, default)
    prefer_large_arrow_batches(session)
    assert session.conf.get(key) == default
    session.conf.unset(key)
    prefer_large_arrow_batches(session)
    assert session.conf.get(key) == "2147483647"
