"""Under which names files have columns that are numbered, field by field."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.table.schema_on_read import check_history, check_same_names, columns_of
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline

FIRST, SECOND, THIRD = (f"2025010100000000{number}" for number in (1, 2, 3))
PATH = f".hoodie/{THIRD}.commit"
ALL = Timeline(tuple(Instant(t, Action.COMMIT, State.COMPLETED) for t in (FIRST, SECOND, THIRD)))


def record(version: str | None, *fields: tuple[int, str, Any]) -> dict[str, Any]:
    columns = [{"id": n, "name": name, "optional": True, "type": kind} for n, name, kind in fields]
    told = {} if version is None else {"version_id": int(version), "max_column_id": 99}
    return {**told, "type": "record", "fields": columns}


def nested(version: str, x: str, width: str, weight: str) -> dict[str, Any]:
    """A struct in a struct, one in a list, and one in a map."""
    inner = record(None, (4, x, "double"))
    items = {
        "type": "array",
        "element_id": 5,
        "element": record(None, (6, "w", width)),
        "element_optional": True,
    }
    prices = {
        "type": "map",
        "key_id": 7,
        "key": "string",
        "value_id": 8,
        "value": record(None, (9, weight, "decimal(10, 2)")),
        "value_optional": True,
    }
    return record(
        version,
        (0, "at", record(None, (3, "point", inner))),
        (1, "items", items),
        (2, "prices", prices),
    )


def history(*versions: dict[str, Any], body: bytes | None = None) -> MemoryStorage:
    storage = MemoryStorage()
    for number, time in enumerate((FIRST, SECOND, THIRD)[: len(versions)], 1):
        schemas = json.dumps({"schemas": versions[number - 1 :: -1]}).encode()
        path = f".hoodie/.schema/{time}.schemacommit"
        storage.put_if_absent(path, body or schemas)
        storage.put_if_absent(f"{path}.inflight", b"")
    return storage


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (nested(SECOND, "y", "int", "v"), "'at.point.x' is 'at.point.y'"),
        (nested(SECOND, "x", "long", "v"), "'items.element.w' was int and is long"),
        (nested(SECOND, "x", "int", "z"), "'prices.value.v' is 'prices.value.z'"),
        (record(SECOND, (0, "at", "string")), "'at' was record and is string, .* and 4 more"),
    ],
)
def test_a_field_at_whatever_depth_is_told(now: dict[str, Any], said: str) -> None:
    storage = history(nested(FIRST, "x", "int", "v"), now)
    with pytest.raises(UnsupportedTableError, match=rf"renamed.*\({said}\)"):
        check_same_names(storage, columns_of(storage, ALL, json.dumps(now), PATH), "")


def test_fields_that_have_come_hide_none() -> None:
    was, now = nested(FIRST, "x", "int", "v"), nested(SECOND, "x", "int", "v")
    now["fields"].insert(0, {"id": 10, "name": "new", "optional": True, "type": "string"})
    storage = history(was, now)
    check_same_names(storage, columns_of(storage, ALL, json.dumps(now), PATH), "")
    assert columns_of(storage, ALL, json.dumps(now), PATH).history().since == ()


def test_a_file_has_the_names_of_its_time() -> None:
    versions = [
        record(time, (0, name, "int")) for time, name in zip((FIRST, THIRD), "ab", strict=True)
    ]
    found = columns_of(history(*versions), ALL, json.dumps(versions[-1]), PATH).history()
    rows = pa.table({"a": [1], "b": [2]})

    def read(time: str) -> dict[str, list[int]]:
        renaming = found.renaming(time)
        return (rows if renaming is None else renaming.renamed(rows)).to_pydict()

    for time in ("20240101000000000", FIRST, SECOND):
        assert read(time) == {"b": [1]}
    assert read(THIRD) == read("20260101000000000") == {"a": [1], "b": [2]}


@pytest.mark.parametrize("gone", ["rolled back", "pending"])
def test_names_of_a_write_that_failed_are_in_no_file(gone: str) -> None:
    """Hudi leaves what it has put into the history."""
    versions = [
        record(FIRST, (0, "a", "int")),
        record(SECOND, (0, "c", "int")),
        record(THIRD, (0, "b", "int")),
    ]
    done = (Instant(t, Action.COMMIT, State.COMPLETED) for t in (FIRST, THIRD))
    begun = [Instant(SECOND, Action.COMMIT, State.INFLIGHT)] * (gone == "pending")
    timeline = Timeline(tuple(done), tuple(begun))
    found = columns_of(history(*versions), timeline, json.dumps(versions[-1]), PATH).history()
    renaming = found.renaming(SECOND)
    assert renaming is not None
    assert renaming.renamed(pa.table({"a": [1], "c": [2]})).to_pydict() == {"b": [1]}


def test_a_name_that_is_another_columns_now_does_not_bring_the_old_one_back() -> None:
    inner = record(None, (2, "x", "int"), (3, "y", "int"))
    was = record(FIRST, (0, "a", "int"), (1, "s", inner))
    now = record(SECOND, (4, "a", "int"), (1, "s", record(None, (3, "y", "int"), (5, "x", "int"))))
    columns = columns_of(history(was, now), ALL, json.dumps(now), PATH)
    renaming = columns.history().renaming(FIRST)
    assert renaming is not None
    rows = renaming.renamed(pa.table({"a": [1], "s": [{"x": 1, "y": 2}]}))
    (row,) = rows.to_pylist()
    assert row.keys() == {"s"}
    assert "x" not in row["s"]
    assert row["s"]["y"] == 2


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"schemas": 7}', b'{"schemas": [7]}', b'{"schemas": [{"version_id": "x"}]}'],
)
def test_a_history_that_is_damaged_does_not_tell(body: bytes) -> None:
    now = nested(FIRST, "x", "int", "v")
    with pytest.raises(UnsupportedTableError, match=rf"{PATH}.*does not say under which"):
        columns_of(history(now, body=body), ALL, json.dumps(now), PATH)


@pytest.mark.parametrize("numbered", ["{", "[]", "7", "{}"])
def test_a_commit_that_is_damaged_does_not_tell(numbered: str) -> None:
    with pytest.raises(UnsupportedTableError, match=rf"{PATH}.*does not say under which"):
        columns_of(history(nested(FIRST, "x", "int", "v")), ALL, numbered, PATH)


def test_a_history_that_ends_before_the_commit_does_not_tell() -> None:
    was, now = (nested(version, "x", "int", "v") for version in (FIRST, SECOND))
    with pytest.raises(UnsupportedTableError, match="does not say under which"):
        columns_of(history(was), ALL, json.dumps(now), PATH)


def test_a_type_that_nobody_knows_does_not_tell() -> None:
    now = record(FIRST, (0, "odd", {"type": "union"}))
    with pytest.raises(UnsupportedTableError, match="does not say under which"):
        columns_of(history(now), ALL, json.dumps(now), PATH)


@pytest.mark.parametrize(
    "body", [b"{", json.dumps({"schemas": [record(FIRST, (0, "a", {"type": "union"}))]}).encode()]
)
def test_what_a_commit_without_numbers_hides_is_refused_if_it_is_unknown(body: bytes) -> None:
    storage = history(nested(FIRST, "x", "int", "v"), body=body)
    with pytest.raises(UnsupportedTableError, match=r"does not number.*does not say which"):
        check_history(storage, ALL, PATH)
