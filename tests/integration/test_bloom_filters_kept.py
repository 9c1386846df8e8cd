"""Writes and services of a table keep the bloom filters of base files in the metadata table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.formats.parquet.bloom_filter import BloomFilter
from hoodie_ds.metadata_table.record_keys import digest, hashed
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.local import LocalStorage
from tests.golden.test_metadata_tables import unzipped
from tests.integration.test_column_statistics_kept import assert_kept, begun, records
from tests.integration.test_metadata_table import RETAINED
from tests.integration.test_metadata_table_kept import KINDS
from tests.metadata_tables import Recorder
from tests.rows import without_meta
from tests.tables import TRIPS, trips
from tests.tables import found as rows_of

FOOTER = b"org.apache.hudi.bloomfilter"


def assert_filters_kept(path: Path) -> list[dict[str, Any]]:
    """Compare the records with the footers of live base files, and return all of them."""
    stored = records(path, "bloom_filters").items()
    filters = {key: record["BloomFilterMetadata"] for key, record in stored}
    for found in PinnedTable.latest(LocalStorage(str(path))).slices():
        assert found.base is not None
        footer = pq.read_metadata(path / found.base.path).metadata[FOOTER]
        kept = filters[hashed(found.group.partition_path or ".") + digest(str(found.base.name))]
        assert (kept["type"], kept["bloomFilter"]) == ("DYNAMIC_V0", footer)
        assert (kept["timestamp"], kept["isDeleted"]) == (found.base_instant, False)
    return list(filters.values())


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE"])
def test_each_base_file_has_its_filter(tmp_path: Path, index: str) -> None:
    path = Path(unzipped("v6_cow_files_bf_cs", tmp_path))
    small = {"hoodie.parquet.small.file.limit": "0"}
    table = HoodieTable(str(path), {RETAINED: "1", "hoodie.index.type": index, **small})
    rows = without_meta(table.read())
    for start in range(3):
        table.upsert(rows.slice(start, 4))
    other = rows.slice(0, 1)
    table.upsert(other.set_column(0, "id", pa.array(["other"])))
    table.clean()
    assert table.cluster()
    filters = assert_filters_kept(path)
    there = {file.name for file in path.glob("*.parquet")}
    listed = sum(not kept["isDeleted"] for kept in filters)
    assert listed == len(there) < len(filters)
    assert_kept(path)


@pytest.mark.parametrize("kind", KINDS)
def test_so_do_files_of_buckets_where_nothing_is_looked_up(tmp_path: Path, kind: str) -> None:
    table = begun(tmp_path, "9", kind)
    Recorder(LocalStorage(str(tmp_path))).add(bloom_filters=["bloom-filters-0000-0"])
    for ts in (1, 2):
        table.upsert(trips(("a", "x", ts, 1.0), ("b", "y", ts, 1.0)))
    if kind == "MERGE_ON_READ":
        assert table.compact()
    assert assert_filters_kept(tmp_path)


def test_a_rewrite_without_new_keys_keeps_the_filter(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, "hoodie.index.type": "BLOOM"})

    def stored() -> BloomFilter:
        newest = max(tmp_path.glob("x/*.parquet"), key=lambda path: path.name.split("_")[-1])
        found = BloomFilter.from_footers(pq.read_metadata(newest).metadata, str(newest))
        assert found is not None
        return found

    def has(filter_: BloomFilter) -> list[bool]:
        return list(filter_.may_contain(pa.array(["a", "b", "c"])))

    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    first = stored()
    table.update({"fare": 2.0}, where="id = a")
    table.delete(where="id = a")
    assert has(stored()) == [True, True, False]
    table.upsert(trips(("c", "x", 1, 1.0)))
    assert has(stored()) == [False, True, True]
    table.update({"fare": 3.0}, "id = b", {"hoodie.index.bloom.num_entries": "10"})
    assert (has(stored()), stored().num_bits < first.num_bits) == ([False, True, True], True)
    assert [row[3] for row in rows_of(table)] == [3.0, 1.0]
