"""Tables of partial updates, as Hudi's payload classes and modes name them."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import COMMIT_TIME, IS_DELETED
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import OptionError, UnsupportedTableError
from tests.merge_hooks import HOOK
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, TYPES, VERSION
from tests.tiers import by_day

PAYLOAD = "hoodie.datasource.write.payload.class"
MODE = "hoodie.table.partial.update.mode"
MARKER = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
MERGE_MODE = "hoodie.record.merge.mode"
UNAVAILABLE = "__debezium_unavailable_value"
BY_COMMIT = {key: value for key, value in TRIPS.items() if key != ORDERING}
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
NON_DEFAULTS = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"


def rows(*values: tuple[str, int, float | None, str | None]) -> pa.Table:
    kinds = {"id": pa.string(), "ts": pa.int64(), "fare": pa.float64(), "note": pa.string()}
    dicts = [dict(zip(kinds, value, strict=True)) for value in values]
    table = pa.Table.from_pylist(dicts, schema=pa.schema(kinds))
    return table.append_column("city", pa.repeat("x", len(values)))


def content(table: HoodieTable) -> list[tuple[object, ...]]:
    found = table.read(columns=["id", "ts", "fare", "note"]).sort_by("id").to_pylist()
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize("kind", TYPES)
def test_what_a_row_lacks_comes_from_the_one_with_the_lower_ordering_value(
    tmp_path: Path, kind: str
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, PAYLOAD: PARTIAL})
    table.upsert(rows(("a", 1, 1.0, "one"), ("b", 2, None, "two"), ("c", 1, 3.0, None)))
    table.upsert(rows(("a", 2, 2.0, None), ("b", 1, 2.0, "late"), ("c", 2, None, "x")))
    assert content(table) == [("a", 2, 2.0, "one"), ("b", 2, 2.0, "two"), ("c", 2, 3.0, "x")]
    # Neither reader nor writer needs an option: the rule is this library's own.
    other = HoodieTable(str(tmp_path))
    other.upsert(rows(("a", 3, None, "p"), ("a", 4, 5.0, None), ("d", 1, None, None)))
    assert content(other)[0] == ("a", 4, 5.0, "p")
    assert content(other)[-1] == ("d", 1, None, None)


@pytest.mark.parametrize("version", "689")
@pytest.mark.parametrize("kind", TYPES)
def test_a_row_that_an_older_update_leaves_as_it_was_keeps_its_commit(
    tmp_path: Path, kind: str, version: str
) -> None:
    options = {**TRIPS, TYPE: kind, VERSION: version, MODE: "IGNORE_DEFAULTS"}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(rows(("a", 2, 1.0, "one"), ("b", 2, None, "one"), ("c", 2, None, "one")))
    first = table.timeline.commits[-1]
    before = {row["id"]: row for row in table.read().to_pylist()}
    table.upsert(rows(("a", 1, 2.0, "late"), ("b", 1, None, "late"), ("c", 1, 2.0, None)))
    if kind == "MERGE_ON_READ":  # Hudi's incremental queries take log files as they are
        read = {row["id"]: row for row in table.read().to_pylist()}
        assert (read["a"], read["b"]) == (before["a"], before["b"])
        table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    read = {row["id"]: row for row in table.read().to_pylist()}
    name = "_hoodie_file_name"
    assert {**read["a"], name: ""} == {**before["a"], name: ""}
    assert {**read["b"], name: ""} == {**before["b"], name: ""}
    assert (read["c"]["ts"], read["c"]["fare"], read["c"]["note"]) == (2, 2.0, "one")
    since = first.time if version == "6" else first.completion_time
    assert table.read_incremental(since).column("id").to_pylist() == ["c"]
    table.upsert(rows(("a", 1, None, "later")))
    if kind == "COPY_ON_WRITE":  # no file is written where no row changes
        assert {row["id"]: row for row in table.read().to_pylist()} == read


@pytest.mark.parametrize("kind", TYPES)
def test_by_commit_order_the_later_row_is_filled(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**BY_COMMIT, TYPE: kind, PAYLOAD: NON_DEFAULTS})
    table.upsert(rows(("a", 2, 1.0, "one"), ("b", 2, 1.0, "one")))
    table.upsert(rows(("a", 1, None, "late")))
    table.delete(pa.table({"id": ["b"], "city": ["x"]}))
    table.upsert(rows(("b", 1, None, "new")))
    assert content(table) == [("a", 1, 1.0, "late"), ("b", 1, None, "new")]


@pytest.mark.parametrize("index", ["BUCKET", "BLOOM", "GLOBAL_BLOOM"])
def test_an_insert_that_folds_its_rows_fills_them(tmp_path: Path, index: str) -> None:
    options = {key: TRIPS[key] for key in TRIPS if key != BUCKETS or index == "BUCKET"}
    options |= {PAYLOAD: PARTIAL, "hoodie.index.type": index}
    table = HoodieTable(str(tmp_path), options)
    table.insert(
        rows(("a", 1, 7.0, "one"), ("a", 2, None, "two"), ("b", 1, None, None)),
        {"hoodie.combine.before.insert": "true"},
    )
    assert content(table) == [("a", 2, 7.0, "two"), ("b", 1, None, None)]


def test_what_the_table_says_of_its_merge(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, PAYLOAD: PARTIAL})
    table.upsert(rows(("a", 1, 1.0, "one")))
    raw = table.properties.raw
    assert raw["hoodie.compaction.payload.class"] == PARTIAL
    assert raw["hoodie.table.precombine.field"] == "ts"
    assert raw["hoodie.compaction.record.merger.strategy"].startswith("00000000-")
    assert HOOK not in raw


@pytest.mark.parametrize(
    ("options", "key"),
    [({PAYLOAD: NON_DEFAULTS}, PAYLOAD), ({HOOK: "tests.merge_hooks:add"}, HOOK)],
)
def test_another_rule_contradicts_the_table(
    tmp_path: Path, options: dict[str, str], key: str
) -> None:
    HoodieTable(str(tmp_path), {**TRIPS, PAYLOAD: PARTIAL}).upsert(rows(("a", 1, 1.0, "one")))
    with pytest.raises(OptionError, match="PartialUpdateAvroPayload") as caught:
        HoodieTable(str(tmp_path), options).upsert(rows(("a", 1, 1.0, "one")))
    assert caught.value.key == key


COLUMNS = {"fare": pa.float64(), "note": pa.string(), "raw": pa.binary()}
KINDS = {"id": pa.string(), "ts": pa.int64(), "city": pa.string(), **COLUMNS}


def fill(old: dict[str, Any], new: dict[str, Any], mode: str, marker: str, by_ts: bool) -> Any:
    """What two rows of one key make, value by value."""
    newer, older = (old, new) if by_ts and old["ts"] > new["ts"] else (new, old)
    lacking = (None,) if mode == "IGNORE_DEFAULTS" else (marker, marker.encode())
    return {
        name: older[name] if name in COLUMNS and value in lacking else value
        for name, value in newer.items()
    }


def folded(rows: list[dict[str, Any]], *rule: Any) -> dict[str, dict[str, Any]]:
    """What the rows of a batch make of one another: one row or delete of each key."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        old = found.get(row["id"])
        alone = old is None or old[IS_DELETED] or row[IS_DELETED]
        left = row if old is None or alone else fill(old, row, *rule)
        # A row after a delete begins anew, whatever is stored.
        found[row["id"]] = {**left, "anew": old is not None and (old[IS_DELETED] or old["anew"])}
    return found


