"""What reads cost: files that are opened, and bytes that are read of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable, sink
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.table_stream import TableStream
from hoodie_ds.slices.merge_outcomes import merge_outcomes
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.memory import MemoryStorage
from tests.counted_reads import CountedReads
from tests.golden.histories import BLOCKS
from tests.tables import BUCKETS, PARTITION, TRIPS, TYPE, TYPES, VERSION, trips

UNCHECKED = {"hoodie.py.read.verify.checksums": "false"}
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


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_asked_costs_little(kind: str) -> None:
    """A column of repeated values, a key, and a few rows; first what a slice's logs replace."""
    place = Place(**{TYPE: kind, BUCKETS: "4", "hoodie.parquet.block.size": "256k"})
    place.writer.upsert(large(40_000))
    if kind == "MERGE_ON_READ":
        place.writer.upsert(trips(("7", "x", 2, 7.0), ("new", "x", 2, 7.0)))
    logs = sum(".log." in path for path in place.sizes)
    reader = HoodieTable("/t", UNCHECKED, storage=cast(Storage, place.seen))

    def cost(columns: list[str], where: str | None = None, rows: int = 99_999) -> tuple[int, int]:
        """Files that are opened, and bytes that are read of them."""
        place.seen.bytes.clear()
        assert reader.scan(columns, where).head(rows).num_rows
        return len(place.seen.bytes), place.seen.bytes.total()

    files, whole = cost(reader.schema.names)
    assert (files, whole > sum(place.sizes.values()) / 2) == (4 + logs, True)
    assert whole > 8 * _FOOTER_BYTES
    files, found = cost(["city"])
    assert (files, found < 5 * _FOOTER_BYTES) == (4 + logs, True)
    files, found = cost(["fare"], "id = 7")
    assert (files, found < whole / 8) == (1 + bool(logs), True)
    files, found = cost(reader.schema.names, rows=9)
    assert (files <= 2, found < whole / 8) == (True, True)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """The rows of the log blocks that readers have decoded."""
    found = list[pa.Table]()

    def noted(*given: Any) -> pa.Table:
        found.append(decode_data_block(*given))
        return found[-1]

    monkeypatch.setattr("hoodie_ds.slices.log_reader.decode_data_block", noted)
    return found


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_log_blocks_come_with_the_columns_of_the_query(
    blocks: str, decoded: list[pa.Table]
) -> None:
    place = Place(**{TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: "", BLOCKS: blocks})
    place.writer.upsert(many(9))
    place.writer.upsert(many(3, ts=2))
    assert place.reader.read(["fare"]).num_rows == 9
    assert place.reader.read(["fare"]).num_rows == 9
    assert {*decoded[0].column_names} <= {"_hoodie_record_key", "ts", "fare"}
    assert {*decoded[1].column_names} == {"fare"}


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_blocks_that_the_filter_rules_out_are_not_read_once_it_is_known_what_they_hide(
    version: str, decoded: list[pa.Table]
) -> None:
    options = {TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: "", VERSION: version}
    place = Place(**options, **{BLOCKS: "parquet"})
    place.writer.upsert(many(9))
    for ts in (2, 3, 4):
        place.writer.upsert(many(3, ts=ts).slice(4 - ts))  # each hides rows of the one before
    assert place.reader.read(["id"]).num_rows == 9
    for filter_, found, blocks in (("ts = 1", 6, 0), ("ts = 3", 0, 0), ("ts >= 4", 3, 1)):
        decoded.clear()
        assert place.reader.read(["id"], filter=filter_).num_rows == found
        assert len(decoded) == blocks


