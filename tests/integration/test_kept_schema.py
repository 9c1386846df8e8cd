"""What a table's Avro schema says and Arrow has no place for stays, whoever writes and rewrites."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.log.log_block import HeaderKey, read_blocks
from hoodie_ds.timeline.loading import read_commit
from tests.avro_columns import AVRO, BARE, COLUMNS, FULL, KEPT, PLACE, SCHEMA, events, made
from tests.faults.writers import Place
from tests.tables import TYPE, TYPES, VERSION
from tests.tiers import by_day

COW, MOR = TYPES
ROWS = [{"id": "1", "ts": 1, **FULL}, {"id": "2", "ts": 1, **BARE}]
ROOMY = {"hoodie.write.set.null.for.missing.columns": "true"}
FORMAT = "hoodie.logfile.data.block.format"
DUE = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}


VARIANTS = {" ".join(variant) for variant in product(TYPES, "689", ["avro", "parquet"])}
BY_DAY = {f"{COW} 9 parquet", f"{MOR} 6 avro", f"{MOR} 8 parquet"}


@cache
def _written(kind: str, version: str, block: str) -> Place:
    options = {**KEPT, TYPE: kind, VERSION: version, FORMAT: block, "hoodie.index.type": "SIMPLE"}
    new = Place(options)
    made(new.storage, options)
    new.table.upsert(events(*ROWS))
    return new


@pytest.fixture(params=by_day(sorted(VARIANTS), BY_DAY))
def place(request: pytest.FixtureRequest) -> Place:
    return _written(*request.param.split()).copy()


def said(place: Place) -> list[str]:
    """Every Avro schema that the table's commits and files hold, without meta columns."""
    table = place.table
    found = [read_commit(place.storage, i).extra["schema"] for i in table.timeline.commits]
    for path, body in place.storage.files.items():
        if path.endswith(".parquet"):
            found.append(pq.read_metadata(io.BytesIO(body)).metadata[b"parquet.avro.schema"])
        elif ".log." in path:
            headers = (block.header for block in read_blocks(body, path))
            found += [h[HeaderKey.SCHEMA] for h in headers if HeaderKey.SCHEMA in h]
    return [without_meta(text) for text in found]


def without_meta(text: str) -> str:
    schema = json.loads(text)
    fields = [field for field in schema["fields"] if field["name"] not in META_COLUMNS]
    return json.dumps({**schema, "fields": fields})


def rows(place: Place) -> list[dict[str, Any]]:
    return place.table.read(columns=COLUMNS.names).sort_by("id").cast(COLUMNS).to_pylist()


CHANGES: dict[str, Callable[[Place], object]] = {
    "upsert": lambda place: place.table.upsert(events({"id": "1", "ts": 2, **FULL})),
    "insert": lambda place: place.table.insert(events({"id": "3", "ts": 2, **BARE})),
    "delete": lambda place: place.table.delete(events({"id": "1", "ts": 2, **FULL})),
    "overwrite": lambda place: place.table.overwrite(events({"id": "3", "ts": 2, **FULL})),
    "narrower": lambda place: place.table.upsert(
        events({"id": "2", "ts": 9, **BARE}).drop_columns(["state", "place", "named"]), ROOMY
    ),
    "service": lambda place: (
        place.table.upsert(events({"id": "1", "ts": 2, **FULL})),
        (place.table.cluster if place.opts[TYPE] == COW else place.table.compact)(DUE),
    ),
    "other version": lambda place: (
        place.table.upgrade(9) if place.table.properties.version != 9 else place.table.downgrade(6)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_write_that_does_not_change_the_schema_says_the_same(place: Place, change: str) -> None:
    assert rows(place) == events(*ROWS).to_pylist()
    assert CHANGES[change](place)
    assert set(said(place)) == {AVRO}


def test_other_columns_stay_as_they_were_said(place: Place) -> None:
    wide = events({"id": "1", "ts": 2, **FULL})
    wide = wide.set_column(wide.schema.names.index("count"), "count", pa.array([2**40]))
    wide = wide.append_column("new", pa.array([{"x": 1}]))
    place.table.upsert(wide)
    new: dict[str, Any] = {"type": "record", "name": "new", "namespace": "com.acme.Event"}
    new["fields"] = [{"name": "x", "type": ["null", "long"], "default": None}]
    fields = [
        {**field, "type": ["null", "long"]} if field["name"] == "count" else field
        for field in SCHEMA["fields"]
    ]
    fields.append({"name": "new", "type": ["null", new], "default": None})
    (text,) = {text for text in said(place) if text != AVRO}
    assert json.loads(text) == {**SCHEMA, "fields": fields}
    place.table.upsert(wide.set_column(1, "ts", pa.array([5])))
    assert len(set(said(place))) == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"hash": None}, "'hash' has nulls"),
    ({"hash": b"abc"}, "'hash'"),
    ({"states": None}, "'states' has nulls"),
    ({"states": ["ON", None]}, "'states.element' has nulls"),
    ({"state": "NEITHER"}, "'state' has a value that is none of"),
    ({"states": ["ON", "NEITHER"]}, "'states.element' has a value that is none of"),
    ({"place": {**PLACE, "street": None}}, "'place.street' has nulls"),
    ({"other": {**PLACE, "inner": None}}, "'other.inner' has nulls"),
    ({"places": [{**PLACE, "by_name": [("k", None)]}]}, "by_name.value' has nulls"),
]


def test_what_the_schema_has_no_value_for_is_refused(place: Place) -> None:
    for wrong, column in WRONG:
        with pytest.raises(SchemaError, match=column):
            place.table.upsert(events(ROWS[1], {**ROWS[0], **wrong}))
    place.table.upsert(events({"id": "4", "ts": 1, **FULL}))
    assert [row["id"] for row in rows(place)] == ["1", "2", "4"]
