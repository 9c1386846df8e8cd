"""What reads cost: files that are opened, and bytes that are read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.memory import MemoryStorage
from tests.counted_reads import CountedReads
from tests.tables import BUCKETS, PARTITION, TRIPS, TYPE, TYPES, VERSION, trips

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


def large(count: int) -> pa.Table:
    """Rows of one city that no codec makes small."""
    ids, ts = pa.array(range(count)).cast(pa.string()), pa.repeat(1, count)
    fares = np.random.default_rng(7).random(count)
    return pa.table({"id": ids, "city": pa.repeat("x", count), "ts": ts, "fare": fares})


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_are_counted_by_footers_alone(version: str) -> None:
    place = Place(**{VERSION: version, BUCKETS: "1"})
    rows = large(40_000)
    place.writer.upsert(rows)
    assert place.reader.count() == 40_000
    ((path, size),) = place.sizes.items()
    assert place.seen.bytes == {path: _FOOTER_BYTES}
    assert size > 5 * _FOOTER_BYTES
    fares = rows["fare"].to_numpy()
    assert place.reader.count("fare < 0.5") == (fares < 0.5).sum()


def test_a_column_of_repeated_values_and_a_key_cost_little() -> None:
    place = Place(**{BUCKETS: "4"})
    place.writer.upsert(large(60_000))
    unchecked = {"hoodie.py.read.verify.checksums": "false"}
    reader = HoodieTable("/t", unchecked, storage=cast(Storage, place.seen))

    def cost(columns: list[str], where: str | None = None) -> tuple[int, int]:
        """Files that are opened, and bytes that are read of them."""
        place.seen.bytes.clear()
        assert reader.scan(columns, where).to_table().num_rows
        return len(place.seen.bytes), place.seen.bytes.total()

    files, whole = cost(reader.schema.names)
    assert (files, whole > sum(place.sizes.values()) / 2) == (4, True)
    files, found = cost(["city"])
    assert (files, found < 5 * _FOOTER_BYTES) == (4, True)
    assert whole > 8 * _FOOTER_BYTES
    files, found = cost(["fare"], "id = 7")
    assert (files, found < whole / 4) == (1, True)


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


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", TYPES)
def test_row_groups_without_rows_of_the_range_are_not_read(
    kind: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = {"hoodie.parquet.block.size": "16k", PARTITION: ""}
    place = Place(**{TYPE: kind, VERSION: version, BUCKETS: "1", **groups})
    place.writer.upsert(many(2_000))
    first = place.writer.timeline.completed[-1]
    place.writer.upsert(trips(("k1000", "x", 2, 1.0), ("new", "x", 2, 2.0)))
    if kind == "MERGE_ON_READ":
        place.writer.compact()
    read = list[int]()
    pieces = BaseFileReader.pieces

    def noted(self: BaseFileReader, columns: Any, row_groups: Sequence[int]) -> Any:
        read.extend(self.rows_in(number) for number in row_groups)
        return pieces(self, columns, row_groups)

    monkeypatch.setattr(BaseFileReader, "pieces", noted)
    for where, expected in (
        (None, ["k1000", "new"]),
        ("fare > 1.5", ["new"]),
        ("id = k1000", ["k1000"]),
        ("fare < 0", []),
    ):
        read.clear()
        rows = place.reader.read_incremental(first, columns=["id"], filter=where)
        assert sorted(rows["id"].to_pylist()) == expected, where
        assert (0 < sum(read) < 1_000) == bool(expected), where


def test_row_groups_of_every_commit_of_a_range_are_read() -> None:
    place = Place(**{BUCKETS: "1"})
    place.writer.upsert(many(9))
    first = place.writer.timeline.completed[-1]
    for city in "xyz":
        place.writer.upsert(trips((f"new in {city}", city, 1, 2.0)))
    found = place.reader.read_incremental(first, columns=["id"])["id"].to_pylist()
    assert sorted(found) == ["new in x", "new in y", "new in z"]
