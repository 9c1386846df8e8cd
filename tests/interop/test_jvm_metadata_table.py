"""A metadata table that Apache Hudi on the JVM has made, kept up to date by both in turns.

Queries by it, queries without it, and Hudi's own comparison with the folders agree after each turn.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from tests.integration.test_metadata_table import in_folders, listed
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TRIPS, TYPE, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

METADATA = "hoodie.metadata.enable"
THEIRS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    METADATA: "true",
    "hoodie.metadata.index.column.stats.enable": "false",
}
CASES = [(v, k) for v in ("6", "8", "9") for k in ("COPY_ON_WRITE", "MERGE_ON_READ")]
FEW = {("6", "MERGE_ON_READ")}
ROUNDS = [("6", "MERGE_ON_READ", 1), *((*case, 3) for case in CASES)]


def agree(jvm: JvmHudi, path: Path, version: str) -> None:
    """Compare all readers, and the listing with the folders."""
    ours = HoodieTable(str(path)).read()
    assert_same_rows(jvm.read(path, {METADATA: "true"}), ours)
    assert_same_rows(jvm.read(path, {METADATA: "false"}), ours)
    if version != "6":
        assert_same_rows(read_with_hudi_rs(path), ours)
    assert listed(path) == {file for file in in_folders(path) if not file.endswith(".crc")}
    name = f"listed_{path.parent.name}".replace("-", "_")
    jvm.sql(f"create table if not exists {name} using hudi location '{path}'")
    differing = jvm.sql(f"call validate_metadata_table_files(table => '{name}')")
    assert differing.to_pylist() == []


@pytest.mark.parametrize(("version", "kind", "rounds"), by_day(ROUNDS, ROUNDS[:1]))
def test_both_keep_it(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str, rounds: int
) -> None:
    path = tmp_path / "t"
    options = {**TRIPS, TYPE: kind, TABLE_VERSION: version, "hoodie.clean.commits.retained": "1"}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), {**options, **THEIRS})
    ours = HoodieTable(str(path), options)
    for ts in range(2, 2 + 5 * rounds, 5):
        ours.upsert(trips(("a", "x", ts, 2.0), (f"n{ts}", "z", ts, 2.0)))
        ours.delete(trips(("b", "y", ts, None)))
        agree(jvm_hudi, path, version)
        jvm_hudi.write(path, trips(("a", "x", ts + 1, 3.0), ("b", "y", ts + 1, 3.0)),
                       {**options, **THEIRS})  # fmt: skip
        agree(jvm_hudi, path, version)
        if kind == "MERGE_ON_READ":
            ours.compact()
        ours.upsert(trips(("undone", "x", ts + 2, 1.0), ("a", "x", ts + 2, 1.0)))
        ours.rollback()
        agree(jvm_hudi, path, version)
        ours.overwrite(trips((f"only{ts}", "z", ts, 4.0)), partitions_only=True)
        ours.clean()
        agree(jvm_hudi, path, version)
    assert jvm_hudi.properties(path)["hoodie.table.metadata.partitions"] == "files"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("version", "kind"), by_day(CASES, {("9", "MERGE_ON_READ")}))
def test_both_keep_one_of_ours(jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str) -> None:
    path = tmp_path / "t"
    options = {**TRIPS, TYPE: kind, TABLE_VERSION: version, METADATA: "true"}
    ours = HoodieTable(str(path), options)
    ours.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    for ts in range(2, 12, 3):
        ours.upsert(trips(("a", "x", ts, 2.0), (f"n{ts}", "z", ts, 2.0)))
        jvm_hudi.write(path, trips(("a", "x", ts + 1, 3.0)), {**options, **THEIRS})
        agree(jvm_hudi, path, version)
    ours.clean()
    agree(jvm_hudi, path, version)
    made = (path / ".hoodie/metadata/files").glob("files-0000-0_0-0-0_000*.hfile")
    assert list(made), "Hudi has built it anew"
