from __future__ import annotations

from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, Operation
from hoodie_ds.timeline.paths import work_folder
from hoodie_ds.transaction.ownership import claim

TIME = "20250101000000000"


def test_a_time_belongs_to_its_first_owner() -> None:
    storage = MemoryStorage()
    assert claim(storage, TIME, "a")
    assert claim(storage, TIME, "a")
    assert not claim(storage, TIME, "b")


def test_a_time_whose_claim_is_deleted_meanwhile_is_not_taken() -> None:
    storage = MemoryStorage()
    assert claim(storage, TIME, "a")

    def finished(operation: Operation) -> None:
        if operation.kind is Kind.READ:
            storage.delete(work_folder(TIME))

    assert not claim(FaultyStorage(storage, before_each=finished), TIME, "b")
    assert storage.files == {}
