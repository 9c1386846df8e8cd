"""Partitions of a metadata table that are made here: Hudi reads by them, and both keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_column_statistics import STATISTICS
from tests.interop.test_jvm_column_statistics import agree as skipping_agrees
from tests.interop.test_jvm_metadata_table import THEIRS, agree
from tests.tables import TRIPS, TYPE, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true"}


@pytest.mark.parametrize(
    ("version", "kind"),
    by_day([("6", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ")], {("9", "MERGE_ON_READ")}),
)
def test_hudi_continues_what_is_made(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    path = tmp_path / "t"
    options = {**TRIPS, TYPE: kind, TABLE_VERSION: version}
    ours = HoodieTable(str(path), options)
    ours.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    ours.upsert(trips(("a", "x", 5, 2.0), ("c", "z", 5, None)))
    made = ours.create_metadata_table({**STATISTICS, **FILTERS}).made
    agree(jvm_hudi, path, version)
    theirs = {**options, **THEIRS, **STATISTICS, **FILTERS}
    jvm_hudi.write(path, trips(("a", "x", 20, 3.0), ("b", "y", 20, 3.0)), theirs)
    ours.upsert(trips(("a", "x", 21, 4.0), ("n", "z", 21, -4.0)))
    agree(jvm_hudi, path, version)
    skipping_agrees(jvm_hudi, path)
    assert ours.inspect.verify_metadata_table()
    partitions = jvm_hudi.properties(path)["hoodie.table.metadata.partitions"].split(",")
    assert set(partitions) == set(made)
    ours.drop_metadata_table(["bloom_filters"])
    ours.create_metadata_table(FILTERS)
    jvm_hudi.write(path, trips(("a", "x", 60, 3.0)), theirs)
    agree(jvm_hudi, path, version)
    skipping_agrees(jvm_hudi, path)
    bases = (path / ".hoodie/metadata").glob("*/*_0-0-0_000000000000000*.hfile")
    assert {base.parent.name for base in bases} >= set(made) - {"bloom_filters"}, "Hudi built it"
