"""``hoodie_ds.read``: Spark's own Parquet reader and Python together give what Hudi answers."""

from __future__ import annotations

import zipfile
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.formats.parquet import base_file
from tests.faults.regressions.test_times_of_other_writers import MILLIS, mislabelling
from tests.faults.regressions.test_types_and_schemas import table_of_millis
from tests.golden.golden_tables import FOLDER, assert_rows_equal, expected_rows, unzip_table
from tests.merge_hooks import HOOK, MODE
from tests.tables import BUCKETS, KEY, TRIPS, TYPE, TYPES, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.spark

GOLDEN = [
    *("v6_cow_types", "v6_cow_url_encoded", "v6_cow_virtual_keys", "v6_mor_types_parquet"),
    *(
        "v9_cow_altered",
        "v9_mor_bucket",
        "v9_mor_columns_updated",
        "v9_mor_types_parquet",
        "v9_mor_virtual_keys",
    ),
]
"""Of each kind of file and of log; the others differ in what Spark has no part in."""


def plan(df: Any) -> str:
    return str(df._jdf.queryExecution().toString())


def read_trips(df: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.select("id", "city", "ts", "fare").collect())


@pytest.mark.parametrize("name", GOLDEN)
def test_tables_of_hudi_read_equal(spark: Any, name: str, tmp_path: Path) -> None:
    rows = hoodie_ds.read(spark, str(unzip_table(name, tmp_path))).toArrow()
    assert_rows_equal(rows, expected_rows(name))


@pytest.mark.slow
def test_vectors_of_hudi_are_arrays_of_spark(spark: Any, tmp_path: Path) -> None:
    zipfile.ZipFile(FOLDER.with_name("types") / "vector.zip").extractall(tmp_path)
    path = str(tmp_path)
    hoodie_ds.register(spark)
    kept: list[tuple[Any, ...]] = [(1, [0.5, 1.5, 2.5], 1)]
    for expected in (kept, [*kept, (2, [0.25, 1.5, 0.0], 1)]):
        for df in (spark.read.format("hoodie_py").load(path), hoodie_ds.read(spark, path)):
            rows = df.where("v[1] = 1.5").select("id", "v", "ts")
            assert rows.schema.simpleString() == "struct<id:int,v:array<float>,ts:bigint>"
            assert sorted(tuple(row) for row in rows.collect()) == expected
        new = spark.sql("SELECT 2 AS id, array(0.25F, 1.5F, 0F) AS v, 1L AS ts")
        new.write.format("hoodie_py").option("path", path).mode("append").save()


@pytest.mark.parametrize("kind", TYPES)
def test_base_files_are_read_by_spark_itself(spark: Any, kind: str, tmp_path: Path) -> None:
    """In any folder; some columns of them, and with the filters of the query."""
    path = tmp_path / "a b%20*{c}" / "t"
    table = HoodieTable(str(path), {**TRIPS, TYPE: kind, BUCKETS: "1"})
    table.upsert(trips(("a", "x=1", 1, 1.0), ("b", "y [z]", 1, 1.0), ("c", None, 1, 1.0)))
    whole = hoodie_ds.read(spark, str(path))
    assert read_trips(whole) == found(table)
    assert "MapInArrow" not in plan(whole)
    few = whole.where("ts > 1").select("id")
    assert "PushedFilters: [IsNotNull(ts), GreaterThan(ts,1)]" in plan(few)
    assert "ReadSchema: struct<id:string,ts:bigint>" in plan(few)
    assert few.collect() == []


