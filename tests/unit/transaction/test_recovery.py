from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, read_blocks
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind
from hoodie_ds.timeline.bodies.clustering_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
)
from hoodie_ds.timeline.bodies.replace_plan import empty_plan
from hoodie_ds.timeline.bodies.rollback_metadata import plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import (
    DECISIONS,
    TEMP,
    V1,
    aborted_path,
    claim_path,
    instant_path,
    manifest_path,
    marker_folder,
)
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome, append_decision, next_decision
from hoodie_ds.transaction.manifest import newest_manifest
from hoodie_ds.transaction.ownership import claim
from hoodie_ds.transaction.recovery import decided_timeline, recover, recover_lazily, sweep
from hoodie_ds.transaction.rollback import roll_back
from hoodie_ds.transaction.temporary_files import left_over
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    GROUP,
    MIXED_LOG,
    NEW_BASE,
    OLD_BASE,
    OTHER_BASE,
    PURE_LOG,
    DyingStorage,
    FixedClock,
    KilledError,
    begin,
    commit,
    commit_body,
    data_block,
    data_files,
    files,
    new_table,
    put_file,
)

_CLOCK = FixedClock()
_UNNAMED = NEW_BASE.replace("0-2-2", "0-2-9")


def _with_one_commit(storage: Storage) -> Table:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    return table


def _ours_died(storage: Storage) -> Table:
    table = _with_one_commit(storage)
    begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    put_file(table, OTHER_BASE, marker=FAILED)
    storage.put_if_absent(aborted_path(FAILED), b"")
    return table


def _ours_died_with_manifest(storage: Storage) -> Table:
    table = _with_one_commit(storage)
    begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    put_file(table, _UNNAMED, marker=FAILED)
    storage.put_if_absent(manifest_path(FAILED), commit_body(NEW_BASE))
    return table


def _another_engine_died(storage: Storage) -> Table:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    put_file(table, MIXED_LOG, data_block(DONE) + data_block(FAILED))
    commit(table, DONE, OLD_BASE, MIXED_LOG, action=Action.DELTA_COMMIT)
    begin(table, FAILED, Action.DELTA_COMMIT, ours=False)
    put_file(table, OTHER_BASE)
    put_file(table, PURE_LOG, data_block(FAILED))
    return table


def _late_tasks(storage: Storage) -> Table:
    table = _with_one_commit(storage)
    put_file(table, OLD_BASE.replace("0-1-1", "0-1-9"), marker=DONE)
    put_file(table, NEW_BASE, marker=FAILED)
    return table


# Listing, deciding, and at least one change: a sweep that stopped earlier would test nothing.
_OPERATIONS_AT_LEAST = 6

_DEATHS = [_ours_died, _ours_died_with_manifest, _another_engine_died, _late_tasks]