FILLED = [
    *itertools.product(
        TYPES, ("IGNORE_DEFAULTS", "FILL_UNAVAILABLE"), (True, False), (UNAVAILABLE, "?")
    )
]


@pytest.mark.parametrize(
    ("kind", "mode", "by_ts", "marker"),
    by_day(FILLED, [case for n, case in enumerate(FILLED) if n.bit_count() % 2]),
)
def test_rows_are_filled_value_by_value(
    tmp_path: Path, kind: str, mode: str, by_ts: bool, marker: str
) -> None:
    chance = random.Random(7)
    options = {**(TRIPS if by_ts else BY_COMMIT), TYPE: kind, MODE: mode}
    if marker != UNAVAILABLE and mode == "FILL_UNAVAILABLE":
        options[MARKER] = marker
    HoodieTable(str(tmp_path), options).upsert(rows())
    table = HoodieTable(str(tmp_path))  # knows no more than the table itself says
    held: dict[str, dict[str, Any]] = {}
    written: dict[str, str] = {}  # the commit that last changed a row
    # Log files are merged with one another before they meet their base file: by event time that
    # is another thing where there are two of them, see FillNulls.
    for _ in range(2 if by_ts and kind == "MERGE_ON_READ" else 5):
        batch = [row_by_chance(chance, marker) for _ in range(60)]
        schema = pa.schema({**KINDS, IS_DELETED: pa.bool_()})
        table.upsert(pa.Table.from_pylist(batch, schema))
        for key, row in folded(batch, mode, marker, by_ts).items():
            stored = None if row["anew"] else held.get(key)
            held[key] = fill(stored, row, mode, marker, by_ts) if stored else row
            is_older = stored is not None and by_ts and stored["ts"] > row["ts"]
            if not is_older or any(held[key][name] != (stored or {})[name] for name in KINDS):
                written[key] = table.timeline.commits[-1].time
            if row[IS_DELETED]:
                del held[key]
        expected = [
            {**{name: held[key][name] for name in KINDS}, COMMIT_TIME: written[key]}
            for key in sorted(held)
        ]
        found = table.read(columns=[*KINDS, COMMIT_TIME]).sort_by("id").to_pylist()
        assert found == expected


