"""What instants did to files: read once each, in bounded memory."""

from __future__ import annotations

from unittest.mock import patch

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline import file_changes as files
from hoodie_ds.timeline.instant import Instant
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