def test_a_rollback_of_a_recovery_is_logged(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    table = _ours_died(storage)
    with caplog.at_level(logging.INFO, "hoodie_ds"):
        recover(table, _CLOCK)
    (rollback,) = (i for i in table.load_timeline().rollbacks if i.state is State.COMPLETED)
    (line,) = caplog.messages
    assert f"rollback {rollback.time} of {FAILED} commit inflight: 2 files deleted" in line


def test_a_write_that_a_recovery_completed_is_logged(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    table = _ours_died_with_manifest(storage)
    with caplog.at_level(logging.INFO, "hoodie_ds"):
        recover(table, _CLOCK)
    (line,) = caplog.messages
    assert line.endswith(f"{FAILED} commit completed by a recovery")


def _end_state(storage: Storage) -> dict[str, object]:
    """Everything on storage, save how many tries the rollback took, and decisions."""
    state: dict[str, object] = {}
    for path, data in files(storage).items():
        if path.startswith(DECISIONS):
            continue
        instant = V1.parse(path.rpartition("/")[2])
        if instant is not None and instant.action is Action.ROLLBACK:
            continue
        blocks = list(read_blocks(data, path)) if ".log." in path else []
        if blocks and blocks[0].block_type is BlockType.COMMAND:
            state[path] = [block.header[HeaderKey.TARGET_INSTANT_TIME] for block in blocks]
        else:
            state[path] = data
    return state


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("death", _DEATHS)
def test_recovery_may_be_killed_at_any_operation(
    death: Callable[[Storage], Table], after: bool, tmp_path: Path
) -> None:
    whole = death(open_storage(f"memory://{tmp_path}/whole"))
    recover(whole, _CLOCK)
    expected = _end_state(whole.storage)
    operation = 0
    while True:
        operation += 1
        storage = open_storage(f"memory://{tmp_path}/{operation}")
        table = death(storage)
        dying = cast(Storage, DyingStorage(storage, operation, after=after))
        try:
            recover(Table(dying, table.properties), _CLOCK)
        except KilledError:
            timeline = recover(table, _CLOCK)
            assert timeline.pending == (), operation
            assert _end_state(storage) == expected, operation
        else:
            break
    assert operation > _OPERATIONS_AT_LEAST


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_rollback_may_be_killed_and_recovery_killed_again(after: bool, tmp_path: Path) -> None:
    whole = _ours_died(open_storage(f"memory://{tmp_path}/whole"))
    recover(whole, _CLOCK)
    expected = _end_state(whole.storage)
    for first in range(1, 20):
        for second in range(1, 20, 3):
            storage = open_storage(f"memory://{tmp_path}/{first}-{second}")
            table = _ours_died(storage)
            instant = Instant(FAILED, Action.COMMIT, State.INFLIGHT)
            for step, death in ((roll_back, first), (recover, second)):
                dying = cast(Storage, DyingStorage(storage, death, after=after))
                try:
                    if step is roll_back:
                        roll_back(Table(dying, table.properties), instant, _CLOCK)
                    else:
                        recover(Table(dying, table.properties), _CLOCK)
                except KilledError:
                    continue
            assert recover(table, _CLOCK).pending == ()
            assert _end_state(storage) == expected


def test_a_whole_manifest_is_committed(storage: Storage) -> None:
    table = _ours_died_with_manifest(storage)
    timeline = recover(table, _CLOCK)
    assert [i.time for i in timeline.commits] == [DONE, FAILED]
    completed = instant_path(Instant(FAILED, Action.COMMIT, State.COMPLETED))
    assert storage.read(completed) == commit_body(NEW_BASE)
    assert data_files(storage) == sorted([OLD_BASE, NEW_BASE])
    assert storage.list(TEMP, recursive=True) == []


@pytest.mark.parametrize("manifest", [b"", b"{", commit_body(NEW_BASE)[:-1]])
def test_a_damaged_manifest_is_rolled_back(storage: Storage, manifest: bytes) -> None:
    table = _with_one_commit(storage)
    begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    storage.put_if_absent(manifest_path(FAILED), manifest)
    timeline = recover(table, _CLOCK)
    assert [i.time for i in timeline.commits] == [DONE]
    assert data_files(storage) == [OLD_BASE]


def test_a_damaged_manifest_of_several_batches_is_refused(storage: Storage) -> None:
    table = _ours_died_with_manifest(storage)
    storage.put_if_absent(manifest_path(FAILED, 2), b"{")
    before = files(storage)
    with pytest.raises(CorruptFileError, match=manifest_path(FAILED, 2)):
        recover(table, _CLOCK)
    assert files(storage) == before


def test_a_manifest_deleted_while_it_is_read_is_none(storage: Storage) -> None:
    table = _ours_died_with_manifest(storage)
    instant, path = Instant(FAILED, Action.COMMIT, State.INFLIGHT), manifest_path(FAILED)
    missing = FaultyStorage(
        storage, [Fault(Effect.MISSING, kinds=frozenset({Kind.READ}), path=path)]
    )
    assert newest_manifest(missing, instant) is None
    assert newest_manifest(table.storage, instant) == (1, storage.read(path))


def test_a_whole_manifest_counts_although_the_inflight_file_is_damaged(storage: Storage) -> None:
    table = _ours_died_with_manifest(storage)
    storage.replace(instant_path(Instant(FAILED, Action.COMMIT, State.INFLIGHT)), b"{")
    assert [i.time for i in recover(table, _CLOCK).commits] == [DONE, FAILED]


def test_another_engines_instant_is_never_committed(storage: Storage) -> None:
    table = new_table(storage)
    begin(table, FAILED, ours=False)
    put_file(table, NEW_BASE)
    storage.put_if_absent(manifest_path(FAILED), commit_body(NEW_BASE))
    assert recover(table, _CLOCK).commits == ()
    assert data_files(storage) == []


def test_a_requested_instant_is_rolled_back(storage: Storage) -> None:
    table = _with_one_commit(storage)
    storage.put_if_absent(instant_path(Instant(FAILED, Action.COMMIT, State.REQUESTED)), b"")
    assert recover(table, _CLOCK).pending == ()
    assert data_files(storage) == [OLD_BASE]


CLUSTERING = Instant("20250103000000000", Action.REPLACE_COMMIT, State.REQUESTED)


def _plan_clustering(table: Table, instant: Instant = CLUSTERING) -> None:
    plan = ClusteringPlan((ClusteringGroup((ClusteringSlice("p", GROUP, ""),)),))
    table.storage.put_if_absent(instant_path(instant), plan.to_bytes("/t"))


def _lazily(table: Table, clock: FixedClock) -> Timeline:
    return recover_lazily(table, clock, 600_000, nullcontext)


@pytest.mark.parametrize("recovery", [recover, _lazily])
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_pending_clustering_stays_and_so_do_its_files(
    recovery: Callable[[Table, FixedClock], Timeline], state: State, storage: Storage
) -> None:
    table = _ours_died(storage)
    _plan_clustering(table)
    instant = CLUSTERING.at(state)
    if state is State.INFLIGHT:
        storage.put_if_absent(instant_path(instant), b"")
    written = f"p/{GROUP}1_0-2-2_{CLUSTERING.time}.parquet"
    put_file(table, written, marker=CLUSTERING.time)
    assert recovery(table, _CLOCK).pending == (instant,)
    assert set(data_files(storage)) == {OLD_BASE, written}  # those of the dead write went
    assert [s.path for s in storage.list(f"{TEMP}/{CLUSTERING.time}", recursive=True)]


@pytest.mark.parametrize("ended", ["archived", "rolled back", "begun after its end"])
def test_a_clustering_put_again_after_its_end_is_deleted(ended: str, storage: Storage) -> None:
    table = _with_one_commit(storage)
    instant = CLUSTERING
    if ended == "archived":
        instant = Instant("20240103000000000", Action.REPLACE_COMMIT, State.REQUESTED)
    committed = f"p/{GROUP}1_0-2-2_{instant.time}.parquet"
    late = f"p/{GROUP}1_0-2-3_{instant.time}.parquet"
    if ended == "archived":
        put_file(table, committed)
    put_file(table, late, marker=instant.time)
    if ended == "begun after its end":
        storage.put_if_absent(instant_path(instant.at(State.INFLIGHT)), b"")
    else:
        _plan_clustering(table, instant)
    if ended == "rolled back":
        roll_back(table, instant, _CLOCK)
        _plan_clustering(table, instant)
        put_file(table, late, marker=instant.time)
    timeline = decided_timeline(table, _CLOCK, left_over(storage))
    assert timeline.pending == ()
    rollbacks = [i for i in timeline.rollbacks if i.state is State.COMPLETED]
    assert len(rollbacks) == (ended == "rolled back")
    assert data_files(storage) == sorted([OLD_BASE, *[committed] * (ended == "archived")])


def test_an_interrupted_rollback_of_a_clustering_is_finished(storage: Storage) -> None:
    """Another engine keeps its markers elsewhere, so its files are found by their names."""
    table = _with_one_commit(storage)
    _plan_clustering(table)
    put_file(table, f"p/{GROUP}1_0-2-2_{CLUSTERING.time}.parquet")
    plan = plan_to_bytes(storage.root, CLUSTERING, {})
    rollback = Instant("20250104000000000", Action.ROLLBACK, State.REQUESTED)
    storage.put_if_absent(instant_path(rollback), plan)
    assert recover(table, _CLOCK).pending == ()
    assert data_files(storage) == [OLD_BASE]


def test_a_pending_overwrite_is_not_a_clustering(storage: Storage) -> None:
    table = _with_one_commit(storage)
    storage.put_if_absent(instant_path(CLUSTERING), empty_plan())
    storage.put_if_absent(instant_path(CLUSTERING.at(State.INFLIGHT)), b"")
    timeline = decided_timeline(table, _CLOCK, left_over(storage))
    assert [instant.time for instant in timeline.pending] == [CLUSTERING.time]
    assert len(recover(table, _CLOCK).rollbacks) == 1


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_pending_overwrite_is_rolled_back(storage: Storage, state: State) -> None:
    table = _ours_died(storage)
    instant = Instant("20250103000000000", Action.REPLACE_COMMIT, State.REQUESTED)
    storage.put_if_absent(instant_path(instant), empty_plan())
    if state is State.INFLIGHT:
        storage.put_if_absent(instant_path(instant.at(state)), commit_body())
    timeline = recover(table, _CLOCK)
    assert not timeline.pending
    assert [i.time for i in timeline.commits] == [DONE]
    assert data_files(storage) == [OLD_BASE]


def test_an_overwrite_without_its_plan_is_rolled_back(storage: Storage) -> None:
    table = _ours_died(storage)
    instant = Instant("20250103000000000", Action.REPLACE_COMMIT, State.INFLIGHT)
    storage.put_if_absent(instant_path(instant), commit_body())
    assert recover(table, _CLOCK).pending == ()
    assert data_files(storage) == [OLD_BASE]


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLEAN, Action.INDEXING])
def test_pending_services_of_others_are_left_alone(storage: Storage, action: Action) -> None:
    table = _with_one_commit(storage)
    pending = begin(table, FAILED, action, ours=False)
    before = files(storage)
    assert recover(table, _CLOCK).pending == (pending,)
    assert files(storage) == before


