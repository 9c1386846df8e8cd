"""Which instants count as rolled back, by the plans alone."""

from __future__ import annotations

import pytest

from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.rollback_metadata import plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollbacks import is_undone, target_of

FAILED = Instant("20250101000000000", Action.COMMIT, State.INFLIGHT)
OTHER = "20250102000000000"
ROLLBACK = Instant("20250103000000000", Action.ROLLBACK, State.REQUESTED)
PLAN = plan_to_bytes("/t", FAILED, {})


def undone(storage: MemoryStorage, time: str) -> bool:
    return is_undone(storage, load_timeline(storage, 1), time)


@pytest.mark.parametrize("state", State)
def test_an_instant_is_undone_once_its_rollback_has_a_plan(state: State) -> None:
    storage = MemoryStorage(files={instant_path(ROLLBACK): PLAN})
    storage.replace(instant_path(ROLLBACK.at(state)), PLAN)
    assert undone(storage, FAILED.time)
    assert not undone(storage, OTHER)


@pytest.mark.parametrize(
    "left",
    [
        {instant_path(ROLLBACK): b""},
        {instant_path(ROLLBACK.at(State.INFLIGHT)): b""},
        {instant_path(ROLLBACK.at(State.COMPLETED)): b"{}"},
    ],
    ids=["an empty plan", "begun without one", "done without one"],
)
def test_a_rollback_without_a_plan_undoes_nothing(left: dict[str, bytes]) -> None:
    storage = MemoryStorage(files=left)
    assert target_of(storage, ROLLBACK) is None
    assert not undone(storage, FAILED.time)
