"""Reads without Spark: what a filter leaves unopened, and rows in streams."""

from __future__ import annotations

import pickle
from datetime import date
from typing import cast

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import SchemaError
from hoodie_ds.filters.arrow import from_arrow
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.query import open_query
from hoodie_ds.reader.scan_plan import ScanTask
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.fault import Kind
from hoodie_ds.testing.faulty_storage import FaultyStorage
from hoodie_ds.testing.memory import MemoryStorage
from tests.merge_hooks import HOOK, MODE
from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TRIPS, TYPE, TYPES, trips

INDEX = "hoodie.index.type"
KEYGEN = "hoodie.datasource.write.keygenerator.class"
HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
F = pc.field


class Place:
    """A table in memory that tells which data files a read opens."""

    def __init__(self, **options: str) -> None:
        given = {key: value for key, value in {**TRIPS, **options}.items() if value}
        self.storage = MemoryStorage()
        self.table = HoodieTable("/t", given, storage=self.storage)

    def opened(self, expression: pc.Expression, columns: list[str] | None = None) -> list[str]:
        """The data files that are opened; the rows are compared with those of a whole read."""
        seen = FaultyStorage(self.storage)
        table = HoodieTable("/t", storage=cast(Storage, seen))
        rows = table.read(columns, expression)
        whole = self.table.read().filter(expression)
        expected = whole if columns is None else whole.select(columns)
        assert sorted(map(str, rows.to_pylist())) == sorted(map(str, expected.to_pylist()))
        return sorted(
            operation.path
            for operation in seen.recorder.operations
            if operation.kind in (Kind.OPEN, Kind.READ) and not operation.path.startswith(".hoodie")
        )


def many(count: int, *, first: int = 0, ts: int = 1) -> pa.Table:
    """Rows with keys k0, k1, ... in cities x, y and z."""
    rows = [(f"k{n}", "xyz"[n % 3], ts, float(n)) for n in range(first, first + count)]
    return trips(*rows)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("hive", ["true", "false"])
def test_partitions_that_a_filter_rules_out_are_not_opened(kind: str, hive: str) -> None:
    place = Place(**{TYPE: kind, HIVE: hive, BUCKETS: "1"})
    place.table.upsert(many(9))
    place.table.upsert(many(9, ts=2))
    files = len(place.opened(F("ts") == 2))
    assert files == (3 if kind == "COPY_ON_WRITE" else 6)
    for expression in (F("city") == "y", F("city").isin(["y"]), F("city") > "x"):
        found = place.opened(expression)
        assert 0 < len(found) < files
        assert not any(path.startswith(("x/", "city=x/")) for path in found)
    folder = "city=y" if hive == "true" else "y"
    assert {p.partition("/")[0] for p in place.opened(F("_hoodie_partition_path") == folder)} == {
        folder
    }
    assert not place.opened(F("city") == "nowhere")
    assert not place.opened(F("city").is_null())


@pytest.mark.parametrize("kind", TYPES)
def test_a_key_of_a_bucket_table_opens_one_file_group(kind: str) -> None:
    place = Place(**{TYPE: kind, INDEX: "BUCKET", BUCKETS: "8", PARTITION: ""})
    place.table.upsert(many(200))
    assert len(place.opened(F("ts") == 1)) == 8
    for expression in (F("id") == "k7", F("_hoodie_record_key") == "k7"):
        assert len(place.opened(expression)) == 1
    place.table.upsert(many(200, ts=2))
    groups = {path.lstrip(".")[:8] for path in place.opened(F("id") == "k7")}
    assert len(groups) == 1
    assert len(place.opened(F("id").isin([f"k{n}" for n in range(200)]) & (F("id") == "k9"))) <= 2
    assert not place.opened((F("id") == "k7") & (F("id") == "k8"))


def test_a_key_of_several_fields_is_known_when_all_are() -> None:
    place = Place(**{KEY: "id,city", INDEX: "BUCKET", BUCKETS: "8", PARTITION: ""})
    place.table.upsert(many(100))
    assert len(place.opened((F("id") == "k7") & F("city").isin(["x", "y"]))) in (1, 2)
    assert len(place.opened(F("id") == "k7")) == 8


