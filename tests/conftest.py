"""Settings of the whole test suite."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.s3_server import MISSING, S3Server, find_versitygw, running, running_versitygw
from tests.spark import quick_start

for variable, value in quick_start.environment().items():
    os.environ.setdefault(variable, value)

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server on loopback; skips where it is not installed."""
    if MISSING:
        pytest.skip(f"no S3 server: {', '.join(MISSING)} not installed (extra test)")
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Another S3 server on loopback; skips where it is not installed."""
    program = find_versitygw()
    if program is None or MISSING:
        pytest.skip("no versitygw: .ci/run installs it where Go is")
    with running_versitygw(program, tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture
def server(request: pytest.FixtureRequest) -> S3Server:
    """The S3 server that the test's parameter names."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, S3Server)
    return found
