"""Random changes by filters against rows of plain Python, where null is neither true nor false."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from hoodie_ds.filters.given import Filter
from hoodie_ds.testing import MemoryStorage
from tests.random_reads import SIGNS
from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TYPE, TYPES, VERSION

SCHEMA = pa.schema(
    {
        "id": pa.int32(),
        "part": pa.string(),
        "ts": pa.int64(),
        "n": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
    }
)
VALUES: Mapping[str, list[Any]] = {
    "part": ["p", "q"],
    "n": [-1, 0, 1, 2],
    "x": [-1.5, 0.0, 2.5],
    "s": ["", "a", "it's", "b c"],
}
INDEXES: Mapping[str, Mapping[str, str]] = {
    "bucket": {BUCKETS: "2"},
    "bloom": {"hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "100"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "record": {"hoodie.index.type": "RECORD_INDEX"},
    "state": {"hoodie.index.type": "FLINK_STATE", "index.global.enabled": "false"},
    "no keys": {KEY: ""},
    "virtual keys": {"hoodie.index.type": "SIMPLE", "hoodie.populate.meta.fields": "false"},
}
KEPT: Mapping[str, Mapping[str, str]] = {
    "nothing": {},
    "changes": {"hoodie.table.cdc.enabled": "true"},
    "lists": {"hoodie.metadata.enable": "true"},
    "columns by number": {},
}
"""What a table keeps of each change besides its rows."""


Row = dict[str, Any]
Truth = Callable[[Row], bool | None]


@dataclass(frozen=True)
class Condition:
    """A filter in one of its languages, and whether it is true of a row; None for unknown."""

    filter: Filter
    truth: Truth


def _all(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    """One condition, as a string or a tuple."""
    name = draw(st.sampled_from(sorted(VALUES)))
    form = draw(st.sampled_from(["string", "tuple", "in", "not in", "null", "not null"]))
    if form in ("null", "not null"):
        is_null = form == "null"
        text = f"{name} is {'' if is_null else 'not '}null"
        return Condition(text, lambda row: (row[name] is None) is is_null)
    if form in ("in", "not in"):
        values = draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3))
        among = form == "in"
        return Condition(
            (name, form, values),
            lambda row: None if row[name] is None else (row[name] in values) is among,
        )
    sign, value = draw(st.sampled_from(sorted(SIGNS))), draw(st.sampled_from(VALUES[name]))
    quoted = str(value).replace("'", "''")
    given = f"{name} {sign} '{quoted}'" if form == "string" else (name, sign, value)
    return Condition(
        given, lambda row: None if row[name] is None else SIGNS[sign](row[name], value)
    )


def _lists() -> st.SearchStrategy[Condition]:
    """Several conditions, all of which hold."""
    return st.lists(leaves(), min_size=1, max_size=3).map(
        lambda parts: Condition(
            [part.filter for part in parts],
            lambda row: _all([part.truth(row) for part in parts]),
        )
    )


@st.composite
def _compared(draw: st.DrawFn) -> Condition:
    name, sign = draw(st.sampled_from(sorted(VALUES))), draw(st.sampled_from(sorted(SIGNS)))
    value = draw(st.sampled_from(VALUES[name]))
    return Condition(
        SIGNS[sign](pc.field(name), value),
        lambda row: None if row[name] is None else SIGNS[sign](row[name], value),
    )


def _joined(parts: list[Condition], is_and: bool) -> Condition:
    whole = reduce(operator.and_ if is_and else operator.or_, [part.filter for part in parts])

    def truth(row: Row) -> bool | None:
        truths = [part.truth(row) for part in parts]
        return _all(truths) if is_and else _negated(_all([_negated(t) for t in truths]))

    return Condition(whole, truth)


def _expressions() -> st.SearchStrategy[Condition]:
    """A tree of Arrow's expressions."""
    return st.recursive(
        _compared(),
        lambda parts: st.one_of(
            st.builds(_joined, st.lists(parts, min_size=2, max_size=3), st.booleans()),
            parts.map(
                lambda part: Condition(
                    ~part.filter,
                    lambda row: _negated(part.truth(row)),
                )
            ),
        ),
        max_leaves=4,
    )


CONDITIONS = st.one_of(leaves(), _lists(), _expressions())


@dataclass(frozen=True)
class NewValue:
    """A new value of a column in one of its forms, and what it is of a row."""

    given: Any
    of: Callable[[Row], Any]


def _doubled(number: int | None) -> int | None:
    return None if number is None else 2 * number


