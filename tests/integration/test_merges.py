"""Merges of a source into a table: in each kind of table, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable, TableMerge
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    HoodieError,
    MergeCardinalityError,
    OptionError,
    RecordKeyError,
    ReplayMismatchError,
    SchemaError,
    TableNotFoundError,
    WriteConflictError,
)
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.merged_rows import MergeCounts, merge_of, merged_rows
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.numbered_rows import NumberedRows
from hoodie_ds.sink.row_merge import Effect, GivenClause, GivenMerge, Matching
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from tests.counted_reads import CountedReads
from tests.integration.test_changes_by_filter import (
    INDEXES,
    NUMBER,
    ROWS,
    SHARED,
    WRITER,
    made,
)
from tests.interop.hudi_rs import read_with_hudi_rs
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

NEWER = trips(("a", "x", 2, 5.0), ("c", "y", 2, None), ("e", "x", 2, 6.0), ("f", "z", 2, 7.0))
BOTH = ["id", "city"]


def counts(result: WriteResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def upsert_and_delete(table: HoodieTable, source: pa.Table) -> TableMerge:
    merge = table.merge(source, on="id").when_matched_delete("source.fare is null")
    merge.when_matched_update_all().when_not_matched_insert_all()
    return merge.when_not_matched_by_source_update({"fare": 0.0}, "target.fare is null")


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(("version", "kind"), [*zip("69", TYPES, strict=True)])
def test_a_merge_in_every_table(version: str, kind: str, index: str) -> None:
    table, storage = made({VERSION: version, TYPE: kind, **INDEXES[index]})
    table.upsert(ROWS)
    merge, before = upsert_and_delete(table, NEWER), storage.files
    assert counts(merge.execute(dry=True)) == (2, 2, 1)
    assert storage.files == before
    assert counts(merge.execute()) == (2, 2, 1)
    assert found(table) == [
        ("a", "x", 2, 5.0),
        ("b", "x", 1, 2.0),
        ("d", "y", 1, 0.0),
        ("e", "x", 2, 6.0),
        ("f", "z", 2, 7.0),
    ]
    table.upsert(trips(("c", "y", 1, 1.5)))
    assert ("c", "y", 1, 1.5) in found(table)
    assert not table.inspect.verify().findings


@pytest.mark.parametrize("partition", ["city", ""])
@pytest.mark.parametrize(("version", "kind"), [*zip("69", TYPES, strict=True)])
def test_a_merge_without_record_keys(version: str, kind: str, partition: str) -> None:
    """Many rows may match one of the source, and equal ones may be inserted."""
    kept = {"hoodie.table.cdc.enabled": "true", PARTITION: partition}
    table, storage = made({KEY: "", BUCKETS: "", TYPE: kind, VERSION: version, **kept})
    table.insert(pa.concat_tables([ROWS, ROWS]))
    begin = table.timeline.commits[-1]
    source = pa.concat_tables([NEWER, NEWER.slice(3)])
    assert counts(upsert_and_delete(table, source).execute()) == (3, 4, 2)
    assert found(table) == [
        *[("a", "x", 2, 5.0)] * 2,
        *[("b", "x", 1, 2.0)] * 2,
        *[("d", "y", 1, 0.0)] * 2,
        ("e", "x", 2, 6.0),
        *[("f", "z", 2, 7.0)] * 2,
    ]
    keys = table.read()["_hoodie_record_key"].to_pylist()
    assert len({*keys}) == len(keys)
    changes = sorted(table.read_changes(begin)["op"].to_pylist())
    assert changes == ["d"] * 2 + ["i"] * 3 + ["u"] * 4
    assert not check_table(storage.files, settled=True, buckets=False)
    assert not table.inspect.verify().findings


@pytest.mark.parametrize("key", ["id", ""])
@pytest.mark.parametrize(("version", "kind"), [*zip("69", TYPES, strict=True)])
def test_hudi_rs_reads_the_merged_rows(tmp_path: Path, version: str, kind: str, key: str) -> None:
    given = {**TRIPS, KEY: key, BUCKETS: "2" if key else "", TYPE: kind, VERSION: version}
    table = HoodieTable(tmp_path / "t", {name: value for name, value in given.items() if value})
    table.insert(ROWS)
    upsert_and_delete(table, NEWER).execute()
    assert [row[0] for row in found(table)] == ["a", "b", "d", "e", "f"]
    assert_same_rows(read_with_hudi_rs(tmp_path / "t"), table.read())


def test_the_first_clause_whose_condition_is_true_takes_a_row() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    source = pa.table({"id": ["a", "b", "c", "d", "z"], "op": ["D", "U", None, "U", None]})
    merge = table.merge(source, "id").when_matched_delete("source.op = D")
    merge.when_matched_update({"fare": 8.0}, "source.op != D").when_matched_update({"fare": 9.0})
    merge.when_not_matched_insert({"id": "source.id", "city": "n", "ts": 1}, "source.op = U")
    assert counts(merge.execute()) == (0, 3, 1)
    assert [row[3] for row in found(table)] == [8.0, 9.0, 8.0]


@pytest.mark.parametrize(
    ("where", "changed"),
    [
        ("source.ts > target.ts", "bd"),
        ("source.fare>=target.fare", "abc"),
        ("source.fare <= target.fare", "c"),
        ("source.fare = target.fare", "c"),
        ("source.fare != target.fare", "ab"),
        ("target.fare < source.fare", "ab"),
        (["source.ts > target.ts", "source.fare > 1"], "bd"),
        (("source.ts", "=", "target.ts"), "a"),
        (("source.city", "!=", "target.city"), "bc"),
        ("source.city = 'target.city'", "c"),
        (("source.city", "=", pa.scalar("target.city")), "c"),
        (("source.city", "in", ["target.city", "x"]), "ac"),
        (pc.field("source.fare") + pc.field("target.fare") > 4, "b"),
        (~(pc.field("source.ts") <= pc.field("target.ts")), "bd"),
        ("target._hoodie_partition_path = y", "cd"),
    ],
)
def test_conditions_over_both_rows(where: Any, changed: str) -> None:
    """NaN is the greatest number, and equals itself; a comparison with null is unknown."""
    table, _ = made({})
    table.upsert(ROWS)
    nan = float("nan")
    source = trips(
        ("a", "x", 1, nan), ("b", "q", 2, 3.0), ("c", "target.city", 0, nan), ("d", None, 2, 2.0)
    )
    table.update({"fare": nan}, "id = c")
    table.merge(source, "id").when_matched_update({"fare": 50.0}, where).execute()
    assert "".join(row[0] for row in found(table) if row[3] == 50.0) == changed


def test_new_values_of_both_rows() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    source = pa.table({"trip": ["a", "b", "z"], "more": [1, 2, 3], "note": ["n"] * 3})
    merge = table.merge(source, {"id": "trip"}).when_matched_update(
        {
            "fare": pc.field("source.more").cast("double") + pc.field("target.fare"),
            "ts": lambda rows: pc.add(rows["source.more"], rows["target.ts"]),
        }
    )
    merge.when_not_matched_insert({"id": "source.trip", "city": "source.note", "ts": 7})
    assert counts(merge.execute()) == (1, 2, 0)
    assert found(table) == [
        ("a", "x", 2, 2.0),
        ("b", "x", 3, 4.0),
        ("c", "y", 1, 3.0),
        ("d", "y", 1, None),
        ("z", "n", 7, None),
    ]
    as_value = table.merge(source, {"id": "trip"})
    as_value.when_not_matched_insert({"id": pa.scalar("source.trip"), "city": "x", "ts": 1})
    table.merge(source.slice(2), {"id": "trip"}).when_matched_delete().execute()
    assert counts(as_value.execute()) == (1, 0, 0)
    assert "source.trip" in [row[0] for row in found(table)]


def test_a_row_with_a_lower_ordering_value_loses() -> None:
    """As in Hudi's MERGE INTO, and in an upsert of the source."""
    table, _ = made({})
    table.upsert(trips(("a", "x", 5, 1.0), ("b", "x", 5, 1.0)))
    source = trips(("a", "x", 4, 2.0), ("b", "x", 5, 2.0))
    assert counts(table.merge(source, "id").when_matched_update_all().execute()) == (0, 1, 0)
    assert [row[3] for row in found(table)] == [1.0, 2.0]
    by_commit, _ = made({ORDERING: ""})
    by_commit.upsert(trips(("a", "x", 5, 1.0)))
    assert by_commit.merge(source, "id").when_matched_update_all().execute().updated == 1


