"""The session that the Spark suite runs in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytestmark = pytest.mark.spark


def python_of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"python": pa.array([sys.prefix] * batch.num_rows)})


def test_workers_run_the_python_of_the_tests_and_utc_rules(spark: Any) -> None:
    found = spark.range(2).mapInArrow(python_of_worker, "python string").toArrow()
    assert set(found.column("python").to_pylist()) == {sys.prefix}
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
