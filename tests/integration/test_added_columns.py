"""A column that one batch brought does not shut out batches of before: what is stored stays."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, WriteResult
from hoodie_ds.errors import ReplayMismatchError, SchemaError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.timeline.bodies.commit_metadata import ADDED_KEY
from hoodie_ds.timeline.loading import read_commit
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips
from tests.tiers import by_day, in_turn
from tests.unit.sink.replay.test_replay import Stream, foreign_commit

WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
NUMBER = "hoodie.datasource.write.batch.identifier"
SPAN = "hoodie.streaming.batches.per.commit"
INDEX = "hoodie.index.type"
OPERATION = "hoodie.datasource.write.operation"
NULLS = "hoodie.write.set.null.for.missing.columns"
FIRST = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0))
WIDER = trips(("a", "x", 2, 2.0), ("b", "x", 2, 2.0)).append_column("tip", pa.array([0.5, None]))
OPTIONS: dict[str, Mapping[str, str]] = {
    "buckets": {},
    "bloom": {INDEX: "BLOOM"},
    "global": {INDEX: "GLOBAL_SIMPLE"},
    "state": {INDEX: "FLINK_STATE"},
    "change data": {"hoodie.table.cdc.enabled": "true"},
    "partial": {"hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"},
    "commit order": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
}


def made(path: Path, kind: str, version: str, **more: str) -> HoodieTable:
    """A table to which the second of two batches has added a column."""
    options = {**TRIPS, TYPE: kind, VERSION: version, **more}
    if INDEX in options:
        del options[BUCKETS]
    table = HoodieTable(path, options)
    table.upsert(FIRST)
    table.upsert(WIDER)
    return table


def tips(table: HoodieTable) -> dict[str, tuple[Any, ...]]:
    rows = table.read(columns=["id", "city", "fare", "tip"]).to_pylist()
    found = {row.pop("id"): tuple(row.values()) for row in rows}
    assert len(found) == len(rows)  # no key is there twice
    return found


WIDENING = [
    [pa.int8(), pa.int32(), pa.int64()],
    [pa.int16(), pa.int32(), pa.float64()],
    [pa.float32(), pa.float64()],
    [pa.int32(), pa.float64()],
]
RANDOM = list(product(["GLOBAL_BLOOM", "BLOOM", "BUCKET"], TYPES, ["6", "9"]))
BY_DAY = [("GLOBAL_BLOOM", TYPES[1], "6"), ("BLOOM", TYPES[0], "6"), ("BUCKET", TYPES[1], "9")]


@pytest.mark.parametrize(("name", "version"), in_turn(OPTIONS, ["6", "9"]))
@pytest.mark.parametrize("kind", TYPES)
def test_rows_keep_what_is_stored(tmp_path: Path, name: str, kind: str, version: str) -> None:
    table = made(tmp_path, kind, version, **OPTIONS[name])
    table.upsert(trips(("a", "x", 3, 3.0), ("c", "y", 3, 3.0), ("d", "x", 3, 3.0)))
    table.upsert(trips(("a", "x", 4, 4.0)))
    kept = {"a": ("x", 4.0, 0.5), "b": ("x", 2.0, None), "c": ("y", 3.0, None)}
    assert tips(table) == {**kept, "d": ("x", 3.0, None)}
    if kind == TYPES[1]:
        table.compact()
        assert tips(table) == {**kept, "d": ("x", 3.0, None)}
    assert not table.inspect.verify().findings


@pytest.mark.parametrize(("index", "kind", "version"), by_day(RANDOM, BY_DAY))
def test_random_batches_with_and_without_the_column(
    tmp_path: Path, index: str, kind: str, version: str
) -> None:
    """Of each key and partition a column has what the last batch that has it said.

    Types of one of them vary, and earlier batches come again, which changes nothing.
    """
    draw = random.Random(f"{index} {kind} {version}")
    table = made(tmp_path, kind, version, **{INDEX: index})
    types = draw.choice(WIDENING)
    sent: list[tuple[Callable[..., WriteResult], pa.Table, dict[str, str]]] = []
    model: dict[tuple[str, ...], tuple[Any, ...]] = {}
    table.upsert(WIDER.append_column("level", pa.array([2, None], types[0])))
    columns = ["id", "city", "fare", "tip", "level"]
    for row in table.read(columns).to_pylist():
        model[place(index, row["id"], row["city"])] = tuple(row.values())
    for number in range(5, 17):
        keys = draw.sample("abcdefghijkl", 5)
        rows = [(key, draw.choice("xyz"), number, float(number)) for key in keys]
        wide, deletes = draw.random() < 0.4, draw.random() < 0.25
        values = [draw.choice([None, number / 4]) for _ in rows]
        batch = trips(*rows)
        if wide:
            batch = batch.append_column("tip", pa.array(values, pa.float64()))
            level = pa.array([number] * 5, types[0] if deletes else draw.choice(types))
            batch = batch.append_column("level", level)  # which deletes do not widen
        write = table.delete if deletes else table.upsert
        sent.append((write, batch, {WRITER: "w", NUMBER: str(number)}))
        write(*sent[-1][1:])
        for (id_, city, _, fare), value in zip(rows, values, strict=True):
            at = place(index, id_, city)
            stored = model.pop(at, None)
            added = (value, number) if wide else stored[-2:] if stored else (None, None)
            if not deletes:
                model[at] = (id_, city, fare, *added)
        again, batch, numbered = draw.choice(sent[-10:])
        assert again(batch, numbered).already_committed
        with pytest.raises(ReplayMismatchError):
            again(batch.slice(1), numbered)
        read = table.read(columns).to_pylist()
        assert sorted(tuple(row.values())[:3] for row in read) == sorted(
            row[:3] for row in model.values()
        )
        assert {tuple(row.values()) for row in read} == set(model.values())


def place(index: str, id_: str, city: str) -> tuple[str, ...]:
    """What a key is unique in, besides."""
    return (id_,) if index.startswith("GLOBAL") else (id_, city)


@pytest.mark.parametrize("kind", TYPES)
def test_what_no_key_is_stored_of_has_nulls(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "keyed", kind, "9")
    table.insert(trips(("n", "x", 3, 3.0)))
    table.insert(trips(("o", "y", 3, 3.0)), {OPERATION: "bulk_insert"})
    new: dict[str, tuple[Any, ...]] = {"n": ("x", 3.0, None), "o": ("y", 3.0, None)}
    if kind == TYPES[1]:  # whose log files are merged, whatever the operation
        table.insert(trips(("a", "x", 3, 3.0)))
        new["a"] = ("x", 3.0, 0.5)
    assert tips(table) == {**tips(table), **new}
    table.overwrite(trips(("a", "x", 9, 9.0)))
    assert tips(table) == {"a": ("x", 9.0, None)}
    keyless = HoodieTable(tmp_path / "keyless", {"hoodie.table.name": "t", TYPE: kind})
    for rows in (FIRST, WIDER, FIRST):
        keyless.insert(rows)
    assert keyless.read(["tip"])["tip"].null_count == 7


@pytest.mark.parametrize("kind", TYPES)
def test_the_option_gives_nulls(tmp_path: Path, kind: str) -> None:
    """As Hudi does where it is set."""
    table = made(tmp_path, kind, "9")
    table.upsert(trips(("a", "x", 3, 3.0)), {NULLS: "true"})
    assert tips(table)["a"] == ("x", 3.0, None)


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_of_the_first_batch_is_needed(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind, "9")
    with pytest.raises(SchemaError, match=f"'fare' of the table is missing.*{NULLS}"):
        table.upsert(FIRST.drop_columns(["fare"]))
    table.delete(FIRST.select(["id", "city", "ts"]).slice(0, 1))  # which needs less


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", TYPES)
def test_it_is_known_for_as_long_as_the_column_is_there(
    tmp_path: Path, kind: str, version: str
) -> None:
    """When the commit that added it is archived, and not when it is taken back."""
    table = made(tmp_path, kind, version)
    second = table.timeline.commits[-1]
    for number in range(3, 7):
        table.upsert(trips(("b", "x", number, 1.0)))
    kept = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    assert table.archive({**kept, "hoodie.clean.commits.retained": "1"})
    assert second.time not in [instant.time for instant in table.timeline.commits]
    table.upsert(trips(("a", "x", 7, 7.0)))
    assert tips(table)["a"] == ("x", 7.0, 0.5)


def test_it_is_known_behind_commits_of_other_engines(tmp_path: Path) -> None:
    table = made(tmp_path, TYPES[0], "6")
    foreign_commit(tmp_path)
    table.upsert(trips(("a", "x", 7, 7.0)))
    assert tips(table)["a"] == ("x", 7.0, 0.5)


@pytest.mark.parametrize("index", ["BUCKET", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "9"])
def test_what_an_instant_of_several_batches_holds_stays_too(
    tmp_path: Path, index: str, kind: str, version: str
) -> None:
    """Whoever has the rows: one task, or several whose rows the commit merges."""
    stream = Stream(tmp_path, {TYPE: kind, VERSION: version, INDEX: index, SPAN: "2"})
    stream.write(0, FIRST, tasks=3)
    stream.write(1, WIDER, tasks=2)
    stream.write(2, trips(("c", "y", 3, 3.0)).append_column("tip", pa.array([0.75])))
    stream.write(3, trips(("a", "x", 4, 4.0), ("c", "y", 4, 4.0), ("d", "y", 4, 4.0)), tasks=3)
    kept = {"a": ("x", 4.0, 0.5), "b": ("x", 2.0, None), "c": ("y", 4.0, 0.75)}
    assert tips(stream.table) == {**kept, "d": ("y", 4.0, None)}
    assert len(stream.table.timeline.commits) == 2


@pytest.mark.parametrize("more", [{}, OPTIONS["partial"]], ids=["whole", "partial"])
@pytest.mark.parametrize("kind", TYPES)
def test_marks_of_deletes_do_not_stay(tmp_path: Path, kind: str, more: Mapping[str, str]) -> None:
    """A record that moves is deleted where it was, by the same column."""
    options = {k: v for k, v in TRIPS.items() if k != BUCKETS}
    table = HoodieTable(tmp_path, {**options, **more, TYPE: kind, INDEX: "GLOBAL_SIMPLE"})
    table.upsert(FIRST)
    marks = pa.array([False, True])
    table.upsert(WIDER.append_column("_hoodie_is_deleted", marks))
    table.upsert(trips(("a", "z", 3, 3.0), ("c", "z", 3, 3.0)))
    assert tips(table) == {"a": ("z", 3.0, 0.5), "c": ("z", 3.0, None)}


@pytest.mark.parametrize("index", ["BUCKET", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_key_that_a_batch_deletes_and_brings_again(tmp_path: Path, kind: str, index: str) -> None:
    table = made(tmp_path, kind, "9", **{INDEX: index})
    rows = trips(("a", "x", 3, None), ("a", "x", 4, 4.0))
    table.upsert(rows.append_column("_hoodie_is_deleted", pa.array([True, False])))
    assert tips(table)["a"] == ("x", 4.0, 0.5)
    table.delete(trips(("a", "x", 5, None)))
    table.upsert(trips(("a", "x", 6, 6.0)))
    assert tips(table)["a"] == ("x", 6.0, None)


COPIES: dict[str, Mapping[str, str]] = {
    "buckets": {},
    "bloom": {INDEX: "BLOOM"},
    "global": {INDEX: "GLOBAL_SIMPLE"},
    "commit order": {INDEX: "GLOBAL_SIMPLE", **OPTIONS["commit order"]},
    "commit order, buckets": OPTIONS["commit order"],
    "partial": {INDEX: "GLOBAL_SIMPLE", **OPTIONS["partial"]},
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
}


@pytest.mark.parametrize(("name", "version"), in_turn(COPIES, ["6", "9"]))
@pytest.mark.parametrize("kind", TYPES)
def test_copies_that_become_one_keep_what_the_newest_has(
    tmp_path: Path, name: str, kind: str, version: str
) -> None:
    """Copies of keys in one file group, or in several partitions which a global index unites."""
    draw = random.Random(name + kind)
    is_global, by_commit = COPIES[name].get(INDEX) == "GLOBAL_SIMPLE", "commit order" in name
    table = made(tmp_path, kind, version, **COPIES[name])
    newest: dict[str, tuple[int, float]] = {}
    for number, city in enumerate("xyz"):
        rows = [(key, city if is_global else "x", draw.choice([5, 6, 7]), 0.0) for key in "efghijk"]
        values = [number + row[2] / 8 for row in rows]
        table.insert(trips(*rows).append_column("tip", pa.array(values)))
        for (key, _, ts, _), tip in zip(rows, values, strict=True):
            rank = number if by_commit else ts
            newest[key] = max(newest.get(key, (0, 0.0)), (rank, tip))
    new = [(key, draw.choice("wxyz") if is_global else "x", 9, 9.0) for key in newest]
    table.upsert(trips(*new))
    assert {key: row for key, row in tips(table).items() if key in newest} == {
        key: (city, 9.0, newest[key][1]) for key, city, *_ in new
    }


@pytest.mark.parametrize("kind", TYPES)
def test_a_copy_that_does_not_move_keeps_its_values_to_itself(tmp_path: Path, kind: str) -> None:
    """As it is newer than the row by which another copy moves."""
    table = made(tmp_path, kind, "9", **{INDEX: "GLOBAL_SIMPLE"})
    table.insert(trips(("k", "x", 3, 3.0)).append_column("tip", pa.array([0.3])))
    second = trips(("k", "y", 9, 9.0), ("m", "y", 3, 3.0))
    table.insert(second.append_column("tip", pa.array([0.9, 0.5])))
    table.upsert(trips(("k", "z", 5, 5.0), ("m", "z", 5, 5.0)))
    rows = table.read(columns=["id", "city", "fare", "tip"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows if row["id"] in "km") == [
        ("k", "y", 9.0, 0.9),
        ("k", "z", 5.0, 0.3),
        ("m", "z", 5.0, 0.5),
    ]


@pytest.mark.parametrize("index", ["BUCKET", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", TYPES)
def test_an_insert_adds_a_row_with_nulls(tmp_path: Path, kind: str, index: str) -> None:
    """But where readers merge it into the stored row, as they do in log files of buckets."""
    table = made(tmp_path, kind, "9", **{INDEX: index})
    table.insert(trips(("a", "x", 3, 3.0)))
    added = table.read(columns=["id", "fare", "tip"]).to_pylist()
    found = sorted((row["fare"], row["tip"]) for row in added if row["id"] == "a")
    merged = kind == TYPES[1] and index == "BUCKET"
    assert found == ([(3.0, 0.5)] if merged else [(2.0, 0.5), (3.0, None)])


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_that_was_taken_back_is_none_of_the_table(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind, "9")
    table.rollback(table.timeline.commits[-1])
    table.upsert(trips(("a", "x", 3, 3.0)))
    assert "tip" not in table.schema.names
    newest = read_commit(open_storage(str(tmp_path)), table.timeline.commits[-1])
    assert ADDED_KEY not in newest.extra