def test_values_that_match() -> None:
    """A null is equal to nothing, NaN to itself, and zero to its opposite."""
    nan = float("nan")
    table, _ = made({})
    table.upsert(trips(*zip("abcd", "xxxx", [1] * 4, [None, nan, -0.0, 2.0], strict=True)))
    source = pa.table({"fare": [None, nan, 0.0, 3.0], "n": [1, 2, 3, 4]})
    merge = table.merge(source, "fare").when_matched_update({"ts": pc.field("source.n") + 10})
    merge.when_not_matched_by_source_update({"ts": 5}).execute()
    assert [row[2] for row in found(table)] == [5, 12, 13, 5]
    wider = pa.table({"ts": pa.array([5, 12], pa.int16())})
    assert table.merge(wider, "ts").when_matched_delete().execute().deleted == 3


def test_two_source_rows_for_one_row_are_refused() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    twice = pa.concat_tables([NEWER, NEWER])
    for merge in (
        table.merge(twice, "id").when_matched_update_all(),
        table.merge(twice, "id").when_matched_delete("source.fare is null"),
    ):
        with pytest.raises(MergeCardinalityError, match="2 rows of the source match one row"):
            merge.execute()
    merge = table.merge(twice, "id").when_not_matched_insert_all("source.id = e")
    with pytest.raises(MergeCardinalityError, match=r"2 rows .* inserted with record key 'e'"):
        merge.execute()
    assert found(table) == found(made_with(ROWS))
    # Where nothing is made of them, they may match as often as they like.
    others = table.merge(pa.concat_tables([NEWER.slice(0, 2)] * 2), "id")
    others.when_not_matched_insert_all().when_not_matched_by_source_delete()
    assert counts(others.execute()) == (0, 0, 2)


