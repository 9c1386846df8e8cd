from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY, PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path

ROWS = InputDigest(2, 12345)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(f"memory://{tmp_path}")


def commit(storage: Storage, time: str, **extra: str) -> None:
    instant = Instant(time, Action.COMMIT, State.COMPLETED)
    storage.put_if_absent(instant_path(instant), CommitMetadata(extra=extra).to_bytes(1))


def load(storage: Storage) -> ReplayGuard:
    return ReplayGuard.load(storage, load_timeline(storage, 1))


def test_batches_count_as_committed_up_to_the_highest_of_the_query() -> None:
    guard = ReplayGuard().with_batch(BatchId("q", 9), ROWS).with_batch(BatchId("q", 10), ROWS)
    assert guard.holds(BatchId("q", 10))
    assert guard.holds(BatchId("q", 2))  # numbers, not text
    assert not guard.holds(BatchId("q", 11))
    assert not guard.holds(BatchId("other", 0))


def test_the_newest_commit_with_an_entry_has_all_writers(storage: Storage) -> None:
    commit(storage, "20250101000000000", **{CHECKPOINT_KEY: '{"q": "1"}'})
    commit(storage, "20250102000000000", **{CHECKPOINT_KEY: '{"q": "2", "jvm": "x7"}'})
    commit(storage, "20250103000000000", other="1")
    guard = load(storage)
    assert guard.committed == {"q": "2", "jvm": "x7"}
    assert not guard.holds(BatchId("jvm", 0))
    guard = guard.with_batch(BatchId("q", 3), ROWS)
    assert ReplayGuard.parse(guard.entries(), "p") == guard


def test_a_table_without_streams_has_no_guard(storage: Storage) -> None:
    commit(storage, "20250101000000000")
    assert load(storage) == ReplayGuard()


def test_digests_of_a_commit_pending_with_the_newest_are_known(
    storage: Storage,
) -> None:
    """Query q completed an instant that query r, committing before it, had left pending."""
    early, late = ROWS, InputDigest(1, 7)
    before = ReplayGuard().with_batch(BatchId("q", 1), early)
    commit(storage, "20250101000000000", **before.with_batch(BatchId("q", 2), late).entries())
    newest = {
        **before.with_batch(BatchId("r", 0), late).entries(),
        PENDING_KEY: "20250101000000000",
    }
    commit(storage, "20250102000000000", **newest)
    guard = load(storage)
    assert guard.committed == {"q": "2", "r": "0"}
    assert guard.inputs == {"q": {1: early, 2: late}, "r": {0: late}}


def test_only_a_number_between_two_known_ones_is_known_to_be_left_out() -> None:
    guard = ReplayGuard().with_batch(BatchId("q", 3), ROWS).with_batch(BatchId("q", 5), ROWS)
    left_out = [number for number in range(8) if guard.leaves_out(BatchId("q", number))]
    assert left_out == [4]
    assert not guard.leaves_out(BatchId("r", 4))


def test_a_number_that_another_engine_may_have_written_is_not_left_out() -> None:
    """Hudi's streaming sink records the number of its batch alone, of which no rows are known."""
    ours = ReplayGuard().with_batch(BatchId("q", 3), ROWS)
    theirs = ours.merged(ReplayGuard({"q": "5"}))
    guard = theirs.with_batch(BatchId("q", 6), ROWS).with_batch(BatchId("q", 9), ROWS)
    left_out = [number for number in range(12) if guard.leaves_out(BatchId("q", number))]
    assert left_out == [7, 8]


@pytest.mark.parametrize("newest_first", [True, False])
def test_numbers_between_the_digests_of_two_commits_are_not_left_out(newest_first: bool) -> None:
    """The commit of another writer knows what this one had written long before."""
    early = ReplayGuard()
    for number in range(10):
        early = early.with_batch(BatchId("q", number), ROWS)
    near = early.with_batch(BatchId("q", 12), ROWS)
    far = near
    for number in range(14, 40):
        far = far.with_batch(BatchId("q", number), ROWS)

    def left_out(other: ReplayGuard) -> list[int]:
        guard = other.merged(early) if newest_first else early.merged(other)
        assert guard.highest(BatchId("q", 0)) == other.highest(BatchId("q", 0))
        return [number for number in range(42) if guard.leaves_out(BatchId("q", number))]

    assert left_out(near) == [10, 11]
    assert left_out(far) == []


@pytest.mark.parametrize("entry", ["not json", "[1]", "7"])
def test_a_damaged_entry_names_its_commit(storage: Storage, entry: str) -> None:
    commit(storage, "20250101000000000", **{CHECKPOINT_KEY: entry})
    with pytest.raises(CorruptFileError, match=r"20250101000000000\.commit.*not a JSON object"):
        load(storage)


def test_a_commit_of_another_engine_pending_with_ours_hides_nothing(
    storage: Storage,
) -> None:
    """It is the newest, and ours, which comes before it, names it too."""
    ours = ReplayGuard().with_batch(BatchId("q", 4), ROWS)
    commit(storage, "20250101000000000", **{CHECKPOINT_KEY: '{"jvm": "3"}'})
    commit(
        storage,
        "20250102000000000",
        **{**ours.entries(), PENDING_KEY: "20250101000000000 20250103000000000"},
    )
    commit(storage, "20250103000000000", **{CHECKPOINT_KEY: '{"jvm": "2"}'})
    guard = load(storage)
    assert guard.committed == {"q": "4", "jvm": "3"}
    assert guard.digests(BatchId("q", 4)) == {4: ROWS}


def test_commits_that_name_each_other_end_the_search(storage: Storage) -> None:
    """As no writer leaves them, but a restored copy may."""
    times = "20250101000000000", "20250102000000000"
    for query, time, other in zip("qr", times, reversed(times), strict=True):
        entries = ReplayGuard().with_batch(BatchId(query, 1), ROWS).entries()
        commit(storage, time, **{**entries, PENDING_KEY: other})
    assert load(storage).committed == {"q": "1", "r": "1"}