@pytest.mark.parametrize("index", ["BUCKET", "BLOOM"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_the_first_query_reads_what_its_filter_rules_out_only_to_know_what_it_hides(
    version: str, index: str, decoded: list[pa.Table]
) -> None:
    """Blocks of version 9 have positions of their records, if they were looked up for the write."""
    options = {TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: "", VERSION: version}
    options |= {BLOCKS: "parquet", "hoodie.index.type": index}
    small = {"hoodie.parquet.block.size": "256k", "hoodie.index.bloom.num_entries": "9"}
    small |= {"hoodie.bloom.index.filter.type": "SIMPLE"}
    place = Place(**options, **small)
    place.writer.upsert(large(40_000))
    whole = {row["id"]: row["fare"] for row in large(40_000).to_pylist()}
    for ts, keys in ((1, "789"), (3, "67"), (2, "678")):  # the last block loses where 3 is
        place.writer.upsert(trips(*((key, "x", ts, float(-ts)) for key in keys)))
    whole |= {"6": -3.0, "7": -3.0, "8": -2.0, "9": -1.0}
    place.writer.delete(trips(("5", "x", 4, None)).select(["id", "city", "ts"]))
    del whole["5"]
    (base,) = (path for path in place.sizes if path.endswith(".parquet"))
    few, compared = {"_hoodie_record_key", "ts"}, {"id", "fare"}
    for where, matches, blocks in (
        ("fare = -1.0", lambda fare: fare == -1, [1]),
        ("fare <= -2.0", lambda fare: fare <= -2, [2, 3]),
        ("fare is null", lambda fare: fare is None, []),
    ):
        merge_outcomes.cache_clear()
        decoded.clear()
        place.seen.bytes.clear()
        reader = HoodieTable("/t", UNCHECKED, storage=cast(Storage, place.seen))
        rows = reader.read(["id", "fare"], filter=where).to_pylist()
        expected = {key: fare for key, fare in whole.items() if matches(fare)}
        assert {row["id"]: row["fare"] for row in rows} == expected
        assert len(rows) == len(expected)
        columns = [{*rows.column_names} for rows in decoded]
        assert [n for n, names in enumerate(columns, 1) if compared <= names] == blocks, where
        assert all(names <= few for names in columns if not compared <= names)
        assert place.seen.bytes[base] < place.sizes[base] / 2, where
    assert reader.read(["id"]).num_rows == len(whole)


def test_log_blocks_that_the_filter_rules_out_are_not_read_for_spark(
    decoded: list[pa.Table],
) -> None:
    options = {TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: "", VERSION: "6"}
    place = Place(**options, **{BLOCKS: "parquet"})
    for rows in (many(3), many(3, ts=2), many(3, ts=3).slice(2)):
        place.writer.upsert(rows)
    pinned = PinnedTable.latest(place.storage)
    (found,) = pinned.slices()
    logged = LoggedRows(pinned.reader())
    pruner = pinned.pruner(predicate_of("ts = 2", pinned.schema))
    merge_outcomes.cache_clear()
    for columns in ([{"_hoodie_record_key", "ts", "id"}, {"_hoodie_record_key", "ts"}], [{"id"}]):
        decoded.clear()
        rows = pa.concat_tables([*logged.read(found, ["id"], pruner)])
        assert rows["id"].to_pylist() == ["k0", "k1"]
        assert [{*rows.column_names} for rows in decoded] == columns


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


def test_keys_are_read_once_to_count_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    pieces = BaseFileReader.pieces

    def noted(self: BaseFileReader, columns: Any, row_groups: Any = None) -> Any:
        read.append(columns)
        return pieces(self, columns, row_groups)

    monkeypatch.setattr(BaseFileReader, "pieces", noted)
    place = Place(**{TYPE: "MERGE_ON_READ", BUCKETS: "1", PARTITION: ""})
    place.writer.upsert(many(90))
    place.writer.upsert(trips(("k0", "x", 2, 1.0), ("new", "x", 2, 1.0)))
    assert place.reader.count() == 91
    assert read == [["_hoodie_record_key"]]  # every log row is newer than the greatest "ts"
    place.writer.upsert(trips(("k1", "x", 0, 1.0)))
    assert place.reader.count() == 91
    assert read[1:] == [["_hoodie_record_key", "ts"]]


@pytest.mark.parametrize("has_filters", [True, False])
def test_keys_that_no_log_file_has_are_not_read(
    has_filters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base file has all keys in one row group, in no order."""
    monkeypatch.setattr(sink.batch, "has_bloom_filters", lambda _: has_filters)
    place = Place(
        **{TYPE: "MERGE_ON_READ", BUCKETS: "1", "hoodie.index.bloom.num_entries": "20000"}
    )
    rows = large(20_000)
    place.writer.upsert(rows.take(np.random.default_rng(7).permutation(20_000)))
    place.writer.upsert(trips(("1234x", "x", 2, 0.7), ("777x", "x", 2, 0.7)))
    ((path, _),) = ((p, n) for p, n in place.sizes.items() if p.endswith(".parquet"))
    footer = pq.ParquetFile(io.BytesIO(place.storage.read(path))).metadata
    chunks = map(footer.row_group(0).column, range(footer.num_columns))
    sizes = {chunk.path_in_schema: chunk.total_compressed_size for chunk in chunks}
    reader = HoodieTable("/t", UNCHECKED, storage=cast(Storage, place.seen))
    assert reader.count("fare = 0.7") == 2  # within the range of the base file
    others = place.seen.bytes[path] - sizes["fare"] - footer.serialized_size
    assert sizes["_hoodie_record_key"] > _FOOTER_BYTES
    assert (others <= _FOOTER_BYTES) == has_filters
    assert (others > sizes["_hoodie_record_key"]) != has_filters
    assert reader.read(["fare"]).num_rows == 20_002


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


@pytest.mark.parametrize(
    ("kind", "version"), [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "6"), ("MERGE_ON_READ", "8")]
)
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


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_of_other_rows_than_those_of_the_range_are_not_read(kind: str) -> None:
    """By a query of the range, and by a stream that comes to it."""
    place = Place(**{TYPE: kind, BUCKETS: "1", VERSION: "9", "hoodie.parquet.block.size": "256k"})
    place.writer.upsert(large(40_000))
    first = place.writer.timeline.completed[-1].ended
    place.writer.upsert(trips(("7", "x", 2, 7.0), ("new", "x", 2, 7.0)))
    last = place.writer.timeline.completed[-1].ended
    if kind == "MERGE_ON_READ":
        place.writer.compact()
    storage = cast(Storage, place.seen)
    reader = HoodieTable("/t", UNCHECKED, storage=storage)
    stream = TableStream(storage, ReadOptions.parse({**UNCHECKED, "path": "/t"}))

    def streamed() -> int:
        plan = stream.query(first, last).plan()
        return sum(
            len(r) for task in plan.tasks for r in plan.executor.read(task, plan.schema.names)
        )

    assert reader.read().num_rows == 40_001
    whole = place.seen.bytes.total()
    for ask in (lambda: reader.read_incremental(first).num_rows, streamed):
        place.seen.bytes.clear()
        assert ask() == 2
        assert place.seen.bytes.total() < whole / 3, ask


def test_row_groups_of_every_commit_of_a_range_are_read() -> None:
    place = Place(**{BUCKETS: "1"})
    place.writer.upsert(many(9))
    first = place.writer.timeline.completed[-1]
    for city in "xyz":
        place.writer.upsert(trips((f"new in {city}", city, 1, 2.0)))
    found = place.reader.read_incremental(first, columns=["id"])["id"].to_pylist()
    assert sorted(found) == ["new in x", "new in y", "new in z"]