ASSIGNED: Mapping[str, st.SearchStrategy[NewValue]] = {
    name: st.one_of(
        st.sampled_from([None, *VALUES[name]]).map(
            lambda value: NewValue(value, lambda row: value)
        ),
        *more,
    )
    for name, more in {
        "n": [st.just(NewValue(pc.field("n") * 2, lambda row: _doubled(row["n"])))],
        "x": [st.just(NewValue(lambda rows: rows["n"], lambda row: row["n"]))],
        "s": [st.just(NewValue(pc.field("part"), lambda row: row["part"]))],
    }.items()
}
ASSIGNMENTS = st.dictionaries(st.sampled_from(sorted(ASSIGNED)), st.none(), min_size=1).flatmap(
    lambda names: st.fixed_dictionaries({name: ASSIGNED[name] for name in names})
)


def rows_of(number: int) -> st.SearchStrategy[list[Row]]:
    """A batch of rows with some keys, each once; later batches have later rows."""
    some = {name: st.one_of(st.none(), st.sampled_from(VALUES[name])) for name in ("n", "x", "s")}
    rows = st.dictionaries(st.integers(0, 7), st.fixed_dictionaries(some), max_size=8)
    return rows.map(
        lambda found: [
            {"id": key, "part": "pq"[key % 2], "ts": number, **row} for key, row in found.items()
        ]
    )


def made(options: Mapping[str, str]) -> HoodieTable:
    keys = {KEY: "id", PARTITION: "part", ORDERING: "ts", "hoodie.table.name": "model"}
    given = {key: value for key, value in {**keys, **options}.items() if value}
    return HoodieTable("/t", given, storage=MemoryStorage())


def _play(data: st.DataObject) -> None:
    options = {
        TYPE: data.draw(st.sampled_from(TYPES)),
        VERSION: data.draw(st.sampled_from("689")),
        ORDERING: data.draw(st.sampled_from(["ts", ""])),
        **INDEXES[data.draw(st.sampled_from(sorted(INDEXES)))],
    }
    has_keys = options.get(KEY, "id")
    kept = data.draw(st.sampled_from(sorted(KEPT)))
    if kept != "changes" or (has_keys and "hoodie.populate.meta.fields" not in options):
        options |= KEPT[kept]
    table, model = made(options), dict[int, Row]()
    for number in range(data.draw(st.integers(1, 4))):
        batch = data.draw(rows_of(number))
        if not has_keys:  # rows of its own
            batch = [row for row in batch if row["id"] not in model]
        if batch or number == 0:
            write = table.upsert if has_keys else table.insert
            write(pa.Table.from_pylist(batch, schema=SCHEMA))
        model |= {row["id"]: row for row in batch}
        if kept == "columns by number" and data.draw(st.booleans()):
            # Values of the same type come under the name of another column, or are gone.
            table.alter().drop("x").rename("n", "x").add("n", pa.int64()).execute()
            table.alter().rename("x", "y").add("x", pa.float64()).drop("n").execute()
            table.alter().rename("y", "n").execute()
            model = {key: {**row, "x": None} for key, row in model.items()}
        commits, before = table.timeline.commits, model
        condition = data.draw(CONDITIONS)
        chosen = {key for key, row in model.items() if condition.truth(row) is True}
        if data.draw(st.booleans()):
            result = table.delete(where=condition.filter)
            changed = dict[int, Row]()
            gone = chosen
        else:
            values = data.draw(ASSIGNMENTS)
            result = table.update({n: value.given for n, value in values.items()}, condition.filter)
            rows = {key: model[key] for key in chosen}
            after = {k: row | {n: v.of(row) for n, v in values.items()} for k, row in rows.items()}
            changed = {key: row for key, row in after.items() if row != model[key]}
            gone = set[int]()
        model = {key: row for key, row in (model | changed).items() if key not in gone}
        assert (result.inserted, result.updated, result.deleted) == (0, len(changed), len(gone))
        assert (result.instant_time is None) is (not changed and not gone)
        _compare(table, model)
        if commits and KEPT["changes"].items() <= options.items():
            _compare_images(table.read_changes(commits[-1]).to_pylist(), before, model)


def _compare_images(found: list[Row], before: Mapping[int, Row], after: Mapping[int, Row]) -> None:
    """Whether a reader of change data is told of each row that is another, and of no other."""
    told = {}
    for change in found:
        images = [json.loads(change[side] or "null") for side in ("before", "after")]
        (key,) = {image["id"] for image in images if image}
        assert key not in told
        told[key] = (change["op"], *(image and _plain(image) for image in images))
    assert told == {
        key: ("u" if key in after else "d", row, after.get(key))
        for key, row in before.items()
        if after.get(key) != row
    }


def _plain(image: Row) -> Row:
    return {name: image.get(name) for name in SCHEMA.names}  # Hudi leaves nulls out


def _compare(table: HoodieTable, model: Mapping[int, Row]) -> None:
    if not table.timeline.commits:
        assert not model
        return
    found = {row["id"]: row for row in table.read(SCHEMA.names).to_pylist()}
    assert found == model


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_tables_are_as_the_model_says(data: st.DataObject) -> None:
    _play(data)


@pytest.mark.slow
@pytest.mark.nightly
@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_many_more_tables(data: st.DataObject) -> None:
    _play(data)
