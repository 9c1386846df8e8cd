"""Names of timeline layout 2 as in Hudi's tech spec and tables of versions 8 and 9; markers."""

from __future__ import annotations

import pickle

import pytest

from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import V2, in_partition, instant_path, marked_file, marker_path
from hoodie_ds.timeline.timeline import Timeline

T = [f"2025010{day}000000000" for day in range(10)]
C = [f"2025010{day}120000000" for day in range(10)]

PENDING = {
    f"{T[1]}.commit.requested": (Action.COMMIT, State.REQUESTED),
    f"{T[1]}.inflight": (Action.COMMIT, State.INFLIGHT),
    f"{T[1]}.deltacommit.inflight": (Action.DELTA_COMMIT, State.INFLIGHT),
    f"{T[1]}.clustering.requested": (Action.CLUSTERING, State.REQUESTED),
    f"{T[1]}.clustering.inflight": (Action.CLUSTERING, State.INFLIGHT),
    f"{T[1]}.compaction.inflight": (Action.COMPACTION, State.INFLIGHT),
    f"{T[1]}.savepoint.inflight": (Action.SAVEPOINT, State.INFLIGHT),
}
COMPLETED = {
    f"{T[1]}_{C[1]}.commit": Action.COMMIT,
    f"{T[1]}_{C[1]}.deltacommit": Action.DELTA_COMMIT,
    f"{T[1]}_{C[1]}.replacecommit": Action.REPLACE_COMMIT,
    f"{T[1]}_{C[1]}.clean": Action.CLEAN,
    f"{T[1]}_{C[1]}.rollback": Action.ROLLBACK,
    f"{T[1]}_{C[1]}.savepoint": Action.SAVEPOINT,
    f"{T[1]}_{C[1]}.restore": Action.RESTORE,
    f"{T[1]}_{C[1]}.indexing": Action.INDEXING,
}


def completed(day: int, action: Action = Action.DELTA_COMMIT) -> Instant:
    return Instant(T[day], action, State.COMPLETED, layout=2, completion_time=C[day])


def load(storage: MemoryStorage) -> Timeline:
    return load_timeline(storage, 2)


def put(storage: MemoryStorage, *names: str) -> Timeline:
    for name in names:
        storage.put_if_absent(f".hoodie/timeline/{name}", b"")
    return load(storage)


@pytest.mark.parametrize("name", PENDING)
def test_names_of_pending_instants_are_those_of_layout_1(name: str) -> None:
    instant = V2.parse(name)
    assert instant == Instant(T[1], *PENDING[name], layout=2)
    assert (V2.file_name(instant), instant_path(instant)) == (name, f".hoodie/timeline/{name}")


@pytest.mark.parametrize("name", COMPLETED)
def test_names_of_completed_instants_have_the_completion_time(name: str) -> None:
    instant = V2.parse(name)
    assert instant == completed(1, COMPLETED[name])
    assert (V2.file_name(instant), instant.ended) == (name, C[1])
    assert instant.at(State.INFLIGHT).completion_time == ""


def test_services_complete_under_the_names_of_writes() -> None:
    names = {V2.file_name(completed(1, a)) for a in (Action.COMPACTION, Action.LOG_COMPACTION)}
    assert names == {f"{T[1]}_{C[1]}.commit", f"{T[1]}_{C[1]}.deltacommit"}
    assert V2.file_name(completed(1, Action.CLUSTERING)) == f"{T[1]}_{C[1]}.replacecommit"


def test_an_instant_of_before_an_upgrade_may_lack_the_completion_time() -> None:
    instant = V2.parse(f"{T[1]}.commit")
    assert instant == Instant(T[1], Action.COMMIT, State.COMPLETED, layout=2)
    assert (V2.file_name(instant), instant.ended) == (f"{T[1]}.commit", T[1])