@pytest.mark.slow
def test_spark_finds_nan_greater_than_all_numbers(spark: Any, tmp_path: Path) -> None:
    """In base files, in rows of log files, and where these are persisted."""
    nan, numbers = float("nan"), [float(number) for number in range(500)]
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
    base = trips(*((f"{number:04}", "x", 1, number) for number in numbers), ("base", "x", 1, nan))
    for rows in (base, trips(("log", "x", 2, nan))):
        fare = rows["fare"].combine_chunks()
        at = pa.StructArray.from_arrays([fare, rows["ts"].combine_chunks()], ["lon", "ts"])
        table.upsert(rows.append_column("at", at))
    conditions = ["fare > 1e3", "fare = double('nan')", "at.lon >= 1e3", "not (at.lon < 1e3)"]
    for _ in range(3):
        whole = hoodie_ds.read(spark, str(tmp_path))
        parts = [whole.where(text).select("id", "fare", "at.lon") for text in conditions]
        found = reduce(DataFrame.unionAll, parts).groupBy("id", "fare", "lon").count().collect()
        assert sorted(map(repr, map(tuple, found))) == [
            "('base', nan, nan, 4)",
            "('log', nan, nan, 4)",
        ]
        assert "ReadSchema: struct<at:struct<lon:double>,_tmp" in plan(whole.select("at.lon"))


def test_dates_before_1582_are_compared_as_they_are_stored(spark: Any, tmp_path: Path) -> None:
    """Which Python hands to Spark as days of another calendar."""
    at = datetime(1500, 1, 1, tzinfo=timezone.utc)
    options = {"hoodie.table.name": "t", KEY: "id"}
    rows = pa.table({"id": ["a"], "at": pa.array([at], pa.timestamp("us", "UTC"))})
    HoodieTable(str(tmp_path), options).upsert(rows)
    filters = [("at", "=", at), ("at", "in", [at]), ("at", "<=", at), ("at", ">=", at)]
    assert hoodie_ds.read(spark, str(tmp_path), filter=filters).count() == 1


def test_slices_with_logs_beside_slices_without(spark: Any, tmp_path: Path) -> None:
    """The same key in two partitions, late rows, deletes, and logs larger than their base file."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
    keys = [f"{number:04}" for number in range(500)]
    rows = [(key, city, 5, 1.0) for key in keys for city in ("x", "z")]
    # A base file with the name of that of "x", and another size.
    rows += [(key, "y", 5, 1.0) for key in keys[:400]]
    table.upsert(trips(*rows, ("lone", "w", 5, 1.0)))
    table.upsert(trips(("0001", "x", 6, 2.0), ("0002", "x", 4, 2.0), ("new", "x", 6, 2.0)))
    table.upsert(trips(("0003", "y", 9, 2.0)))
    table.upsert(trips(*((f"{number} {'-' * 40}", "w", 9, 2.0) for number in range(500))))
    table.delete(trips(("0004", "y", 9, None)).select(["id", "city"]))
    df = hoodie_ds.read(spark, str(tmp_path))
    assert read_trips(df) == found(table)
    assert plan(df).count("bit_get") >= 1
    assert {file.rsplit("/", 2)[-2] for file in df.inputFiles()} == {"x", "y", "z"}
    assert df.where("city = 'x' and fare = 2").count() == 2
    assert df.columns == spark.read.format("hoodie_py").load(str(tmp_path)).columns
    before = read_trips(df)
    table.upsert(trips(("0005", "x", 9, 3.0)))
    assert read_trips(df) == before


@pytest.mark.parametrize("through_python", ["false", "true"])
def test_other_columns_are_made_of_no_row(spark: Any, through_python: str, tmp_path: Path) -> None:
    """Nor those of log files, which hold a filter's columns besides."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
    table.upsert(trips(*((f"{number:03}", "x", 5, 1.0) for number in range(300))))
    table.upsert(trips(("001", "x", 6, 2.0), ("002", "x", 4, 2.0), ("new", "x", 7, 2.0)))
    options = {"hoodie.py.read.verify.checksums": through_python}
    given: dict[str, Any] = {"columns": ["fare", "id"], "filter": [("ts", ">", 5)]}
    df = hoodie_ds.read(spark, str(tmp_path), options, **given)
    assert df.columns == ["fare", "id"]
    assert sorted(map(tuple, df.collect())) == [(2.0, "001"), (2.0, "new")]
    assert "city" not in plan(df)
    inexact = hoodie_ds.read(spark, str(tmp_path), options, columns="id", filter=("ts", ">", 6.5))
    assert [tuple(row) for row in inexact.collect()] == [("new",)]
    with pytest.raises(SchemaError, match="'city_' is not in the table"):
        hoodie_ds.read(spark, str(tmp_path), columns=["city_"])


