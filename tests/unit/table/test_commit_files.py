"""What is remembered of commits: one reading each, in bounded memory."""

from __future__ import annotations

from unittest.mock import patch

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table import commit_files as files
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.loading import read_commit
from tests.unit.table.test_fs_view import Timeline, base, log, table

__all__ = ["table"]  # a fixture


def test_a_commit_is_read_once(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2))
    commits = table.view().timeline.commits
    with patch.object(files, "read_commit", wraps=read_commit) as read:
        for instant in (*commits, *commits):
            assert set(files.commit_files(table.storage, instant).named) == {
                base(1) if instant == commits[0] else base(2)
            }
    assert read.call_count == 2


def test_what_was_not_asked_for_longest_is_let_go(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2)).commit(3, base(3))
    one, two, three = table.view().timeline.commits
    with (
        patch.object(files, "_HELD_BYTES", 4000),
        patch.object(files, "read_commit", wraps=read_commit) as read,
    ):
        for instant in (one, two, one, three, one, two):
            files.commit_files(table.storage, instant)
    assert [call.args[1] for call in read.call_args_list] == [one, two, three, two]


def test_a_commit_that_two_threads_read_at_once_is_counted_once(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2))
    one, two = table.view().timeline.commits
    known = files._TableFiles(table.storage)
    read = files._read

    def overtaken(storage: Storage, instant: Instant) -> files.CommitFiles:
        with patch.object(files, "_read", read):
            known.commit(instant)
        return read(storage, instant)

    with patch.object(files, "_read", overtaken):
        assert known.commit(one).named == {base(1)}
    assert known._held_bytes == known.commit(one).nbytes
    assert known.commit(two).named == {base(2)}


def test_the_newest_commit_that_wrote_to_a_file_is_found(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, log(1, 1)).commit(3, log(1, 1)).commit(4, log(1, 2))
    timeline = table.view().timeline

    def newest(path: str, since: int) -> object:
        found = files.newest_commit_naming(
            table.storage, timeline, path, timeline.commits[since].time
        )
        return None if found is None else sorted(found.stats)

    assert newest(log(1, 2), 3) == [log(1, 2)]
    assert newest(log(1, 1), 2) == [log(1, 1)]
    assert newest(log(1, 1), 0) == [log(1, 1)]
    assert newest(log(1, 9), 0) is None