def test_a_pending_rollback_is_finished(storage: Storage) -> None:
    table = _ours_died(storage)
    instant = Instant(FAILED, Action.COMMIT, State.INFLIGHT)
    begun = Instant("20250103000000000", Action.ROLLBACK, State.INFLIGHT)
    plan = plan_to_bytes(storage.root, instant, {})
    storage.put_if_absent(instant_path(begun.at(State.REQUESTED)), plan)
    storage.put_if_absent(instant_path(begun), b"")
    timeline = recover(table, _CLOCK)
    assert [i for i in timeline.completed if i.action is Action.ROLLBACK] == [
        begun.at(State.COMPLETED)
    ]
    assert timeline.pending == ()
    assert data_files(storage) == [OLD_BASE]


class _CountingStorage:
    """Counts operations by name."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name != "root":
            self.calls.append(name)
        return found


def test_a_recovery_without_work_costs_three_listings(storage: Storage) -> None:
    table = _with_one_commit(storage)
    counting = _CountingStorage(storage)
    recover(Table(cast(Storage, counting), table.properties), _CLOCK)
    # What is left over, the summaries, the timeline; the latter of other storages.
    assert counting.calls in (["list", "list", "names"], ["list", "list", "list"])


def test_a_clustering_that_was_decided_is_completed_first(storage: Storage) -> None:
    """Else the batch that begins would be made for the file groups of before."""
    table = _with_one_commit(storage)
    _plan_clustering(table)
    storage.put_if_absent(instant_path(CLUSTERING.at(State.INFLIGHT)), b"")
    storage.put_if_absent(manifest_path(CLUSTERING.time), commit_body())
    inflight = CLUSTERING.at(State.INFLIGHT)
    assert append_decision(storage, next_decision(None, Outcome.COMPLETE, inflight, "another"))
    timeline = decided_timeline(table, _CLOCK, left_over(storage))
    assert timeline.pending == ()
    assert timeline.commit_at(CLUSTERING.time) == CLUSTERING.at(State.COMPLETED)


_BEFORE = "20240101000000000"


def _sweep(table: Table) -> None:
    times = left_over(table.storage)
    sweep(table, load_timeline(table.storage, 1), times)


def test_a_file_that_its_commit_does_not_name_is_deleted(storage: Storage) -> None:
    table = new_table(storage)
    late = OLD_BASE.replace("0-1-1", "0-1-9")
    put_file(table, OLD_BASE, marker=DONE)
    put_file(table, late, marker=DONE)
    commit(table, DONE, OLD_BASE)
    _sweep(table)
    assert data_files(storage) == [OLD_BASE]
    assert left_over(table.storage) == {}


def test_files_of_a_rolled_back_instant_are_deleted(storage: Storage) -> None:
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


def test_our_temporary_files_of_an_instant_archived_by_others_are_deleted(
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


def test_files_announced_during_a_sweep_stay(storage: Storage) -> None:
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
