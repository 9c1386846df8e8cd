"""Rows that are changed by what they are: in each table, and with other writers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    HoodieError,
    OptionError,
    ReplayMismatchError,
    SchemaError,
    TableNotFoundError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.filters.given import Filter
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.file_groups.bucket_writer import BucketWriter
from hoodie_ds.sink.locate.matched_rows import change_by_filter, matched_rows
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from tests.counted_reads import CountedReads
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.row_operations import logged_as_rows
from tests.rows import assert_same_rows
from tests.tables import (
    BUCKETS,
    KEY,
    ORDERING,
    PARTITION,
    TRIPS,
    TYPE,
    TYPES,
    VERSION,
    found,
    trips,
)

ROWS = trips(("a", "x", 1, 1.0), ("b", "x", 1, 2.0), ("c", "y", 1, 3.0), ("d", "y", 1, None))
INDEX = "hoodie.index.type"
INDEXES: dict[str, dict[str, str]] = {
    "bucket": {},
    "bloom": {BUCKETS: "", INDEX: "BLOOM"},
    "simple": {BUCKETS: "", INDEX: "SIMPLE"},
    "global": {BUCKETS: "", INDEX: "GLOBAL_SIMPLE"},
    "virtual keys": {BUCKETS: "", INDEX: "SIMPLE", "hoodie.populate.meta.fields": "false"},
}
MOVES = "hoodie.{}.index.update.partition.path"
LEAVING: dict[str, dict[str, str]] = {
    "bloom": {INDEX: "GLOBAL_BLOOM", MOVES.format("bloom"): "false"},
    "records": {INDEX: "RECORD_INDEX", "hoodie.metadata.record.index.min.filegroup.count": "2"},
    "virtual keys": {
        INDEX: "GLOBAL_SIMPLE",
        MOVES.format("simple"): "false",
        "hoodie.populate.meta.fields": "false",
    },
}
"""Global indexes that leave rows in their partitions."""
WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
NUMBER = "hoodie.datasource.write.batch.identifier"
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
OPERATION = "hoodie.datasource.write.operation"


def made(options: Mapping[str, str]) -> tuple[HoodieTable, MemoryStorage]:
    storage = MemoryStorage()
    given = {key: value for key, value in {**TRIPS, **options}.items() if value}
    return HoodieTable("/t", given, storage=storage), storage


@pytest.mark.parametrize(("kind", "index"), [*product(TYPES, INDEXES)])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_delete_takes_the_rows_that_match_in_every_table(
    version: str, kind: str, index: str
) -> None:
    table, _ = made({VERSION: version, TYPE: kind, **INDEXES[index]})
    table.upsert(ROWS)
    table.upsert(trips(("a", "x", 2, 5.0), ("b", "x", 0, 9.0)))
    result = table.delete(where="fare > 2.5")
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 2)
    assert found(table) == [("b", "x", 1, 2.0), ("d", "y", 1, None)]
    assert table.delete(where="fare > 2.5") == WriteResult()
    # It has no ordering value, so that rows of any may come again.
    table.upsert(trips(("c", "y", 3, 1.5)))
    assert ("c", "y", 3, 1.5) in found(table)


@pytest.mark.parametrize(("kind", "index"), [*product(TYPES, INDEXES)])
@pytest.mark.parametrize("version", ["6", "9"])
def test_an_update_changes_the_rows_that_match_in_every_table(
    version: str, kind: str, index: str
) -> None:
    table, _ = made({VERSION: version, TYPE: kind, **INDEXES[index]})
    table.upsert(ROWS)
    table.upsert(trips(("a", "x", 2, 5.0)))
    result = table.update(
        {"fare": pc.field("fare") * 2, "ts": lambda t: pc.add(t["ts"], 1)}, "fare > 2.5"
    )
    assert (result.inserted, result.updated, result.deleted) == (0, 2, 0)
    assert found(table) == [
        ("a", "x", 3, 10.0),
        ("b", "x", 1, 2.0),
        ("c", "y", 2, 6.0),
        ("d", "y", 1, None),
    ]


@pytest.mark.parametrize("index", LEAVING)
@pytest.mark.parametrize(("version", "kind"), [*zip("69", TYPES, strict=True)])
def test_a_row_that_a_global_index_has_left_is_changed_where_it_lies(
    version: str, kind: str, index: str
) -> None:
    table, _ = made({VERSION: version, TYPE: kind, BUCKETS: "", **LEAVING[index]})
    table.upsert(ROWS)
    table.upsert(trips(("a", "y", 2, 1.0), ("b", "y", 2, 2.0), ("c", "new", 2, 3.0)))
    assert table.update({"fare": 5.0}, ("id", "in", ["a", "c"])).updated == 2
    source = trips(("b", "y", 3, 9.0), ("n", "x", 3, 4.0), ("m", "z", 3, 4.0))
    merge = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute()
    assert (result.inserted, result.updated) == (2, 1)
    assert table.delete(where="id = c").deleted == 1
    left = [("a", "y", 2, 5.0), ("b", "y", 3, 9.0), ("d", "y", 1, None)]
    new = [("m", "z", 3, 4.0), ("n", "x", 3, 4.0)]
    assert found(table) == [*left, *new]
    if index != "virtual keys":
        paths = table.read(["id", "_hoodie_partition_path"]).to_pylist()
        places = {row["id"]: row["_hoodie_partition_path"] for row in paths}
        assert places == {"a": "x", "b": "x", "d": "y", "m": "z", "n": "x"}
    table.upsert(trips(("a", "z", 4, 7.0)))
    assert found(table) == [("a", "z", 4, 7.0), *left[1:], *new]
    assert not table.inspect.verify().findings


def test_rows_that_have_the_values_already_are_not_written() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    assert table.update({"fare": 2.0}, ["id <= b"]).updated == 1
    assert table.update({"fare": 2.0}, ["id <= b"]) == WriteResult()
    nothing = table.update({"fare": None, "ts": pc.field("ts")}, "fare is null")
    assert nothing == WriteResult()
    assert table.update({"fare": float("nan")}).updated == 4
    assert table.update({"fare": float("nan")}) == WriteResult()


def test_values_become_those_of_their_columns() -> None:
    table, _ = made({})
    kinds = {"f": pa.float32(), "d": pa.date32(), "l": pa.list_(pa.float32())}
    rows = ROWS
    for name, kind in kinds.items():
        rows = rows.append_column(name, pa.nulls(4, kind))
    table.upsert(rows)
    values = {"fare": 7, "f": 0.1, "d": date(2026, 1, 2), "l": [0.25, None], "ts": pa.scalar(2)}
    table.update(values, "id = a")
    row = table.read([*values], "id = a").to_pylist()[0]
    assert row.pop("f") == pytest.approx(0.1)
    assert row == {"fare": 7.0, "d": date(2026, 1, 2), "l": [0.25, None], "ts": 2}
    for value in (datetime(2026, 1, 2, 3), "2026-01-02", 7):
        with pytest.raises(OptionError, match="column d is date32"):
            table.update({"d": value})


def test_new_values_are_made_of_the_old_row() -> None:
    table, _ = made({})
    table.upsert(trips(("a", "x", 5, 7.0)))
    table.update({"fare": pc.field("ts").cast("double"), "ts": pc.field("fare").cast("int64")})
    assert found(table) == [("a", "x", 7, 5.0)]


@pytest.mark.parametrize("kind", TYPES)
def test_a_lower_ordering_value_is_refused(kind: str) -> None:
    """The stored row would win, and the update seem to have succeeded."""
    table, _ = made({TYPE: kind})
    table.upsert(ROWS)
    for value in (0, None):
        with pytest.raises(OptionError, match=r"'ts'.*greater value"):
            table.update({"ts": value, "fare": 9.0}, "id = a")
    assert found(table)[0] == ("a", "x", 1, 1.0)
    assert table.update({"ts": 1, "fare": 9.0}, "id = a").updated == 1
    by_commit, _ = made({TYPE: kind, ORDERING: ""})
    by_commit.upsert(ROWS)
    by_commit.update({"ts": 0}, "id = a")
    assert found(by_commit)[0] == ("a", "x", 0, 1.0)


def test_updates_are_changes_to_readers_of_change_data() -> None:
    table, _ = made({"hoodie.table.cdc.enabled": "true"})
    table.upsert(ROWS)
    begin = table.timeline.commits[-1]
    table.update({"fare": 8.0}, "fare > 2.5")
    table.delete(where="fare = 1")
    changes = table.read_changes(begin).to_pylist()
    images = sorted((c["op"], c["before"], c["after"]) for c in changes)
    assert [image[0] for image in images] == ["d", "u"]
    fares = [image and (json.loads(image) or {}).get("fare") for _, *two in images for image in two]
    assert fares == [1.0, None, 3.0, 8.0]


def test_partial_updates_and_hooks_merge_what_is_set() -> None:
    """A null keeps the stored value where nulls do so in upserts."""
    fill = {"hoodie.py.merge.hook": "hoodie_ds.record.partial_update:fill_nulls"}
    table, _ = made({**fill, "hoodie.record.merge.mode": "CUSTOM"})
    table.upsert(ROWS)
    table.update({"fare": None}, "id = a")
    table.update({"fare": 4.0}, "id = b")
    assert [row[3] for row in found(table)] == [1.0, 4.0, 3.0, None]


def test_rows_marked_as_deletes_are_not_lost() -> None:
    """Inserts of Hudi have them in base files, where they are rows."""
    table, _ = made({**INDEXES["simple"], TYPE: "COPY_ON_WRITE"})
    rows = ROWS.append_column("_hoodie_is_deleted", pa.array([True, False, False, False]))
    with logged_as_rows():
        table.insert(rows)
    assert len(found(table)) == 4
    with pytest.raises(UnsupportedTableError, match="give the mark a new value"):
        table.update({"fare": 2.5})
    table.update({"fare": 2.5, "_hoodie_is_deleted": False})
    assert [row[3] for row in found(table)] == [2.5] * 4


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        ({}, OptionError, "from columns to their new values"),
        (["fare"], OptionError, "from columns to their new values"),
        ({"price": 1}, OptionError, "'price'.*the columns are id"),
        ({"_hoodie_commit_time": "0"}, OptionError, "the columns are id"),
        ({"id": "z"}, OptionError, "'id'.*do not change"),
        ({"city": "z"}, OptionError, "'city'.*do not change"),
        ({"ts": 2.5}, OptionError, "column ts is int64"),
        ({"ts": "2"}, OptionError, "column ts is int64"),
        ({"ts": 1 << 63}, OptionError, "column ts is int64"),
        ({"ts": pc.field("fare")}, SchemaError, "'ts'"),
        ({"ts": pc.field("price")}, SchemaError, "does not fit"),
        ({"fare": lambda rows: 1.5}, SchemaError, "did not return an Arrow column of"),
        ({"fare": lambda rows: rows["fare"][:1]}, SchemaError, "did not return an Arrow column"),
    ],
)
def test_what_is_no_new_value_changes_nothing(
    values: Any, error: type[HoodieError], match: str
) -> None:
    table, storage = made({BUCKETS: "1"})
    table.upsert(ROWS)
    before = storage.files
    with pytest.raises(error, match=match):
        table.update(values)
    assert storage.files == before


def test_a_numbered_update_is_recognised_by_what_it_does() -> None:
    table, storage = made({})
    table.upsert(ROWS)
    number, twice = {WRITER: "w", NUMBER: "1"}, {"fare": pc.field("fare") * 2}
    assert table.update(twice, "fare > 0", number).updated == 3
    before = storage.files
    assert table.update({"fare": pc.field("fare") * 2}, "fare > 0", number).already_committed
    others: list[dict[str, Any]] = [{"fare": pc.field("fare") * 3}, {"fare": 2.0}, {"ts": 2}]
    for values in others:
        with pytest.raises(ReplayMismatchError):
            table.update(values, "fare > 0", number)
    with pytest.raises(ReplayMismatchError):
        table.delete(where="fare > 0", options=number)
    assert storage.files == before


def test_a_numbered_update_by_a_function_is_recognised_by_its_name() -> None:
    table, storage = made({})
    table.upsert(ROWS)
    number = {WRITER: "w", NUMBER: "1"}

    def doubled(rows: pa.Table) -> pa.ChunkedArray:
        return pc.multiply(rows["fare"], 2)

    assert table.update({"fare": doubled}, "fare > 0", number).updated == 3
    before = storage.files
    assert table.update({"fare": doubled}, "fare > 0", number).already_committed
    with pytest.raises(ReplayMismatchError):
        table.update({"fare": lambda rows: rows["fare"]}, "fare > 0", number)
    assert storage.files == before


def test_a_table_without_a_commit_has_no_rows_to_change() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    table.rollback()
    assert table.delete(where="fare > 0") == WriteResult()
    assert table.update({"fare": 1.0}, "fare > 0") == WriteResult()


def test_an_expression_may_name_columns_by_their_positions() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    position = table.read().schema.get_field_index("ts")
    table.delete(where=pc.field(position) > 0)
    assert table.read().num_rows == 0


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("fare != 2.0", ["b", "d"]),
        (("fare", "not in", [1.0]), ["a", "d"]),
        ("fare is null", ["a", "b", "c"]),
        (["fare >= 2", ("city", "=", "x")], ["a", "c", "d"]),
        (~(pc.field("fare") > 1.5), ["b", "c", "d"]),
        (pc.field("fare").is_null() | (pc.field("city") == "x"), ["c"]),
        (("_hoodie_record_key", "in", ["a", "d"]), ["b", "c"]),
        ("_hoodie_partition_path = y", ["a", "b"]),
    ],
)
def test_a_row_goes_only_if_the_filter_is_true_of_it(where: Filter, left: list[str]) -> None:
    table, _ = made({})
    table.upsert(ROWS)
    table.delete(where=where)
    assert [row[0] for row in found(table)] == left


def test_copies_of_a_key_in_other_files_stay() -> None:
    table, _ = made({**INDEXES["bloom"], "hoodie.parquet.small.file.limit": "0"})
    table.insert(trips(("a", "x", 1, 1.0)))
    table.insert(trips(("a", "x", 1, 2.0)))
    table.delete(where="fare = 2")
    assert found(table) == [("a", "x", 1, 1.0)]


def test_files_that_the_filter_rules_out_are_not_opened() -> None:
    table, storage = made({BUCKETS: "4"})
    table.upsert(trips(*((f"k{n}", f"c{n % 3}", 1, float(n)) for n in range(60))))
    seen = CountedReads(storage)
    HoodieTable("/t", storage=cast(Storage, seen)).delete(where=["city = c1", "id = k1"])
    (path,) = (path for path in seen.bytes if path.endswith(".parquet"))
    assert path.startswith("c1/")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({}, OptionError, "the keys of rows, or a filter"),
        ({"keys": ROWS, "where": "fare = 1"}, OptionError, "the keys of rows, or a filter"),
        ({"where": []}, OptionError, "name a condition"),
        ({"where": "price = 1"}, OptionError, "'where'.*price is no column"),
        ({"where": pc.field("fare") == "x"}, SchemaError, "does not fit"),
    ],
)
def test_what_is_no_filter_changes_nothing(
    arguments: dict[str, object], error: type[HoodieError], match: str
) -> None:
    table, storage = made({})
    table.upsert(ROWS)
    before = storage.files
    with pytest.raises(error, match=match):
        table.delete(**arguments)  # type: ignore[arg-type]
    assert storage.files == before


def test_there_must_be_a_table() -> None:
    table, storage = made({})
    with pytest.raises(TableNotFoundError):
        table.delete(where="fare = 1")
    assert not storage.files
    table.upsert(ROWS.slice(0, 0))
    assert table.delete(where="fare = 1") == WriteResult()


def test_a_change_has_an_instant_of_its_own() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    with pytest.raises(OptionError, match=r"batches\.per\.commit"):
        table.delete(where="fare = 1", options={"hoodie.streaming.batches.per.commit": "2"})


@pytest.mark.parametrize("partition", ["city", ""])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_without_record_keys_are_changed_by_themselves(
    version: str, kind: str, partition: str
) -> None:
    """By the keys that Hudi makes for them; equal rows do not become one."""
    kept = {"hoodie.table.cdc.enabled": "true", PARTITION: partition}
    table, storage = made({KEY: "", BUCKETS: "", TYPE: kind, VERSION: version, **kept})
    table.insert(ROWS)
    table.insert(trips(("a", "x", 1, 1.0), ("a", "x", 1, 1.0), ("e", "y", 1, 3.5)))
    begin = table.timeline.commits[-1]
    assert table.delete(where=["fare > 2.5", "city = y"]).deleted == 2
    result = table.update({"fare": pc.field("fare") * 2}, ("id", "=", "a"))
    assert (result.inserted, result.updated, result.deleted) == (0, 3, 0)
    assert found(table)[:3] == [("a", "x", 1, 2.0)] * 3
    assert [row[0] for row in found(table)[3:]] == ["b", "d"]
    changes = table.read_changes(begin)["op"].to_pylist()
    assert sorted(changes) == ["d", "d", "u", "u", "u"]
    table.insert(trips(("z", "x", 1, 1.0)))
    assert len(found(table)) == 6
    assert not [path for path in storage.files if ".log." in path and not path.endswith(".cdc")]
    assert not check_table(storage.files, settled=True, buckets=False)
    assert not table.inspect.verify().findings


@pytest.mark.parametrize("key", ["id", ""])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "9"])
def test_hudi_rs_reads_the_changed_rows(tmp_path: Path, version: str, kind: str, key: str) -> None:
    given = {**TRIPS, KEY: key, BUCKETS: "2" if key else "", TYPE: kind, VERSION: version}
    table = HoodieTable(tmp_path / "t", {name: value for name, value in given.items() if value})
    table.insert(ROWS)
    table.update({"fare": pc.field("fare") * 10, "ts": 2}, "city = x")
    table.delete(where="fare > 15")
    assert [row[:3] for row in found(table)] == [("a", "x", 2), ("c", "y", 1), ("d", "y", 1)]
    assert_same_rows(read_with_hudi_rs(tmp_path / "t"), table.read())


def test_log_files_of_other_engines_are_merged_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi logs changes of such rows too; a base file that is rewritten would lack them."""
    table, _ = made({KEY: "", BUCKETS: "", TYPE: "MERGE_ON_READ"})
    table.insert(ROWS)
    begin = BucketWriter.__init__

    def logging(self: BucketWriter, *given: Any) -> None:
        begin(self, *given)
        self._rewrites = False

    monkeypatch.setattr(BucketWriter, "__init__", logging)
    assert table.update({"fare": 7.0}, "id = a").updated == 1
    monkeypatch.undo()
    with pytest.raises(UnsupportedTableError, match="no record keys; merge it first"):
        table.delete(where="fare >= 7")
    assert table.compact()
    assert table.delete(where="fare >= 7").deleted == 1
    assert [row[0] for row in found(table)] == ["b", "c", "d"]


