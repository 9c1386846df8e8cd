"""Begin, commit and abort: what becomes part of the table, when, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    OptionError,
    StorageError,
    TimelineError,
    WriteConflictError,
)
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import TEMP, instant_path
from hoodie_ds.transaction import exclusive_commit
from tests.tables import TRIPS, coordinator, found, tree, trips

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0))
TWO = trips(("a", "x", 2, 2.0), ("c", "x", 2, 2.0))
_FAR = "29991231235959000"
AFTER_ONE = [("a", "x", 1, 1.0), ("b", "x", 1, 1.0)]
AFTER_TWO = [("a", "x", 2, 2.0), ("b", "x", 1, 1.0), ("c", "x", 2, 2.0)]


def write(
    batch: Batch, rows: pa.Table = TWO, number: int | None = None, task: TaskId | None = None
) -> TaskCommitMessage:
    batch_id = None if number is None else BatchId("query", number)
    return write_task(batch, task or TaskId(), batch_id, rows.to_batches(), sole_writer=True)


@dataclass(frozen=True)
class LosesAnswers:
    """A storage whose put of a completed file takes effect, or not, and always fails."""

    inner: Storage
    takes_effect: bool = True
    readable: bool = True

    @property
    def root(self) -> str:
        return self.inner.root

    def _completes(self, path: str) -> bool:
        return path.endswith((".commit", ".deltacommit"))

    def read(self, path: str) -> bytes:
        if not self.readable and self._completes(path) and self._is_there(path):
            raise StorageError("the network is down")
        return self.inner.read(path)

    def _is_there(self, path: str) -> bool:
        return len([s for s in self.inner.list(".hoodie") if self._completes(s.path)]) > 1

    def open_input(self, path: str) -> BinaryIO:
        return self.inner.open_input(path)

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self.inner.open_output(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if not self._completes(path):
            self.inner.put_if_absent(path, data)
            return
        if self.takes_effect:
            self.inner.put_if_absent(path, data)
        raise StorageError("the answer was lost")

    def replace(self, path: str, data: bytes) -> None:
        self.inner.replace(path, data)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> list[FileStatus]:
        return self.inner.list(path, recursive, folders=folders)

    def delete(self, path: str) -> None:
        self.inner.delete(path)

    def delete_many(self, paths: Collection[str]) -> None:
        self.inner.delete_many(paths)


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    options = {**TRIPS, "hoodie.datasource.write.table.type": request.param}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(ONE)
    return table


@pytest.fixture
def writer(table: HoodieTable, tmp_path: Path) -> Coordinator:
    return coordinator(tmp_path)


def test_nothing_is_visible_before_the_commit(writer: Coordinator, table: HoodieTable) -> None:
    message = write(writer.begin(TWO.schema))
    assert found(table) == AFTER_ONE
    writer.commit([message])
    assert found(table) == AFTER_TWO


def test_a_commit_that_ended_after_its_manifest_can_be_called_again(
    writer: Coordinator, table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise StorageError("the network is down")

    message = write(writer.begin(TWO.schema), number=0)
    with monkeypatch.context() as patched:
        patched.setattr(exclusive_commit, "append_decision", down)
        with pytest.raises(StorageError, match="is down"):
            writer.commit([message])
    assert found(table) == AFTER_ONE
    writer.commit([message])
    assert found(table) == AFTER_TWO


def test_a_second_commit_changes_nothing(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    message = write(writer.begin(TWO.schema))
    writer.commit([message])
    before = tree(tmp_path)
    writer.commit([message])
    assert tree(tmp_path) == before


def test_a_task_that_did_not_report_stops_the_commit(
    writer: Coordinator, table: HoodieTable
) -> None:
    message = write(writer.begin(TWO.schema))
    with pytest.raises(TimelineError, match="1 of 2 tasks did not report"):
        writer.commit([message, None])
    assert found(table) == AFTER_ONE


def test_a_batch_without_rows_leaves_no_instant(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    before = tree(tmp_path)
    writer.commit([write(writer.begin(TWO.schema), TWO.slice(0, 0))])
    assert tree(tmp_path) == before


def test_a_commit_after_a_rollback_is_refused(writer: Coordinator, table: HoodieTable) -> None:
    message = write(writer.begin(TWO.schema))
    writer.begin(TWO.schema)  # recovery takes the pending instant for a dead writer's
    with pytest.raises(TimelineError, match="was rolled back"):
        writer.commit([message])
    assert found(table) == AFTER_ONE


def test_an_abort_after_success_deletes_nothing(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    message = write(writer.begin(TWO.schema))
    writer.commit([message])
    before = tree(tmp_path)
    writer.abort([message, None])
    assert tree(tmp_path) == before
    writer.begin(TWO.schema)
    assert found(table) == AFTER_TWO


def test_an_aborted_batch_is_rolled_back_by_the_next(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    message = write(writer.begin(TWO.schema))
    writer.abort([None, message])
    batch = writer.begin(TWO.schema)
    assert list(load_timeline(writer.storage, 1).pending) == []
    assert not any((tmp_path / status.stat.path).exists() for status in message.statuses)
    writer.commit([write(batch)])
    assert found(table) == AFTER_TWO


def test_a_completed_put_with_a_lost_answer_is_a_commit(
    writer: Coordinator, table: HoodieTable
) -> None:
    writer = replace(writer, storage=LosesAnswers(writer.storage))
    writer.commit([write(writer.begin(TWO.schema))])
    assert found(table) == AFTER_TWO


def test_a_decided_commit_is_completed_by_the_next_batch(
    writer: Coordinator, table: HoodieTable
) -> None:
    failing = replace(writer, storage=LosesAnswers(writer.storage, takes_effect=False))
    with pytest.raises(CommitOutcomeUnknownError, match="the answer was lost") as unknown:
        failing.commit([write(failing.begin(TWO.schema))])
    assert isinstance(unknown.value.__cause__, StorageError)
    assert found(table) == AFTER_ONE
    writer.begin(TWO.schema)
    assert found(table) == AFTER_TWO


def test_an_outcome_that_cannot_be_read_back_is_unknown_and_deletes_nothing(
    writer: Coordinator, table: HoodieTable
) -> None:
    blind = replace(writer, storage=LosesAnswers(writer.storage, readable=False))
    with pytest.raises(CommitOutcomeUnknownError, match="nothing was deleted"):
        blind.commit([write(blind.begin(TWO.schema))])
    assert found(table) == AFTER_TWO


def test_a_commit_meanwhile_to_the_same_group_is_a_conflict(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    message = write(writer.begin(TWO.schema))
    foreign_commit(tmp_path, writer.storage)
    with pytest.raises(WriteConflictError, match="changed file group x/0000000"):
        writer.commit([message])
    assert message.instant_time is not None
    assert load_timeline(writer.storage, 1).commit_at(message.instant_time) is None


def foreign_commit(path: Path, storage: Storage) -> None:
    """Another engine completes an instant that names the newest commit's files again."""
    timeline = load_timeline(storage, 1)
    body = read_commit(storage, timeline.commits[-1]).to_bytes(1)
    later = replace(timeline.commits[-1], time=_FAR)
    storage.put_if_absent(instant_path(later), body)


