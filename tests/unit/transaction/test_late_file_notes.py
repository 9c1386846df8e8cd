"""Files that come after their instant has ended, of a process that was stopped in their very put.

Readers that list folders, as those of Hudi on the JVM do, take a base file for committed whose
instant lies before the first commit of the timeline: that is what each test looks for in the end.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import LATE, late_path
from hoodie_ds.transaction.decision_log import Decision, Outcome
from hoodie_ds.transaction.exclusive_commit import finish
from hoodie_ds.transaction.late_file_notes import delete_late_files, note_late_files
from hoodie_ds.transaction.recovery import recover
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    NEW_BASE,
    OLD_BASE,
    OTHER_BASE,
    DyingStorage,
    FixedClock,
    KilledError,
    begin,
    commit,
    commit_body,
    data_files,
    new_table,
    put_file,
)

_LATER = "20250103000000000"
_LOST = OLD_BASE.replace("0-1-1", "0-1-9")


class _Overtaken(DyingStorage):
    """Lets something happen before it reads a note."""

    def __init__(self, inner: Storage, happens: Callable[[], None]) -> None:
        super().__init__(inner, 0, after=False)
        self._happens = happens

    def read(self, path: str) -> bytes:
        if path.startswith(LATE):
            self._happens()
        return super().read(path)


def _undone(storage: Storage) -> Table:
    """A table whose second instant was rolled back while one of its files was being put."""
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    begin(table, FAILED)
    put_file(table, OTHER_BASE, marker=FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    recover(table, FixedClock())
    assert data_files(storage) == [OLD_BASE]
    return table


def _delete_late(table: Table, start: str) -> None:
    delete_late_files(table, load_timeline(table.storage, 1), start)


def _drop(table: Table, time: str) -> None:
    """As archiving does it."""
    for status in table.storage.list(".hoodie"):
        if status.path.startswith(f".hoodie/{time}."):
            table.storage.delete(status.path)


def test_a_file_put_after_a_rollback_is_deleted_before_its_instant_is_archived(
    storage: Storage,
) -> None:
    table = _undone(storage)
    put_file(table, NEW_BASE)
    recover(table, FixedClock())
    commit(table, _LATER)
    _delete_late(table, FAILED)
    assert data_files(storage) == sorted([OLD_BASE, NEW_BASE])  # nobody takes it for committed yet
    _delete_late(table, _LATER)
    assert data_files(storage) == [OLD_BASE]


def test_a_file_put_after_archiving_is_deleted_by_the_next_archiving(
    storage: Storage,
) -> None:
    table = _undone(storage)
    commit(table, _LATER)
    _delete_late(table, _LATER)
    assert storage.list(LATE)
    _drop(table, DONE)
    put_file(table, NEW_BASE)
    _delete_late(table, _LATER)
    assert data_files(storage) == [OLD_BASE]
    assert not storage.list(LATE)


def test_a_file_put_after_the_completion_is_deleted(storage: Storage) -> None:
    """The file of a lost attempt: the archive does not tell it from those of the commit."""
    table = new_table(storage)
    pending = begin(table, DONE)
    put_file(table, OLD_BASE, marker=DONE)
    put_file(table, _LOST, marker=DONE)
    finish(table, Decision(1, Outcome.COMPLETE, pending, "me"), commit_body(OLD_BASE))
    assert data_files(storage) == [OLD_BASE]
    put_file(table, _LOST)
    commit(table, _LATER)
    _delete_late(table, _LATER)
    assert data_files(storage) == [OLD_BASE]


def test_a_file_announced_after_the_rollback_is_noted(storage: Storage) -> None:
    """Its marker lies there alone when the next batch sweeps it away."""
    table = _undone(storage)
    late = NEW_BASE.replace("0-2-2", "0-5-5")
    put_file(table, late, marker=FAILED)
    recover(table, FixedClock())
    put_file(table, late)
    commit(table, _LATER)
    _delete_late(table, _LATER)
    assert data_files(storage) == [OLD_BASE]


@pytest.mark.parametrize("after", [False, True])
def test_a_rollback_that_is_killed_anywhere_leaves_a_note(after: bool) -> None:
    number, ended = 0, False
    while not ended:
        number += 1
        storage = MemoryStorage()
        table = new_table(storage)
        put_file(table, OLD_BASE)
        commit(table, DONE, OLD_BASE)
        begin(table, FAILED)
        put_file(table, NEW_BASE, marker=FAILED)
        dying = Table(DyingStorage(storage, number, after=after), table.properties)
        try:
            recover(dying, FixedClock())
            ended = True
        except KilledError:
            recover(table, FixedClock())
        put_file(table, NEW_BASE)
        commit(table, _LATER)
        _delete_late(table, _LATER)
        assert data_files(storage) == [OLD_BASE], f"operation {number}"
    assert number > 15


def test_without_failures_nothing_is_noted(storage: Storage) -> None:
    table = new_table(storage)
    pending = begin(table, DONE)
    put_file(table, OLD_BASE, marker=DONE)
    finish(table, Decision(1, Outcome.COMPLETE, pending, "me"), commit_body(OLD_BASE))
    recover(table, FixedClock())
    assert not storage.list(LATE)


def test_committed_files_are_not_deleted(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    commit(table, _LATER)
    note_late_files(storage, DONE, [OLD_BASE, _LOST])
    put_file(table, _LOST)
    _delete_late(table, _LATER)
    assert data_files(storage) == [OLD_BASE]


def test_a_file_of_the_timeline_is_never_a_late_file(storage: Storage) -> None:
    table = new_table(storage)
    commit(table, _LATER)
    note_late_files(storage, FAILED, [".hoodie/hoodie.properties"])
    _delete_late(table, _LATER)
    assert storage.read(".hoodie/hoodie.properties")


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": 1}', b"[1]", b"\xff"])
def test_a_damaged_note_is_named(storage: Storage, body: bytes) -> None:
    table = new_table(storage)
    commit(table, _LATER)
    storage.put_if_absent(late_path(FAILED, "0"), body)
    with pytest.raises(CorruptFileError, match=f"late/{FAILED}_0 .* delete it, and files of"):
        _delete_late(table, _LATER)


def test_two_archivers_read_the_same_notes(storage: Storage) -> None:
    table = _undone(storage)
    commit(table, _LATER)
    _drop(table, DONE)
    put_file(table, NEW_BASE)
    slow = _Overtaken(storage, lambda: _delete_late(table, _LATER))
    _delete_late(Table(slow, table.properties), _LATER)
    assert data_files(storage) == [OLD_BASE]
    assert not storage.list(LATE)
