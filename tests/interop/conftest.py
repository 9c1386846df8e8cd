"""Fixtures of the interop suite: the one JVM oracle of a test session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

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
