"""Keys of the metadata table and the file groups that have them, as in tables of Hudi."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from hoodie_ds.metadata_table.record_keys import file_groups_of, file_id
from hoodie_ds.metadata_table.stored import _spread
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from tests.unit.metadata_table.test_record_schema import entries, paths


@pytest.mark.parametrize("name", ["v9_cow_files_bf_ri", "v6_cow_files_bf_cs"])
def test_a_record_is_in_the_file_group_of_its_key(name: str) -> None:
    groups = {group_of(path) for path in paths(name) if ".log.1_0-0-0" in path}
    counts = Counter(partition for partition, _ in groups)
    assert max(counts.values()) > 1
    for path, key, _, _ in entries(name):
        partition, file_group = group_of(path)
        (number,) = file_groups_of(pa.array([key.decode()]), counts[partition])
        assert file_group == file_id(partition, number)


def group_of(path: str) -> tuple[str, str]:
    partition, file = path.split("/")[-2:]
    return partition, file.lstrip(".").partition("_")[0]


@pytest.mark.parametrize(
    ("key", "code"),
    [("\U0001f600", 1772899), ("polygenelubricants", 1 << 31), ("zzzzzz", 685785664)],
)
def test_java_hashes_units_of_utf_16_and_takes_numbers_without_their_sign(
    key: str, code: int
) -> None:
    assert file_groups_of(pa.array([key]), 1 << 32).tolist() == [code]


def test_a_file_group_is_named_after_its_partition() -> None:
    assert file_id("column_stats", 0) == "col-stats-0000-0"
    assert file_id("secondary_index_city", 3) == "secondary-index-city-0003-0"


def test_each_of_many_keys_is_looked_up_in_one_file_group() -> None:
    names = [FileGroupId("record_index", file_id("record_index", number)) for number in range(4)]
    keys = [f"key{number}" for number in range(2_000)]
    found = _spread("record_index", [FileSlice(name, "1", None, ()) for name in names], keys)
    assert sorted(key for some in found for key in some) == sorted(keys)
