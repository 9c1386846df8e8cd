"""Statistics of columns in a metadata table that Apache Hudi has made, kept by both in turns.

Filters find the same rows in Hudi where it skips files and partitions by them, where it skips none,
and here.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_metadata_table import METADATA, THEIRS
from tests.tables import TRIPS, TYPE, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}
CASES = [(v, k) for v in ("6", "8", "9") for k in ("COPY_ON_WRITE", "MERGE_ON_READ")]
NAN = float("nan")


def agree(jvm: JvmHudi, path: Path) -> None:
    """Compare what filters on each column find."""
    name = f"skipped_{path.parent.name}".replace("-", "_")
    jvm.sql(f"create table if not exists {name} using hudi location '{path}'")
    jvm.sql(f"refresh table {name}")
    rows = HoodieTable(str(path), {METADATA: "false"}).read()
    newest = max(rows["ts"].to_pylist())
    conditions = [f"ts = {newest}", "ts > 10", "ts <= 1", "id = 'a'"]
    conditions += ["fare > 1e9", "fare = 2.0", "fare is null"]
    # one statement with a scan for each, as each statement takes the JVM a second or two
    scans = [f"select {n} n, id from {name} where {one}" for n, one in enumerate(conditions)]
    found: dict[str, list[dict[str, object]]] = {}
    for enabled in ("true", "false"):
        for option in (METADATA, "hoodie.enable.data.skipping"):
            jvm.sql(f"set {option}={enabled}")
        found[enabled] = jvm.sql(f"{' union all '.join(scans)} order by n, id").to_pylist()
    assert found["true"] == found["false"]
    assert {row["n"] for row in found["true"]} >= {0, 3}
    wanted = pc.field("ts") == newest
    assert HoodieTable(str(path)).read(filter=wanted).num_rows == rows.filter(wanted).num_rows


@pytest.mark.parametrize(("version", "kind"), by_day(CASES, set()))
def test_both_keep_statistics(jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str) -> None:
    path = tmp_path / "t"
    options = {**TRIPS, TYPE: kind, TABLE_VERSION: version, "hoodie.clean.commits.retained": "1"}
    theirs = {**options, **THEIRS, **STATISTICS}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), theirs)
    ours = HoodieTable(str(path), options)
    ours.upsert(trips(("a", "x", 10, 2.0), ("n", "z", 10, NAN), ("c", "y", 10, None)))
    agree(jvm_hudi, path)
    jvm_hudi.write(path, trips(("a", "x", 11, 3.0), ("b", "y", 11, 3.0)), theirs)
    agree(jvm_hudi, path)
    if kind == "MERGE_ON_READ":
        ours.compact()
    ours.upsert(trips(("undone", "x", 60, 1.0), ("a", "x", 60, 1.0)))
    ours.rollback()
    ours.clean()
    agree(jvm_hudi, path)
    partitions = jvm_hudi.properties(path)["hoodie.table.metadata.partitions"]
    assert "column_stats" in partitions
    assert ("partition_stats" in partitions) == (version != "6")


@pytest.mark.parametrize(("version", "kind"), by_day(CASES, set()))
def test_statistics_that_hudi_has_dropped_and_made_again(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    path = tmp_path / "t"
    options = {**TRIPS, TYPE: kind, TABLE_VERSION: version}
    theirs = {**options, **THEIRS, **STATISTICS}
    without = {**theirs, **dict.fromkeys(STATISTICS, "false")}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), theirs)
    ours = HoodieTable(str(path), options)
    ours.upsert(trips(("a", "x", 2, 2.0)))
    jvm_hudi.write(path, trips(("b", "y", 3, 3.0)), without)
    assert ours.properties.metadata_partitions == ("files",)
    jvm_hudi.write(path, trips(("b", "y", 12, 2.0)), theirs)
    agree(jvm_hudi, path)
    for ts in (13, 14):
        ours.upsert(trips(("a", "x", ts, 5.0), (f"n{ts}", "z", ts, 5.0)))
        agree(jvm_hudi, path)
    assert "column_stats" in ours.properties.metadata_partitions
