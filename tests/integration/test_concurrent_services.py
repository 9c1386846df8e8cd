"""A service by hand whose plan another process finishes and cleans up after: nothing is damaged."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation, SimClock, SimIds
from tests.tables import TRIPS, TYPE, found, trips

_INDEX = "hoodie.index.type"
_ONE_VERSION = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
_SERVICES: dict[str, tuple[str, Callable[[HoodieTable], object]]] = {
    "compact": ("BUCKET", HoodieTable.compact),
    "cluster": ("SIMPLE", HoodieTable.cluster),
}


def _overtaken_at(number: int, index: str, service: Callable[[HoodieTable], object]) -> bool:
    """Run a service, and before one of its operations another run and a clean, to their ends."""
    clock = SimClock()
    storage = MemoryStorage(clock=clock)
    options = {**TRIPS, TYPE: "MERGE_ON_READ", _INDEX: index, **_ONE_VERSION}
    overtaken: list[Operation] = []

    def table(place: Storage, seed: int) -> HoodieTable:
        return HoodieTable("/t", options, storage=place, clock=clock, ids=SimIds(seed))

    for fare in (1, 2):
        table(storage, fare).upsert(trips(("a", "x", fare, float(fare))))
        clock.advance(1000)

    def before_each(operation: Operation) -> None:
        if operation.number == number and not overtaken:
            overtaken.append(operation)
            clock.advance(10)
            service(table(storage, 3))
            clock.advance(10)
            table(storage, 4).clean()

    service(table(FaultyStorage(storage, before_each=before_each), 5))
    assert found(table(storage, 6)) == [("a", "x", 2, 2.0)]
    return bool(overtaken)


@pytest.mark.parametrize("name", _SERVICES)
def test_no_file_is_reported_missing_that_another_process_cleaned(name: str) -> None:
    index, service = _SERVICES[name]
    for number in count(1):
        if not _overtaken_at(number, index, service):
            break
    assert number > 30  # it reads the plan, the timeline and the files