@pytest.mark.slow
@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_rows_are_left_out_in_any_part_of_a_file(
    spark: Any, vectorized: str, tmp_path: Path
) -> None:
    """Whatever row groups a task has, a filter rules out, and Spark reads row by row."""
    options = {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "2", "hoodie.parquet.block.size": "8KB"}
    table = HoodieTable(str(tmp_path), options)
    table.insert(trips(*((f"{number:05}", "x", 5, float(number)) for number in range(9_000))))
    footers = [pq.ParquetFile(file).metadata for file in (tmp_path / "x").glob("*.parquet")]
    assert min(footer.num_row_groups for footer in footers) > 3
    borders = [0, 1, 63, 64, 65, 4_095, 4_096, 8_998, 8_999, *range(6_000, 6_500)]
    table.upsert(trips(*((f"{number:05}", "x", 6, -1.0) for number in borders)))
    table.delete(trips(("00002", "x", 6, None)).select(["id", "city"]))
    assert sum("log" in file.name for file in (tmp_path / "x").iterdir()) >= 2
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    session.conf.set("spark.sql.files.maxPartitionBytes", "16384")
    session.conf.set("spark.sql.files.openCostInBytes", "1")
    df = hoodie_ds.read(session, str(tmp_path))
    assert df.rdd.getNumPartitions() > 6
    assert read_trips(df) == found(table)
    late = df.where("fare > 7000 or fare < 0")
    assert read_trips(late) == [row for row in found(table) if row[3] > 7_000 or row[3] < 0]
    assert df.count() == 8_999


def test_files_of_older_schemas(spark: Any, tmp_path: Path) -> None:
    """Spark widens what it can; files whose columns it cannot read come through Python."""
    options = {"hoodie.table.name": "t", KEY: "id", BUCKETS: "8", TYPE: "MERGE_ON_READ"}
    table = HoodieTable(str(tmp_path), options)
    nested = pa.struct([("a", pa.int32())])
    decimals = pa.array([Decimal("1.10")], pa.decimal128(10, 2))
    old = {"id": ["1"], "n": pa.array([1], pa.int32()), "f": [1.5]}
    table.upsert(pa.table({**old, "s": pa.array([{"a": 1}], nested), "d": decimals}))
    wider = pa.struct([("a", pa.int64()), ("b", pa.string())])
    new = {"id": ["2"], "n": pa.array([2], pa.int64()), "f": pa.array([2.5], pa.float64())}
    more = {"s": pa.array([{"a": 2, "b": "b"}], wider), "d": decimals, "x": ["x"]}
    table.upsert(pa.table({**new, **more}))
    df = hoodie_ds.read(spark, str(tmp_path))
    rows = [row.asDict(recursive=True) for row in df.select("n", "f", "s", "d", "x").collect()]
    assert sorted(rows, key=lambda row: int(row["n"])) == [
        {"n": 1, "f": 1.5, "s": {"a": 1, "b": None}, "d": Decimal("1.10"), "x": None},
        {"n": 2, "f": 2.5, "s": {"a": 2, "b": "b"}, "d": Decimal("1.10"), "x": "x"},
    ]


def test_floats_widen_by_way_of_their_strings(spark: Any, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {"hoodie.table.name": "t", KEY: "id", BUCKETS: "8"})
    table.upsert(pa.table({"id": ["1"], "f": pa.array([0.1], pa.float32())}))
    table.upsert(pa.table({"id": ["2"], "f": [0.2]}))
    df = hoodie_ds.read(spark, str(tmp_path))
    assert sorted(row["f"] for row in df.select("f").collect()) == [0.1, 0.2]