def test_rows_without_any_key_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says which of them a change means."""
    table, _ = made({KEY: "", BUCKETS: ""})
    none = lambda _prefix, _first, count: pa.nulls(count, pa.string())  # noqa: E731
    monkeypatch.setattr("hoodie_ds.handles.stamp.sequence_numbers", none)
    table.insert(ROWS)
    monkeypatch.undo()
    with pytest.raises(UnsupportedTableError, match="neither record keys"):
        table.delete(where="fare = 1")
    assert len(found(table)) == 4


def test_a_table_whose_keys_are_made_in_another_way_is_refused() -> None:
    table, storage = made({})
    table.upsert(ROWS)
    path = ".hoodie/hoodie.properties"
    body = storage.files[path]
    storage.replace(path, body.replace(b"recordkey.fields=id", b"recordkey.fields=ts"))
    other = HoodieTable("/t", storage=storage)
    with pytest.raises(UnsupportedTableError, match=r"_hoodie_record_key = 'a' where .* makes '1'"):
        other.delete(where="fare = 1")
    assert len(table.timeline.commits) == 1


def test_a_numbered_delete_is_recognised_by_its_filter() -> None:
    table, storage = made({})
    table.upsert(ROWS)
    number = {WRITER: "w", NUMBER: "1"}
    assert table.delete(where="fare >= 2", options=number).deleted == 2
    table.upsert(trips(("e", "x", 1, 9.0)))
    before = storage.files
    assert table.delete(where="fare >= 2", options=number).already_committed
    assert storage.files == before
    for where in ("fare >= 3", "fare > 2", ("fare", "in", [2.0])):
        with pytest.raises(ReplayMismatchError):
            table.delete(where=where, options=number)
    assert storage.files == before


class Change:
    """A delete by a filter, up to its commit."""

    def __init__(self, storage: MemoryStorage, options: Mapping[str, str], where: Filter) -> None:
        parsed = WriteOptions.parse({**options, OPERATION: "delete", "path": "/t"})
        self.writer = Coordinator(parsed, storage, SimClock(2_000_000_000_000), SimIds("other"))
        batch = self.writer.begin_change(partial(change_by_filter, where, None))
        assert batch is not None
        rows = matched_rows(batch.plan)
        self.message = write_task(batch, TaskId(), None, rows, sole_writer=True)

    def commit(self) -> WriteResult:
        return self.writer.commit([self.message])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("index", ["bucket", "bloom"])
def test_what_it_would_have_found_is_a_conflict(kind: str, index: str) -> None:
    """A commit may put such rows into file groups in which there were none, or new ones."""
    options = {**TRIPS, **SHARED, TYPE: kind, **INDEXES[index]}
    options |= {"hoodie.parquet.small.file.limit": "0"}
    for other in (("b", "x", 2, 7.0), ("z", "x", 2, 7.0), ("z", "new", 2, 7.0)):
        table, storage = made(options)
        table.upsert(ROWS)
        change = Change(storage, {k: v for k, v in options.items() if v}, "fare >= 3")
        table.upsert(trips(other))
        with pytest.raises(WriteConflictError, match="changed file group"):
            change.commit()
        assert len(found(table)) == (4 if other[0] == "b" else 5)


@pytest.mark.parametrize("kind", TYPES)
def test_what_cannot_match_is_no_conflict(kind: str) -> None:
    options = {**TRIPS, **SHARED, TYPE: kind}
    table, storage = made(options)
    table.upsert(ROWS)
    change = Change(storage, options, ["fare >= 3", "city = y"])
    table.upsert(trips(("b", "x", 2, 7.0), ("z", "new", 2, 7.0)))
    change.commit()
    assert found(table) == [
        ("a", "x", 1, 1.0),
        ("b", "x", 2, 7.0),
        ("d", "y", 1, None),
        ("z", "new", 2, 7.0),
    ]


def test_a_clustering_of_what_it_has_only_read_is_no_conflict() -> None:
    """It writes the same rows, as a compaction does."""
    options = {**TRIPS, **SHARED, **INDEXES["bloom"], "hoodie.parquet.small.file.limit": "0"}
    table, storage = made(options)
    table.upsert(ROWS)
    table.insert(trips(("e", "x", 2, 1.5)))
    change = Change(storage, {k: v for k, v in options.items() if v}, "fare >= 3")
    assert table.cluster({"hoodie.clustering.plan.strategy.partition.regex.pattern": "x"})
    change.commit()
    table.delete(where="id = e")
    assert [row[0] for row in found(table)] == ["a", "b", "d"]


def test_one_that_meets_a_conflict_reads_the_table_again() -> None:
    options = {**TRIPS, **SHARED, "hoodie.write.num.retries.on.conflict.failures": "2"}
    table, storage = made(options)
    table.upsert(ROWS)
    put, late = storage.put_if_absent, [trips(("z", "x", 2, 7.0))]

    def meddled(path: str, data: bytes) -> None:
        put(path, data)
        if path.endswith(".inflight") and late:
            HoodieTable("/t", options, storage=storage).upsert(late.pop())

    table.upsert(trips(("y", "x", 2, 6.0)))
    storage.put_if_absent = meddled  # type: ignore[method-assign]
    result = table.delete(where="fare >= 3")
    assert result.deleted == 3
    assert [row[0] for row in found(table)] == ["a", "b", "d"]
