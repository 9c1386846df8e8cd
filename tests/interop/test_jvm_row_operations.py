"""The column ``_hoodie_operation`` beside Apache Hudi on the JVM: both delete the same keys."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from tests.golden.golden_tables import INCREMENTAL_QUERY, READ_OPTIMIZED_QUERY
from tests.golden.histories import TABLES
from tests.interop.jvm_hudi import JvmHudi
from tests.row_operations import BATCHES, BY_COMMIT_TIME, BY_EVENT_TIME, content, logged_as_rows
from tests.tables import BUCKETS, KEY, ORDERING, VERSION
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

OPTIONS = {"hoodie.table.name": "t", KEY: "id", BUCKETS: "1"}
BY_DAY = {("6", "cow", True), ("9", "mor_avro", True), ("8", "mor_parquet", False)}


@pytest.mark.parametrize(
    ("version", "kind", "by_event_time"), by_day(product("689", TABLES, (True, False)), BY_DAY)
)
def test_both_delete_alike(
    version: str, kind: str, by_event_time: bool, jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    options = {**OPTIONS, **TABLES[kind], VERSION: version, "hoodie.index.type": "BUCKET"}
    options |= {ORDERING: "ts"} if by_event_time else {}
    expected = BY_EVENT_TIME if by_event_time else BY_COMMIT_TIME
    theirs_alone = {
        "hoodie.allow.operation.metadata.field": "true",
        "hoodie.compact.inline": "false",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "SIMPLE",  # with buckets it writes nothing of the second batch
    }
    ours, theirs, logged = (tmp_path / name for name in ("ours", "theirs", "logged"))
    table, flink = (HoodieTable(str(path), options) for path in (ours, logged))
    for rows, wanted in zip(BATCHES, expected, strict=True):
        table.upsert(rows)
        jvm_hudi.write(theirs, rows, {**options, **theirs_alone})
        for path in (ours, theirs):
            assert content(jvm_hudi.read(path)) == content(HoodieTable(str(path)).read()) == wanted
        with logged_as_rows() if kind != "cow" else nullcontext():
            flink.upsert(rows)
        news = {**INCREMENTAL_QUERY, "hoodie.datasource.read.begin.instanttime": "000"}
        for query in ({}, READ_OPTIMIZED_QUERY, news):
            read = HoodieTable(str(logged), query)
            found = read.read_incremental("000") if query is news else read.read()
            assert content(jvm_hudi.read(logged, query)) == content(found), query