def test_times_of_other_writers(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark rebases dates of the hybrid calendar itself; what a label gets wrong it cannot know."""
    raw, right = date(1500, 1, 10), date(1500, 1, 1)
    first = pa.table({"id": ["1"], "d": [right], "at": pa.array([5], MILLIS)})
    table = table_of_millis(tmp_path, first, monkeypatch, TYPES[0], **{BUCKETS: "8"})
    with monkeypatch.context() as patched, mislabelling(monkeypatch):
        patched.setattr(base_file, "_PROLEPTIC_SPARK", "2.4.8")
        table.upsert(pa.table({"id": ["2"], "d": [raw], "at": pa.array([5000], MILLIS)}))
    shown = "cast(d as string)", "unix_millis(at)"
    rows = hoodie_ds.read(spark, str(tmp_path)).selectExpr("id", *shown).collect()
    assert sorted(map(tuple, rows)) == [("1", "1500-01-01", 5), ("2", "1500-01-01", 5000)]


def test_a_hook_merges(spark: Any, tmp_path: Path) -> None:
    hook = {MODE: "CUSTOM", HOOK: "tests.merge_hooks:add"}
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1", **hook})
    table.upsert(trips(*((f"{number}", "x", 1, 1.0) for number in range(300))))
    table.upsert(trips(("1", "x", 1, 2.0), ("2", "x", 1, -1.0), ("new", "x", 1, 4.0)))
    hoodie_ds.read(spark, str(tmp_path), {HOOK: hook[HOOK]})
    df = hoodie_ds.read(spark, str(tmp_path), {HOOK: hook[HOOK]})
    assert "bit_get" in plan(df)
    assert "InMemoryTableScan" not in plan(df)  # the hook may have changed
    assert read_trips(df) == found(table)


def test_an_empty_table_and_what_is_read_through_python(spark: Any, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0)))
    checked = hoodie_ds.read(
        spark, str(tmp_path), {"hoodie.py.read.verify.checksums": "TRUE", BUCKETS: "2"}
    )
    assert "FileScan parquet" not in plan(checked)
    assert read_trips(checked) == found(table)
    table.delete_partitions(["x"])
    assert hoodie_ds.read(spark, str(tmp_path)).collect() == []


@pytest.mark.parametrize("lost", [True, False])
def test_no_rows_are_left_out_whatever_the_session_ignores(
    spark: Any, lost: bool, tmp_path: Path
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    df = hoodie_ds.read(spark, str(tmp_path))
    (file,) = [path for path in tmp_path.rglob("*.parquet") if ".hoodie" not in path.parts]
    file.unlink() if lost else file.write_bytes(b"PAR1" + file.read_bytes()[4:200])
    settings = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    for key in settings:
        spark.conf.set(key, "true")
    try:
        with pytest.raises(Exception):  # noqa: B017, PT011  Spark's own, of several classes
            df.collect()
    finally:
        for key in settings:
            spark.conf.unset(key)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_what_filters_rule_out_is_not_opened(spark: Any, kind: str, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, BUCKETS: "4"})
    table.upsert(trips(*((f"k{i}", "xyz"[i % 3], i, float(i)) for i in range(60))))
    table.upsert(trips(("k0", "x", 99, 0.5), ("k1", "y", 99, 1.5)))
    rows = found(table)

    def read(*filters: Any) -> Any:
        return hoodie_ds.read(spark, str(tmp_path), filter=list(filters))

    whole, city = read(), read(("city", "=", "x"))
    assert read_trips(whole) == rows
    assert read_trips(city) == [row for row in rows if row[1] == "x"]
    assert {Path(file).parent.name for file in city.inputFiles()} <= {"x"}
    key = read(("city", "=", "x"), ("id", "==", "k0"))
    assert read_trips(key) == [("k0", "x", 99, 0.5)]
    assert len(key.inputFiles()) <= 1 < len(whole.inputFiles())
    some = read(("id", "IN", ["k3", "k4"]), ("ts", "not in", [3]), ("fare", ">=", 1))
    assert read_trips(some) == [("k4", "y", 4, 4.0)]
    assert read_trips(read(("city", "!=", "x"), ("ts", "<", 5))) == [
        row for row in rows if row[1] != "x" and row[2] < 5
    ]
    assert read_trips(read(("city", "=", "nowhere"))) == []
    expected = [row for row in rows if row[1] == "x" and row[3] >= 1.5]
    fare, cities = pc.field("fare") * 2 >= 3, pc.field("city") == "x"
    for same in (
        [("city", "=", "x"), ("fare", ">=", 1.5)],
        ["city = 'x'", "fare >= 1.5"],
        [cities & fare],
        ["city = x", ("ts", ">", 0.5), fare],  # which Spark compares, as no integer is the value
    ):
        assert read_trips(read(*same)) == expected
        assert {Path(file).parent.name for file in read(*same).inputFiles()} <= {"x"}
    assert read_trips(hoodie_ds.read(spark, str(tmp_path), filter="city = x")) == read_trips(city)
    assert read_trips(hoodie_ds.read(spark, str(tmp_path), filter=cities)) == read_trips(city)
    options = {"hoodie.py.read.verify.checksums": "true"}  # which goes through Python
    by_python = hoodie_ds.read(spark, str(tmp_path), options, filter=[cities])
    assert read_trips(by_python) == read_trips(city)
    for wrong, said in (
        (("nothing", "=", 1), "nothing is no column; there are _hoodie"),
        (("city", "~", "x"), "the operators are =, ==, <, <=, !="),
        (("city", "=", None), "nothing is equal to null"),
        (("city", "in", "xy"), "a list of values"),
        (("city",), "such as"),
        ("city", "option 'filter' = 'city' is refused: write COLUMN = VALUE"),
    ):
        with pytest.raises(OptionError, match=said):
            read(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("kind", by_day(TYPES, ["MERGE_ON_READ"]))
def test_what_is_asked_costs_little(
    spark: Any, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Bytes that Spark reads, beside what Python reads of log files and of keys."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, BUCKETS: "4"})
    table.upsert(trips(*((f"{n}", "xy"[n % 2], 1, n / 7) for n in range(30_000))))
    logs = int(kind == "MERGE_ON_READ")
    if logs:
        table.upsert(trips(("7", "y", 2, 7.0), ("new", "x", 2, 7.0)))
    context = spark.sparkContext._jsc.sc()
    hadoop, vectored = context.hadoopConfiguration(), "parquet.hadoop.vectored.io.enabled"
    request.addfinalizer(lambda: hadoop.unset(vectored))
    hadoop.setBoolean(vectored, False)  # its reads, in other threads, are not counted

    def read_until_now() -> int:
        context.listenerBus().waitUntilEmpty()
        return int(context.statusStore().executorSummary("driver").totalInputBytes())

    def cost(df: Any) -> tuple[list[tuple[Any, ...]], int]:
        """The rows, and the bytes that Spark reads for them."""
        before = read_until_now()
        return [tuple(row) for row in df.collect()], read_until_now() - before

    read = hoodie_ds.read(spark, str(tmp_path))
    rows, whole = cost(read)
    count = len(rows)
    assert count == 30_000 + logs
    assert whole > sum(file.stat().st_size for file in tmp_path.rglob("*.parquet")) / 2
    for df, expected in (
        (read.agg(sf.count("*")), [(count,)]),
        (read.groupBy("city").count().orderBy("city"), [("x", count - 15_000), ("y", 15_000)]),
        (hoodie_ds.read(spark, str(tmp_path), columns="ts", filter="id = 7"), [(1 + logs,)]),
    ):
        rows, found = cost(df)
        assert rows == expected
        assert found < whole / 3, df
    rows, found = cost(read.limit(5))
    assert (len(rows), found < whole / 3) == (5, True)


def test_columns_cost_no_messages_to_the_jvm(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those with statistics that leave out NaN do; each message takes as long as some rows."""
    if not hasattr(spark, "_jvm"):
        pytest.skip("Spark Connect sends a plan in one message")
    sent: list[str] = []
    send = ClientServerConnection.send_command

    def noted(self: Any, command: str) -> Any:
        sent.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", noted)
    counts = []
    for number in (1, 31):
        rows = trips(*((f"{n:03}", "x", 1, n / 7) for n in range(400)))
        for column in range(number):
            rows = rows.append_column(f"c{column}", pa.repeat("c", 400))
        path = str(tmp_path / str(number))
        table = HoodieTable(path, {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
        table.upsert(rows)
        table.upsert(rows.slice(0, 2))
        hoodie_ds.read(spark, path)
        sent.clear()
        again = hoodie_ds.read(spark, path)
        counts.append(len(sent))
        assert "log_bits" in plan(again)
    assert counts[1] < counts[0] + 60
