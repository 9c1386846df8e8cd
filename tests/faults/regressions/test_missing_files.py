"""What is written while a data file is missing: the write refuses, or no row is lost by it.

A merge went on with the slice before the missing file. Its commit then named a newer file, so that
reads worked again, with rows of long ago.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import SUMMARIES
from tests.faults.regressions.test_growth import Table, commits_parsed
from tests.tables import ORDERING, PARTITION, TRIPS, TYPE, TYPES, VERSION, trips
from tests.tiers import by_day

VERSIONS = ("6", "8", "9")
INDEX = "hoodie.index.type"
INDEXES = ("BUCKET", "BLOOM", "SIMPLE", "GLOBAL_SIMPLE", "FLINK_STATE")
KEYS = [f"k{number:02}" for number in range(12)]
LONE = "lone"
"""Its file group has one file."""
NO_TURN = re.compile("00000000-0000-|metadata")
"""Of files that need no turn: the first of two buckets alike, and what is no data."""

Rows = dict[str, int]
Write = Callable[[HoodieTable], Rows]


def rows_of(keys: list[str], ts: int) -> pa.Table:
    parts = ["q" if key == LONE else "p" for key in keys]
    return pa.table({"id": keys, "part": parts, "ts": pa.array([ts] * len(keys), pa.int64())})


def open_table(storage: MemoryStorage, kind: str, version: str, index: str) -> HoodieTable:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        PARTITION: "part",
        ORDERING: "ts",
        TYPE: kind,
        VERSION: version,
        INDEX: index,
        "hoodie.bucket.index.num.buckets": "2",
    }
    return HoodieTable("/t", options, storage=storage)


def filled(kind: str, version: str, index: str) -> tuple[MemoryStorage, Rows]:
    """Three slices of most file groups, whose newest ones hold what the older ones lack."""
    storage = MemoryStorage()
    table, rows = open_table(storage, kind, version, index), Rows()
    for ts, keys in enumerate([KEYS[:8], KEYS, [*KEYS[:10], LONE]]):
        table.upsert(rows_of(keys, ts))
        rows |= dict.fromkeys(keys, ts)
        if kind == "MERGE_ON_READ" and ts == 1:
            table.compact()
    return storage, rows


def upsert(table: HoodieTable) -> Rows:
    table.upsert(rows_of([KEYS[0], KEYS[3], "new"], 9))
    return {KEYS[0]: 9, KEYS[3]: 9, "new": 9}


def insert(table: HoodieTable) -> Rows:
    table.insert(rows_of(["new", "newer", "newest"], 9))
    return {"new": 9, "newer": 9, "newest": 9}


def delete(table: HoodieTable) -> Rows:
    table.delete(rows_of([KEYS[0], KEYS[11]], 9))
    return {KEYS[0]: -1, KEYS[11]: -1}


def overwrite(table: HoodieTable) -> Rows:
    table.overwrite(rows_of([KEYS[3], "new"], 9))
    return {**dict.fromkeys([*KEYS, LONE], -1), KEYS[3]: 9, "new": 9}


def overwrite_partition(table: HoodieTable) -> Rows:
    table.overwrite(rows_of([KEYS[3], LONE], 9), partitions_only=True)
    return {**dict.fromkeys(KEYS, -1), KEYS[3]: 9, LONE: 9}


def empty(table: HoodieTable) -> Rows:
    table.delete_partitions(["*"])
    return dict.fromkeys([*KEYS, LONE], -1)


def compact(table: HoodieTable) -> Rows:
    table.compact()
    return {}


def cluster(table: HoodieTable) -> Rows:
    table.cluster()
    return {}


def rescale(table: HoodieTable) -> Rows:
    table.rescale_buckets(3)
    return {}


def writes(kind: str, index: str) -> list[Write]:
    services = [compact] if kind == "MERGE_ON_READ" else []
    rewrite = rescale if index == "BUCKET" else cluster
    return [upsert, insert, delete, overwrite, overwrite_partition, empty, *services, rewrite]


def read(storage: MemoryStorage, *how: str) -> Rows:
    rows = open_table(storage.copy(), *how).read(columns=["id", "ts"])
    keys = rows.column("id").to_pylist()
    assert len(keys) == len(set(keys))
    return dict(zip(keys, rows.column("ts").to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "version", "index"),
    by_day(
        product(TYPES, VERSIONS, INDEXES),
        [
            ("COPY_ON_WRITE", "6", "BUCKET"),
            ("COPY_ON_WRITE", "9", "BLOOM"),
            ("MERGE_ON_READ", "9", "GLOBAL_SIMPLE"),
        ],
    ),
)
def test_no_write_continues_without_a_missing_file(kind: str, version: str, index: str) -> None:
    begun, before = filled(kind, version, index)
    files = [path for path in begun.files if path[0] in "pq" and not NO_TURN.search(path)]
    refused: list[tuple[str, str]] = []
    for path, write in product(files, writes(kind, index)):
        storage = begun.copy()
        storage.delete(path)
        what = f"{write.__name__} without {path}"
        try:
            changes: Rows | None = write(open_table(storage, kind, version, index))
        except CorruptFileError as error:
            refused.append((path, str(error)))
            changes = None
        storage.put_if_absent(path, begun.read(path))
        if changes is None:
            assert read(storage, kind, version, index) == before, what
            changes = write(open_table(storage, kind, version, index))
        after = {key: ts for key, ts in (before | changes).items() if ts >= 0}
        assert read(storage, kind, version, index) == after, what
    assert len(refused) >= 4
    assert all(path in told for path, told in refused)


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_asks_the_newest_of_many_commits(version: int) -> None:
    """Of a table that another engine wrote nothing is summed up."""
    table = Table("COPY_ON_WRITE", version)
    table.write()
    table.grow(300)
    table.clock.advance(60_000)
    table.write()
    table.storage.delete(SUMMARIES)
    table.storage = table.storage.copy()  # of which this process knows nothing
    assert sum(commits_parsed(table.write).values()) < 150
    newest = table.storage.copy()
    commit = read_commit(newest, load_timeline(newest, table.layout).commits[-1])
    path = commit.stats[0].path
    newest.delete(path)
    table.storage = newest
    with pytest.raises(CorruptFileError, match=f"{path} is missing"):
        table.write()


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_metadata_table_in_the_place_of_another_is_not_taken_for_it(version: str) -> None:
    """Its first instants have the times that those of the other table had, in this process."""
    storage = MemoryStorage()
    options = {**TRIPS, VERSION: version, "hoodie.metadata.enable": "true"}
    for cities in ("x", "xyz", "xy"):
        storage.delete_many(list(storage.files))
        table = HoodieTable("/t", options, storage=storage)
        for ts in range(3):
            table.upsert(trips(*((f"k{n}", city, ts, 1.0) for n, city in enumerate(cities))))
        assert table.read().num_rows == len(cities)
        assert not table.inspect.verify().findings