@pytest.mark.parametrize("kind", TYPES)
def test_rows_of_log_files_are_found_whatever_the_base_file_holds(kind: str) -> None:
    """A filter on values is true of what the log files say, not of what the base file said."""
    place = Place(**{TYPE: kind, BUCKETS: "1", PARTITION: ""})
    place.table.upsert(many(20))
    place.table.upsert(many(5, first=100, ts=9))
    place.table.upsert(trips(("k3", "x", 9, 3000.0)))
    place.table.delete(trips(("k4", "x", 10, 0.0)))
    place.table.upsert(trips(("k5", "x", 0, 5.0)))  # too late, which the base file alone tells
    for expression in (
        F("fare") > 1000.0,
        F("fare") == 3.0,
        F("id") == "k102",
        F("id") == "k3",
        F("id") == "k4",
        F("ts") == 9,
        F("ts") == 0,
        pc.starts_with(F("id"), "k10"),
    ):
        assert place.opened(expression)


def test_rows_that_a_hook_merges_are_found_whatever_the_base_file_holds() -> None:
    place = Place(
        **{TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: ""},
        **{MODE: "CUSTOM", HOOK: "tests.merge_hooks:add"},
    )
    place.table.upsert(many(20))
    place.table.upsert(trips(("k3", "x", 9, 3000.0)))
    found = place.table.read(["id"], F("fare") == 3003.0)
    assert found["id"].to_pylist() == ["k3"]


def test_row_groups_are_ruled_out_by_their_statistics() -> None:
    place = Place(**{BUCKETS: "1", PARTITION: ""})
    place.table.upsert(many(10))
    (task,) = SnapshotQuery(PinnedTable.latest(place.storage)).plan().tasks
    pinned = PinnedTable.latest(place.storage)
    query = SnapshotQuery(pinned)
    for expression, rows in ((F("ts") > 1, 0), (F("ts") >= 1, 10)):
        plan = query.plan(from_arrow(expression, query.schema))
        assert sum(t.num_rows for t in plan.executor.read(task, ["fare"])) == rows


def test_a_bloom_filter_rules_out_keys_within_the_range() -> None:
    place = Place(**{INDEX: "BLOOM", PARTITION: "", BUCKETS: ""})
    place.table.upsert(many(100))
    query = SnapshotQuery(PinnedTable.latest(place.storage))
    for key, rows in (("k50", 100), ("k5000", 0)):
        plan = query.plan(from_arrow(F("_hoodie_record_key") == key, query.schema))
        read = [t.num_rows for task in plan.tasks for t in plan.executor.read(task, ["id"])]
        assert sum(read) == rows


_DAYS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "day": pa.array([date(2026, 1, 1), date(2026, 1, 2), None, date(1, 1, 1)]),
        "n": pa.array([1, -2, None, 3], pa.int64()),
        "s": ["2026/01/01", "a b%/c", None, "zz"],
        "flag": [True, False, None, True],
        "ts": [1, 1, 1, 1],
    }
)


@pytest.mark.parametrize("encoded", ["true", "false"])
@pytest.mark.parametrize(
    ("field", "expression", "left"),
    [
        ("day", F("day") == date(2026, 1, 2), 2),
        ("day", F("day") > date(2026, 1, 1), 2),
        ("n", F("n") < 0, 2),
        ("n", F("n").is_null(), 1),
        ("s", F("s") == "2026/01/01", 2),
        ("s", F("s") == "a b%/c", 2),
        ("flag", ~F("flag"), 2),
    ],
)
def test_partition_values_of_other_types(
    field: str, expression: pc.Expression, left: int, encoded: str
) -> None:
    place = Place(**{PARTITION: field, ENCODED: encoded, BUCKETS: "1"})
    place.table.upsert(_DAYS)
    assert 1 <= len(place.opened(expression)) <= left


def test_several_partition_fields() -> None:
    place = Place(**{PARTITION: "n,flag", BUCKETS: "1"})
    place.table.upsert(_DAYS)
    found = place.opened((F("n") == 1) & F("flag"))
    assert {path.rpartition("/")[0] for path in found} >= {"1/true"}
    assert len(found) <= 2


def test_the_path_of_a_time_is_not_its_value() -> None:
    place = Place(
        **{
            PARTITION: "ts",
            BUCKETS: "1",
            KEYGEN: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy",
        }
    )
    place.table.upsert(trips(("a", "x", 1_700_000_000_000, 1.0)))
    assert place.opened(F("ts") == 1_700_000_000_000)


@pytest.mark.parametrize("kind", TYPES)
def test_a_stream_has_the_rows_of_the_table(kind: str) -> None:
    place = Place(**{TYPE: kind, BUCKETS: "2"})
    place.table.upsert(many(50))
    place.table.upsert(many(20, first=40, ts=2))
    scanner = place.table.scan(["id", "fare"], F("fare") > 5.0)
    whole = scanner.to_table().sort_by("id")
    assert whole.num_rows == 54
    assert pa.Table.from_batches(scanner.to_batches()).sort_by("id") == whole
    assert scanner.to_reader().read_all().sort_by("id") == whole
    assert pa.table(scanner).sort_by("id") == whole
    assert scanner.schema == whole.schema
    assert scanner.count_rows() == 54
    assert place.table.scan().count_rows() == 60
    assert place.table.scan(()).count_rows() == 60
    assert place.table.scan(["city"]).to_table().num_rows == 60