def test_a_file_of_a_lost_attempt_is_deleted_by_the_commit(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    batch = writer.begin(TWO.schema)
    lost = write(batch, task=TaskId(0, 1, 1))
    writer.commit([write(batch, task=TaskId(0, 1, 2))])
    assert not any((tmp_path / status.stat.path).exists() for status in lost.statuses)
    assert found(table) == AFTER_TWO


def test_a_late_task_deletes_its_file(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    batch = writer.begin(TWO.schema)
    writer.commit([write(batch, task=TaskId(0, 1, 1))])
    before = {path for path in tmp_path.rglob("*") if ".hoodie" not in str(path)}
    with pytest.raises(TimelineError, match="was completed while files of this batch"):
        write(batch, trips(("late", "x", 9, 9.0)), task=TaskId(7, 1, 2))
    assert {path for path in tmp_path.rglob("*") if ".hoodie" not in str(path)} == before
    assert found(table) == AFTER_TWO


def test_a_file_of_a_late_task_is_invisible(
    writer: Coordinator, table: HoodieTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = writer.begin(TWO.schema)
    writer.commit([write(batch, task=TaskId(0, 1, 1))])
    with monkeypatch.context() as killed:  # before it looks whether it is late
        killed.setattr("hoodie_ds.transaction.instant_checks._ended", lambda *_: None)
        late = write(batch, trips(("late", "x", 9, 9.0)), task=TaskId(7, 1, 2))
    assert all((tmp_path / status.stat.path).exists() for status in late.statuses)
    assert found(table) == AFTER_TWO
    coordinator(tmp_path).commit([write(coordinator(tmp_path).begin(TWO.schema), ONE)])
    assert found(table) == AFTER_TWO


def test_a_committed_batch_is_only_digested(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    writer.commit([write(writer.begin(TWO.schema), number=0)])
    batch = writer.begin(TWO.schema)
    before = tree(tmp_path)
    message = write(batch, TWO.take([1, 0]), number=0)
    assert (message.already_committed, message.num_rows, message.statuses) == (True, 2, ())
    writer.commit([message])
    assert tree(tmp_path) == before


def test_a_batch_begun_twice_commits_once(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    batch = writer.begin(TWO.schema)
    writer.commit([write(batch, number=0)])
    again = write(replace(batch, owner="a retry of it"), TWO.take([1, 0]), number=0)
    assert again.instant_time != batch.proposed_time
    writer.commit([again])
    assert found(table) == AFTER_TWO


def test_every_commit_carries_all_queries(writer: Coordinator, table: HoodieTable) -> None:
    writer.commit([write(writer.begin(TWO.schema), number=0)])
    table.upsert(ONE)
    other = BatchId("b", 0)
    writer.commit([write_task(writer.begin(TWO.schema), TaskId(), other, TWO.to_batches())])
    newest = load_timeline(writer.storage, 1).commits[-1]
    entry = read_commit(writer.storage, newest).extra[CHECKPOINT_KEY]
    assert json.loads(entry) == {"query": "0", "b": "0"}
    assert writer.begin(TWO.schema).guard.holds(BatchId("query", 0))
    assert not writer.begin(TWO.schema).guard.holds(BatchId("query", 1))


def test_a_batch_that_an_earlier_instant_committed_later_is_known(
    writer: Coordinator, table: HoodieTable
) -> None:
    """Two queries begin together; the one with the later instant is the first to commit."""
    rows = {"a": trips(("a", "x", 2, 2.0)), "b": trips(("b", "y", 2, 2.0))}
    begun = {query: writer.begin(TWO.schema) for query in rows}
    begun["b"] = replace(begun["b"], proposed_time=_FAR)
    messages = {
        query: write_task(begun[query], TaskId(), BatchId(query, 0), part.to_batches(), True)
        for query, part in rows.items()
    }
    writer.commit([messages["b"]])
    writer.commit([messages["a"]])
    guard = writer.begin(TWO.schema).guard
    assert guard.holds(BatchId("a", 0))
    assert guard.holds(BatchId("b", 0))
    # The next commit of ours carries both.
    writer.commit([write(writer.begin(TWO.schema))])
    newest = load_timeline(writer.storage, 1).commits[-1]
    entry = read_commit(writer.storage, newest).extra[CHECKPOINT_KEY]
    assert json.loads(entry) == {"a": "0", "b": "0"}


def test_a_commit_names_every_file_with_its_size(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    writer.commit([write(writer.begin(TWO.schema))])
    newest = load_timeline(writer.storage, 1).commits[-1]
    stats = read_commit(writer.storage, newest).stats
    assert stats
    for stat in stats:
        assert (tmp_path / stat.path).stat().st_size == stat.file_size_bytes
    assert not [path for path in (tmp_path / TEMP).rglob("*") if path.is_file()]


def test_the_new_instant_is_later_than_all_others(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    foreign_commit(tmp_path, writer.storage)
    assert writer.begin(TWO.schema).proposed_time == "29991231235959001"


def test_each_row_is_in_one_slice(writer: Coordinator, table: HoodieTable) -> None:
    writer.commit([write(writer.begin(TWO.schema))])
    view = FileSystemView(writer.storage, load_timeline(writer.storage, 1))
    assert {file.folder for file in view.data_files()} == {"x"}
    assert len(view.latest_slices("x")) == 2


def test_a_batch_of_no_tasks_changes_nothing(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    writer.begin(TWO.schema)
    before = tree(tmp_path)
    writer.commit([])
    assert tree(tmp_path) == before


def test_a_metadata_table_is_dropped_by_the_first_batch_with_the_option(
    writer: Coordinator, table: HoodieTable, tmp_path: Path
) -> None:
    path = tmp_path / ".hoodie/hoodie.properties"
    path.write_text(path.read_text() + "\nhoodie.table.metadata.partitions=expr_index_a\n")
    writer.storage.put_if_absent(".hoodie/metadata/files/x", b"x")
    before = tree(tmp_path)
    with pytest.raises(OptionError, match="has a metadata table"):
        writer.begin(TWO.schema)
    assert tree(tmp_path) == before
    without = coordinator(tmp_path, hoodie__metadata__enable="false")
    batch = without.begin(TWO.schema)
    assert not (tmp_path / ".hoodie/metadata").exists()
    assert batch.table.properties.metadata_partitions == ()
    without.commit([write(batch)])
    writer.begin(TWO.schema)  # no option is needed any more
    assert found(table) == AFTER_TWO
