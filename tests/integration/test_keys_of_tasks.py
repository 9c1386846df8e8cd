"""Tasks make the entries of the record index for keys that they add; the driver does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
import xxhash

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import IS_DELETED
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.metadata_table import joined_keys, record_changes, secondary_changes, task_keys
from hoodie_ds.metadata_table.compaction import put_first_log
from hoodie_ds.metadata_table.joined_keys import JoinedKeys, KeyBlock, LostKeysError
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.task_keys import TaskKeys
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit import commit
from hoodie_ds.sink.hidden_columns import TASK_COLUMN, Assignment, TaskOwnership
from hoodie_ds.sink.locate.matched_rows import change_by_filter, matched_rows, scan_for_matches
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.testing import MUTATING, FaultyStorage, MemoryStorage, Recorder
from hoodie_ds.timeline.bodies.key_files import KEY_FILES, KeyFiles, as_extra, key_files_of
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import METADATA_TABLE, keys_path, work_folder
from hoodie_ds.timeline.timeline import Timeline
from tests.integration.test_record_index_kept import (
    OF_PARTITIONS,
    RECORDS,
    assert_indexed,
    begun,
    given,
)
from tests.integration.test_record_lookup import MOVES
from tests.integration.test_record_lookup import RECORDS as WITHOUT_TIMELINE
from tests.integration.test_several_batches import SPAN, stream, writer
from tests.sent_rows import sent_by_key
from tests.tables import PARTITION, TRIPS, TYPE, VERSION, trips

NINE = {**WITHOUT_TIMELINE, VERSION: "9"}
SMALL = {**NINE, "hoodie.parquet.small.file.limit": "104857600"}
GROUPS = 2
"""File groups of the record index."""
LOGGED = {
    **{key: text for key, text in TRIPS.items() if key != PARTITION},
    VERSION: "9",
    TYPE: "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": str(GROUPS),
}
"""A table of buckets, whose new keys are in log files."""
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KINDS = [
    ("6", COW),
    (OF_PARTITIONS, MOR),
    pytest.param("6", MOR, marks=pytest.mark.slow),
    pytest.param("8", COW, marks=pytest.mark.slow),
    pytest.param("9", MOR, marks=pytest.mark.slow),
    pytest.param(OF_PARTITIONS, COW, marks=pytest.mark.slow),
]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks take also few keys."""
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)


def made(storage: Storage) -> KeyFiles:
    """What tasks of the newest commit have made; nothing is left of it."""
    newest = open_table(storage).load_timeline().commits[-1]
    assert not storage.list(work_folder(newest.time), recursive=True)
    return file_changes(storage, newest).key_files


def written(batch: Batch, rows: pa.Table, attempt: int = 0) -> tuple[TaskCommitMessage, str]:
    """What a task has written, and the path of its one file of entries."""
    task = TaskId(attempt=attempt)
    message = write_task(batch, task, None, rows.to_batches(), sole_writer=True)
    (name,) = message.key_files
    return message, keys_path(str(message.instant_time), name)


