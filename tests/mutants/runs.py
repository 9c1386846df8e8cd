"""Test runs in which a bug is planted, forked from a process that has collected the tests.

A bug takes little more than its test: what imports and collects is done once for each test file.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pkgutil
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.mutants.patches import PACKAGE

ROOT = PACKAGE.parent
PASSED, FAILED = 0, 1
"""pytest's exit codes; others tell that no test ran, or that none could be collected."""

_SECONDS_MAX = 300
_ENDED = 64
"""Added to pytest's exit codes: a process that ends by an error of its own has one of them, 1."""
_FORKED = multiprocessing.get_context("forkserver")
_OTHERS = (
    "_hypothesis_pytestplugin",
    "fastavro",
    "fsspec",
    "hypothesis.stateful",
    "pandas",
    "pyarrow.parquet",
    "pytest",
    "pytest_cov.plugin",
    "xdist.plugin",
)
_OURS = [module.name for module in pkgutil.walk_packages([str(PACKAGE)], "hoodie_ds.")]
_FORKED.set_forkserver_preload([*_OTHERS, *_OURS, "tests.mutants.planted"])


def run_tests(tests: Sequence[str], name: str = "") -> tuple[int, str]:
    """Run tests in a process of their own; return pytest's exit code and its output.

    Parameters
    ----------
    tests : sequence of str
        As pytest's command line takes them.
    name : str
        Of a bug that is planted before they are collected.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        process = _FORKED.Process(target=_pytest, args=(folder, tests, output, name))
        process.start()
        process.join(_SECONDS_MAX)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode - _ENDED, output.read_text("utf-8")


class PlantedRuns:
    """Runs tests with bugs planted; those of one file follow one another."""

    def __init__(self) -> None:
        self._collected: _Collected | None = None

    def run(self, name: str, test: str) -> tuple[int, str]:
        """Plant the bug of a name and run a test; return pytest's exit code and what failed."""
        if test.startswith("tests/spark/"):  # a JVM takes longer than all that is shared
            return run_tests([test], name)
        code, output = self.run_forked(test, name)
        if code == FAILED:
            return code, output
        return run_tests([test], name)  # a bug may act where tests are imported, too

    def run_forked(self, test: str, name: str = "") -> tuple[int, str]:
        """Run a test in a fork of the process that has collected its file."""
        file = test.partition("::")[0]
        if self._collected is None or self._collected.file != file:
            self.close()
            self._collected = _Collected(file)
        return self._collected.run(name, test)

    def close(self) -> None:
        """End the process of the last file."""
        if self._collected is not None:
            self._collected.close()
            self._collected = None

    def __enter__(self) -> PlantedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Collected:
    """A process that has collected the tests of a file, and runs them in forks of its own."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._folder = tempfile.TemporaryDirectory()
        self._output = Path(self._folder.name) / "output"
        self._requests, theirs = _FORKED.Pipe()
        self._process = _FORKED.Process(
            target=_pytest, args=(self._folder.name, [file], self._output, "", theirs)
        )
        self._process.start()
        theirs.close()

    def run(self, name: str, test: str) -> tuple[int, str]:
        try:
            self._requests.send((name, test))
            code, output = self._requests.recv()
        except (EOFError, OSError):  # it has ended: the tests cannot be collected
            code, output = pytest.ExitCode.INTERNAL_ERROR, self._output.read_text("utf-8")
        return code, output

    def close(self) -> None:
        self._requests.close()
        self._process.join(_SECONDS_MAX)
        self._process.kill()
        self._process.join()
        self._folder.cleanup()


class _Forks:
    """A plugin of pytest that runs, instead of all tests, each that it is asked for in a fork."""

    def __init__(self, requests: Connection, folder: str) -> None:
        self._requests = requests
        self._failed = Path(folder) / "failed"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        while True:
            try:
                name, test = self._requests.recv()
            except EOFError:
                return True
            chosen = [item for item in session.items if _is_of(item.nodeid, test)]
            self._failed.write_text("" if chosen else f"no test {test}", "utf-8")
            fork = multiprocessing.get_context("fork").Process(
                target=self._plant_and_run, args=(session, name, chosen)
            )
            fork.start()
            fork.join(_SECONDS_MAX)
            fork.kill()
            fork.join()
            assert fork.exitcode is not None
            self._requests.send((fork.exitcode - _ENDED, self._failed.read_text("utf-8")))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.write_text(f"{report.nodeid}\n{report.longreprtext}", "utf-8")

    def _plant_and_run(self, session: pytest.Session, name: str, tests: list[pytest.Item]) -> None:
        if name:
            _plant(name)
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            test.ihook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.testsfailed:
                break
        codes = [FAILED if session.testsfailed else PASSED, pytest.ExitCode.NO_TESTS_COLLECTED]
        sys.exit(_ENDED + codes[not tests])


def _is_of(node: str, test: str) -> bool:
    return node == test or node.startswith((f"{test}[", f"{test}::"))


def _plant(name: str) -> None:
    from tests.mutants.planted import MUTANTS

    (patch,) = (mutant.patch for mutant in MUTANTS if mutant.name == name)
    patch.plant()
    gc.freeze()  # pytest and some tests collect garbage: not among what was imported


def _pytest(
    folder: str,
    tests: Sequence[str],
    output: Path,
    planted: str,
    requests: Connection | None = None,
) -> None:
    with output.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.chdir(ROOT)
    if planted:
        _plant(planted)
    plugins = [] if requests is None else [_Forks(requests, folder)]
    options = ["-q", "-x", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    # pytest sweeps the folders of other runs from the one that all share by default.
    options += ["--basetemp", f"{folder}/tests"]
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    sys.exit(_ENDED + pytest.main([*options, *tests], plugins))
