"""Records of columns that are computed from the rows of a file are those that Hudi wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_ds.formats.column_ranges import ColumnRanges
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.log_block import BlockType, read_blocks
from hoodie_ds.metadata_table.column_records import file_statistics, partition_statistics
from hoodie_ds.metadata_table.payload import STATS, Record
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from tests.golden.test_metadata_tables import NAMES, opened, unzipped

INDEXED = [name for name in NAMES if "_cs" in name]


def index_of(path: str) -> tuple[list[str], str]:
    """The indexed columns of a table, and the version of the index."""
    definitions = json.loads((Path(path) / ".hoodie/.index_defs/index.json").read_bytes())
    index = definitions["indexDefinitions"]["column_stats"]
    return index["sourceFields"], index["version"]


def ranges_of(path: Path, columns: list[str]) -> ColumnRanges:
    ranges = ColumnRanges(columns)
    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            ranges.add(file.read_row_group(number))
        ranges.measure(file.metadata)
    else:
        for block in read_blocks(path.read_bytes(), path.name):
            if block.block_type is not BlockType.DELETE:
                ranges.add(decode_data_block(block, path.name))
    return ranges


def recorded(path: str, partition: str) -> dict[str, Record]:
    return {key: one for group in opened(path).records(partition) for key, one in group.items()}


@pytest.mark.parametrize("name", INDEXED)
def test_each_record_of_a_file_is_that_of_hudi(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    columns, version = index_of(path)
    theirs = recorded(path, "column_stats")
    files = {key: one[STATS]["fileName"] for key, one in theirs.items()}
    compared = 0
    for file in Path(path).rglob("*"):
        if file.name not in files.values():
            continue
        folder = "" if file.parent == Path(path) else str(file.parent.relative_to(path))
        ranges = ranges_of(file, columns).found
        for key, ours in file_statistics(folder, file.name, ranges, version).items():
            assert ours["type"] == theirs[key]["type"]
            assert ours[STATS] == theirs[key][STATS], key
            compared += 1
    assert compared == len(theirs) > 0


@pytest.mark.parametrize("name", [name for name in INDEXED if not name.startswith("v6")])
def test_records_of_files_add_up_to_those_of_their_partition(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    columns, version = index_of(path)
    files: dict[str, list[str]] = {}
    for found in PinnedTable.latest(open_storage(path)).slices():
        bases = [] if found.base is None else [found.base.path]
        files.setdefault(found.group.partition_path, []).extend(
            [*bases, *(log.path for log in found.logs)]
        )
    theirs = recorded(path, "partition_stats")
    ours: dict[str, Record] = {}
    for folder, paths in files.items():
        ranges = [ranges_of(Path(path) / file, columns).found for file in paths]
        ours |= partition_statistics(folder, ranges, {}, version)
    # Hudi says that it has looked at all files, which we leave to it: ours add to what is known.
    assert {key: {**one[STATS], "isTightBound": True} for key, one in ours.items()} == {
        key: one[STATS] for key, one in theirs.items()
    }
