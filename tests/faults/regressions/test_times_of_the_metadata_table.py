"""The metadata table was compacted at the time of an instant, which it then seemed to lack."""

from __future__ import annotations

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.metadata_table import upkeep
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import MemoryStorage, SimClock
from tests.integration.test_record_lookup import RECORDS
from tests.tables import VERSION, trips

OFTEN = {**RECORDS, "hoodie.metadata.compact.max.delta.commits": "2"}


@pytest.mark.parametrize("version", ["6", "9"])
def test_an_instant_followed_the_last_one_after_a_millisecond(version: str) -> None:
    """So does each one of a writer whose clock is behind that of another."""
    storage, clock = MemoryStorage(), SimClock()
    table = HoodieTable("/t", {**OFTEN, VERSION: version}, storage=storage, clock=clock)
    for number in range(7):
        table.upsert(trips((f"k{number}", "x", number, 1.0)))
        assert table.inspect.verify_metadata_table()
        assert table.read(filter=f"id = k{number}").num_rows == 1
    metadata = MetadataTable.open(open_table(storage), open_table(storage).load_timeline())
    assert metadata is not None
    compactions = [one for one in metadata.timeline.completed if one.action.value == "commit"]
    assert len(compactions) == 3
    assert not {one.time for one in compactions} & {one.time for one in metadata.data.completed}


def test_an_instant_had_the_time_of_a_clean_of_the_metadata_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upkeep, "_VERSIONS", 1)
    storage, clock = MemoryStorage(), SimClock()
    table = HoodieTable("/t", {**OFTEN, VERSION: "9"}, storage=storage, clock=clock)
    for number in range(5):
        time = table.upsert(trips((f"k{number}", "x", number, 1.0))).instant_time
        table.savepoint(time)
        assert table.inspect.verify_metadata_table()