def made_with(rows: pa.Table) -> HoodieTable:
    table, _ = made({})
    table.upsert(rows)
    return table


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("index", INDEXES)
def test_a_stored_key_that_does_not_match_is_not_doubled(index: str, kind: str) -> None:
    table, _ = made({TYPE: kind, **INDEXES[index]})
    table.upsert(ROWS)
    source = trips(("b", "x", 2, 9.0), ("n", "x", 2, 8.0))
    for on in ("fare", ["id", "fare"], {"id": "city"}):
        merge = table.merge(source, on).when_not_matched_insert_all()
        with pytest.raises(RecordKeyError, match="'b', which a row has that it does not match"):
            merge.execute()
    merge = table.merge(source, "fare").when_not_matched_insert_all("source.id = n")
    assert counts(merge.execute()) == (1, 0, 0)
    elsewhere = table.merge(trips(("b", "y", 2, 9.0)), BOTH).when_not_matched_insert_all()
    if index == "global":
        with pytest.raises(RecordKeyError, match="'b', which a row has"):
            elsewhere.execute()
    else:  # a key is unique in its partition
        assert elsewhere.execute().inserted == 1


@pytest.mark.parametrize("options", [{}, {KEY: "id,city", PARTITION: ""}])
def test_a_key_of_nulls_is_not_doubled(options: dict[str, str]) -> None:
    """A null matches none, but is part of keys and partitions."""
    table, _ = made(options)
    table.upsert(trips(("a", None, 1, 1.0)))
    merge = table.merge(trips(("a", None, 1, 2.0)), BOTH).when_not_matched_insert_all()
    with pytest.raises(RecordKeyError, match=r"'.*', which a row has"):
        merge.execute()


def test_record_keys_and_partitions_do_not_change() -> None:
    table, storage = made({})
    table.upsert(ROWS)
    before = storage.files
    for name in ("id", "city"):
        with pytest.raises(OptionError, match=f"{name!r}.*do not change"):
            table.merge(NEWER, "id").when_matched_update({name: f"source.{name}"}).execute()
    assert storage.files == before
    moved = table.merge(trips(("a", "q", 2, 1.0)), "id").when_matched_update_all()
    with pytest.raises(RecordKeyError, match="'city' would become 'q' in a row with 'x'"):
        moved.execute()
    other = table.merge(trips(("z", "x", 2, 2.0)), "fare").when_matched_update_all()
    with pytest.raises(RecordKeyError, match="'id' would become 'z' in a row with 'b'"):
        other.execute()
    assert found(table) == found(made_with(ROWS))


def test_columns_that_the_source_lacks() -> None:
    """An update keeps them, and in new rows they are null, as in an upsert."""
    table, _ = made({})
    table.upsert(ROWS)
    source = NEWER.drop_columns(["fare"]).append_column("note", pa.array(["n"] * 4))
    merge = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all()
    assert counts(merge.execute()) == (2, 2, 0)
    assert found(table)[0] == ("a", "x", 2, 1.0)
    assert found(table)[4][3] is None
    assert "note" not in table.schema.names
    with pytest.raises(OptionError, match="an inserted row needs a value of city"):
        table.merge(source.drop_columns(["city"]), "id").when_not_matched_insert_all().execute()


