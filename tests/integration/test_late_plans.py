"""A plan that comes on the timeline again after its end counts for nobody, and is taken off it.

Who schedules a compaction, or begins on one, may be stopped on the way to the put of its file, for
as long as it takes others to carry the plan out and to archive it, to cancel it, or to restore the
table. The late put is that of a file with the content that it had.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.rollback_metadata import metadata_to_bytes, plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path
from tests.faults.writers import Place
from tests.micro_batches import MicroBatches
from tests.tables import BUCKETS, TRIPS, TYPE, trips

_OFTEN = {
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.py.stream.accept.missed.batches": "true",
}
_IDLE = [("idle", "y", 0, 0.0)]
"""A row of a file group that no later batch writes to."""


class Stream(MicroBatches):
    """A stream that compacts after every second commit, cleans and archives at once."""

    def __init__(self) -> None:
        super().__init__(Place({**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1", **_OFTEN}))
        self.number = 0

    def go_on(self, batches: int = 1) -> None:
        for _ in range(batches):
            rows = trips(("a", "x", self.number, 1.0), *(_IDLE if self.number < 2 else ()))
            assert self.run(self.number, rows, tasks=1).failed_services == ()
            self.number += 1
            assert self.place.rows() == self.expected

    @property
    def expected(self) -> list[tuple[str, str, int, float]]:
        return [("a", "x", self.number - 1, 1.0), *_IDLE]

    @property
    def storage(self) -> MemoryStorage:
        return self.place.storage


def _archived(stream: Stream) -> None:
    stream.go_on(6)


def _cancelled(stream: Stream) -> None:
    (pending,) = load_timeline(stream.storage, 1).pending_compactions
    stream.place.clock.advance(1000)
    stream.place.table.rollback(pending.time)


@pytest.mark.parametrize("step", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("end", [_archived, _cancelled])
def test_a_compaction_that_has_ended_does_not_come_back(
    end: Callable[[Stream], None], step: State
) -> None:
    stream = Stream()
    stream.go_on(2)
    (pending,) = load_timeline(stream.storage, 1).pending_compactions
    late = {instant_path(pending.at(step)): b""}
    if step is State.REQUESTED:
        late = {path: stream.storage.read(path) for path in late}
    end(stream)
    for path, body in late.items():
        stream.storage.put_if_absent(path, body)
    assert stream.place.rows() == stream.expected  # readers are not misled before it is gone
    stream.go_on()
    assert not [path for path in late if path in stream.storage.files]
    stream.go_on(6)
    completed = load_timeline(stream.storage, 1).commits
    assert Action.COMMIT in {instant.action for instant in completed}  # it goes on to compact


@pytest.mark.parametrize("step", [State.REQUESTED, State.INFLIGHT])
def test_a_compaction_that_a_restore_took_back_does_not_come_back(step: State) -> None:
    stream = Stream()
    stream.go_on()
    savepoint = stream.place.table.savepoint()
    stream.go_on()
    (pending,) = load_timeline(stream.storage, 1).pending_compactions
    path = instant_path(pending.at(step))
    body = stream.storage.read(path) if step is State.REQUESTED else b""
    stream.place.clock.advance(1000)
    stream.place.table.restore(savepoint.time)
    stream.storage.put_if_absent(path, body)
    stream.number = 1
    assert stream.place.rows() == stream.expected
    stream.query = "another"
    stream.go_on()
    assert path not in stream.storage.files
    stream.go_on(6)


def test_compacting_by_hand_takes_a_late_plan_away() -> None:
    stream = Stream()
    stream.go_on(2)
    (pending,) = load_timeline(stream.storage, 1).pending_compactions
    _archived(stream)
    path = instant_path(pending.at(State.INFLIGHT))
    stream.storage.put_if_absent(path, b"")
    stream.place.clock.advance(1000)
    stream.place.table.compact()
    assert path not in stream.storage.files
    assert stream.place.rows() == stream.expected


def test_a_compaction_that_hudi_has_rolled_back_is_carried_out_again() -> None:
    """Hudi rolls back what a failed compaction has left; its plan stays, under the same time."""
    stream = Stream()
    stream.go_on(2)
    (pending,) = load_timeline(stream.storage, 1).pending_compactions
    rollback = Instant(f"{int(pending.time) + 1}", Action.ROLLBACK, State.COMPLETED)
    root, inflight = stream.storage.root, pending.at(State.INFLIGHT)
    bodies = {
        State.REQUESTED: plan_to_bytes(root, inflight, {}),
        State.INFLIGHT: b"",
        State.COMPLETED: metadata_to_bytes(root, rollback.time, inflight, {}, 1),
    }
    for state, body in bodies.items():
        stream.storage.put_if_absent(instant_path(rollback.at(state)), body)
    stream.go_on()
    assert load_timeline(stream.storage, 1).is_committed(pending.time)
    assert not load_timeline(stream.storage, 1).is_pending(pending.time)
    stream.go_on(8)  # the compaction is archived, and its rollback
    assert load_timeline(stream.storage, 1).starts_after(rollback.time)