def row_by_chance(chance: random.Random, marker: str) -> dict[str, Any]:
    return {
        "id": chance.choice("abcdefghijklmnopqrst"),
        "ts": chance.randint(1, 4),
        "city": "x",
        "fare": chance.choice([1.0, 2.0, None]),
        "note": chance.choice(["one", "two", "", None, marker]),
        "raw": chance.choice([b"one", b"\xff", b"", None, marker.encode()]),
        IS_DELETED: chance.random() < 0.15,
    }


def test_what_is_recorded_is_what_hudi_does_the_same_by(tmp_path: Path) -> None:
    """Of version 6, Hudi looks at the payload class; one that it lacks keeps it from merging."""
    kinds = {
        "event": ({**TRIPS, MODE: "IGNORE_DEFAULTS"}, PARTIAL, None),
        "commit": ({**BY_COMMIT, MODE: "ignore_defaults"}, NON_DEFAULTS, None),
        "mode": (
            {**TRIPS, MODE: "IGNORE_DEFAULTS", MERGE_MODE: "COMMIT_TIME_ORDERING"},
            NON_DEFAULTS,
            None,
        ),
        "payload": ({**TRIPS, MODE: "IGNORE_DEFAULTS", PAYLOAD: PARTIAL}, PARTIAL, None),
        "fill": (
            {**TRIPS, MODE: "FILL_UNAVAILABLE", MERGE_MODE: "EVENT_TIME_ORDERING"},
            "hoodie_ds.record.partial_update.FillUnavailable",
            "FILL_UNAVAILABLE",
        ),
    }
    for name, (options, payload, mode) in kinds.items():
        table = HoodieTable(str(tmp_path / name), options)
        table.upsert(rows(("a", 1, 1.0, "one")))
        table.upsert(rows(("a", 1, 1.0, "one")))  # what created the table agrees with it
        raw = table.properties.raw
        assert raw["hoodie.compaction.payload.class"] == payload
        assert raw["hoodie.record.merge.mode"] == "CUSTOM"
        assert raw.get(MODE) == mode
        assert raw.get(MARKER) == (mode and UNAVAILABLE)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({MODE: "KEEP_VALUES"}, MODE),
        ({MARKER: "?"}, MARKER),
        ({MODE: "IGNORE_DEFAULTS", MARKER: "?"}, MARKER),
        ({MODE: "FILL_UNAVAILABLE", HOOK: "tests.merge_hooks:add"}, MODE),
        ({MODE: "FILL_UNAVAILABLE", PAYLOAD: PARTIAL}, PAYLOAD),
        (
            {MODE: "IGNORE_DEFAULTS", ORDERING: "", MERGE_MODE: "EVENT_TIME_ORDERING"},
            ORDERING,
        ),
        ({MODE: "IGNORE_DEFAULTS", ORDERING: "", PAYLOAD: PARTIAL}, ORDERING),
    ],
)
def test_a_mode_that_is_unknown_or_contradicted_makes_no_table(
    tmp_path: Path, options: dict[str, str], key: str
) -> None:
    with pytest.raises(OptionError) as caught:
        HoodieTable(str(tmp_path / "t"), {**TRIPS, **options}).upsert(rows(("a", 1, 1.0, "one")))
    assert caught.value.key == key
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("made_with", "options", "key"),
    [
        ({}, {MODE: "IGNORE_DEFAULTS"}, MODE),
        ({MODE: "IGNORE_DEFAULTS"}, {MODE: "FILL_UNAVAILABLE"}, MODE),
        ({MODE: "FILL_UNAVAILABLE"}, {MARKER: "?"}, MARKER),
        ({MODE: "IGNORE_DEFAULTS"}, {MARKER: "?"}, MARKER),
        ({MODE: "FILL_UNAVAILABLE"}, {PAYLOAD: PARTIAL}, PAYLOAD),
        ({MODE: "FILL_UNAVAILABLE"}, {HOOK: "tests.merge_hooks:add"}, HOOK),
        (
            {MODE: "FILL_UNAVAILABLE"},
            {MODE: "FILL_UNAVAILABLE", MERGE_MODE: "COMMIT_TIME_ORDERING"},
            MERGE_MODE,
        ),
        ({MODE: "FILL_UNAVAILABLE"}, {MERGE_MODE: "EVENT_TIME_ORDERING"}, MERGE_MODE),
    ],
)
def test_a_mode_is_not_changed_later(
    tmp_path: Path, made_with: dict[str, str], options: dict[str, str], key: str
) -> None:
    HoodieTable(str(tmp_path), {**TRIPS, **made_with}).upsert(rows(("a", 1, 1.0, "one")))
    with pytest.raises(OptionError) as caught:
        HoodieTable(str(tmp_path), options).upsert(rows(("a", 1, 1.0, "one")))
    assert caught.value.key.endswith(key.removeprefix("hoodie."))


def test_a_mode_that_a_table_of_another_engine_carries_counts() -> None:
    """Beside one of Hudi's own merge modes, as table version 9 has it."""
    base = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.table.ordering.fields": "ts",
    }

    def filled(**more: str) -> Any:
        lines = {**base, **{key.replace("__", "."): value for key, value in more.items()}}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        return TableProperties.parse(text, "f").partial_update

    assert filled() is None
    event = filled(**{MODE: "FILL_UNAVAILABLE", MARKER: "?"})
    assert (event.mode.value, event.order.value, event.marker) == (
        "FILL_UNAVAILABLE",
        "EVENT_TIME_ORDERING",
        "?",
    )
    commit = filled(**{MODE: "IGNORE_DEFAULTS", MERGE_MODE: "COMMIT_TIME_ORDERING"})
    assert (commit.mode.value, commit.order.value) == ("IGNORE_DEFAULTS", "COMMIT_TIME_ORDERING")
    with pytest.raises(UnsupportedTableError, match="KEEP_VALUES"):
        filled(**{MODE: "KEEP_VALUES"})
