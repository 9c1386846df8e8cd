"""Another engine upgrades a table, or changes its properties, while a batch is written to it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    HoodieError,
    TableNotFoundError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, Kind, Operation
from hoodie_ds.timeline.paths import PROPERTIES
from tests.faults.foreign import upgrade
from tests.faults.writers import BESIDE_OTHERS, MODE, SEVERAL, Place
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, trips

FIRST = trips(("0", "x", 0, 0.0), ("0", "y", 0, 0.0))
MINE = trips(("0", "x", 1, 1.0))
MODES = {"single": {}, "several": BESIDE_OTHERS}


@pytest.fixture(params=MODES)
def place(request: pytest.FixtureRequest) -> Place:
    found = Place({**TRIPS, BUCKETS: "1", **MODES[request.param]})
    found.table.upsert(FIRST)
    return found


def _left(place: Place) -> set[str]:
    passing = (".hoodie/.locks/", ".hoodie/.heartbeat/")
    return {path for path in place.storage.files if not path.startswith(passing)}


def _change(storage: Storage, old: str, new: str) -> None:
    storage.replace(PROPERTIES, storage.read(PROPERTIES).decode().replace(old, new).encode())


def _raise_version(storage: Storage) -> None:
    _change(storage, "table.version=6", "table.version=8")
    _change(storage, "timeline.layout.version=1", "timeline.layout.version=2")


def test_a_commit_was_put_on_the_old_timeline(place: Place) -> None:
    batch = place.begin(MINE)
    upgrade(place.storage)
    before = _left(place)
    with pytest.raises(UnsupportedTableError, match=r"table version 8.*"):
        batch.write()
    assert _left(place) == before


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["commit", "abort"])
def test_nothing_is_left_of_a_batch_whose_table_was_upgraded(
    kind: str, mode: str, how: str
) -> None:
    place = Place({**TRIPS, BUCKETS: "1", TYPE: kind, **MODES[mode]})
    place.table.upsert(FIRST)
    batch = place.begin(MINE)
    message = batch.write()
    upgrade(place.storage)
    if how == "commit":
        with pytest.raises(UnsupportedTableError, match="nothing was committed"):
            batch.writer.commit([message])
    else:
        batch.writer.abort([message, None])
    assert not [path for path in _left(place) if str(message.instant_time) in path]
    named = {status.stat.path for status in message.statuses}
    assert named
    assert not named & _left(place)


def test_an_upgrade_while_staged_rows_are_merged_is_seen() -> None:
    place = Place({**TRIPS, BUCKETS: "1"})
    place.table.upsert(FIRST)

    def others(operation: Operation) -> None:
        merging = operation.kind is Kind.PUT and operation.path.endswith(".marker.MERGE")
        if merging and PROPERTIES not in seen:
            seen.append(PROPERTIES)
            upgrade(place.storage)

    seen: list[str] = []
    batch = place.begin(MINE, FaultyStorage(place.storage, before_each=others))
    rows = MINE.to_batches()
    tasks = [write_task(batch.batch, TaskId(n), BatchId("q", 0), rows) for n in range(2)]
    assert all(message.staged for message in tasks)
    with pytest.raises(UnsupportedTableError):
        batch.writer.commit(tasks)
    assert seen
    assert not [path for path in _left(place) if str(tasks[0].instant_time) in path]


@pytest.mark.parametrize(
    ("how", "error"),
    [(upgrade, UnsupportedTableError), (_raise_version, CommitOutcomeUnknownError)],
)
def test_an_upgrade_while_the_lock_is_waited_for_is_seen(
    how: Callable[[Storage], object], error: type[HoodieError]
) -> None:
    place = Place({**TRIPS, BUCKETS: "1", MODE: SEVERAL})
    place.table.upsert(FIRST)

    def others(operation: Operation) -> None:
        locking = operation.kind is Kind.PUT and operation.path.startswith(".hoodie/.locks/")
        if locking and committing and PROPERTIES not in seen:
            seen.append(PROPERTIES)
            how(place.storage)

    seen: list[str] = []
    committing: list[bool] = []
    batch = place.begin(MINE, FaultyStorage(place.storage, before_each=others))
    message = batch.write()
    committing.append(True)
    with pytest.raises(error, match="version 8"):
        batch.writer.commit([message])
    assert seen
    assert not [path for path in _left(place) if str(message.instant_time) in path]


def test_an_upgrade_while_a_task_writes_is_seen(place: Place) -> None:
    def others(operation: Operation) -> None:
        writing = operation.kind is Kind.PUT and operation.path.endswith(".marker.MERGE")
        if writing and PROPERTIES not in seen:
            seen.append(PROPERTIES)
            upgrade(place.storage)

    seen: list[str] = []
    before = _left(place)
    batch = place.begin(MINE, FaultyStorage(place.storage, before_each=others))
    with pytest.raises(UnsupportedTableError, match=r"table version 8.*"):
        batch.write()
    assert seen
    left = {path for path in _left(place) if path not in before}
    assert all(path.startswith(".hoodie/timeline/") for path in left), left


def test_files_of_a_commit_that_the_upgrade_took_along_stay(place: Place) -> None:
    batch = place.begin(MINE)
    message = batch.write()
    batch.writer.commit([message])
    upgrade(place.storage)
    before = _left(place)
    assert batch.writer.commit([message]).already_committed
    assert _left(place) == before


def test_files_of_a_commit_that_the_upgrade_has_not_reached_stay(place: Place) -> None:
    batch = place.begin(MINE)
    message = batch.write()
    batch.writer.commit([message])
    _raise_version(place.storage)
    before = _left(place)
    with pytest.raises(CommitOutcomeUnknownError):
        batch.writer.commit([message])
    assert _left(place) == before


def test_micro_batches_that_spark_has_moved_past_stay() -> None:
    span = {"hoodie.streaming.batches.per.commit": "3"}
    place = Place({**TRIPS, BUCKETS: "1", **span})
    place.table.upsert(FIRST, {"hoodie.streaming.batches.per.commit": "1"})
    first = place.begin(MINE)
    first.writer.commit([first.write(BatchId("q", 0))])
    second = place.begin(trips(("0", "y", 1, 1.0)))
    message = second.write(BatchId("q", 1))
    _raise_version(place.storage)
    before = _left(place)
    with pytest.raises(CommitOutcomeUnknownError):
        second.writer.commit([message])
    assert _left(place) == before


def _add_metadata_table(storage: Storage) -> None:
    _change(
        storage,
        "\nhoodie.table.name",
        "\nhoodie.table.metadata.partitions=files\nhoodie.table.name",
    )


def _remove(storage: Storage) -> None:
    storage.delete(PROPERTIES)


CHANGES = {
    "metadata table": (_add_metadata_table, WriteConflictError, "metadata.partitions"),
    "removed": (_remove, TableNotFoundError, "was removed"),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("before_first_row", [True, False])
def test_other_changes_of_the_properties(place: Place, what: str, before_first_row: bool) -> None:
    change, error, match = CHANGES[what]
    batch = place.begin(MINE)
    work: Callable[[], object] = batch.write
    if not before_first_row:
        message = batch.write()
        work = lambda: batch.writer.commit([message])  # noqa: E731
    change(place.storage)
    with pytest.raises(error, match=match):
        work()
    if not before_first_row:
        batch.writer.abort([message])
        assert any(path.endswith("/aborted") for path in place.storage.files)


def test_a_table_created_meanwhile_is_used() -> None:
    place = Place({**TRIPS, BUCKETS: "1", MODE: SEVERAL})
    one, two = place.begin(MINE), place.begin(trips(("1", "y", 1, 1.0)))
    messages = one.write(), two.write()
    one.writer.commit([messages[0]])
    two.writer.commit([messages[1]])
    assert isinstance(place.table.read(), pa.Table)
    assert place.rows() == [("0", "x", 1, 1.0), ("1", "y", 1, 1.0)]