def test_a_source_without_columns_of_the_table() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    merge = table.merge(pa.table({"key": ["a", "b"]}), {"id": "key"})
    with pytest.raises(OptionError, match=r"when_matched_update_all.*no column of the table"):
        merge.when_matched_update_all().execute()
    keys = table.merge(pa.table({"key": ["a", "b"]}), {"id": "key"})
    assert keys.when_matched_delete().execute().deleted == 2


def test_a_value_that_only_looks_like_a_column_of_joined_rows() -> None:
    table, _ = made({})
    table.upsert(trips(("source.id", "x", 1, 1.0)))
    assert table.count(("id", "=", "source.id")) == table.count("id = source.id") == 1


def test_rows_that_are_marked_as_deletes() -> None:
    table, _ = made({})
    marks = pa.array([None] * 4, pa.bool_())
    table.upsert(ROWS.append_column("_hoodie_is_deleted", marks))
    source = NEWER.append_column("_hoodie_is_deleted", pa.array([True, False, True, False]))
    merge = table.merge(source.to_reader(1), "id").when_matched_update_all()
    merge.when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete("target.fare is null")
    assert counts(merge.execute()) == (1, 1, 2)
    assert [row[0] for row in found(table)] == ["b", "c", "f"]


def test_changes_of_a_merge_have_images() -> None:
    table, _ = made({"hoodie.table.cdc.enabled": "true"})
    table.upsert(ROWS)
    begin = table.timeline.commits[-1]
    upsert_and_delete(table, NEWER).execute()
    changes = table.read_changes(begin).to_pylist()
    both = [
        [json.loads(change[i] or "null") or {} for i in ("before", "after")] for change in changes
    ]
    ids = [[image.get("id") for image in two] for two in both]
    images = [(change["op"], *two) for change, two in zip(changes, ids, strict=True)]
    assert sorted(images, key=str) == [
        ("d", "c", None),
        ("i", None, "e"),
        ("i", None, "f"),
        ("u", "a", "a"),
        ("u", "d", "d"),
    ]


@pytest.mark.parametrize(
    ("on", "match"),
    [
        ("price", r"'target\.price'.*the target's columns are"),
        ({"id": "price"}, r"'source\.price'.*the source's columns are id"),
        ("target.id = target.city", "name a column of table and source"),
        ("source.id > target.id", "name a column of table and source"),
        ("target.id = source.id or target.ts = source.ts", "name a column of table and source"),
        ([], "name a column of table and source"),
        ([("id", "id")], "name a column of table and source"),
        (["id", "target.id = source.city"], "each column of the table once"),
        ("tags", "nested columns"),
    ],
)
def test_what_is_no_match(on: Any, match: str) -> None:
    table, _ = made({})
    table.upsert(ROWS.append_column("tags", pa.nulls(4, pa.list_(pa.string()))))
    source = NEWER.append_column("tags", pa.nulls(4, pa.list_(pa.string())))
    with pytest.raises(OptionError, match=match):
        table.merge(source, on).when_matched_delete().execute()


@pytest.mark.parametrize(
    ("clause", "error", "match"),
    [
        (lambda m: m, OptionError, "say what to do"),
        (lambda m: m.when_matched_update({}), OptionError, "from columns to their new values"),
        (lambda m: m.when_matched_update(["x"]), OptionError, "from columns to their new values"),
        (lambda m: m.when_matched_update({"price": 1}), OptionError, "'price'"),
        (lambda m: m.when_matched_update({"fare": "source.prize"}), OptionError, "no such column"),
        (lambda m: m.when_matched_update({"ts": 2.5}), OptionError, "column ts is int64"),
        (lambda m: m.when_matched_update({"ts": "source.city"}), SchemaError, "'ts'"),
        (lambda m: m.when_matched_delete("fare = 1"), OptionError, "fare is no column"),
        (lambda m: m.when_matched_delete("source.city = target.prize"), OptionError, "no such"),
        (lambda m: m.when_matched_delete("source.city = target.ts"), SchemaError, "does not fit"),
        (
            lambda m: m.when_not_matched_insert_all("target.fare = 1"),
            OptionError,
            r"'when_not_matched_insert_all, where'.*target\.fare is no column",
        ),
        (
            lambda m: m.when_not_matched_by_source_update({"fare": "source.fare"}),
            OptionError,
            "no such column",
        ),
        (lambda m: m.when_not_matched_insert({"id": "z"}), OptionError, "needs a value of city"),
    ],
)
def test_what_is_no_clause_changes_nothing(
    clause: Any, error: type[HoodieError], match: str
) -> None:
    table, _ = made({})
    table.upsert(ROWS)
    before = found(table)
    with pytest.raises(error, match=match):
        clause(table.merge(NEWER, "id")).execute()
    assert found(table) == before


