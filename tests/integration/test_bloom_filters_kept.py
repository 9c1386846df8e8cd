"""Writes and services of a table keep the bloom filters of base files in the metadata table."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.metadata_table.record_keys import digest, hashed
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.local import LocalStorage
from tests.integration.test_column_statistics_kept import assert_kept, records
from tests.integration.test_metadata_table import RETAINED
from tests.integration.test_metadata_table_kept import GOLDEN

FOOTER = b"org.apache.hudi.bloomfilter"


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE"])
def test_each_base_file_has_its_filter(tmp_path: Path, index: str) -> None:
    with ZipFile(GOLDEN / "v6_cow_files_bf_cs.zip") as files:
        files.extractall(tmp_path)
    small = {"hoodie.parquet.small.file.limit": "0"}
    table = HoodieTable(str(tmp_path), {RETAINED: "1", "hoodie.index.type": index, **small})
    rows = table.read()
    meta = [column for column in rows.column_names if column.startswith("_hoodie")]
    for start in range(3):
        table.upsert(rows.drop_columns(meta).slice(start, 4))
    other = rows.drop_columns(meta).slice(0, 1)
    table.upsert(other.set_column(0, "id", pa.array(["other"])))
    table.clean()
    assert table.cluster()
    filters = {
        key: record["BloomFilterMetadata"]
        for key, record in records(tmp_path, "bloom_filters").items()
    }
    for found in PinnedTable.latest(LocalStorage(str(tmp_path))).slices():
        assert found.base is not None
        stored = pq.read_metadata(tmp_path / found.base.path).metadata[FOOTER]
        kept = filters[hashed(".") + digest(str(found.base.name))]
        assert (kept["type"], kept["bloomFilter"]) == ("DYNAMIC_V0", stored)
        assert (kept["timestamp"], kept["isDeleted"]) == (found.base_instant, False)
    there = {path.name for path in tmp_path.glob("*.parquet")}
    listed = sum(not kept["isDeleted"] for kept in filters.values())
    assert listed == len(there) < len(filters)
    assert_kept(tmp_path)