@pytest.mark.parametrize(
    "name",
    [
        *("history", "manifest_1", "_version_", f".{T[1]}_{C[1]}.commit.crc", f"{T[1]}.other"),
        *(f"{T[1]}_{C[1]}.commit.requested", f"{T[1]}_{C[1]}.inflight", f"{T[1]}_.commit"),
        *(f"{T[1]}_123.commit", f"{T[1]}_{C[1]}.compaction", f"{T[1]}_{C[1]}.clustering"),
        *(f"{T[1][:-1]}_{C[1]}.commit", f"{T[1]}_{C[1]}_{C[1]}.commit", f"{T[1]}_{C[1]}.commit\n"),
        "\u0662" * 17 + ".commit",
    ],
)
def test_other_names_are_no_instants(name: str) -> None:
    assert V2.parse(name) is None


def test_a_timeline_of_layout_2() -> None:
    storage = MemoryStorage()
    storage.put_if_absent(f".hoodie/{T[9]}.commit", b"")  # of before the upgrade, and of no account
    timeline = put(
        storage,
        *(f"{T[1]}.deltacommit.requested", f"{T[1]}.deltacommit.inflight"),
        *(f"{T[1]}_{C[1]}.deltacommit", f"{T[1]}_{C[1]}.savepoint"),
        *(f"{T[2]}.clustering.requested", f"{T[2]}_{C[2]}.replacecommit"),
        *(f"{T[3]}.clustering.inflight", "history/manifest_1"),
    )
    assert timeline.completed == (completed(1), completed(2, Action.REPLACE_COMMIT))
    assert timeline.replace_commits == (completed(2, Action.REPLACE_COMMIT),)
    assert timeline.savepoints == (completed(1, Action.SAVEPOINT),)
    assert [i.action for i in timeline.pending] == [Action.CLUSTERING]
    assert (timeline.layout, timeline.latest_time) == (2, T[3])
    assert load_timeline(storage, 1).latest_time == T[9]


def test_a_timeline_travels_with_its_completion_times() -> None:
    names = (f"{T[1]}_{C[1]}.deltacommit", f"{T[2]}.commit", f"{T[3]}.inflight")
    timeline = put(MemoryStorage(), *names)
    travelled = pickle.loads(pickle.dumps(timeline))
    assert travelled == timeline
    assert (travelled.layout, travelled.completed) == (2, timeline.completed)
    assert pickle.loads(pickle.dumps(Timeline(layout=2))).layout == 2


def test_new_and_deleted_files_change_the_timeline() -> None:
    storage = MemoryStorage()
    put(storage, f"{T[1]}_{C[1]}.deltacommit", f"{T[2]}.deltacommit.inflight")
    timeline = put(storage, f"{T[2]}_{C[2]}.deltacommit", f"{T[4]}.deltacommit.inflight")
    assert timeline.completed == (completed(1), completed(2))
    storage.delete(f".hoodie/timeline/{T[1]}_{C[1]}.deltacommit")
    storage.delete(f".hoodie/timeline/{T[4]}.deltacommit.inflight")
    assert (load(storage).completed, load(storage).pending) == ((completed(2),), ())


def test_a_long_timeline_keeps_its_completion_times() -> None:
    storage = MemoryStorage()
    times = [f"202501{n // 100:02d}0000{n % 100:02d}000" for n in range(100, 500)]
    timeline = put(storage, *(f"{time}_{C[9]}.commit" for time in times))
    assert [(i.time, i.ended) for i in timeline.completed] == [(time, C[9]) for time in times]
    assert len(timeline.settled) > 200
    assert put(storage, f"{T[9]}_{C[9]}.commit").num_completed == 401


def test_a_marker_tells_its_file() -> None:
    for path in (
        "g_0-1-1_1.parquet",
        "a/b=c/.g_1.log.1_0-1-1",
        "x.marker.CREATE/g_0-1-1_1.parquet",
    ):
        assert marked_file("1", marker_path("1", path, "CREATE")) == path


def test_other_files_of_the_folder_tell_none() -> None:
    assert marked_file("1", ".hoodie/.temp/1/manifest.json") is None
    assert marked_file("1", marker_path("2", "g.parquet", "CREATE")) is None


def test_the_path_without_partition_is_the_name() -> None:
    assert in_partition("", "n") == "n"
    assert in_partition("a/b", "n") == "a/b/n"
