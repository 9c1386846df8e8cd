"""Two writers create a table at once, and neither is told that the other's is damaged."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, OptionError, TableNotFoundError
from hoodie_ds.storage.probe import PROBES
from hoodie_ds.table.table import find_table, open_table
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, Operation, SimClock, SimIds
from tests.tables import BUCKETS, TRIPS, found, trips

OPTS = {**TRIPS, BUCKETS: "1", "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


def table(storage: MemoryStorage | FaultyStorage, seed: int = 0) -> HoodieTable:
    return HoodieTable("/t", OPTS, storage=storage, clock=SimClock(), ids=SimIds(seed))


@pytest.mark.parametrize("at", range(1, 12))
def test_a_slower_creator_got_an_error_of_a_damaged_table(at: int) -> None:
    """The other one's whole first write comes before any of the operations of the slower one."""
    place = MemoryStorage(clock=SimClock())

    def other_is_faster(operation: Operation) -> None:
        if operation.number == at:
            table(place, 1).upsert(trips(("o", "y", 1, 1.0)))

    slow = FaultyStorage(place, before_each=other_is_faster)
    table(slow, 2).upsert(trips(("m", "x", 1, 1.0)))
    assert found(table(place)) == [("m", "x", 1, 1.0), ("o", "y", 1, 1.0)]


@pytest.mark.parametrize("path", ["", ".hoodie"])
def test_files_of_a_new_table_are_not_reported_as_damage(path: str) -> None:
    place = MemoryStorage(clock=SimClock())

    def other_is_faster(operation: Operation) -> None:
        if operation.kind is Kind.LIST and operation.path == path and not place.files:
            table(place, 1).upsert(trips(("o", "y", 1, 1.0)))

    assert find_table(FaultyStorage(place, before_each=other_is_faster)) is not None


@pytest.mark.parametrize("opening", [find_table, open_table])
def test_files_without_a_table_are_still_refused(
    opening: Callable[[MemoryStorage], object],
) -> None:
    place = MemoryStorage()
    place.put_if_absent(".hoodie/20250101000000000.commit", b"{}")
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties is lost or empty"):
        opening(place)


def test_the_probe_of_another_creator_is_no_damage() -> None:
    """It is there before the table is, and for good if its writer was killed."""
    place = MemoryStorage()
    place.put_if_absent(f"{PROBES}1", b"first")
    assert find_table(place) is None
    with pytest.raises(TableNotFoundError):
        open_table(place)
    place.put_if_absent("x/file", b"")
    with pytest.raises(OptionError, match="not empty"):
        find_table(place)
