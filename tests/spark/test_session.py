"""The session that the Spark suite runs in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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


def test_hudis_settings_of_the_session_are_named(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    session = spark.newSession()
    session.conf.set("spark.hoodie.index.type", "BUCKET")
    session.conf.set("hoodie.metadata.enable", "false")
    hoodie_ds.register(session)
    hoodie_ds.register(session)
    (told,) = (record.getMessage() for record in caplog.records)
    assert "hoodie_py: hoodie.metadata.enable, spark.hoodie.index.type; give" in told
    hoodie_ds.register(spark.newSession())
    assert len(caplog.records) == 1
