"""Expression indexes of Hudi: our writes drop them alone, and Hudi makes them again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.timeline.paths import METADATA_TABLE
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_record_index import OPTIONS
from tests.interop.test_jvm_secondary_index import LOCK, SKIPPING
from tests.rows import assert_same_rows
from tests.tables import trips

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.nightly]

KEPT = "hoodie.metadata.index.expression.enable"
LOCKS = "hoodie.write.lock.provider"
INDEXES = {
    "expr_index_by_day": "column_stats(ts) options(expr='from_unixtime', format='yyyy-MM-dd')",
    "expr_index_by_id": "bloom_filters(id) options(expr='lower')",
}


def found(jvm: JvmHudi, name: str, where: str) -> list[str]:
    """Record keys of the rows that a query of Hudi finds by the metadata table."""
    jvm.sql(f"set {SKIPPING}=true")
    jvm.sql("set hoodie.metadata.enable=true")
    jvm.sql(f"refresh table {name}")
    try:
        return sorted(jvm.sql(f"select id from {name} where {where}").column("id").to_pylist())
    finally:
        jvm.sql(f"reset {SKIPPING}")
        jvm.sql("reset hoodie.metadata.enable")


def test_hudi_goes_on_without_what_our_writes_have_dropped(
    jvm_hudi: JvmHudi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, name, day = tmp_path / "t", "with_expressions", 86_400
    theirs = {**OPTIONS, TABLE_VERSION: "9", "hoodie.metadata.enable": "true", KEPT: "true"}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("B", "y", 1, 1.0)), theirs)
    jvm_hudi.sql(f"create table {name} using hudi location '{path}'")
    ours = HoodieTable(str(path), OPTIONS)
    where, settings = "from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-02'", {KEPT: "true", LOCKS: LOCK}
    for turn in range(2):
        for key, text in settings.items():
            jvm_hudi.sql(f"set {key}={text}")
        for index, made in INDEXES.items():
            jvm_hudi.sql(f"create index {index[11:]} on {name} using {made}")
        for key in settings:
            jvm_hudi.sql(f"reset {key}")
        assert {*INDEXES} <= {*ours.properties.metadata_partitions}
        caplog.clear()
        ours.upsert(trips((f"c{turn}", "x", day, 2.0), ("a", "x", day + turn, 2.0)))
        warnings = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
        assert len(warnings) == 1, warnings
        assert all(index in warnings[0] for index in INDEXES)
        assert not {*INDEXES} & {*ours.properties.metadata_partitions}
        assert not [*(path / METADATA_TABLE).glob("expr_index_*")]
        assert not ours.inspect.verify_metadata_table().findings
        expected = sorted({"a", *(f"c{number}" for number in range(turn + 1))})
        assert found(jvm_hudi, name, where) == expected
        jvm_hudi.write(path, trips((f"d{turn}", "y", day, 4.0)), theirs)
        expected = sorted([*expected, f"d{turn}"])
        assert found(jvm_hudi, name, where) == expected
        ours.delete(trips((f"d{turn}", "y", day + 1, None)))
        assert_same_rows(jvm_hudi.read(path), ours.read())
