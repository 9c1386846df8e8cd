from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.archive import ActiveFile, archive_of
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY, PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import PROPERTIES, instant_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Decision, Outcome, append_decision
from hoodie_ds.transaction.guard_commits import (
    carried_entries,
    carried_with,
    entries_carried,
    guard_commits,
    guard_commits_until,
)

DAYS = [f"202501{day:02}000000000" for day in range(1, 8)]
COMMON = b"hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\n"
PROPERTIES_BY_LAYOUT = {
    1: COMMON + b"hoodie.table.version=6\n",
    2: COMMON + b"hoodie.table.version=9\nhoodie.timeline.layout.version=2\n",
}


@pytest.fixture(params=[1, 2])
def layout(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def storage(tmp_path: Path, layout: int) -> Storage:
    found = open_storage(f"memory://{tmp_path}")
    found.put_if_absent(PROPERTIES, PROPERTIES_BY_LAYOUT[layout])
    return found


def ours(query: str, number: int, pending: str = "") -> CommitMetadata:
    guard = ReplayGuard().with_batch(BatchId(query, number), InputDigest(1, number))
    return CommitMetadata(extra={**guard.entries(), PENDING_KEY: pending})


def completed(time: str, layout: int) -> Instant:
    instant = Instant(time, Action.COMMIT, State.COMPLETED, layout=layout)
    return instant.completed(time[:-1] + "9" if layout == 2 else "")


def put(storage: Storage, time: str, commit: CommitMetadata, layout: int) -> None:
    path = instant_path(completed(time, layout))
    storage.put_if_absent(path, commit.to_bytes(layout))


def archive(storage: Storage, commits: dict[str, CommitMetadata], layout: int) -> None:
    """Each in a file of its own."""
    for time, commit in commits.items():
        file = ActiveFile(completed(time, layout), commit.to_bytes(layout), time)
        archive_of(storage, layout, "archived").put([[file]])


def active(storage: Storage, layout: int) -> Timeline:
    return load_timeline(storage, layout)


def savepoint(storage: Storage, time: str, layout: int) -> None:
    step = Instant(time, Action.SAVEPOINT, State.COMPLETED, layout=layout)
    path = instant_path(step.completed(DAYS[6] if layout == 2 else ""))
    storage.put_if_absent(path, b"")


def test_the_archive_is_read_down_to_the_writes_pending_with_our_newest(
    storage: Storage, layout: int
) -> None:
    foreign = CommitMetadata(extra={CHECKPOINT_KEY: '{"jvm": "3"}'})
    told = {DAYS[0]: ours("x", 1), DAYS[1]: ours("a", 5), DAYS[2]: ours("y", 1)}
    archive(storage, {**told, DAYS[3]: ours("b", 6, DAYS[1]), DAYS[4]: foreign}, layout)
    if layout == 2:  # of a writer of Hudi's that was killed, which that layout archives
        empty = ActiveFile(completed(f"{DAYS[4][:-1]}1", layout), b"", DAYS[4])
        archive_of(storage, layout, "archived").put([[empty]])
    put(storage, DAYS[5], CommitMetadata(), layout)
    put(storage, DAYS[6], ours("gone", 7), layout)
    timeline = active(storage, layout)
    found = guard_commits_until(storage, timeline, DAYS[5])
    assert [i.time for i, _ in found] == [DAYS[5], DAYS[4], DAYS[3], DAYS[1]]
    carried = carried_entries((commit for _, commit in found), DAYS[5])
    decision = Decision(1, Outcome.UNDO, completed(DAYS[6], layout), "by", carried)
    assert append_decision(storage, decision)
    storage.delete(instant_path(completed(DAYS[6], layout)))
    guard = ReplayGuard.load(storage, active(storage, layout))
    assert guard.committed == {"a": "5", "b": "6", "jvm": "3"}


def test_a_write_kept_by_a_savepoint_does_not_replace_the_archive(
    storage: Storage, layout: int
) -> None:
    put(storage, DAYS[0], ours("q", 1), layout)
    savepoint(storage, DAYS[0], layout)
    archive(storage, {DAYS[1]: ours("q", 2)}, layout)
    put(storage, DAYS[3], CommitMetadata(), layout)
    timeline = active(storage, layout)
    assert [i.time for i, _ in guard_commits(storage, timeline)] == [DAYS[3], DAYS[0]]
    found = guard_commits_until(storage, timeline, DAYS[3])
    assert [i.time for i, _ in found] == [DAYS[3], DAYS[1]]
    carried = carried_entries((commit for _, commit in found), DAYS[3])
    assert append_decision(
        storage, Decision(1, Outcome.COMPLETE, completed(DAYS[3], layout), "by", carried)
    )
    assert ReplayGuard.load(storage, timeline).highest(BatchId("q", 0)) == 2


def test_writes_pending_with_our_newest_may_be_archived(storage: Storage, layout: int) -> None:
    archive(storage, {DAYS[0]: ours("a", 5)}, layout)
    put(storage, DAYS[1], ours("b", 6, DAYS[0]), layout)
    found = guard_commits_until(storage, active(storage, layout), DAYS[1])
    carried = carried_entries((commit for _, commit in found), DAYS[1])
    assert append_decision(
        storage, Decision(1, Outcome.COMPLETE, completed(DAYS[1], layout), "by", carried)
    )
    assert ReplayGuard.load(storage, active(storage, layout)).committed == {"a": "5", "b": "6"}


def test_carried_entries_count_until_their_newest_write_is_rolled_back(
    storage: Storage, layout: int
) -> None:
    archive(storage, {DAYS[0]: ours("q", 1)}, layout)
    for time in (DAYS[1], DAYS[2]):
        put(storage, time, CommitMetadata(), layout)
    timeline = active(storage, layout)
    newest = ours("q", 2).guard_entries
    carried = carried_with(newest, completed(DAYS[1], layout), timeline)
    assert entries_carried(storage, timeline, carried) == [carried]
    assert carried_with(newest, completed(DAYS[3], layout), timeline) != carried
    storage.delete(instant_path(completed(DAYS[2], layout)))
    timeline = active(storage, layout)
    (_, older) = entries_carried(storage, timeline, carried)
    assert json.loads(older[CHECKPOINT_KEY]) == {"q": "1"}
    assert entries_carried(storage, timeline, newest) == [newest]  # of a release before
    assert not guard_commits_until(storage, timeline, "20240101000000000")
