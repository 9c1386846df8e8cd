"""What services ask the archive of a table, in either timeline layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive import archive as module
from hoodie_ds.timeline.archive.archive import ActiveFile, Archive, archive_of, archived_writes
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline
from tests.archived import archived, rows_of
from tests.golden.golden_tables import unzip_table
from tests.unit.timeline.archive.test_lsm_timeline import Merging, T, put_file, put_manifest

LAYOUTS = (1, 2)


def time(number: int) -> str:
    return f"20260101{number:09d}"


def done(layout: int, number: int, action: Action, body: bytes, end: int = 0) -> ActiveFile:
    instant = Instant(time(number), action, State.COMPLETED, layout=layout)
    completed = instant.completed(time(end or number)) if layout == 2 else instant
    return ActiveFile(completed, body, time(number))


def commit(layout: int, number: int, *replaced: str) -> list[ActiveFile]:
    said = CommitMetadata(replaced={"p": replaced} if replaced else {})
    action = Action.REPLACE_COMMIT if replaced else Action.COMMIT
    return [done(layout, number, action, said.to_bytes(layout))]


def rollback(layout: int, number: int) -> list[ActiveFile]:
    return [done(layout, number, Action.ROLLBACK, b"")]


def opened(layout: int, storage: MemoryStorage) -> Archive:
    return archive_of(storage, layout, "archived")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_newest_write(layout: int) -> None:
    storage = MemoryStorage()
    archive = opened(layout, storage)
    assert archive.newest_write() == ""
    archive.put([rollback(layout, 1)])
    assert archive.newest_write() == ""
    archive.put([commit(layout, 2), commit(layout, 5), rollback(layout, 6)])
    archive.put([rollback(layout, 7), commit(layout, 3), commit(layout, 4)])
    assert archive.newest_write() == time(5)
    archive.put([commit(layout, 8)])
    assert archive.newest_write() == time(8)


def test_the_newest_write_of_an_upgraded_table(tmp_path: Path) -> None:
    """Its file is in no order, and named by the first and the last instant in it."""
    storage = LocalStorage(str(unzip_table("v9_upgraded", tmp_path)))
    writes = [row["instantTime"] for row in rows_of(storage) if row["action"] != "clean"]
    assert archive_of(storage, 2, "").newest_write() == max(writes)
    upgraded = MemoryStorage()
    put_manifest(upgraded, 1, put_file(upgraded, f"{T[2]}_{T[1]}_0.parquet", 2, 4, 1))
    assert opened(2, upgraded).newest_write() == T[4]
    opened(2, upgraded).put([commit(2, 1)])
    assert opened(2, upgraded).newest_write() == time(1) > T[4]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_replaced_up_to_a_time(layout: int) -> None:
    storage = MemoryStorage()
    archive = opened(layout, storage)
    archive.put([commit(layout, 1), commit(layout, 2, "f", "g"), rollback(layout, 3)])
    archive.put([commit(layout, 4, "h")])
    assert set(archive.replaced(time(1))) == set()
    assert set(archive.replaced(time(3))) == {("p", "f"), ("p", "g")}
    assert set(archive.replaced(time(4))) == {("p", "f"), ("p", "g"), ("p", "h")}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_replace_commit_that_is_archived_empty_is_named(layout: int) -> None:
    """What it has replaced is not known: that it was nothing would be a guess."""
    storage = MemoryStorage()
    archive = opened(layout, storage)
    archive.put([[done(layout, 1, Action.REPLACE_COMMIT, b"")]])
    with pytest.raises(CorruptFileError, match=r"archive|history"):
        list(archive.replaced(time(1)))


def test_a_file_that_others_merge_away_meanwhile_is_no_answer() -> None:
    storage = MemoryStorage()
    opened(2, storage).put([commit(2, 1, "f")])
    archive = opened(2, Merging(files=storage.files))
    with pytest.raises(NotFoundError):
        archive.newest_write()
    with pytest.raises(NotFoundError):
        list(archive.replaced(time(1)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("action", [Action.COMMIT, Action.CLEAN])
def test_what_is_damaged_is_not_archived(layout: int, action: Action) -> None:
    storage = MemoryStorage()
    damaged = done(layout, 2, action, b"{")
    with pytest.raises(CorruptFileError, match=time(2)):
        opened(layout, storage).put([commit(layout, 1), [damaged]])
    assert archived(storage) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_empty_file_is_archived_as_such(layout: int) -> None:
    """Apache Hudi may leave one where it is killed."""
    storage = MemoryStorage()
    opened(layout, storage).put([[done(layout, 1, Action.COMMIT, b"")], rollback(layout, 2)])
    assert [(i.time, i.action) for i in archived(storage)] == [
        (time(1), Action.COMMIT),
        (time(2), Action.ROLLBACK),
    ]


def test_an_instant_that_others_have_archived_meanwhile() -> None:
    """Its completed file goes last, once the archive has it."""
    storage = MemoryStorage()
    requested = Instant(time(1), Action.COMMIT, State.REQUESTED, layout=2)
    opened(2, storage).put([[ActiveFile(requested, b"", time(1))], commit(2, 2), []])
    assert [instant.time for instant in archived(storage)] == [time(2)]


def test_an_instant_that_was_completed_twice() -> None:
    """Cleans of Apache Hudi need no lock; the last one is archived."""
    storage = MemoryStorage()
    files = [done(2, 1, Action.ROLLBACK, b"", end) for end in (3, 5, 4)]
    opened(2, storage).put([files])
    assert [instant.completion_time for instant in archived(storage)] == [time(5)]


def test_files_are_tidied_by_option() -> None:
    storage = MemoryStorage()
    archive = archive_of(storage, 2, "", files_per_level=3)
    for number in range(1, 4):
        archive.tidy(archive.put([commit(2, number)]))
    assert [file.level for file in newest_snapshot(storage).files] == [1]
    assert len(archived(storage)) == 3


def test_an_archive_whose_files_are_gone_at_each_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise NotFoundError("merged into another")

    monkeypatch.setattr(module, "newest_snapshot", gone)
    with pytest.raises(NotFoundError, match="come and go; try again"):
        archived_writes(MemoryStorage(), Timeline(layout=2), "history")
