"""Tables whose columns Hudi's schema on read has renamed, dropped or added, as Hudi records it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import instant_path
from tests import tables
from tests.faults.writers import Place

Columns = Sequence[tuple[int, str, Any]]
"""Number, name and type of each column, as Hudi's ``InternalSchema`` has them."""

AVRO = {"int": "int", "long": "long", "double": "double", "string": "string"}
TRIPS = [(5, "id", "string"), (6, "city", "string"), (7, "ts", "long"), (8, "fare", "double")]
ROWS = [("1", "x", 1, 1.0), ("2", "x", 1, 2.0)]
META = [(number, name, "string") for number, name in enumerate(META_COLUMNS)]


@cache
def written(kind: str, version: str) -> Place:
    """A table of `ROWS`, whose columns have no numbers yet; for copies."""
    made = Place({**tables.TRIPS, tables.TYPE: kind, tables.VERSION: version})
    made.table.upsert(tables.trips(*ROWS))
    return made


def numbered(version: int, columns: Columns) -> dict[str, Any]:
    """Columns as a commit has them under ``latest_schema``."""
    fields = [
        {"id": number, "name": name, "optional": True, "type": kind}
        for number, name, kind in [*META, *columns]
    ]
    last = max(number for number, _, _ in columns)
    return {"max_column_id": last, "version_id": version, "type": "record", "fields": fields}


def alter(storage: Storage, *versions: Columns, history: bytes | None = None) -> str:
    """Put the commits of ``ALTER TABLE``, and return the time of the last one.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    versions : sequence of Columns
        What the columns were, if they have no numbers yet, and what each commit makes them.
    history : bytes, optional
        What ``.schema`` holds instead of the versions; nothing if empty.
    """
    known, time = stored_history(storage) or [numbered(0, versions[0])], ""
    for columns in versions[1:]:
        timeline = HoodieTable(storage.root, storage=storage).timeline
        time, layout = following(timeline.latest_time or ""), timeline.layout
        last = known[0]["max_column_id"]
        known.insert(0, numbered(int(time), columns))
        known[0]["max_column_id"] = max(last, known[0]["max_column_id"])
        fields = [
            {"name": name, "type": ["null", AVRO[kind]], "default": None}
            for _, name, kind in columns
        ]
        extra = {
            "schema": json.dumps({"type": "record", "name": "trips_record", "fields": fields}),
            "latest_schema": json.dumps(known[0]),
        }
        named = f"{time}_{following(time)}" if layout == 2 else time
        body = json.dumps({"schemas": known}).encode() if history is None else history
        if body:
            storage.put_if_absent(f".hoodie/.schema/{named}.schemacommit", body)
        _put_commit(storage, time, layout, CommitMetadata((), "ALTER_SCHEMA", extra))
    return time


def stored_history(storage: Storage) -> list[dict[str, Any]]:
    """The columns of all times, the newest first, as the newest history has them."""
    paths = [status.path for status in storage.list(".hoodie/.schema")]
    newest = max((path for path in paths if path.endswith(".schemacommit")), default=None)
    return [] if newest is None else list(json.loads(storage.read(newest))["schemas"])


def write_without_option(storage: Storage) -> None:
    """Put the commit of a job of Hudi's that does not know of the numbers."""
    table = HoodieTable(storage.root, storage=storage)
    newest = read_commit(storage, table.timeline.commits[-1])
    time = following(table.timeline.latest_time or "")
    commit = CommitMetadata((), "UPSERT", {"schema": newest.extra["schema"]})
    _put_commit(storage, time, table.timeline.layout, commit)


def _put_commit(storage: Storage, time: str, layout: int, commit: CommitMetadata) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        begun = Instant(time, Action.COMMIT, state, layout=layout)
        storage.put_if_absent(instant_path(begun), b"")
    done = Instant(time, Action.COMMIT, State.COMPLETED, layout=layout).completed(following(time))
    storage.put_if_absent(instant_path(done), commit.to_bytes(layout))


def changed(columns: Columns, changes: Mapping[str, str]) -> Columns:
    """Columns of which some have other names."""
    return [(number, changes.get(name, name), kind) for number, name, kind in columns]
