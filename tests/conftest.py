"""Settings of the whole test suite."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from functools import cache

import pytest
from hypothesis import settings

from tests.cloud_servers import find_azurite, find_fake_gcs, running_azurite, running_fake_gcs
from tests.hdfs_server import JARS, HdfsServer, running_hdfs
from tests.s3_server import MISSING, S3Server, find_versitygw, running, running_versitygw
from tests.spark import quick_start
from tests.store_server import StoreServer
from tests.tiers import beyond

pytest_plugins = ["tests.tally"]

_ON_ONE_WORKER = ("tests/spark/", "tests/interop/")
"""Folders whose tests share a JVM, which takes seconds to start."""

_ON_ANY_WORKER = (
    "tests/property/test_stateful.py",
    "tests/faults/test_services.py",
    "tests/faults/test_stream_services_sweep.py",
    "tests/faults/test_schedules.py",
    "tests/mutants/",
)
"""A folder, and files, whose tests share nothing and take minutes together; the longest first."""

for variable, value in quick_start.environment().items():
    os.environ.setdefault(variable, value)

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Let no test wait for a disk: power losses are simulated, other ends keep what is cached."""
    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", lambda _: None)
    config.add_cleanup(patch.undo)
    config.add_cleanup(gc.unfreeze)  # some extension modules report what is left at the end


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="run one in N variants of each test",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor later among them: they are many."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # after those that the markers leave out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--one-in` says.

    With several workers begin with what takes longest: Spark and the JVM, then other tests.
    """
    left_out = beyond(items, config.getoption("one_in"))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]
    if hasattr(config, "workerinput"):
        long = (*_ON_ONE_WORKER, *_ON_ANY_WORKER)
        items.sort(key=lambda item: [not item.nodeid.startswith(place) for place in long])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give all tests of a file, or of a folder that shares a JVM, to the same worker."""
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    by_file = scheduler._split_scope

    def by_folder(nodeid: str) -> str:
        if nodeid.startswith("tests/mutants/"):
            return _file_of_planted().get(nodeid, nodeid)
        if nodeid.startswith(_ON_ANY_WORKER):
            return nodeid
        shared = (folder for folder in _ON_ONE_WORKER if nodeid.startswith(folder))
        return next(shared, None) or by_file(nodeid)

    scheduler._split_scope = by_folder
    config.option.loadscopereorder = False  # in the order of the collection
    return scheduler


@cache
def _file_of_planted() -> dict[str, str]:
    """Return the file in whose process each planted bug is tried."""
    from tests.mutants.planted import MUTANTS

    test = "tests/mutants/test_mutants.py::test_a_planted_bug_is_found"
    return {f"{test}[{mutant.name}]": f"bugs of {mutant.file}" for mutant in MUTANTS}


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Do on one thread what is given to several, in the same order in each run."""
    from hoodie_ds.testing import one_thread

    with one_thread():
        yield


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
        pytest.skip("no versitygw: .ci/setup test --jvm installs it where Go is")
    with running_versitygw(program, tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="session")
def gcs() -> Iterator[StoreServer]:
    """A server of Google Cloud Storage on loopback; skips where it is not installed."""
    command = find_fake_gcs()
    if command is None:
        pytest.skip("no fake-gcs-server: .ci/setup test --jvm installs it where Go is")
    with running_fake_gcs(command) as server:
        yield server


@pytest.fixture(scope="session")
def azurite() -> Iterator[StoreServer]:
    """A server of Azure on loopback; skips where it is not installed."""
    command = find_azurite()
    if command is None:
        pytest.skip("no Azurite: .ci/setup test --jvm installs it where npm is")
    with running_azurite(command) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """HDFS on loopback; skips where it is not installed."""
    if not (JARS / "fetched").is_file():
        pytest.skip("no Hadoop: .ci/setup test --jvm fetches it")
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def server(request: pytest.FixtureRequest) -> StoreServer:
    """The server that the test's parameter names."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, StoreServer)
    return found
