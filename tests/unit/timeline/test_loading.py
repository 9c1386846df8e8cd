from __future__ import annotations

import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage, names_in
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import V1
from hoodie_ds.timeline.timeline import Timeline

T = [f"2025010{day}000000000" for day in range(10)]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(f"memory://{tmp_path}")


def put(storage: Storage, *names: str) -> Timeline:
    for name in names:
        storage.put_if_absent(f".hoodie/{name}", b"{}")
    return load_timeline(storage, 1)


def test_the_furthest_state_of_each_instant_counts(storage: Storage) -> None:
    timeline = put(
        storage,
        *(f"{T[1]}.{end}" for end in ("commit.requested", "inflight", "commit")),
        *(f"{T[3]}.{end}" for end in ("commit.requested", "inflight")),
        f"{T[2]}.clean",
        f"{T[4]}.compaction.requested",
        "hoodie.properties",
        ".temp/x/2.commit",
    )
    assert timeline.completed == (
        Instant(T[1], Action.COMMIT, State.COMPLETED),
        Instant(T[2], Action.CLEAN, State.COMPLETED),
    )
    assert timeline.pending == (
        Instant(T[3], Action.COMMIT, State.INFLIGHT),
        Instant(T[4], Action.COMPACTION, State.REQUESTED),
    )
    assert [i.time for i in timeline.commits] == [T[1]]
    assert [i.time for i in timeline.pending_compactions] == [T[4]]
    assert timeline.latest_time == T[4]


def test_what_counts_as_committed(storage: Storage) -> None:
    timeline = put(
        storage, f"{T[1]}.rollback", f"{T[2]}.inflight", f"{T[3]}.commit", f"{T[5]}.deltacommit"
    )
    assert timeline.is_committed(T[3])
    assert timeline.is_committed(T[5])
    assert timeline.is_committed(T[0])  # archived
    assert not timeline.is_committed(T[2])  # pending, however old
    assert not timeline.is_committed(T[4])  # rolled back
    assert not timeline.is_committed(T[6])


def test_without_commits_nothing_is_committed(storage: Storage) -> None:
    assert not put(storage, f"{T[3]}.inflight").is_committed(T[1])
    assert Timeline().latest_time is None


def test_an_old_time_compares_with_milliseconds(storage: Storage) -> None:
    timeline = put(storage, "20250103000000.commit", "20250103000000500.commit")
    assert [i.time for i in timeline.completed] == ["20250103000000500", "20250103000000"]
    assert timeline.latest_time == "20250103000000"


def test_a_commit_that_is_gone_or_damaged_is_named(storage: Storage) -> None:
    gone = Instant(T[1], Action.COMMIT, State.COMPLETED)
    with pytest.raises(TimelineError, match=rf"{T[1]}\.commit is gone"):
        read_commit(storage, gone)
    storage.put_if_absent(f".hoodie/{T[2]}.commit", b"Obj\x01")
    with pytest.raises(CorruptFileError, match=rf"{T[2]}\.commit"):
        read_commit(storage, Instant(T[2], Action.COMMIT, State.COMPLETED))
    storage.put_if_absent(f".hoodie/{T[3]}.commit", b"[1]")
    with pytest.raises(CorruptFileError, match="not what a commit says"):
        read_commit(storage, Instant(T[3], Action.COMMIT, State.COMPLETED))


def test_an_empty_commit_reads_as_one_that_did_nothing() -> None:
    assert CommitMetadata.from_bytes(b"{}", "p").stats == ()


@pytest.mark.parametrize("seed", range(40))
def test_changes_are_loaded_as_if_all_names_were_parsed_again(seed: int) -> None:
    """Appended, archived, rolled back, put late, in seconds and in milliseconds."""
    draw = random.Random(seed)
    storage = MemoryStorage()
    times = [f"202601010000{second:02d}" for second in range(12)]
    times += [f"{time}{ms:03d}" for time in times for ms in (0, 1, 999)]
    shapes = [V1.file_name(Instant("", action, state)) for action in Action for state in State]
    for _ in range(30):
        for _ in range(draw.randint(0, 4)):
            path = f".hoodie/{draw.choice(times)}{draw.choice(shapes)}"
            if path in storage.files:
                storage.delete(path)
            else:
                storage.replace(path, b"")
        storage.replace(f".hoodie/{draw.randint(0, 9)}.other", b"")
        found = load_timeline(storage, 1)
        assert found == load_timeline(storage.copy(), 1)
        again = pickle.loads(pickle.dumps(found))
        assert again == found
        assert again.digest == found.digest


def test_a_timeline_that_has_not_changed_is_the_same_object() -> None:
    storage = MemoryStorage()
    storage.replace(".hoodie/20260101000000000.commit", b"")
    timeline = load_timeline(storage, 1)
    storage.replace(".hoodie/hoodie.properties", b"")
    assert load_timeline(storage, 1) is timeline


def test_a_timeline_with_a_prepared_instant_travels_whole() -> None:
    joined = Instant("20260101000000001", Action.COMMIT, State.INFLIGHT, 3)
    timeline = Timeline((Instant("20260101000000000", Action.COMMIT, State.COMPLETED),))
    again = pickle.loads(pickle.dumps(timeline.with_joined(joined)))
    assert again.joined == joined
    assert again.digest != timeline.with_joined(replace(joined, num_batches=2)).digest


def test_other_storages_list_files_for_names(tmp_path: Path) -> None:
    local, memory = LocalStorage(str(tmp_path)), MemoryStorage()
    for storage in (local, memory):
        assert names_in(storage, ".hoodie") == []
        storage.put_if_absent(".hoodie/a", b"")
        assert names_in(storage, ".hoodie") == ["a"]


def test_what_a_joined_instant_holds_is_not_looked_for_in_the_archive() -> None:
    storage = MemoryStorage()
    joined = Instant("20250101000000000", Action.COMMIT, State.INFLIGHT, 2)
    with pytest.raises(TimelineError, match=r"manifest_2\.json is gone"):
        read_commit(storage, joined)


def test_a_table_without_properties_has_no_archive() -> None:
    gone = Instant("20250101000000000", Action.COMMIT, State.COMPLETED)
    with pytest.raises(TimelineError, match=r"20250101000000000\.commit is gone"):
        read_commit(MemoryStorage(), gone)
