"""What instants did to files: read once each, in bounded memory."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline import file_changes as files
from hoodie_ds.timeline.bodies.rollback_metadata import PartitionRollback, plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import read_commit
from tests.unit.table.test_fs_view import Timeline, base, table

__all__ = ["table"]  # a fixture


def test_a_commit_is_read_once(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2))
    commits = table.view().timeline.commits
    with patch.object(files, "read_commit", wraps=read_commit) as read:
        for instant in (*commits, *commits):
            assert set(files.file_changes(table.storage, instant).named) == {
                base(1) if instant == commits[0] else base(2)
            }
    assert read.call_count == 2


def test_the_least_recently_used_instant_is_dropped(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2)).commit(3, base(3))
    one, two, three = table.view().timeline.commits
    with (
        patch.object(files, "_HELD_BYTES", 4000),
        patch.object(files, "read_commit", wraps=read_commit) as read,
    ):
        for instant in (one, two, one, three, one, two):
            files.file_changes(table.storage, instant)
    assert [call.args[1] for call in read.call_args_list] == [one, two, three, two]


def test_a_commit_that_two_threads_read_at_once_is_counted_once(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2))
    one, two = table.view().timeline.commits
    known = files._Cache(table.storage)
    read = files._read

    def overtaken(storage: Storage, instant: Instant) -> files.FileChanges:
        with patch.object(files, "_read", read):
            known.get(instant)
        return read(storage, instant)

    with patch.object(files, "_read", overtaken):
        assert known.get(one).named == {base(1)}
    assert known._held_bytes == known.get(one).nbytes
    assert known.get(two).named == {base(2)}


def test_the_plan_of_a_rollback_says_what_it_deletes() -> None:
    rollback = Instant("2", Action.ROLLBACK, State.REQUESTED)
    undone = Instant("1", Action.COMMIT, State.INFLIGHT)
    plan = plan_to_bytes("/t", undone, {"p": PartitionRollback(("p/a.parquet",))})
    assert files.FileChanges.of(rollback, plan, "plan").removed == {"p/a.parquet"}


def test_a_pending_write_has_done_nothing_yet() -> None:
    pending = Instant("1", Action.COMMIT, State.REQUESTED)
    assert files.FileChanges.of(pending, b"{}", "plan") == files.FileChanges()


@pytest.mark.parametrize(
    ("action", "name"),
    [(Action.ROLLBACK, "partitionMetadata"), (Action.RESTORE, "hoodieRestoreMetadata")],
)
def test_a_body_that_says_nothing_is_damage(action: Action, name: str) -> None:
    schema = {"type": "record", "name": "X", "fields": [{"name": name, "type": "string"}]}
    done = Instant("1", action, State.COMPLETED)
    with pytest.raises(CorruptFileError, match=f"the file says nothing of a {action.value}"):
        files.FileChanges.of(done, write_record(schema, {name: "x"}), "the file")