@pytest.mark.parametrize("ordering", ["ts", ""])
def test_records_of_many_log_blocks_are_combined_as_they_come(
    ordering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a delete is among them, what it took must not be forgotten."""
    place = Place(**{TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: "", ORDERING: ordering})
    expected: dict[str, tuple[int, float]] = {}
    for number, ts in enumerate([1, 5, 3, 5, 2]):
        rows = [(f"k{key}", "x", ts, float(number)) for key in range(number, number + 6)]
        place.table.upsert(trips(*rows))
        for key, _, _, fare in rows:
            if not ordering or ts >= expected.get(key, (0, 0.0))[0]:
                expected[key] = (ts, fare)
    monkeypatch.setattr("hoodie_ds.slices.file_slice_reader._HELD_RECORDS", 4)

    def check() -> None:
        found = place.table.read(["id", "ts", "fare"]).to_pylist()
        assert {row["id"]: (row["ts"], row["fare"]) for row in found} == expected

    check()
    place.table.delete(trips(("k3", "x", 9, 0.0)).select(["id", "city"]))
    expected.pop("k3")
    check()
    place.table.upsert(trips(("k3", "x", 1, 7.0), ("k9", "x", 9, 7.0)))
    expected.update({"k3": (1, 7.0), "k9": (9, 7.0)})
    check()


def test_other_libraries_take_a_scanner_as_it_is() -> None:
    place = Place()
    place.table.upsert(many(9))
    trips_ = place.table.scan(["id", "fare"])
    assert duckdb.sql("SELECT count(*), sum(fare) FROM trips_").fetchall() == [(9, 36.0)]
    assert trips_.to_table().to_pandas()["fare"].sum() == 36.0
    copy = HoodieTable("/u", TRIPS, storage=MemoryStorage())
    copy.upsert(place.table.scan(["id", "city", "ts", "fare"]))
    assert copy.scan().count_rows() == 9


def test_a_stream_opens_files_as_it_goes_and_may_be_left() -> None:
    place = Place(**{BUCKETS: "1"})
    place.table.upsert(many(9))
    seen = FaultyStorage(place.storage)
    batches = HoodieTable("/t", storage=cast(Storage, seen)).scan().to_batches()
    assert next(batches).num_rows == 3
    opened = [o.path for o in seen.recorder.operations if o.path.endswith(".parquet")]
    assert len([path for path in opened if "/" in path and path[0] != "."]) <= 2
    del batches


def test_an_empty_table_has_a_stream_too() -> None:
    place = Place()
    place.table.upsert(many(1).slice(1))
    assert list(place.table.scan().to_batches()) == []
    assert place.table.scan(["id"]).to_reader().read_all().schema == pa.schema({"id": pa.string()})


def test_a_filter_may_name_columns_by_their_places() -> None:
    place = Place()
    place.table.upsert(trips(("a", "x", 1, 7.0), ("b", "y", 2, 1.0)))
    names = place.table.schema.names
    for name, value in (("id", "a"), ("fare", 7.0)):
        place.opened(F(names.index(name)) == value, ["fare", "id"])


def test_a_column_that_is_asked_for_twice_is_refused() -> None:
    place = Place()
    place.table.upsert(trips(("a", "x", 1, 7.0)))
    with pytest.raises(SchemaError, match="column 'id' is requested more than once"):
        place.table.read(["id", "fare", "id"])


def test_only_columns_that_are_needed_are_read() -> None:
    place = Place()
    place.table.upsert(many(9))
    query = open_query(place.storage, ReadOptions(base_path="/t"))
    assert Scanner(query, ["id"], F("fare") > 1.0)._fetched == ["id", "fare"]


def test_a_plan_can_be_pickled() -> None:
    place = Place(**{INDEX: "BUCKET"})
    place.table.upsert(many(9))
    query = SnapshotQuery(PinnedTable.latest(place.storage))
    one = (F("id") == "k1") & (F("city") == "y")
    plan = query.plan(from_arrow(one, query.schema))
    (task,) = plan.tasks
    assert isinstance(task, ScanTask)
    assert (task.partition_path, task.is_base_only) == ("y", True)
    assert task.size > 0
    pruner = plan.executor.pruner  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(pruner)).predicate == pruner.predicate
