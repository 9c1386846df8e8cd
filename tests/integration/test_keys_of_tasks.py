"""Tasks put the keys that they add into the record index themselves, and the driver does not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import IS_DELETED
from hoodie_ds.metadata_table import task_keys
from hoodie_ds.metadata_table.task_keys import TaskKeys, delete_late
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import MUTATING, FaultyStorage, Recorder
from hoodie_ds.timeline.bodies.indexed_keys import IndexedKeys
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import METADATA_TABLE, instant_path
from tests.integration.test_record_index_kept import assert_indexed
from tests.integration.test_record_lookup import RECORDS
from tests.integration.test_several_batches import SPAN, stream, writer
from tests.tables import TYPE, TYPES, VERSION, trips

NINE = {**RECORDS, VERSION: "9"}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks put also few keys."""
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)


def put_by_tasks(storage: Storage) -> set[str]:
    """The log files of tasks; the delta commits of the metadata table name all of them."""
    inner = SubfolderStorage(storage, METADATA_TABLE)
    named = {
        path
        for instant in load_timeline(inner, 2).commits
        for path in file_changes(inner, instant).added
    }
    names = {
        one.path: LogFileName.parse(one.path.rpartition("/")[2])
        for one in inner.list("record_index")
    }
    found = {path for path, name in names.items() if name is not None and name.version > 1}
    assert found <= named
    return found


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kind", TYPES)
def test_keys_are_where_tasks_leave_them(tmp_path: Path, kind: str) -> None:
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), {**NINE, TYPE: kind})
    table.upsert(trips(("a", "x", 1, 1.0)))  # the table has no index yet
    assert not put_by_tasks(storage)
    table.upsert(trips(("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    assert put_by_tasks(storage)
    assert_indexed(storage)
    table.upsert(trips(("a", "y", 2, 2.0), ("b", "x", 2, 2.0), ("d", "z", 2, 2.0)))
    assert_indexed(storage)
    table.delete(trips(("b", "x", 3, None), ("c", "y", 3, None)))
    assert_indexed(storage)
    table.rollback()
    assert_indexed(storage)
    table.upsert(trips(("b", "z", 4, 1.0), ("f", "x", 4, 1.0)))
    assert_indexed(storage)
    table.overwrite(trips(("e", "y", 4, 4.0), ("a", "y", 4, 4.0)), partitions_only=True)
    assert_indexed(storage)
    put_by_tasks(storage)


@pytest.mark.usefixtures("at_once")
def test_a_key_that_one_task_adds_and_another_takes_away_has_moved(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    small = {**NINE, "hoodie.parquet.small.file.limit": "104857600"}
    table = HoodieTable(str(tmp_path), small)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    before = put_by_tasks(storage)
    table.upsert(trips(("a", "y", 2, 2.0)))  # into the file of `c`
    assert put_by_tasks(storage) > before
    assert_indexed(storage)
    inner = SubfolderStorage(storage, METADATA_TABLE)
    newest = file_changes(inner, load_timeline(inner, 2).commits[-1]).added.values()
    assert not sum(stat.num_deletes for stat in newest)  # in whatever order files are merged


@pytest.mark.usefixtures("at_once")
def test_a_task_that_adds_keys_and_takes_others_away(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), NINE)
    for ts, added in enumerate(("ab", "ac")):
        batch = trips(*((key, "x", ts, 1.0) for key in added))
        gone = [bool(ts) and key == "a" for key in added]
        table.upsert(batch.append_column(IS_DELETED, pa.array(gone)))
    assert put_by_tasks(storage)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_keys_of_several_micro_batches_of_an_instant_are_found_in_the_files(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    small = {**NINE, "hoodie.parquet.small.file.limit": "104857600", SPAN: "2"}
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    for number in range(2):
        stream(writer(str(tmp_path), small), number, trips((f"k{number}", "x", 1, 1.0)))
    assert not put_by_tasks(storage)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_a_task_with_many_keys_puts_them_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_keys, "_MOST_KEYS", 2)
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), NINE)
    table.upsert(trips(("a", "w", 1, 1.0)))
    table.upsert(trips(*((f"k{number}", "xyz"[number % 3], 1, 1.0) for number in range(9))))
    names = (LogFileName.parse(path.rpartition("/")[2]) for path in put_by_tasks(storage))
    assert {name.version for name in names if name is not None} == {2, 3, 4}
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_a_task_of_a_table_whose_index_is_gone_leaves_keys_to_the_driver(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    rows = trips(("b", "x", 1, 1.0))
    batch = writer(str(tmp_path), NINE).begin(rows.schema)
    keys = TaskKeys(batch.table, batch.proposed_time, str, [])
    open_storage(str(tmp_path)).delete(f"{METADATA_TABLE}/record_index")
    keys.add("x/f.parquet", FileGroupId("x", "f"), rows["id"].chunks)
    assert keys.close() == IndexedKeys()


@pytest.mark.usefixtures("at_once")
def test_keys_that_tasks_put_into_another_index_are_found_in_the_files(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    coordinator = writer(str(tmp_path), NINE)
    rows = trips(("b", "x", 1, 1.0))
    batch = coordinator.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    (path,) = message.indexed.logs
    storage.delete(f"{METADATA_TABLE}/{path}")  # as whoever has dropped the index meanwhile
    coordinator.commit([message])
    assert not put_by_tasks(storage)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("ends", ["committed", "rolled back"])
def test_no_log_file_of_a_lost_task_stays(tmp_path: Path, ends: str) -> None:
    """Hudi on the JVM asks no commit for the names of log files."""
    storage = open_storage(str(tmp_path))
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    recorder = Recorder()
    coordinator = writer(str(tmp_path), NINE, FaultyStorage(storage, recorder=recorder))
    rows = trips(("b", "x", 1, 1.0))
    batch = coordinator.begin(rows.schema)
    attempts = [
        write_task(batch, TaskId(attempt=number), None, rows.to_batches(), sole_writer=True)
        for number in range(2)
    ]
    paths = [f"{METADATA_TABLE}/{path}" for one in attempts for path in one.indexed.logs]
    assert len({*paths}) == 2
    if ends == "committed":
        recorder.operations.clear()
        coordinator.commit(attempts[1:])
        done = [one.path for one in recorder.operations if one.kind in MUTATING]
        visible = next(path for path in done if path.startswith(f"{METADATA_TABLE}/.hoodie/t"))
        assert paths[0] in done[: done.index(visible)]
        assert_indexed(storage)
        storage.put_if_absent(paths[0], b"late")
        delete_late(batch.table, str(attempts[0].instant_time), _body(storage))
    else:
        HoodieTable(str(tmp_path), NINE).upsert(trips(("c", "x", 1, 1.0)))
        assert_indexed(storage)
    left = {path.removeprefix(f"{METADATA_TABLE}/") for path in paths} & put_by_tasks(storage)
    assert left == ({*attempts[1].indexed.logs} if ends == "committed" else set())


def _body(storage: Storage) -> bytes:
    newest = open_table(storage).load_timeline().commits[-1]
    return storage.read(instant_path(newest))


def test_what_the_driver_reads_and_writes_does_not_grow_with_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens no data file, and leaves the record index to the task."""
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 100)
    few, many = (committed(tmp_path / str(count), count) for count in (100, 10_000))
    assert few[:2] == many[:2] == (0, 0)
    assert abs(many[2] - few[2]) < 200  # digits of numbers and of statistics
    assert committed(tmp_path / "10", 10)[0] == 1


def committed(path: Path, count: int) -> tuple[int, int, int]:
    """Data files that a commit of new rows opens, what it puts into the index, and bytes of all."""
    HoodieTable(str(path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    recorder = Recorder()
    coordinator = writer(str(path), NINE, FaultyStorage(open_storage(str(path)), recorder=recorder))
    rows = trips(*((f"k{number:05}", "x", 1, 1.0) for number in range(count)))
    batch = coordinator.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    recorder.operations.clear()
    coordinator.commit([message])
    done = recorder.operations
    read = {one.path for one in done if one.path.endswith(".parquet") and one.kind not in MUTATING}
    put = [one for one in done if one.size]
    assert_indexed(open_storage(str(path)))
    return len(read), sum("record_index" in one.path for one in put), sum(one.size for one in put)
