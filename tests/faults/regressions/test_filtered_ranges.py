"""A filter of an incremental query left no file unopened."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.filters.guarantees import satisfiable
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("is_cleaned", [False, True])
def test_files_that_a_filter_rules_out_are_not_opened(
    is_cleaned: bool, version: str, kind: str, tmp_path: Path
) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, BUCKETS: "8", TYPE: kind, VERSION: version})
    cities = ("x", "y")
    rows = [(f"k{n}", city, fare) for fare in (1, 2, 3) for city in cities for n in range(24)]
    for fare in (1, 2, 3):
        table.upsert(trips(*((key, c, f, float(f)) for key, c, f in rows if f == fare)))
        if is_cleaned and kind == "MERGE_ON_READ":
            table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    if is_cleaned:
        assert table.clean({"hoodie.clean.commits.retained": "1"})
    wanted = (pc.field("id") == "k7") & (pc.field("city") == "x")
    read = HoodieTable(tmp_path, {IncrementalOptions.full_scan.key: "true"} if is_cleaned else {})
    found = read.read_incremental("000", filter=wanted).to_pylist()
    assert [(row["id"], row["city"], row["fare"]) for row in found] == [("k7", "x", 3.0)]
    group = found[0]["_hoodie_file_name"][:36]
    spoilt = [f for c in cities for f in (tmp_path / c).iterdir() if "-" in f.name]
    for file in spoilt:
        if file.parent.name != "x" or group not in file.name:
            file.write_bytes(bytes(file.stat().st_size))
    assert read.read_incremental("000", filter=wanted).to_pylist() == found


@pytest.mark.parametrize("kind", TYPES)
def test_a_string_was_missed_that_java_orders_otherwise(kind: str, tmp_path: Path) -> None:
    """Of two files of a partition the metadata table has the highest string in Java's order."""
    statistics = {"hoodie.metadata.enable": "true", MetadataOptions.column_stats.key: "true"}
    options = {**TRIPS, **statistics, BUCKETS: "8", TYPE: kind, VERSION: "9"}
    table = HoodieTable(tmp_path, options)
    keys = ["\ufdd0", "\U0001f600x", "a"]
    for key in keys:
        table.upsert(trips((key, "x", 1, 1.0)))
    assert "partition_stats" in table.properties.metadata_partitions
    for key in keys:
        expected = sorted(other for other in keys if other.encode() >= key.encode())
        for wanted, found in ((pc.field("id") == key, [key]), (pc.field("id") >= key, expected)):
            assert sorted(table.read(filter=wanted)["id"].to_pylist()) == found


def test_a_file_of_nan_was_ruled_out_by_arrow_itself() -> None:
    """Arrow holds NaN for valid, or for null by option, and does not ask which."""
    schema = pa.schema([("fare", pa.float64())])
    nan = pc.field("fare").is_null(nan_is_null=True)
    assert satisfiable(nan, schema, lambda _: Bounds(0.0, 1.0, nulls=False))
