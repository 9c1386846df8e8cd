from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.transaction.open_instant import open_instant
from tests.tables import TRIPS, trips

ROWS = trips(("a", "x", 1, 1.0))


def test_an_action_puts_its_plan_into_the_requested_file() -> None:
    storage = MemoryStorage()
    options = WriteOptions.parse({**TRIPS, "path": "memory"})
    coordinator = Coordinator(options, storage, SimClock(), SimIds())
    pending = replace(coordinator.begin(ROWS.schema).pending, plan=b"what is to be done")
    time = open_instant(pending)
    requested = instant_path(pending.inflight(time).at(State.REQUESTED))
    assert storage.read(requested) == b"what is to be done"


def test_the_error_of_an_action_that_was_rolled_back_names_its_operation() -> None:
    options = WriteOptions.parse({**TRIPS, "path": "memory"})
    coordinator = Coordinator(options, MemoryStorage(), SimClock(), SimIds())
    pending = replace(coordinator.begin(ROWS.schema).pending, operation_type="CLUSTER")
    text = str(pending.undone("20250101000000000"))
    assert "instant 20250101000000000 was rolled back" in text
    assert "its CLUSTER was under way" in text
    assert "batch was" not in text


def test_the_time_of_a_half_archived_commit_is_not_opened_again() -> None:
    storage = MemoryStorage()
    options = WriteOptions.parse({**TRIPS, "path": "memory"})
    pending = Coordinator(options, storage, SimClock(), SimIds()).begin(ROWS.schema).pending
    time = open_instant(pending)
    instant = pending.inflight(time)
    storage.put_if_absent(instant_path(instant.at(State.COMPLETED)), b"{}")
    storage.delete(instant_path(instant))
    storage.delete(instant_path(instant.at(State.REQUESTED)))
    storage.delete(".hoodie/.temp")
    assert open_instant(pending) == following(time)


@pytest.mark.parametrize(
    "action", [Action.ROLLBACK, Action.CLEAN, Action.COMPACTION, Action.RESTORE]
)
def test_the_time_of_a_service_planned_meanwhile_is_skipped(action: Action) -> None:
    storage = MemoryStorage()
    options = WriteOptions.parse({**TRIPS, "path": "memory"})
    pending = Coordinator(options, storage, SimClock(), SimIds()).begin(ROWS.schema).pending
    taken = Instant(pending.proposed_time, action, State.REQUESTED)
    storage.put_if_absent(instant_path(taken), b"")
    assert open_instant(pending) == following(taken.time)
