"""Tables whose columns ALTER TABLE of Apache Hudi has renamed, dropped and retyped take writes.

A model in plain Python has the rows of Hudi's own answer, and changes with each write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import without_meta_columns
from hoodie_ds.formats.avro.evolution import evolved_avro
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.alteration import AlteredColumns
from hoodie_ds.table.numbering import with_numbers
from hoodie_ds.timeline.loading import read_commit
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table

NAMES = ["v9_cow_altered", "v6_mor_altered"]
COMPACTED = {"hoodie.compact.inline.max.delta.commits": "1"}
CLUSTERED = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}


class Altered:
    """A golden table beside the rows that it must have."""

    def __init__(self, name: str, folder: Path) -> None:
        self.table = HoodieTable(str(unzip_table(name, folder)))
        self.columns = [n for n in self.table.schema.names if not n.startswith("_hoodie_")]
        self.rows = {row["id"]: self._own(row) for row in expected_rows(name)}

    def check(self) -> None:
        assert_rows_equal(self.table.read(columns=self.columns), list(self.rows.values()))

    def upsert(self, *rows: dict[str, Any]) -> None:
        schema = pa.schema([self.table.schema.field(name) for name in self.columns])
        pairs = [{**row, "prices": list(map(tuple, row["prices"]))} for row in rows]
        self.table.upsert(pa.Table.from_pylist(pairs, schema=schema))
        self.rows |= {row["id"]: row for row in rows}

    def _own(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in self.columns}


@pytest.mark.parametrize("name", NAMES)
def test_writes_meet_rows_of_all_names(name: str, tmp_path: Path) -> None:
    altered = Altered(name, tmp_path)
    altered.check()
    new = {**altered.rows["k01"], "title": "new", "qty": 7, "ts": 99}
    altered.upsert(new, {**new, "id": "k20", "note": None})
    altered.check()
    altered.table.delete(where="title = 'note 3 r1'")
    del altered.rows["k03"]
    altered.check()
    altered.table.update({"note": "updated", "ts": 99}, where="note = 'name 0 r1'")
    altered.rows["k00"] |= {"note": "updated", "ts": 99}
    altered.check()
    assert altered.table.compact(COMPACTED) if "mor" in name else altered.table.cluster(CLUSTERED)
    altered.check()
    assert altered.table.inspect.verify()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_adds_and_widens_columns(name: str, tmp_path: Path) -> None:
    """Also a column that has the name of one that was dropped, and fields at whatever depth."""
    altered = Altered(name, tmp_path)
    kinds = {
        "at": pa.struct({"lon": pa.float64(), "y": pa.int64(), "x": pa.float64()}),
        "items": pa.list_(pa.struct({"width": pa.int64(), "n": pa.string(), "w": pa.int32()})),
        "prices": pa.map_(pa.string(), pa.struct({"cost": pa.float64(), "v": pa.string()})),
        "name": pa.string(),
        "tags": pa.list_(pa.struct({"a": pa.decimal128(10, 2)})),
    }
    row = altered.rows["k01"] | {"name": "again", "ts": 99}
    row |= {"at": {"lon": 1.0, "y": 1 << 40, "x": 2.0}, "prices": [("k", {"cost": 1.0, "v": "v"})]}
    row |= {"items": [{"width": 1, "n": "n", "w": 2}], "tags": [{"a": "1.50"}]}
    schema = pa.schema({n: altered.table.schema.field(n).type for n in altered.columns} | kinds)
    given = row | {"tags": [{"a": Decimal("1.50")}]}
    altered.table.upsert(pa.Table.from_pylist([given], schema=schema))
    for other in altered.rows.values():
        other |= {"name": None, "tags": None}
        other["at"] |= {"x": None}
        other["items"] = [item | {"w": None} for item in other["items"]]
        other["prices"] = [[key, value | {"v": None}] for key, value in other["prices"]]
    altered.rows["k01"] = row | {"prices": [["k", {"cost": 1.0, "v": "v"}]]}
    altered.columns = schema.names
    altered.check()
    assert altered.table.compact(COMPACTED) if "mor" in name else altered.table.cluster(CLUSTERED)
    altered.check()
    now, before = _histories(tmp_path / name)[-1]["schemas"][:2]
    numbers = sorted(_numbers(now))
    assert numbers == sorted(set(numbers))
    assert {*numbers} - {*_numbers(before)} == {*range(25, now["max_column_id"] + 1)}


def test_numbers_are_those_that_hudi_gives(tmp_path: Path) -> None:
    """``add columns (qty bigint)`` of the golden tables."""
    path = unzip_table("v6_mor_altered", tmp_path)
    versions = _histories(path)[-1]["schemas"][::-1]
    at = next(n for n, one in enumerate(versions) if one["max_column_id"] == 23)
    before, after = versions[at - 1 : at + 1]
    (added,) = (one for one in after["fields"] if one["id"] == 23)
    columns = pa.schema([(one["name"], pa.string()) for one in before["fields"][5:]])
    ours = with_numbers(before, columns, columns.append(pa.field("qty", pa.int64())))
    assert ours == {**after, "version_id": before["version_id"]}
    assert ours["fields"][-1] == added


ALTERED: list[Callable[[AlteredColumns], None]] = [
    lambda columns: columns.rename("name", "title"),
    lambda columns: columns.drop("qty"),
    lambda columns: columns.rename("at.x", "lon"),
    lambda columns: columns.add("qty", pa.int64(), "", first=False, after=None),
    lambda columns: columns.rename("title", "spare"),
    lambda columns: columns.rename("note", "title"),
    lambda columns: columns.rename("spare", "note"),
    lambda columns: columns.retype("fare", pa.float64()),
    lambda columns: columns.drop("at.y"),
    lambda columns: columns.add("at.y", pa.int32(), "", first=False, after=None),
    lambda columns: columns.rename("items.element.w", "width"),
    lambda columns: columns.retype("items.element.width", pa.int64()),
    lambda columns: columns.rename("prices.value.v", "cost"),
]
"""What ``ALTER TABLE`` of Hudi has done to the golden tables."""


@pytest.mark.parametrize("name", NAMES)
def test_each_change_makes_of_the_columns_what_hudi_made(name: str, tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    storage, commits = LocalStorage(str(tmp_path / name)), table.timeline.commits
    known = _histories(tmp_path / name)[-1]["schemas"][::-1]
    by_time = {int(instant.time): instant for instant in commits}
    times = [one["version_id"] or int(commits[0].time) for one in known]
    schemas = [read_commit(storage, by_time[time]).extra["schema"] for time in times]
    assert len(ALTERED) == len(known) - 1
    users = [without_meta_columns(avro_to_arrow(schema)) for schema in schemas]
    for number, change in enumerate(ALTERED):
        before = None if number == 0 else known[number]
        columns = AlteredColumns(before, schemas[number], users[number], ["id", "city", "ts"])
        assert _said(columns.before) == _said(known[number])
        change(columns)
        assert _said(columns.numbered) == _said(known[number + 1])
        assert columns.columns == users[number + 1]
        avro = evolved_avro(columns.columns, name, columns.avro)
        assert without_meta_columns(avro_to_arrow(avro)) == users[number + 1]


def _said(numbered: dict[str, Any]) -> dict[str, Any]:
    """Numbered columns without their version, and the empty comments of Hudi's own columns."""
    fields = [
        {key: value for key, value in one.items() if (key, value) != ("doc", "")}
        for one in numbered["fields"]
    ]
    return {"max_column_id": numbered["max_column_id"], "fields": fields}


def _histories(path: Path) -> list[dict[str, Any]]:
    files = sorted((path / ".hoodie/.schema").glob("*.schemacommit"))
    return [json.loads(file.read_bytes()) for file in files]


def _numbers(node: object) -> Iterator[int]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):  # type: ignore
        if key in ("id", "element_id", "key_id", "value_id"):
            yield value
        elif isinstance(value, dict | list):
            yield from _numbers(value)


@pytest.mark.parametrize("name", NAMES)
def test_a_write_says_of_the_columns_what_hudi_said(name: str, tmp_path: Path) -> None:
    altered = Altered(name, tmp_path)
    storage, commits = LocalStorage(str(tmp_path / name)), altered.table.timeline.commits
    altered.upsert({**altered.rows["k01"], "ts": 99})
    theirs, ours = (
        read_commit(storage, i) for i in (commits[-1], altered.table.timeline.commits[-1])
    )
    assert json.loads(ours.extra["latest_schema"]) == json.loads(theirs.extra["latest_schema"])
    assert _histories(tmp_path / name)[-1] == _histories(tmp_path / name)[-2]
