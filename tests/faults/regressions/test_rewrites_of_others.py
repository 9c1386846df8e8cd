"""Commits of compactions and clusterings by other engines, which bring no rows of their own."""

from __future__ import annotations

import json

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY
from hoodie_ds.timeline.instant_time import following
from tests.tables import TRIPS, TYPE, trips

OPTS = {**TRIPS, TYPE: "MERGE_ON_READ"}
REWRITES = [
    ("commit", "COMPACT", True),
    ("commit", "UNKNOWN", True),  # of Hudi releases that do not say
    ("replacecommit", "CLUSTER", False),
    ("deltacommit", "LOG_COMPACT", False),
    ("commit", "INDEX", False),
]


def _table() -> tuple[MemoryStorage, HoodieTable]:
    storage = MemoryStorage(clock=SimClock())
    return storage, HoodieTable("/t", OPTS, storage=storage, clock=SimClock(), ids=SimIds())


def _put(
    storage: MemoryStorage, table: HoodieTable, ending: str, operation: str, **body: object
) -> None:
    last = table.timeline.completed[-1].time
    written = {"partitionToWriteStats": {}, "operationType": operation, **body}
    path = f".hoodie/{following(last)}.{ending}"
    storage.put_if_absent(path, json.dumps(written).encode())


def _schema_of_first(storage: MemoryStorage) -> str:
    first = min(path for path in storage.files if path.endswith(".deltacommit"))
    return str(json.loads(storage.files[first])["extraMetadata"][SCHEMA_KEY])


@pytest.mark.parametrize(("ending", "operation", "compacted"), REWRITES)
def test_a_rewrite_with_an_older_schema_hid_a_column(
    ending: str, operation: str, compacted: bool
) -> None:
    storage, table = _table()
    table.upsert(trips(("a", "x", 1, 1.0)))
    rows = trips(("a", "x", 2, 2.0))
    table.upsert(rows.append_column("added", [["precious"]]))
    extra = {SCHEMA_KEY: _schema_of_first(storage)}
    _put(storage, table, ending, operation, compacted=compacted, extraMetadata=extra)
    assert "added" in table.schema.names
    assert table.read(columns=["added"]).to_pydict() == {"added": ["precious"]}


def test_a_write_without_a_column_is_not_a_rewrite() -> None:
    storage, table = _table()
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)).append_column("added", [["x"]]))
    extra = {SCHEMA_KEY: _schema_of_first(storage)}
    _put(storage, table, "deltacommit", "UPSERT", compacted=False, extraMetadata=extra)
    assert "added" not in table.schema.names


def test_the_schema_is_the_rewrites_if_all_writes_are_archived() -> None:
    storage, table = _table()
    table.upsert(trips(("a", "x", 1, 1.0)))
    schema = _schema_of_first(storage)
    _put(storage, table, "commit", "COMPACT", compacted=True, extraMetadata={SCHEMA_KEY: schema})
    for path in [path for path in storage.files if "deltacommit" in path]:
        storage.delete(path)
    assert table.schema.names[-4:] == ["id", "city", "ts", "fare"]
