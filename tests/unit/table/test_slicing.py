"""Which log files lie on which base file in layout 2, by the rules of Hudi's tech spec."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import check_nothing_is_missing, newest_files, replaced_ids
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path
from tests.unit.timeline.archive.test_lsm_timeline import C, T, put_file, put_manifest

D = Action.DELTA_COMMIT


def base(day: int) -> str:
    return f"p/g_0-1-1_{T[day]}.parquet"


def log(day: int, version: int = 1, token: str = "0-1-1") -> str:
    return f"p/.g_{T[day]}.log.{version}_{token}"


class Table:
    """Puts files and instants of layout 2; an instant is asked for on one day, ends on another."""

    def __init__(self) -> None:
        self.storage: Storage = MemoryStorage()

    def commit(
        self, day: int, *paths: str, end: int | None = None, action: Action = Action.COMMIT
    ) -> Table:
        body = CommitMetadata(tuple(map(self._stat, paths)))
        ended = C[day if end is None else end]
        instant = Instant(T[day], action, State.COMPLETED, layout=2, completion_time=ended)
        for path in paths:
            self.storage.put_if_absent(path, b"x")
        self.storage.put_if_absent(instant_path(instant), body.to_bytes(1))
        return self

    def pending(self, day: int, action: Action, *paths: str) -> Table:
        instant = Instant(T[day], action, State.INFLIGHT, layout=2)
        self.storage.put_if_absent(instant_path(instant), b"")
        for path in paths:
            self.storage.put_if_absent(path, b"x")
        return self

    def seen(self) -> tuple[str | None, list[str]] | None:
        timeline = load_timeline(self.storage, 2)
        found = FileSystemView(self.storage, timeline).latest_slices("p")
        if not found:
            return None
        (latest,) = found
        if latest.logs or latest.base:
            paths = [log.path for log in latest.logs] + ([latest.base.path] if latest.base else [])
            if not self.storage.list(".hoodie/timeline/history"):  # no commit there is looked at
                named = newest_files(self.storage, timeline)
                assert sorted(file.path for file in named) == sorted(paths)
        return latest.base.path if latest.base else None, [log.path for log in latest.logs]

    def _stat(self, path: str) -> WriteStat:
        name = path.rpartition("/")[2]
        stat = WriteStat("g", path, "p")
        return replace(stat, log=LogWrite(1, 0, "", (name,))) if name.startswith(".") else stat


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_log_file_lies_on_the_base_file_that_was_begun_before_it_ended(table: Table) -> None:
    table.commit(1, base(1)).commit(2, log(2), action=D).commit(3, log(3), action=D, end=5)
    table.commit(4, base(4)).commit(6, log(6), action=D)
    assert table.seen() == (base(4), [log(3), log(6)])


def test_a_log_file_that_ended_before_is_in_the_base_file(table: Table) -> None:
    table.commit(1, base(1)).commit(2, log(2), action=D).commit(3, base(3))
    assert table.seen() == (base(3), [])


def test_a_compaction_that_is_pending_changes_nothing(table: Table) -> None:
    table.commit(1, base(1)).commit(2, log(2), action=D).pending(3, Action.COMPACTION, base(3))
    table.commit(4, log(4), action=D)
    assert table.seen() == (base(1), [log(2), log(4)])


def test_log_files_merge_in_the_order_in_which_they_were_asked_for(table: Table) -> None:
    table.commit(1, log(1, 10), log(1, 2, "0-2-2"), log(1, 2, "0-10-2"), action=D, end=7)
    table.commit(2, log(2), action=D, end=3)
    assert table.seen() == (None, [log(1, 2, "0-10-2"), log(1, 2, "0-2-2"), log(1, 10), log(2)])


def test_what_is_not_committed_is_not_seen(table: Table) -> None:
    table.commit(1, base(1)).pending(2, D, log(2))
    table.storage.put_if_absent(log(3), b"late")
    assert table.seen() == (base(1), [])


def test_log_files_alone_that_are_not_committed_make_no_slice(table: Table) -> None:
    assert table.pending(2, D, log(2)).seen() is None


def test_the_archive_tells_when_an_archived_log_file_was_written(table: Table) -> None:
    """Before the base file that is archived too, or while it was being made."""
    for path in (base(3), log(1), log(2)):
        table.storage.put_if_absent(path, b"x")
    name = put_file(table.storage, f"{T[1]}_{T[9]}_0.parquet", 1, 3)
    late = put_file(table.storage, f"{T[2]}_{T[2]}_0.parquet", 2)
    put_manifest(table.storage, 1, name, late)
    table.commit(5, action=D)
    assert table.seen() == (base(3), [])
    other = Table()
    for path in (base(1), log(0)):
        other.storage.put_if_absent(path, b"x")
    other.commit(5, action=D)  # whose archive has nothing of it
    put_manifest(other.storage, 1)
    assert other.seen() == (base(1), [log(0)])


def test_a_log_file_that_is_lost_is_missed(table: Table) -> None:
    table.commit(1, base(1)).commit(2, log(2), action=D, end=4).commit(3, base(3))
    timeline = load_timeline(table.storage, 2)
    with pytest.raises(CorruptFileError, match=r"\.log\.1_0-1-1 is missing"):
        check_nothing_is_missing(table.storage, timeline, {base(3)})
    check_nothing_is_missing(table.storage, timeline, {base(3), log(2)})


def test_replaced_groups_are_known_again_where_a_table_was_upgraded(table: Table) -> None:
    """What a process knows of the table as it was before says nothing of its later instants."""
    body = CommitMetadata(replaced={"p": ("g",)}).to_bytes(1)
    table.storage.put_if_absent(f".hoodie/{T[1]}.replacecommit", body)
    before = load_timeline(table.storage, 1)
    assert replaced_ids(table.storage, before) == {"p": frozenset({"g"})}
    newest_files(table.storage, before)
    table.storage.delete(f".hoodie/{T[1]}.replacecommit")
    table.storage.put_if_absent(f".hoodie/timeline/{T[1]}_{C[1]}.replacecommit", body)
    after = load_timeline(table.storage, 2)
    newest_files(table.storage, after)
    assert replaced_ids(table.storage, after) == {"p": frozenset({"g"})}
