"""A stream's batch that cleans and archives, killed at every operation.

Whatever is left, the same batch comes again as Spark brings it, and the stream goes on: each batch
is in the table once, and what was under way of a service is made up for.
"""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.testing.faulty_storage import FaultyStorage
from hoodie_ds.testing.sweep import sweep
from tests.faults.scenarios import VERSIONS
from tests.faults.writers import Place
from tests.micro_batches import MicroBatches
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, timeline_of, trips
from tests.tally import tally
from tests.tiers import by_day

pytestmark = pytest.mark.slow

OPTIONS = {
    **TRIPS,
    BUCKETS: "1",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "5",
}
BEFORE, AFTER = 13, 3


def _rows(number: int) -> pa.Table:
    return trips(("0", "x", number, float(number)))


def _stream(
    storage: MemoryStorage | FaultyStorage, kind: str, version: str, seed: int
) -> MicroBatches:
    place = Place(
        {**OPTIONS, TYPE: kind, VERSION: version}, SimClock(1_767_225_600_000 + seed * 60_000)
    )
    place.storage = storage  # type: ignore[assignment]
    place.ids = SimIds(seed)
    return MicroBatches(place)


@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(
    ("batches", "kind", "version"),
    by_day(
        product((BEFORE, BEFORE + 1), TYPES, VERSIONS),
        {(BEFORE + 1, TYPES[1], "9")},
    ),
)
def test_a_batch_with_its_services_killed_anywhere(
    batches: int, kind: str, version: str, every: int
) -> None:
    start = MemoryStorage()
    stream = _stream(start, kind, version, 0)
    for number in range(batches):
        assert stream.run(number, _rows(number)).failed_services == ()

    def scenario(storage: FaultyStorage) -> None:
        _stream(storage, kind, version, 1).run(batches, _rows(batches))

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        again = _stream(left, kind, version, 2)
        for number in range(batches, batches + AFTER):
            assert again.run(number, _rows(number)).failed_services == ()
            last = float(number)
            assert again.place.rows() == [("0", "x", number, last)]
        assert len(timeline_of(left).pending_compactions) <= 1

    tried = sweep(start, scenario, check, every=every)
    assert tried > 100 // every
    tally("crash points, batches with services", tried)
