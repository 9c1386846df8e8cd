"""Fixtures of the interop suite: the one JVM oracle of a test session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hoodie_ds.metadata_table import task_keys
from tests.interop.jvm_hudi import JvmHudi, JvmHudiMissingError, find_installation


@pytest.fixture(scope="session")
def jvm_hudi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmHudi]:
    """Apache Hudi 1.2 on Spark 3.5; skips, saying what is missing, where it is not installed."""
    try:
        installation = find_installation(os.environ)
    except JvmHudiMissingError as missing:
        pytest.skip(str(missing))
    with JvmHudi(installation, tmp_path_factory.mktemp("jvm"), os.environ) as oracle:
        yield oracle


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks make the index's entries of few rows, too, and a block of each file."""
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)
    monkeypatch.setattr(task_keys, "_MOST_KEYS", 1)
