"""What is known of writers comes back as the table does, wherever the commits that tell it lie.

Named for what went wrong; each failed before its mend.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import SimClock
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import read_commit
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
