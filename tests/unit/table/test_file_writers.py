"""Which commits wrote to a file of an older slice."""

from __future__ import annotations

from hoodie_ds.table import file_writers
from tests.unit.table.test_fs_view import Timeline, base, log, table

__all__ = ["table"]  # a fixture


def test_the_newest_commit_that_wrote_to_a_file_is_found(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, log(1, 1)).commit(3, log(1, 1)).commit(4, log(1, 2))
    timeline = table.view().timeline

    def newest(path: str, since: int) -> object:
        found = file_writers.newest_commit_naming(
            table.storage, timeline, path, timeline.commits[since].time
        )
        return None if found is None else sorted(found.added)

    assert newest(log(1, 2), 3) == [log(1, 2)]
    assert newest(log(1, 1), 2) == [log(1, 1)]
    assert newest(log(1, 1), 0) == [log(1, 1)]
    assert newest(log(1, 9), 0) is None
