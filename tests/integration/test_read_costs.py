"""What reads cost: files that are opened, and bytes that are read of them."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.memory import MemoryStorage
from tests.counted_reads import CountedReads
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips

_FOOTER_BYTES = 64 << 10
"""What Arrow reads at a file's end, once."""


class Place:
    """A table in memory, read by a process whose reads are counted."""

    def __init__(self, **options: str) -> None:
        self.storage = MemoryStorage()
        self.writer = HoodieTable("/t", {**TRIPS, **options}, storage=self.storage)
        self.seen = CountedReads(self.storage)
        self.reader = HoodieTable("/t", storage=cast(Storage, self.seen))

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the data files."""
        found = self.storage.list("", recursive=True)
        return {file.path: file.size for file in found if ".hoodie" not in file.path}


def many(count: int, ts: int = 1) -> pa.Table:
    """Rows of three cities."""
    return trips(*((f"k{n}", "xyz"[n % 3], ts, n / 7) for n in range(count)))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_are_counted_by_footers_alone(version: str) -> None:
    place = Place(**{VERSION: version, BUCKETS: "1"})
    fares = np.random.default_rng(7).random(40_000)
    ids, ts = pa.array(range(40_000)).cast(pa.string()), pa.repeat(1, 40_000)
    rows = pa.table({"id": ids, "city": pa.repeat("x", 40_000), "ts": ts, "fare": fares})
    place.writer.upsert(rows)
    assert place.reader.count() == 40_000
    ((path, size),) = place.sizes.items()
    assert place.seen.bytes == {path: _FOOTER_BYTES}
    assert size > 5 * _FOOTER_BYTES
    assert place.reader.count("fare < 0.5") == (fares < 0.5).sum()


@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_of_a_known_merge_are_counted_without_the_base_file(version: str) -> None:
    place = Place(**{TYPE: "MERGE_ON_READ", VERSION: version, BUCKETS: "1"})
    place.writer.upsert(many(90))
    place.writer.upsert(trips(("k0", "x", 2, 1.0), ("new", "x", 2, 1.0)))
    place.writer.delete(trips(("k3", "x", 3, None)).select(["id", "city", "ts"]))
    counts = []
    for _ in range(2):
        place.seen.bytes.clear()
        assert place.reader.count() == 90
        counts.append(sum(path.endswith(".parquet") for path in place.seen.bytes if "x/" in path))
    assert counts == [1, 0]


@pytest.mark.parametrize("kind", TYPES)
def test_a_few_rows_open_a_file(kind: str) -> None:
    place = Place(**{TYPE: kind, BUCKETS: "4"})
    place.writer.upsert(many(90))
    assert place.reader.head(3, ["id"]).num_rows == 3
    assert len(place.seen.bytes) == 1
    assert place.reader.scan(["id"], "ts = 1").head(0).num_rows == 0
    assert len(place.seen.bytes) == 1
    rows = place.reader.scan(["id"], "fare > 1000").head(5)
    assert (rows.num_rows, rows.column_names) == (0, ["id"])
    assert place.reader.scan(["id"]).head(1_000).num_rows == 90
