from __future__ import annotations

from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, Operation
from hoodie_ds.timeline.paths import work_folder
from hoodie_ds.transaction.ownership import claim

TIME = "20250101000000000"


def test_a_time_is_its_first_owners() -> None:
    storage = MemoryStorage()
    assert claim(storage, TIME, "a")
    assert claim(storage, TIME, "a")
    assert not claim(storage, TIME, "b")


def test_a_claim_that_goes_with_its_instant_leaves_the_time_to_nobody() -> None:
    storage = MemoryStorage()
    assert claim(storage, TIME, "a")

    def finished(operation: Operation) -> None:
        if operation.kind is Kind.READ:
            storage.delete(work_folder(TIME))

    assert not claim(FaultyStorage(storage, before_each=finished), TIME, "b")
    assert storage.files == {}