def test_there_must_be_a_table_with_columns() -> None:
    table, storage = made({})
    with pytest.raises(TableNotFoundError):
        table.merge(NEWER, "id")
    assert not storage.files
    table.upsert(ROWS.slice(0, 0))
    merge = table.merge(NEWER, "id").when_not_matched_insert_all()
    assert merge.execute(dry=True).inserted == 4
    path = ".hoodie/hoodie.properties"
    lines = storage.files[path].splitlines(keepends=True)
    kept = [line for line in lines if b"create.schema" not in line]
    storage.replace(path, b"".join(kept))
    for dry in (True, False):
        with pytest.raises(SchemaError, match="upsert its first rows"):
            merge.execute(dry=dry)


def test_a_source_without_rows() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    none = NEWER.slice(0, 0)
    merge = table.merge(none, "id").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute() == WriteResult()
    merge.when_not_matched_by_source_delete("target.city = y")
    assert merge.execute().deleted == 2


def test_a_source_that_is_read_once_is_kept_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie_ds.sink.numbered_rows._HELD_BYTES", 20)
    table, _ = made({})
    table.upsert(ROWS)
    for source in (NEWER.to_reader(1), pa.table({"id": pa.array(["a"]).dictionary_encode()})):
        reader = source if isinstance(source, pa.RecordBatchReader) else source.to_reader()
        merge = table.merge(reader, "id").when_matched_update({"fare": 1.5})
        assert merge.execute(dry=True).updated == (2 if source is reader else 0)
        merge.execute()
    assert [row[3] for row in found(table)] == [1.5, 2.0, 1.5, None]


