"""The session that the Spark suite runs in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from tests.tables import TRIPS, trips

pytestmark = pytest.mark.spark


def python_of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"python": pa.array([sys.prefix] * batch.num_rows)})


def test_workers_run_the_python_of_the_tests_and_utc_rules(spark: Any) -> None:
    found = spark.range(2).mapInArrow(python_of_worker, "python string").toArrow()
    assert set(found.column("python").to_pylist()) == {sys.prefix}
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_second_session_of_the_same_application(spark: Any, tmp_path: Path) -> None:
    """Spark compares what a session registers with what the active one has."""
    HoodieTable(str(tmp_path), TRIPS).upsert(trips(("a", "x", 1, 1.0)))
    hoodie_ds.register(spark)
    for session in (spark.newSession(), spark.newSession(), spark):
        hoodie_ds.register(session)
        assert session.read.format("hoodie_py").load(str(tmp_path)).count() == 1


@contextmanager
def settings(session: Any, **texts: str) -> Iterator[None]:
    """Set `a.b` by `a__b`."""
    named = {key.replace("__", "."): text for key, text in texts.items()}
    for key, text in named.items():
        session.conf.set(key, text)
    try:
        yield
    finally:
        for key in named:
            session.conf.unset(key)


@pytest.mark.slow
def test_settings_of_the_session_are_options(spark: Any, tmp_path: Path) -> None:
    """As in Hudi: `spark.hoodie.*` for all, `hoodie.*` for queries; those of the call win."""
    hoodie_ds.register(spark)
    path = str(tmp_path / "table")
    rows = spark.createDataFrame([("a", 1, 1.0)], "id string, ts long, fare double")
    with settings(
        spark,
        spark__hoodie__table__name="trips",
        spark__hoodie__datasource__write__recordkey__field="fare",
        spark__hoodie__datasource__write__precombine__field="ts",
        hoodie__datasource__write__table__type="MERGE_ON_READ",
    ):
        writer = rows.write.format("hoodie_py").mode("append")
        writer.option("hoodie.table.recordkey.fields", "id").save(path)
        call = {"path": path, "hoodie.datasource.write.recordkey.field": "id"}
        hoodie_ds.shuffle_by_file_group(rows, call)
    table = HoodieTable(path)
    found = table.properties
    assert (found.name, found.table_type.value) == ("trips", "COPY_ON_WRITE")
    assert (found.record_key_fields, found.ordering_fields) == (("id",), ("ts",))
    query = "hoodie.datasource.query.type", "snapshot"
    with settings(
        spark,
        hoodie__datasource__query__type="incremental",
        hoodie__datasource__read__begin__instanttime="99999999999999999",
        spark__hoodie__datasource__query__type="read_optimized",
        spark__hoodie__datasource__write__operation="insert",
    ):
        assert spark.read.format("hoodie_py").load(path).count() == 0
        assert spark.read.load(path, "hoodie_py", **dict([query])).count() == 1
        stream = spark.readStream.format("hoodie_py").option(*query).load(path)
        written = stream.drop(*(name for name in stream.columns if name.startswith("_hoodie")))
        writer = written.writeStream.format("hoodie_py").trigger(availableNow=True)
        checkpoint = str(tmp_path / "checkpoint")
        writer.option("checkpointLocation", checkpoint).start(path).awaitTermination()
        assert table.count() == 2
        assert hoodie_ds.delete(spark, path, "id = a").deleted == 2
    assert table.count() == 0


def test_settings_that_sql_or_a_write_do_not_take_are_named(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hoodie_ds.register(spark)
    HoodieTable(str(tmp_path), TRIPS).upsert(trips(("a", "x", 1, 1.0)))
    with settings(spark, spark__hoodie__index__typo="1", hoodie__metadata__enable="true"):
        for _ in range(2):
            spark.sql(f"CREATE OR REPLACE TEMP VIEW v USING hoodie_py OPTIONS (path '{tmp_path}')")
            spark.table("v").write.format("hoodie_py").mode("append").save(str(tmp_path))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "hoodie_py in SQL: hoodie.metadata.enable, spark.hoodie.index.typo; give" in told[0]
    assert "no effect on writes: hoodie.metadata.enable; set spark.hoodie.*" in told[1]
