"""A stream keeps its timeline short: the oldest instants go to the archive, Hudi's defaults 40/50.

The numbers here are smaller. What counts as committed, and which batches the table has, does not
depend on what is archived.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from hoodie_ds.errors import ReplayMismatchError
from hoodie_ds.services import post_commit
from hoodie_ds.timeline.loading import load_timeline
from tests.faults.writers import MODE, SEVERAL, Place
from tests.micro_batches import MicroBatches
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, trips

FEWEST, MOST = 4, 6
SMALL = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": str(FEWEST),
    "hoodie.keep.max.commits": str(MOST),
    "hoodie.compact.inline.max.delta.commits": "2",
}
BATCHES = 20


def _stream(**options: str) -> MicroBatches:
    return MicroBatches(Place({**TRIPS, BUCKETS: "1", **SMALL, **options}))


def _rows(number: int) -> pa.Table:
    return trips(("0", "x", number, float(number)), ("1", "x", number, float(number)))


def _newest(number: int) -> list[tuple[str, str, int, float]]:
    return [("0", "x", number, float(number)), ("1", "x", number, float(number))]


@pytest.mark.parametrize(
    "options",
    [{TYPE: TYPES[0]}, {TYPE: TYPES[1]}, {TYPE: TYPES[1], MODE: SEVERAL}],
    ids=["copy on write", "merge on read", "several"],
)
def test_neither_the_timeline_nor_the_table_grows(options: dict[str, str]) -> None:
    stream = _stream(**options)
    instants, data, below = [], [], []
    for number in range(BATCHES):
        assert stream.run(number, _rows(number)).failed_services == ()
        assert stream.place.rows() == _newest(number)
        files = stream.place.storage.files
        instants.append(len(load_timeline(stream.place.storage, 1).commits))
        data.append(sum(not path.startswith(".hoodie/") for path in files))
        below.append(sum("/." not in path for path in files if path.startswith(".hoodie/")))
    assert max(instants) <= MOST + 2  # a commit, and a compaction that it completes
    half = BATCHES // 2
    assert max(data[half:]) <= max(data[:half])
    assert max(below[half + 6 :]) <= max(below[:half]) + 12 + 6  # a file of the archive each time


@pytest.mark.parametrize("kind", TYPES)
def test_batches_that_were_archived_are_known(kind: str) -> None:
    stream = _stream(**{TYPE: kind})
    for number in range(BATCHES):
        stream.run(number, _rows(number))
    for number in (BATCHES - 1, BATCHES - 9):  # the second one is archived
        assert stream.run(number, _rows(number)).already_committed, number
    with pytest.raises(ReplayMismatchError, match="batch 0 of query"):
        stream.run(0, _rows(0))  # of whose rows nothing is known any more
    another = MicroBatches(stream.place, "another")
    for number in range(BATCHES):
        another.run(number, _rows(BATCHES))
    assert stream.run(BATCHES - 1, _rows(BATCHES - 1)).already_committed
    assert stream.place.rows() == _newest(BATCHES)


def test_a_batch_archives_no_more_than_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _stream(**{"hoodie.archive.automatic": "false"})
    for number in range(2 * MOST):
        stream.run(number, _rows(number))
    assert len(load_timeline(stream.place.storage, 1).commits) == 2 * MOST
    monkeypatch.setattr(post_commit, "_ARCHIVED_AFTER_A_BATCH", 2)
    stream.place.opts["hoodie.archive.automatic"] = "true"
    counts = []
    for number in range(2 * MOST, 4 * MOST):
        assert stream.run(number, _rows(number)).failed_services == ()
        counts.append(len(load_timeline(stream.place.storage, 1).instants))
    assert stream.place.rows() == _newest(4 * MOST - 1)
    lost = [before + 2 - after for before, after in pairwise(counts)]
    assert max(lost) <= 2  # after a commit and a clean
    assert len(load_timeline(stream.place.storage, 1).commits) < 2 * MOST