@pytest.mark.parametrize("most_values", [1, 10_000])
def test_only_files_that_may_match_are_opened(
    most_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.sink.source_summary._MOST_VALUES", most_values)
    table, storage = made({BUCKETS: "4"})
    table.upsert(trips(*((f"k{n}", f"c{n % 3}", 1, float(n)) for n in range(60))))
    seen = CountedReads(storage)
    table = HoodieTable("/t", storage=cast(Storage, seen))
    source = trips(("k1", "c1", 2, 0.0))
    merges = [
        table.merge(source, BOTH).when_matched_update_all(),
        table.merge(source, BOTH).when_not_matched_by_source_delete(
            ["target.city = c1", "target.id = k4"]
        ),
        table.merge(source, BOTH).when_not_matched_by_source_delete("target.city = c2"),
        table.merge(source, BOTH).when_not_matched_by_source_delete(
            (pc.field("target.city") == "c2") | (pc.field("target.city") == "c1")
        ),
        table.merge(source.slice(0, 0), BOTH).when_not_matched_by_source_delete(
            pc.utf8_upper(pc.field("target.city")) == "C1"
        ),
        table.merge(trips(("k1", "c1", 2, 0.0), ("k4", "c1", 2, 0.0)), BOTH).when_matched_delete(),
    ]
    expected = [({"c1"}, 1), ({"c1"}, 2), *[({"c1", "c2"}, 8)] * 2, ({"c0", "c1", "c2"}, 12)]
    expected += [({"c1"}, 2 if most_values > 1 else 4)]
    for merge, (partitions, most) in zip(merges, expected, strict=True):
        seen.bytes.clear()
        merge.execute(dry=True)
        data = {path for path in seen.bytes if path.endswith(".parquet")}
        assert 0 < len(data) <= most
        assert {path.partition("/")[0] for path in data} == partitions


def test_a_numbered_merge_is_recognised_by_what_it_does() -> None:
    table, storage = made({})
    table.upsert(ROWS)
    number = {WRITER: "w", NUMBER: "1"}
    assert counts(upsert_and_delete(table, NEWER).execute(number)) == (2, 2, 1)
    before = storage.files
    assert upsert_and_delete(table, NEWER.to_reader(1)).execute(number).already_committed
    others = [
        upsert_and_delete(table, NEWER.slice(1)),
        upsert_and_delete(table, NEWER).when_matched_delete(),
        table.merge(NEWER, BOTH).when_matched_update_all(),
    ]
    for other in others:
        with pytest.raises(ReplayMismatchError):
            other.execute(number)
    assert storage.files == before


UPDATE = GivenClause(Matching.MATCHED, Effect.UPDATE, None)
INSERT = GivenClause(Matching.NOT_MATCHED, Effect.INSERT, None)


class Merge:
    """A merge up to its commit."""

    def __init__(
        self,
        storage: MemoryStorage,
        options: Mapping[str, str],
        source: pa.Table,
        clauses: tuple[GivenClause, ...] = (UPDATE, INSERT),
        name: str = "other",
    ) -> None:
        parsed = WriteOptions.parse({**options, "path": "/t"})
        self.writer = Coordinator(parsed, storage, SimClock(2_000_000_000_000), SimIds(name))
        given = GivenMerge(NumberedRows(source.schema, source.to_batches()), "id", clauses)
        batch = self.writer.begin_change(partial(merge_of, given))
        assert batch is not None
        rows = merged_rows(batch.plan, MergeCounts())
        self.message = write_task(batch, TaskId(), None, rows, sole_writer=True)

    def commit(self) -> WriteResult:
        return self.writer.commit([self.message])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("index", ["bucket", "bloom"])
def test_rows_that_would_have_matched_are_a_conflict(kind: str, index: str) -> None:
    options = {**TRIPS, **SHARED, TYPE: kind, **INDEXES[index]}
    options = {name: value for name, value in options.items() if value}
    for city in ("x", "new"):
        table, storage = made(options)
        table.upsert(ROWS)
        merge = Merge(storage, options, NEWER.filter(pc.field("id") == "e"))
        table.upsert(trips(("e", city, 3, 1.0)))
        with pytest.raises(WriteConflictError):
            merge.commit()
        assert [row for row in found(table) if row[0] == "e"] == [("e", city, 3, 1.0)]


@pytest.mark.parametrize("order", ["aabb", "abab", "abba", "baab", "baba", "bbaa"])
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_two_merges_that_insert_where_none_matches(isolation: str, order: str) -> None:
    """Each begins and commits: by default there is no outcome but those of one after the other."""
    options = {**TRIPS, **SHARED, "hoodie.py.change.isolation": isolation}
    table, storage = made(options)
    table.upsert(ROWS)
    sources = {"a": trips(("n", "x", 2, 1.0)), "b": trips(("n", "y", 2, 2.0))}
    begun, refused = dict[str, Merge](), list[str]()
    for name in order:
        if name not in begun:
            begun[name] = Merge(storage, options, sources[name], (INSERT,), name)
            continue
        try:
            begun[name].commit()
        except WriteConflictError:
            refused.append(name)
    new = [row for row in found(table) if row[0] == "n"]
    is_serial, is_refused = order[0] == order[1], isolation == "serializable"
    assert refused == ([order[3]] if is_refused and not is_serial else [])
    assert len(new) == (1 if is_refused or is_serial else 2)


def test_rows_in_other_buckets_are_no_conflict() -> None:
    options = {**TRIPS, **SHARED, BUCKETS: "16"}
    table, storage = made(options)
    table.upsert(ROWS)
    merge = Merge(storage, options, NEWER.slice(0, 1))
    table.upsert(trips(("b", "x", 3, 1.0), ("n", "new", 3, 1.0)))
    assert merge.commit().updated == 1


def test_a_merge_that_meets_a_conflict_reads_table_and_source_again() -> None:
    options = {**TRIPS, **SHARED, "hoodie.write.num.retries.on.conflict.failures": "2"}
    table, storage = made(options)
    table.upsert(ROWS)
    put, late = storage.put_if_absent, [trips(("e", "x", 1, 1.0))]

    def meddled(path: str, data: bytes) -> None:
        put(path, data)
        if path.endswith(".inflight") and late:
            HoodieTable("/t", options, storage=storage).upsert(late.pop())

    storage.put_if_absent = meddled  # type: ignore[method-assign]
    merge = table.merge(NEWER.to_reader(2), "id").when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute()
    assert counts(result) == (1, 3, 0)
    assert [row[0] for row in found(table)] == ["a", "b", "c", "d", "e", "f"]
