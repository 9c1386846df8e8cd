"""Golden tables of all types, key generators, indexes and ways to merge."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from tests.golden.golden_tables import INCREMENTAL_QUERY
from tests.golden.make.recipe import (
    BUCKET,
    COMPACT,
    COW,
    KEYGEN,
    MOR,
    OF_PROCEDURES,
    PARQUET_BLOCKS,
    READ,
    SCHEDULE_CLUSTERING,
    WRITE,
    Recipe,
    golden,
    rows,
)

_INNER = pa.struct({"z": pa.string(), "cost": pa.decimal128(12, 4)})
TYPES = pa.schema(
    {
        "id": pa.string(),
        "ts": pa.int64(),
        "flag": pa.bool_(),
        "small": pa.int32(),
        "share": pa.float32(),
        "fare": pa.float64(),
        "price": pa.decimal128(10, 2),
        "huge": pa.decimal128(38, 6),
        "text": pa.string(),
        "raw": pa.binary(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
        "stops": pa.list_(_INNER),
        "by_name": pa.map_(pa.string(), pa.float64()),
        "info": pa.struct({"x": pa.int32(), "inner": _INNER}),
    }
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def typed_rows(numbers: Iterable[int], revision: int) -> pa.Table:
    """Rows with a column of every type; of a number divisible by four all but key and ts are null.

    Parameters
    ----------
    numbers : iterable of int
        One row for each.
    revision : int
        Which of a key's rows it is.
    """
    found = []
    for n in numbers:
        inner = {"z": f"z{n}" if n % 3 else None, "cost": Decimal(n * 1000 + revision).scaleb(-4)}
        row = {
            "flag": n % 2 == 0,
            "small": (-1) ** n * (2**31 - 1 - n),
            "share": n / 8,
            "fare": (-1) ** n * 1.5e300 / (n + revision),
            "price": Decimal(-12345 * n + revision).scaleb(-2),
            "huge": Decimal(10**37 + n * revision).scaleb(-6),
            "text": f"ä日\U0001f600 {n} r{revision}" if n % 5 else "",
            "raw": bytes([n, 255, 0, revision]),
            "day": EPOCH.date() + dt.timedelta(days=(n - 5) * 1000 + revision),
            "at": EPOCH + dt.timedelta(days=(n - 5) * 999, microseconds=n * 7 + revision),
            "tags": [f"t{i}" for i in range(n % 3)],
            "stops": [inner] if n % 3 else [],  # Hudi refuses a null among them
            "by_name": [("a", n / 4), ("b", None)] if n % 2 else [],
            "info": {"x": n, "inner": inner if n % 5 else None},
        }
        key = {"id": f"k{n:02d}", "ts": revision * 10}
        found.append({**dict.fromkeys(row), **key} if n % 4 == 0 else {**row, **key})
    return pa.Table.from_pylist(found, schema=TYPES)


def with_column(table: pa.Table, name: str, values: Sequence[str | None]) -> pa.Table:
    """Rows with other values of one text column."""
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.string()))


USUAL_BLOOM = {
    "hoodie.index.bloom.num_entries": "60000",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100000",
}


@golden("cow_types", COW, USUAL_BLOOM, versions="69", partition="")
def cow_types(table: Recipe) -> None:
    """Every column type in base files with bloom filters of the usual size, without partitions."""
    table.write(typed_rows(range(10), 1))
    table.write(typed_rows([1, 2, 3, 4, 11], 2))
    table.ask_snapshots()
    table.store()


@golden("mor_types_avro", MOR, partition="")
def mor_types_avro(table: Recipe) -> None:
    """Every column type in Avro log blocks, and deletes."""
    table.write(typed_rows(range(10), 1))
    table.write(typed_rows([1, 2, 3, 4, 9], 2))
    table.write(typed_rows([5, 9], 3), "delete")
    table.ask_snapshots()
    table.store()


@golden("mor_types_parquet", MOR, PARQUET_BLOCKS, versions="69", partition="")
def mor_types_parquet(table: Recipe) -> None:
    """Every column type in parquet log blocks, and deletes."""
    mor_types_avro(table)


COMPLEX = {
    f"{WRITE}recordkey.field": "id,qty",
    f"{WRITE}keygenerator.class": f"{KEYGEN}ComplexKeyGenerator",
}


@golden("cow_complex_keys", COW, COMPLEX, partition="city,name")
def cow_complex_keys(table: Recipe) -> None:
    """Keys and partitions of two fields, folders in hive style, a null among the values."""
    names = ["a", None, "a", "b", None]
    table.write(with_column(rows(range(5), 1), "name", names))
    table.write(with_column(rows([1, 3], 1, ts=20), "name", [None, "b"]))
    table.ask_snapshots()
    table.store()


ENCODED = {f"{WRITE}partitionpath.urlencode": "true", f"{WRITE}hive_style_partitioning": "false"}


@golden("cow_url_encoded", COW, ENCODED)
def cow_url_encoded(table: Recipe) -> None:
    """Partition values that are percent-encoded in paths: blanks, slashes, colons, letters."""
    values = ["new york", "a/b", "12:30", "50%", "zürich", "x=y", None]
    table.write(with_column(rows(range(7), 1), "city", values))
    table.write(with_column(rows([1, 4], 2), "city", ["a/b", "zürich"]))
    table.ask_snapshots()
    table.store()


BY_HOUR = {
    f"{WRITE}keygenerator.class": f"{KEYGEN}TimestampBasedKeyGenerator",
    f"{WRITE}hive_style_partitioning": "false",
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH",
    "hoodie.keygen.timebased.timezone": "UTC",
}


@golden("cow_timestamp_keys", COW, BY_HOUR, partition="name")
def cow_timestamp_keys(table: Recipe) -> None:
    """Partitions by the hour of a text that has a time zone, in folders of folders."""
    times = [f"2024-02-29T{hour}:30:00.000+0200" for hour in ("01", "02", "02", "23")]
    table.write(with_column(rows(range(4), 1), "name", times))
    table.write(with_column(rows([1, 2], 2), "name", times[1:3]))
    table.ask_snapshots()
    table.store()


@golden("cow_virtual_keys", COW, {"hoodie.populate.meta.fields": "false"})
def cow_virtual_keys(table: Recipe) -> None:
    """No meta columns in the files: keys are computed from the rows."""
    table.insert(range(6), 1)
    table.write(rows([6, 7], 2), "bulk_insert")
    table.ask_snapshots()
    table.store()


@golden("mor_virtual_keys", MOR, {"hoodie.populate.meta.fields": "false"}, versions="9")
def mor_virtual_keys(table: Recipe) -> None:
    """No meta columns in base files or log files: rows are merged by keys computed from them."""
    table.insert(range(6), 1)
    table.upsert([1, 2], 2)
    table.delete([3], 3)
    table.ask_snapshots()
    table.store()


@golden("cow_no_keys", COW, {f"{WRITE}recordkey.field": "", f"{WRITE}precombine.field": ""})
def cow_no_keys(table: Recipe) -> None:
    """A table without record key fields: Hudi makes the keys up."""
    for key in ("recordkey.field", "precombine.field"):
        del table.options[f"{WRITE}{key}"]
    table.insert(range(4), 1)
    table.insert([1, 1, 5], 2)
    table.ask_snapshots()
    table.store()


def late_rows_and_ties(table: Recipe) -> None:
    """Write updates in order, with equal and with lower ordering values, and deletes."""
    table.upsert(range(10), 1)
    table.upsert([1, 2, 3], 2, ts=10)
    table.upsert([4, 5, 11], 3, ts=5)
    table.delete([6], 4, ts=5)
    table.delete([7], 4, ts=50)
    table.upsert([7], 5, ts=20)
    table.upsert([6, 8], 6)
    table.ask_snapshots()


@golden("mor_bucket", MOR, BUCKET, PARQUET_BLOCKS, versions="689")
def mor_bucket(table: Recipe) -> None:
    """Two buckets a partition, parquet log blocks, rows by event time: late ones, ties, deletes."""
    late_rows_and_ties(table)
    table.store()


BY_COMMIT = {
    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    f"{WRITE}payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
}


@golden("mor_commit_time", MOR, BY_COMMIT, versions="69")
def mor_commit_time(table: Recipe) -> None:
    """The row of the latest commit wins, whatever its ordering value."""
    late_rows_and_ties(table)
    table.store()


@golden("mor_bucket_rules", MOR, BUCKET)
def mor_bucket_rules(table: Recipe) -> None:
    """Rules stored with the table: three buckets in a partition that had two, two elsewhere."""
    table.upsert(range(14), 1)
    options = ",".join(f"{key}={table.options[key]}" for key in OF_PROCEDURES)
    table.call(
        "partition_bucket_index_manager",
        overwrite="=ams$,3",
        rule="regex",
        bucket_number=2,
        dry_run=False,
        options=options,
    )
    table.upsert([1, 2, 3, 21], 2)
    table.delete([5], 3)
    table.ask_snapshots()
    table.store()


CONSISTENT = {
    **BUCKET,
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
}
_CLUSTERING = "org.apache.hudi.client.clustering."
SPLIT = {
    "hoodie.clustering.plan.strategy.class": (
        f"{_CLUSTERING}plan.strategy.SparkConsistentBucketClusteringPlanStrategy"
    ),
    "hoodie.clustering.execution.strategy.class": (
        f"{_CLUSTERING}run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie.clustering.updates.strategy": (
        f"{_CLUSTERING}update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
    ),
    "hoodie.clustering.plan.partition.filter.mode": "NONE",
    "hoodie.bucket.index.split.threshold": "0.00001",
    "hoodie.bucket.index.merge.threshold": "0.000001",
}


@golden("mor_consistent_buckets", MOR, CONSISTENT, partition="")
def mor_consistent_buckets(table: Recipe) -> None:
    """Consistent hashing: buckets to be split, with a write meanwhile, and split."""
    table.upsert(range(20), 1)
    table.upsert(range(5, 10), 2, {**SPLIT, **SCHEDULE_CLUSTERING})
    table.upsert([3, 4, 21], 3, SPLIT)
    table.ask_snapshots()
    table.store("splitting")
    given = {key: value for key, value in table.options.items() if "shuffle" not in key}
    options = ",".join(f"{key}={value}" for key, value in {**given, **SPLIT}.items() if value)
    table.call("run_clustering", op="execute", options=options)
    table.delete([7], 4)
    table.ask_snapshots()
    table.store("split")


MOVES = {
    "hoodie.simple.index.update.partition.path": "true",
    "hoodie.bloom.index.update.partition.path": "true",
}


def move_records(table: Recipe) -> None:
    """Write keys that are in one partition to the other."""
    table.upsert(range(6), 1)
    table.write(with_column(rows([1, 2], 2), "city", ["nyc", "ams"]))
    table.write(with_column(rows([3], 1, ts=5), "city", ["nyc"]))
    table.ask_snapshots()
    table.store()


@golden("cow_global_simple", COW, MOVES, {"hoodie.index.type": "GLOBAL_SIMPLE"})
def cow_global_simple(table: Recipe) -> None:
    """Records that move to another partition, and one whose row is too late to move it."""
    move_records(table)


@golden("mor_global_bloom", MOR, MOVES, {"hoodie.index.type": "GLOBAL_BLOOM"})
def mor_global_bloom(table: Recipe) -> None:
    """The same with log files: a delete in one partition, a row in the other."""
    move_records(table)


@golden("mor_evolved", MOR, versions="69", partition="")
def mor_evolved(table: Recipe) -> None:
    """A column added, a writer that lacks it, a column widened: files of three schemas."""
    table.upsert(range(6), 1)
    changed = rows([1, 2, 7], 2)
    table.write(changed.append_column("extra", pa.array(["x1", None, "x7"])))
    table.upsert([3], 3, {"hoodie.write.set.null.for.missing.columns": "true"})
    wide = pa.array([5_000_000_000, None], pa.int64())
    changed = rows([4, 8], 4).set_column(3, "qty", wide)
    table.write(changed.append_column("extra", pa.array([None, "x8"])))
    table.ask_snapshots()
    table.store()


AS_ALTERED = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",
}
"""Settings of a session that alters tables, and reads them again."""

COLUMNS = {
    "id": pa.string(),
    "city": pa.string(),
    "name": pa.string(),
    "note": pa.string(),
    "qty": pa.int32(),
    "fare": pa.float32(),
    "ts": pa.int64(),
    "at": pa.struct({"x": pa.float64(), "y": pa.string()}),
    "items": pa.list_(pa.struct({"w": pa.int32(), "n": pa.string()})),
    "prices": pa.map_(pa.string(), pa.struct({"v": pa.float64()})),
}
FIRST = ("rename column name to title", "drop column qty", "rename column at.x to lon")
RENAMED = {
    **{name: COLUMNS[name] for name in ("id", "city")},
    "title": pa.string(),
    **{name: COLUMNS[name] for name in ("note", "fare", "ts")},
    "at": pa.struct({"lon": pa.float64(), "y": pa.string()}),
    **{name: COLUMNS[name] for name in ("items", "prices")},
}
SECOND = (
    "add columns (qty bigint)",
    *("rename column title to spare", "rename column note to title"),
    *("rename column spare to note", "alter column fare type double", "drop column at.y"),
    *("add columns (at.y int)", "rename column items.element.w to width"),
    *("alter column items.element.width type bigint", "rename column prices.value.v to cost"),
)
SWAPPED = {
    **{name: COLUMNS[name] for name in ("id", "city")},
    "note": pa.string(),
    "title": pa.string(),
    "fare": pa.float64(),
    "ts": pa.int64(),
    "at": pa.struct({"lon": pa.float64(), "y": pa.int32()}),
    "items": pa.list_(pa.struct({"width": pa.int64(), "n": pa.string()})),
    "prices": pa.map_(pa.string(), pa.struct({"cost": pa.float64()})),
    "qty": pa.int64(),
}


def rows_with(
    columns: Mapping[str, pa.DataType], numbers: Iterable[int], revision: int
) -> pa.Table:
    """Rows each value of which tells its column, its row and the revision."""

    def value(kind: pa.DataType, path: str, number: int) -> object:
        if pa.types.is_struct(kind):
            return {f.name: value(f.type, f"{path}.{f.name}", number) for f in kind}
        if pa.types.is_list(kind):
            return [value(kind.value_type, path, number)]
        if pa.types.is_map(kind):
            return [("k", value(kind.item_type, path, number))]
        given = {"id": f"k{number:02d}", "city": "ams" if number % 2 else "nyc"}
        if path == "ts":
            return revision * 10
        text = given.get(path, f"{path} {number} r{revision}")
        return text if pa.types.is_string(kind) else number * 100 + revision

    schema = pa.schema(columns)
    found = [{f.name: value(f.type, f.name, number) for f in schema} for number in numbers]
    return pa.Table.from_pylist(found, schema=schema)


@golden("cow_altered", COW, versions="9")
@golden("mor_altered", MOR, versions="6", partition="")
def altered(table: Recipe) -> None:
    """Columns renamed, swapped, dropped, added again and widened by ALTER TABLE, nested ones too.

    Files have the names of their time: of before, of after the first changes, and of now.
    """
    for key, text in AS_ALTERED.items():
        table.oracle.sql(f"set {key}={text}")
    try:
        table.options["hoodie.schema.on.read.enable"] = "true"
        table.write(rows_with(COLUMNS, range(6), 1))
        table.sql(*(f"alter table {table.name} {change}" for change in FIRST))
        table.write(rows_with(RENAMED, [1, 6], 2))
        table.sql(*(f"alter table {table.name} {change}" for change in SECOND))
        table.write(rows_with(SWAPPED, [2, 7], 3))
        table.ask_history()
        table.store()
    finally:
        for key in AS_ALTERED:
            table.oracle.sql(f"reset {key}")


PARTIAL = {
    f"{WRITE}payload.class": (
        "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
    )
}


@golden("mor_partial_updates", MOR, PARTIAL, versions="69", partition="")
def mor_partial_updates(table: Recipe) -> None:
    """A null keeps the stored value, in log files and once they are compacted."""
    table.upsert([1, 2, 3, 4], 1)
    changes = with_column(rows([1, 2, 3], 2), "name", ["new", None, None])
    table.write(changes)
    table.write(changes.slice(1, 1).set_column(3, "qty", pa.array([None], pa.int32())))
    table.ask_snapshots()
    table.store()
    if table.name.startswith("v6"):
        table.upsert([9], 3, COMPACT)
        table.ask_snapshots()
        table.store("compacted")


def columns_updated(table: Recipe) -> None:
    """Update columns by SQL: later, earlier and at the same time as what is stored."""
    table.upsert(range(8), 1)
    source = "select 'k{:02d}' as id, {}L as ts, 'sql' as name, 7 as qty"
    updates = [(2, 20, "qty"), (2, 15, "name"), (3, 5, "qty"), (4, 10, "name"), (4, 30, "qty")]
    table.sql(
        *(
            f"merge into {table.name} t using ({source.format(number, ts)}) s on t.id = s.id "
            f"when matched then update set t.{column} = s.{column}, t.ts = s.ts"
            for number, ts, column in updates
        )
    )
    table.delete([4], 4)
    table.upsert([5], 5)
    table.sql(f"update {table.name} set qty = 8 where id = 'k05'")
    table.ask_snapshots()
    for end in table.ends():  # of a range without the base file Hudi's reader dies
        table.ask(
            {**INCREMENTAL_QUERY, f"{READ}begin.instanttime": "000", f"{READ}end.instanttime": end}
        )
    table.store()


@golden("mor_columns_updated", MOR, versions="9", partition="")
def mor_columns_updated(table: Recipe) -> None:
    """Log blocks of the columns that MERGE INTO set, by event time."""
    columns_updated(table)


@golden("mor_columns_updated_by_commit", MOR, BY_COMMIT, versions="8", partition="")
def mor_columns_updated_by_commit(table: Recipe) -> None:
    """Log blocks of the columns that MERGE INTO set, by commit time."""
    columns_updated(table)
