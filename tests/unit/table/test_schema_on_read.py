"""Which histories of numbered columns names tell, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.table.schema_on_read import check_found_by_name
from hoodie_ds.testing import MemoryStorage

PATH = ".hoodie/20250101000000000.commit"


def record(version: int | None, *fields: tuple[int, str, Any]) -> dict[str, Any]:
    columns = [{"id": n, "name": name, "optional": True, "type": kind} for n, name, kind in fields]
    told = {} if version is None else {"version_id": version, "max_column_id": 99}
    return {**told, "type": "record", "fields": columns}


def nested(version: int, x: str, width: str, weight: str) -> dict[str, Any]:
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


def history(*versions: dict[str, Any]) -> MemoryStorage:
    storage = MemoryStorage()
    for number, _ in enumerate(versions, 1):
        body = json.dumps({"schemas": versions[number - 1 :: -1]}).encode()
        path = f".hoodie/.schema/2025010100000000{number}.schemacommit"
        storage.put_if_absent(path, body)
        storage.put_if_absent(f"{path}.inflight", b"")
    return storage


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (nested(2, "y", "int", "v"), "'at.point.x' is 'at.point.y'"),
        (nested(2, "x", "long", "v"), "'items.element.w' was int and is long"),
        (nested(2, "x", "int", "z"), "'prices.value.v' is 'prices.value.z'"),
        (record(2, (0, "at", "string")), "'at' was record and is string, .* and 4 more"),
    ],
)
def test_a_field_at_whatever_depth_is_told(now: dict[str, Any], said: str) -> None:
    storage = history(nested(1, "x", "int", "v"), now)
    with pytest.raises(UnsupportedTableError, match=rf"{PATH}.*\({said}\)"):
        check_found_by_name(storage, json.dumps(now), PATH)


def test_fields_that_have_come_hide_none() -> None:
    was = nested(1, "x", "int", "v")
    now = nested(2, "x", "int", "v")
    now["fields"].insert(0, {"id": 10, "name": "new", "optional": True, "type": "string"})
    check_found_by_name(history(was, now), json.dumps(now), PATH)


def test_a_history_that_ends_before_the_commit_does_not_tell() -> None:
    was, now = (nested(version, "x", "int", "v") for version in (1, 2))
    with pytest.raises(UnsupportedTableError, match="does not say which"):
        check_found_by_name(history(was), json.dumps(now), PATH)


def test_a_type_that_nobody_knows_does_not_tell() -> None:
    now = record(1, (0, "odd", {"type": "union"}))
    with pytest.raises(UnsupportedTableError, match="does not say which"):
        check_found_by_name(history(now), json.dumps(now), PATH)
