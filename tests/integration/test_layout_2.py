"""What a table of version 9 goes through beside services that wait to be carried out."""

from __future__ import annotations

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import StorageError
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation
from hoodie_ds.testing.fault import Kind
from hoodie_ds.timeline.instant import Action
from tests.tables import TRIPS, found, trips

OPTIONS = {
    **TRIPS,
    "hoodie.index.type": "BLOOM",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.write.table.version": "9",
}


def test_a_clustering_waits_under_its_own_name_while_others_write() -> None:
    storage = MemoryStorage("memory://t")
    table = HoodieTable("memory://t", OPTIONS, storage=storage)
    table.insert(trips(("a", "x", 1, 1.0)))
    table.insert(trips(("b", "x", 1, 1.0)))

    def stop(operation: Operation) -> None:
        if operation.kind is Kind.CREATE and operation.path.endswith(".parquet"):
            raise StorageError("stopped")

    stopped = FaultyStorage(storage, before_each=stop)
    with pytest.raises(StorageError, match="stopped"):
        HoodieTable("memory://t", OPTIONS, storage=stopped).cluster()
    table.insert(trips(("c", "y", 1, 1.0)))
    (pending,) = table.timeline.pending
    assert pending.action is Action.CLUSTERING
    rows = [("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0)]
    assert found(table) == rows
    assert table.cluster()
    assert not table.timeline.pending
    assert table.timeline.commit_at(pending.time) is not None
    assert found(table) == rows
