"""What is known of writers comes back as the table does, wherever the commits that tell it lie.

Named for what went wrong; each failed before its mend.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import MissedBatchesError
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import SimClock
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import instant_path, put_aside_path, writer_folder
from tests.faults.regressions.test_replay_identity import Place, row

MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
LOOKED_UP = {"hoodie.index.type": "SIMPLE"}
SHORT = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def taken_off(place: Place, time: str) -> None:
    """Take what was completed after a time off the table as another engine does: unlogged."""
    storage, place.clock = cast(Storage, place.storage), SimClock(place.clock.now_ms() + 60_000)
    for instant in place.table.timeline.commits:
        if instant.time > time:
            for path in read_commit(storage, instant).file_paths:
                place.storage.delete(path)
            for state in State:
                step = instant if state is State.COMPLETED else instant.at(state)
                place.storage.delete(instant_path(step))


@pytest.mark.parametrize("how", ["restore", "rollback", "restore of another engine"])
@pytest.mark.parametrize(
    ("service", "version"), [("cluster", "6"), ("cluster", "8"), ("compact", "6"), ("compact", "9")]
)
def test_archived_batches_were_forgotten_where_only_a_rewrite_was_left(
    service: str, version: str, how: str
) -> None:
    kind = MERGE_ON_READ if service == "compact" else LOOKED_UP
    options: dict[str, Any] = {**SHORT, **kind, "hoodie.write.table.version": version}
    place = Place(f"forgotten {service} {version} {how}", **options)
    for number in (1, 2):
        place.numbered("W", number, row(f"w{number}"))
        place.stream(BatchId("q", number - 1), row(f"q{number - 1}"))
    (kept,) = getattr(place.table, service)().times
    if how == "rollback":
        place.numbered("bad", 1, row("bad"))
        place.table.archive()
    else:
        place.table.savepoint()
        for number in range(4):
            place.numbered("later", number, row(f"later{number}"))
        place.table.archive()
    assert next(i.time for i in place.table.timeline.commits) == kept
    if how == "restore of another engine":
        taken_off(place, kept)
    else:
        place.table.restore(kept) if how == "restore" else place.table.rollback()
    assert [i.time for i in place.table.timeline.commits] == [kept]
    there = ["q0", "q1", "w1", "w2"]
    assert place.ids == there
    place.numbered("W", 2, row("w2"))
    place.stream(BatchId("q", 1), row("q1"))
    assert place.ids == there
    for number in range(2):  # their own are gone
        place.numbered("later" if how != "rollback" else "bad", number, row(f"again{number}"))
    place.stream(BatchId("q", 2), row("q2"))
    place.numbered("W", 3, row("w3"))
    assert place.ids == sorted([*there, "again0", "again1", "q2", "w3"])


UNDOINGS = ["restore", "rollbacks", "restore of another engine"]


def go_back(place: Place, time: str, how: str) -> None:
    """Take what was completed after a time off the table."""
    if how == "restore of another engine":
        taken_off(place, time)
    elif how == "restore":
        place.table.restore(time)
    else:
        while place.table.timeline.commits[-1].time > time:
            place.table.rollback()


def others(place: Place, name: str, count: int = 4) -> None:
    """Commits of other writers, more than a commit carries."""
    for number in range(count):
        place.stream(BatchId(f"{name} {number}", 0), row("other"))


def brought_again(place: Place, query: str, numbers: Iterable[int]) -> list[int]:
    """Bring batches once more; returns those that were written."""
    written = []
    for number in numbers:
        before = len(place.table.timeline.commits)
        place.stream(BatchId(query, number), row(f"{query}{number}"))
        if len(place.table.timeline.commits) > before:
            written.append(number)
    return written


@pytest.mark.parametrize("how", UNDOINGS)
@pytest.mark.parametrize("version", ["6", "9"])
def test_batches_of_an_inactive_writer_were_lost_after_their_rollback(
    version: str, how: str
) -> None:
    place = Place(
        f"lost {version} {how}",
        Limits(writers_carried=3),
        **{**SHORT, "hoodie.write.table.version": version},
    )
    place.stream(BatchId("q", 0), row("q0"))
    others(place, "one")
    place.stream(BatchId("q", 1), row("q1"))
    others(place, "two")
    kept = place.table.timeline.commits[-1].time
    place.stream(BatchId("q", 2), row("q2"))
    place.stream(BatchId("q", 3), row("q3"))
    others(place, "three")
    go_back(place, kept, how)
    if how != "restore of another engine":  # which leaves no word
        assert "batch 2 of" in place.refuses(MissedBatchesError, BatchId("q", 4), row("q4"))
    assert brought_again(place, "q", range(1, 3)) == [2]
    others(place, "four")
    assert brought_again(place, "q", [2, 3]) == [3]  # 3 was known of the number that was lost
    others(place, "five")
    assert brought_again(place, "q", range(5)) == [4]
    assert place.ids == ["other", *(f"q{number}" for number in range(5))]


@pytest.mark.parametrize("how", UNDOINGS[:2])
def test_rolled_back_entries_of_inactive_writers_stay_void_when_archived(how: str) -> None:
    place = Place(f"archived {how}", Limits(writers_carried=2), **SHORT)
    place.stream(BatchId("q", 0), row("q0"))
    others(place, "one", 3)
    kept = place.table.timeline.commits[-1].time
    for number in (1, 2):
        place.stream(BatchId("q", number), row(f"q{number}"))
        others(place, f"lost {number}", 3)
    go_back(place, kept, how)
    others(place, "two", 4)
    place.table.archive()
    assert kept < place.table.timeline.start
    assert brought_again(place, "q", range(3)) == [1, 2]


@pytest.mark.parametrize("how", UNDOINGS[:2])
@pytest.mark.parametrize("archived", [False, True])
def test_entries_of_an_earlier_release_are_rolled_back_with_their_batches(
    how: str, archived: bool
) -> None:
    place = Place(f"undated {how} {archived}", Limits(writers_carried=2), **SHORT)
    for number, name in enumerate(["one", "two"]):
        place.stream(BatchId("q", number), row(f"q{number}"))
        place.stream(BatchId("r", number), row(f"r{number}"))
        others(place, name)
    if archived:
        place.table.archive()
    kept = place.table.timeline.commits[-1].time
    place.stream(BatchId("q", 2), row("q2"))
    others(place, "three")
    for query, highest in (("q", 2), ("r", 1)):  # as it kept one file for each writer
        files = [path for path in place.storage.files if path.startswith(writer_folder(query))]
        body = place.storage.read(max(files))
        place.storage.delete_many(files)
        place.storage.put_if_absent(put_aside_path(query, highest), body)
    assert brought_again(place, "q", [2]) == brought_again(place, "r", [1]) == []
    go_back(place, kept, how)
    assert brought_again(place, "q", range(3)) == [2]
    assert brought_again(place, "r", range(3)) == [2]


def test_the_number_of_a_writers_files_follows_the_timeline() -> None:
    place = Place("files", Limits(writers_carried=1), **SHORT)
    for number in range(8):
        place.stream(BatchId("q", number), row(f"q{number}"))
        others(place, str(number), 2)
        place.table.archive()
        files = [path for path in place.storage.files if path.startswith(writer_folder("q"))]
        assert len(files) <= 3
    assert brought_again(place, "q", [7, 8]) == [8]