def one_task(path: Path) -> tuple[Storage, TaskCommitMessage]:
    """A table with a row, and what a task has written of another, which nobody has committed."""
    HoodieTable(str(path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    rows = trips(("b", "x", 1, 1.0))
    message, _ = written(writer(str(path), NINE).begin(rows.schema), rows)
    return open_storage(str(path)), message


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_keys_are_where_tasks_leave_them(
    tmp_path: Path, version: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), given(version, kind, RECORDS))
    table.upsert(trips(("a", "x", 1, 1.0)))
    with monkeypatch.context() as patch:
        patch.delattr(record_changes, "moved_keys")  # which finds keys in files
        table.upsert(trips(("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    assert made(storage)
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
    assert made(storage)
    assert_indexed(storage)


@pytest.fixture(params=["one", "several"])
def files_of_keys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task puts all keys into one file, or leaves those that may have moved to the driver."""
    if request.param == "several":
        monkeypatch.setattr(task_keys, "_MOST_KEYS", 1)
    else:
        monkeypatch.delattr(record_changes, "moved_keys")
        monkeypatch.delattr(secondary_changes, "moved_values")


@pytest.mark.usefixtures("at_once", "files_of_keys")
def test_a_key_that_moves_is_not_deleted(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), SMALL)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    table.upsert(trips(("a", "y", 2, 2.0)))  # into the file of `c`
    assert made(storage)
    assert_indexed(storage)
    assert changes(storage) == (1, 0)  # in whatever order blocks are merged


@pytest.mark.usefixtures("at_once")
def test_a_task_that_adds_keys_and_takes_others_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), {**SMALL, MOVES: "false"})
    monkeypatch.delattr(record_changes, "moved_keys")
    for ts, added in enumerate(("ab", "ac")):
        batch = trips(*((key, "x", ts, 1.0) for key in added))
        gone = [bool(ts) and key == "a" for key in added]
        table.upsert(batch.append_column(IS_DELETED, pa.array(gone)))
    assert changes(storage) == (1, 1)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "more",
    [
        {},
        pytest.param({VERSION: "6"}, marks=pytest.mark.slow),
        pytest.param({keys.MERGE_MODE: "COMMIT_TIME_ORDERING"}, marks=pytest.mark.slow),
    ],
)
def test_keys_in_log_files_are_where_tasks_leave_them(
    tmp_path: Path, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of keys that are there no entry is made, nor of a delete that is too old or of no key."""
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), {**LOGGED, **more})
    table.upsert(trips(("a", "x", 5, 1.0), ("b", "x", 5, 1.0)))
    monkeypatch.delattr(record_changes, "moved_keys")  # by which the driver finds keys
    table.upsert(trips(("a", "x", 6, 1.0), ("b", "x", 4, 1.0), ("c", "x", 5, 1.0)))
    assert made(storage)
    assert changes(storage) == (1, 0)
    assert_indexed(storage)
    table.delete(trips(("a", "x", 7, None), ("b", "x", 1, None), ("z", "x", 7, None)))
    assert changes(storage) == (0, 2 if more.keys() - {VERSION} else 1)
    assert_indexed(storage)
    table.upsert(trips(("a", "x", 8, 1.0), ("c", "x", 9, 1.0)))
    assert changes(storage) == (1, 0)
    assert_indexed(storage)
    table.compact()
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kind", [MOR, pytest.param(COW, marks=pytest.mark.slow)])
def test_values_are_where_tasks_leave_them(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(str(tmp_path))
    table = begun(tmp_path, "9", kind, {PARTITION: ""})
    monkeypatch.delattr(secondary_changes, "moved_values")  # by which the driver finds values
    monkeypatch.delattr(record_changes, "moved_keys")
    table.upsert(trips(("a", "x", 5, 1.0), ("b", "x", 5, 1.0), ("c", "x", 5, 1.0)))
    assert made(storage)
    assert_indexed(storage)
    table.upsert(trips(("a", "x", 6, 1.0), ("b", "x", 4, 1.0), ("d", "x", 5, 1.0)))
    assert_indexed(storage)
    table.delete(trips(("a", "x", 7, None), ("b", "x", 1, None), ("z", "x", 7, None)))
    assert_indexed(storage)
    table.rollback()
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once", "files_of_keys")
def test_a_value_that_moves_is_not_deleted(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    table = begun(tmp_path, "9", COW)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("a", "y", 1, 2.0)))
    assert made(storage)
    assert changes(storage, "secondary_index_by_ts") == (1, 0)
    assert_indexed(storage)


def changes(storage: Storage, partition: str = RECORD_INDEX) -> tuple[int, int]:
    """The records and deletes that the newest write has put into an index."""
    time = open_table(storage).load_timeline().commits[-1].time
    inner = SubfolderStorage(storage, METADATA_TABLE)
    recorded = load_timeline(inner, open_table(storage).layout).commit_at(time)
    assert recorded is not None
    stats = file_changes(inner, recorded).added.values()
    found = [stat for stat in stats if stat.partition_path == partition]
    return sum(stat.num_writes for stat in found), sum(stat.num_deletes for stat in found)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("version", ["6", pytest.param("9", marks=pytest.mark.slow)])
def test_the_driver_finds_the_keys_that_a_task_leaves_to_it_alone(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete that takes a key away, which may have moved, and one that is too old for it."""
    table = begun(tmp_path, version, MOR)
    table.upsert(trips(("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    monkeypatch.setattr(task_keys, "_MOST_KEYS", 1)
    deletes = trips(("b", "x", 3, None), ("c", "y", 0, None))
    table.upsert(deletes.append_column(IS_DELETED, pa.array([True, True])))
    storage = open_storage(str(tmp_path))
    assert made(storage)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_tasks_take_the_keys_away_that_a_filter_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key moves by it, whatever the index does with upserts."""
    storage = open_storage(str(tmp_path))
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    coordinator = writer(str(tmp_path), {**NINE, "hoodie.datasource.write.operation": "delete"})
    batch = coordinator.begin_change(partial(change_by_filter, "fare > 0", None))
    assert batch is not None
    messages = []
    for number, part in enumerate(scan_for_matches(batch.plan).tasks):
        here = pa.scalar(number, pa.int32())
        found = matched_rows(batch.plan, [part])
        rows = (one.append_column(TASK_COLUMN, pa.repeat(here, one.num_rows)) for one in found)
        messages.append(write_task(batch, TaskId(number, 0, number), None, rows))
    monkeypatch.delattr(record_changes, "moved_keys")  # by which the driver finds keys
    coordinator.commit(messages)
    assert len(made(storage)) == len(messages) == 2
    assert changes(storage) == (0, 2)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("moves", ["false", "true"])
def test_the_commit_knows_the_keys_of_rows_that_it_merges(
    tmp_path: Path, moves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of new ones, deleted ones and, where they move, of those in another partition."""
    storage, options = open_storage(str(tmp_path)), {**NINE, MOVES: moves}
    HoodieTable(str(tmp_path), options).upsert(trips(*((key, "x", 1, 1.0) for key in "abcd")))
    monkeypatch.delattr(record_changes, "moved_keys")  # which finds keys in files
    monkeypatch.delattr(task_keys, "moved_keys")
    rows = trips(*((*one, 2, 2.0) for one in (("a", "x"), ("e", "x"), ("b", "y"), ("c", "x"))))
    stream(writer(str(tmp_path), options), 0, marked(rows, False, False, False, True), tasks=2)
    assert len(made(storage)) == 1
    assert changes(storage) == (2 if moves == "true" else 1, 1)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("has_values", [False, True])
def test_keys_that_a_merged_file_loses_to_a_task_are_not_deleted(
    tmp_path: Path, has_values: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With secondary indexes the driver finds them."""
    storage, options = open_storage(str(tmp_path)), NINE
    if has_values:
        begun(tmp_path, "9", COW)
    HoodieTable(str(tmp_path), options).upsert(trips(*((key, "x", 1, 1.0) for key in "abc")))
    if not has_values:
        monkeypatch.delattr(record_changes, "moved_keys")  # by which the driver finds keys
    rows = trips(("a", "y", 1, 2.0)), trips(("b", "x", 2, 2.0))
    by_tasks(tmp_path, options, marked(rows[0], False), marked(rows[1], True))
    assert len(made(storage)) == 2 - has_values
    assert changes(storage) == (1, 1)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_a_commit_that_is_tried_again_has_the_keys_of_the_first_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, rows = {**NINE, MOVES: "false"}, trips(("b", "x", 1, 1.0), ("c", "x", 1, 1.0))
    HoodieTable(str(tmp_path), options).upsert(trips(("a", "x", 1, 1.0)))
    coordinator = writer(str(tmp_path), options)
    batch, task = coordinator.begin(rows.schema), BatchId("q", 0)
    message = write_task(batch, TaskId(), task, rows.to_batches())
    assert message.staged
    with monkeypatch.context() as patch:
        patch.setattr(commit, "delete_own_lost", _fails)  # once the manifest is there
        with pytest.raises(ZeroDivisionError):
            coordinator.commit([message])
    monkeypatch.delattr(record_changes, "moved_keys")
    coordinator.commit([message])
    storage = open_storage(str(tmp_path))
    assert made(storage)
    assert_indexed(storage)


def _fails(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.usefixtures("at_once")
def test_keys_of_file_groups_that_tasks_share_are_found_by_the_driver(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    options = {**LOGGED, "hoodie.bucket.index.num.buckets": "1"}
    HoodieTable(str(tmp_path), options).upsert(trips(("a", "x", 1, 1.0)))
    batch = trips(("b", "x", 2, 1.0), ("a", "x", 2, 1.0), ("b", "x", 3, 1.0), ("c", "x", 3, 1.0))
    gone = batch.append_column(IS_DELETED, pa.array([False, False, True, False]))
    stream(writer(str(tmp_path), options), 0, gone, tasks=2)
    assert not made(storage)
    assert_indexed(storage)


def by_tasks(path: Path, options: dict[str, str], *parts: pa.Table) -> None:
    """An upsert by a task for each part, which has its keys to itself, but no file group."""
    coordinator = writer(str(path), options)
    batch = coordinator.begin(parts[0].schema)
    messages = []
    for number, rows in enumerate(parts):
        sent = sent_by_key(batch.plan, rows, number, len(parts)).to_batches()
        messages.append(write_task(batch, TaskId(number, 0, number), None, sent))
    assert all(one.owns_keys for one in messages)
    coordinator.commit(messages)


def marked(rows: pa.Table, *gone: bool) -> pa.Table:
    return rows.append_column(IS_DELETED, pa.array(gone))


SHARED = {**NINE, TYPE: MOR}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("more", "parts", "changed"),
    [
        pytest.param({}, [[("a", "x")], [("b", "x"), ("d", "y")]], (1, 0), id="updates"),
        pytest.param({}, [[("a", "y")], [("b", "x")]], (1, 0), id="moves"),
        pytest.param({VERSION: "6"}, [[("a", "y")], [("b", "y")]], (2, 0), id="moves, version 6"),
    ],
)
def test_tasks_know_what_becomes_of_their_keys_in_file_groups_that_they_share(
    tmp_path: Path,
    more: dict[str, str],
    parts: list[list[tuple[str, str]]],
    changed: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver reads nothing: rows stay where they were found, or their keys go with them."""
    storage, options = open_storage(str(tmp_path)), {**SHARED, **more}
    HoodieTable(str(tmp_path), options).upsert(trips(*((k, "x", 1, 1.0) for k in "abc")))
    monkeypatch.delattr(record_changes, "moved_keys")  # by which the driver finds keys
    by_tasks(tmp_path, options, *(trips(*((*one, 2, 2.0) for one in some)) for some in parts))
    assert len(made(storage)) == len(parts)
    assert changes(storage) == changed
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_a_delete_in_a_shared_file_group_may_be_too_old(tmp_path: Path, mode: str) -> None:
    """So the driver reads it, and what else the task takes away; another task is not concerned."""
    storage, options = open_storage(str(tmp_path)), {**SHARED, keys.MERGE_MODE: mode}
    HoodieTable(str(tmp_path), options).upsert(trips(*((k, "x", 5, 1.0) for k in "abcd")))
    rows = trips(("a", "y", 6, 1.0), ("b", "x", 1, 1.0), ("c", "x", 6, 1.0))
    first = marked(rows, False, True, True)
    by_tasks(tmp_path, options, first, marked(trips(("d", "x", 6, 1.0)), False))
    assert len(made(storage)) == 2
    assert changes(storage) == (1, 1 if mode.startswith("EVENT") else 2)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_a_key_that_a_shared_file_group_gets_is_found_by_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, options = (
        open_storage(str(tmp_path)),
        {**LOGGED, "hoodie.bucket.index.num.buckets": "1"},
    )
    HoodieTable(str(tmp_path), options).upsert(trips(("a", "x", 1, 1.0)))
    monkeypatch.setattr(Assignment, "ownership", lambda *_: TaskOwnership(groups=False, keys=True))
    by_tasks(tmp_path, options, trips(("b", "x", 3, 1.0)), trips(("a", "x", 3, 1.0)))
    assert len(made(storage)) == 1
    assert changes(storage) == (1, 0)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_keys_of_several_micro_batches_of_an_instant_are_found_in_the_files(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    for number in range(2):
        coordinator = writer(str(tmp_path), {**SMALL, SPAN: "2"})
        stream(coordinator, number, trips((f"k{number}", "x", 1, 1.0)))
    assert not made(storage)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_a_task_with_many_keys_puts_them_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that comes twice, as those of inserts may, has one entry."""
    monkeypatch.setattr(task_keys, "_MOST_KEYS", 2)
    monkeypatch.setattr(joined_keys, "_PIECE_BYTES", 100)
    storage = open_storage(str(tmp_path))
    table = HoodieTable(str(tmp_path), NINE)
    table.upsert(trips(("a", "w", 1, 1.0)))
    table.insert(trips(*((f"k{number}", "xyz"[number % 3], 1, 1.0) for number in (0, *range(9)))))
    assert len(made(storage)) == 3
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_a_task_of_a_table_whose_index_is_gone_leaves_keys_to_the_driver(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    rows = trips(("b", "x", 1, 1.0))
    batch = writer(str(tmp_path), NINE).begin(rows.schema)
    of_task = TaskKeys(batch.table, batch.proposed_time, "0-0-0")
    open_storage(str(tmp_path)).delete(f"{METADATA_TABLE}/record_index")
    of_task.add("x/f.parquet", FileGroupId("x", "f"), rows["id"].chunks)
    assert of_task.close() == {}


def made_again(storage: Storage, _: str) -> None:
    """The index has another file group by now."""
    inner = SubfolderStorage(storage, METADATA_TABLE)
    put_first_log(inner, "record_index", GROUPS, load_timeline(inner, 2).commits[0].time)


LOST: dict[str, Callable[[Storage, str], None]] = {
    "gone": lambda storage, path: storage.delete(path),
    "longer": lambda storage, path: storage.replace(path, storage.read(path) * 2),
    "another": lambda storage, path: storage.replace(path, bytes(len(storage.read(path)))),
    "damaged": lambda storage, path: storage.replace(path, bytes(99) + storage.read(path)[99:]),
    "index": made_again,
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("what", LOST)
def test_keys_of_which_entries_are_lost_are_found_in_the_files(tmp_path: Path, what: str) -> None:
    storage = open_storage(str(tmp_path))
    assert ord("f") % GROUPS == ord("f") % (GROUPS + 1)
    HoodieTable(str(tmp_path), NINE).upsert(trips(("f", "x", 1, 1.0)))
    coordinator = writer(str(tmp_path), NINE)
    rows = trips(("c", "x", 1, 1.0))
    message, path = written(coordinator.begin(rows.schema), rows)
    LOST[what](storage, path)
    coordinator.commit([message])
    assert made(storage)
    assert_indexed(storage)


@pytest.mark.usefixtures("at_once")
def test_the_delta_commit_has_the_blocks_of_the_attempt_that_counts(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    HoodieTable(str(tmp_path), NINE).upsert(trips(("a", "x", 1, 1.0)))
    coordinator = writer(str(tmp_path), NINE)
    rows = trips(("b", "x", 1, 1.0))
    batch = coordinator.begin(rows.schema)
    (_, lost), (message, path) = (written(batch, rows, attempt) for attempt in range(2))
    assert lost != path
    ((size, _),) = message.key_files.values()
    block = storage.read(path)[:size]
    assert known_times(storage) >= index_logs(storage).keys()
    coordinator.commit([message])
    assert made(storage) == message.key_files
    assert index_logs(storage)[str(message.instant_time)] == block
    assert known_times(storage) >= index_logs(storage).keys()


@pytest.mark.usefixtures("at_once")
def test_entries_of_a_file_that_the_commit_has_not_do_not_count(tmp_path: Path) -> None:
    """The commit merges staged rows into files of tasks, which others take the place of then."""
    storage, message = one_task(tmp_path)
    stats = {status.stat.path: status.stat for status in message.statuses}
    for added in (stats, {}):
        of_tasks = message.key_files, added, lambda _: GROUPS
        found = JoinedKeys.of(storage, str(message.instant_time), *of_tasks)
        assert found.files.get(RECORD_INDEX, set()) == added.keys()
        assert bool(found.blocks) == bool(added)


def test_the_files_of_many_tasks_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a round trip to an object store."""
    four = Barrier(4)

    def gone(*_: object) -> None:
        four.wait(timeout=20)

    monkeypatch.setattr(joined_keys, "_end", gone)
    named = {f"{number}": (0, "") for number in range(8)}
    assert JoinedKeys.of(MemoryStorage(), "20260101000000000", named, {}, int) == JoinedKeys()


@pytest.mark.usefixtures("at_once")
def test_nothing_is_left_of_a_write_that_is_rolled_back(tmp_path: Path) -> None:
    storage, message = one_task(tmp_path)
    HoodieTable(str(tmp_path), NINE).upsert(trips(("c", "x", 1, 1.0)))
    assert not storage.list(work_folder(str(message.instant_time)), recursive=True)
    assert str(message.instant_time) not in index_logs(storage)
    assert_indexed(storage)


def known_times(storage: Storage) -> set[str]:
    """The instants that the metadata table's timeline has."""
    inner = SubfolderStorage(storage, METADATA_TABLE)
    return {one.time for one in load_timeline(inner, 2).completed}


def index_logs(storage: Storage) -> dict[str, bytes]:
    """The log files of the record index by the time in their names."""
    listed = storage.list(f"{METADATA_TABLE}/record_index")
    names = {one.path: LogFileName.parse(one.path.rpartition("/")[2]) for one in listed}
    return {name.base_instant: storage.read(path) for path, name in names.items() if name}


@pytest.mark.usefixtures("at_once")
def test_a_process_goes_on_whose_commit_another_one_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is about to join entries then, and their files are gone."""
    storage, message = one_task(tmp_path)
    pieces = KeyBlock.pieces

    def late(block: KeyBlock) -> Iterator[bytes]:
        monkeypatch.setattr(KeyBlock, "pieces", pieces)
        HoodieTable(str(tmp_path), NINE).upsert(trips(("c", "y", 1, 1.0)))
        return block.pieces()

    monkeypatch.setattr(KeyBlock, "pieces", late)
    writer(str(tmp_path), NINE).commit([message])
    assert len(open_table(storage).load_timeline().commits) == 3
    assert_indexed(storage)


def test_a_file_that_becomes_shorter_is_no_log_file(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put_if_absent("f", b"12345")
    with pytest.raises(LostKeysError, match="f is not as it was put"):
        list(KeyBlock(storage, "f", 3, 3, 1, xxhash.xxh64_hexdigest(b"456")).pieces())


@pytest.mark.parametrize("text", ["", "[]", '{"f": 1}', '{"f": ["x", 1]}'])
def test_what_a_commit_says_badly_it_does_not_say(text: str) -> None:
    assert key_files_of({KEY_FILES: text}) == {}
    assert key_files_of(as_extra({"f": (1, "2")})) == {"f": (1, "2")}


def test_a_task_opens_the_metadata_table_once(
    tmp_path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look keys up, and to find those that its files take away."""
    options = {**NINE, MOVES: "false"}
    HoodieTable(str(tmp_path), options).upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    opened: list[Timeline] = []
    opens = MetadataTable.open

    def counted(table: Table, data: Timeline) -> MetadataTable | None:
        opened.append(data)
        return opens(table, data)

    monkeypatch.setattr(MetadataTable, "open", counted)
    rows = trips(("a", "x", 2, None)).append_column(IS_DELETED, pa.array([True]))
    batch = writer(str(tmp_path), options).begin(rows.schema)
    opened.clear()
    message, _ = written(batch, rows)
    assert message.key_files
    assert opened == [batch.timeline]


@pytest.mark.parametrize("options", [NINE, LOGGED])
def test_what_the_driver_reads_does_not_grow_with_rows(
    tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens no data file, and all that it puts into the index are the blocks of the task."""
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 100)
    few, many = (committed(tmp_path / str(count), count, options) for count in (100, 1_000))
    assert few[0] == many[0] == 0
    assert abs(many[1] - few[1]) < 200  # digits of numbers and of statistics
    assert committed(tmp_path / "10", 10, options)[0] > 0


def committed(path: Path, count: int, options: dict[str, str]) -> tuple[int, int]:
    """Data files that a commit of new rows opens, and the bytes that it puts, without blocks."""
    HoodieTable(str(path), options).upsert(trips(*((key, "x", 1, 1.0) for key in "abc")))
    recorder = Recorder()
    storage = FaultyStorage(open_storage(str(path)), recorder=recorder)
    coordinator = writer(str(path), options, storage)
    rows = trips(*((f"k{number:04}", "x", 1, 1.0) for number in range(count)))
    batch = coordinator.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    recorder.operations.clear()
    coordinator.commit([message])
    done = recorder.operations
    data = [one.path for one in done if one.kind not in MUTATING and one.path[:8] != ".hoodie/"]
    read = {path for path in data if ".parquet" in path or ".log." in path}
    assert_indexed(open_storage(str(path)))
    blocks = sum(size for size, _ in message.key_files.values())
    return len(read), sum(one.size for one in done) - blocks
