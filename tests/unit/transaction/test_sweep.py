from __future__ import annotations

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import claim_path, instant_path, marker_folder
from hoodie_ds.transaction.ownership import claim
from hoodie_ds.transaction.sweep import sweep
from hoodie_ds.transaction.temporary_files import left_over
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    MIXED_LOG,
    NEW_BASE,
    OLD_BASE,
    begin,
    commit,
    data_files,
    new_table,
    put_file,
)

_BEFORE = "20240101000000000"


def _sweep(table: Table) -> None:
    times = left_over(table.storage)
    sweep(table, load_timeline(table.storage, 1), times)


def test_a_file_that_its_commit_does_not_name_goes(storage: Storage) -> None:
    table = new_table(storage)
    late = OLD_BASE.replace("0-1-1", "0-1-9")
    put_file(table, OLD_BASE, marker=DONE)
    put_file(table, late, marker=DONE)
    commit(table, DONE, OLD_BASE)
    _sweep(table)
    assert data_files(storage) == [OLD_BASE]
    assert left_over(table.storage) == {}


def test_files_of_an_instant_that_is_gone_go(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    put_file(table, NEW_BASE, marker=FAILED)
    _sweep(table)
    assert data_files(storage) == [OLD_BASE]
    assert left_over(table.storage) == {}


def test_without_commits_no_instant_counts_as_archived(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, NEW_BASE, marker=FAILED)
    _sweep(table)
    assert data_files(storage) == []


def test_files_of_a_pending_instant_stay(storage: Storage) -> None:
    table = new_table(storage)
    begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    _sweep(table)
    assert data_files(storage) == [NEW_BASE]
    assert list(left_over(table.storage)) == [FAILED]


def test_files_of_an_archived_instant_stay(storage: Storage) -> None:
    table = new_table(storage)
    commit(table, DONE)
    put_file(table, NEW_BASE, marker=_BEFORE)
    _sweep(table)
    assert data_files(storage) == [NEW_BASE]


def test_what_only_we_know_of_an_instant_that_another_engine_archived_goes(
    storage: Storage,
) -> None:
    table = new_table(storage)
    commit(table, DONE)
    assert claim(storage, _BEFORE, "a dead writer")
    _sweep(table)
    assert left_over(table.storage) == {}
    assert claim(storage, _BEFORE, "a dead writer")
    theirs = f"{marker_folder(_BEFORE)}/MARKERS.type"
    storage.put_if_absent(theirs, b"TIMELINE_SERVER_BASED")
    _sweep(table)
    assert left_over(table.storage) == {_BEFORE: {theirs, claim_path(_BEFORE)}}


def test_commands_of_another_engines_rollback_stay(storage: Storage) -> None:
    table = new_table(storage)
    commit(table, DONE)
    put_file(table, MIXED_LOG, marker=FAILED)
    completed = Instant(FAILED, Action.ROLLBACK, State.COMPLETED)
    storage.put_if_absent(instant_path(completed), b"")
    _sweep(table)
    assert data_files(storage) == [MIXED_LOG]


def test_an_instant_that_began_after_the_timeline_was_loaded_is_not_swept(
    storage: Storage,
) -> None:
    table = new_table(storage)
    times = left_over(table.storage)
    timeline = load_timeline(storage, 1)
    begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    sweep(table, timeline, times)
    assert data_files(storage) == [NEW_BASE]


def test_what_an_instant_announces_during_a_sweep_stays(storage: Storage) -> None:
    """Its claim was seen before it was on the timeline, and the sweep took its time."""
    table = new_table(storage)
    assert claim(storage, FAILED, "a live writer")
    found = left_over(table.storage)
    timeline = load_timeline(storage, 1)
    begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    sweep(table, timeline, found)
    assert data_files(storage) == [NEW_BASE]
    assert storage.read(claim_path(FAILED)) == b"a live writer"


def test_the_claim_of_a_service_that_is_about_to_be_planned_stays(storage: Storage) -> None:
    """Else a write could take the same time, which the decision log schedules the service for."""
    table = new_table(storage)
    commit(table, DONE)
    assert claim(storage, FAILED, "the service")
    _sweep(table)
    assert left_over(storage) == {FAILED: {claim_path(FAILED)}}
    commit(table, "20250109000000000")
    _sweep(table)
    assert left_over(storage) == {}
