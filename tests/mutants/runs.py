"""Test runs in which a bug is planted, forked from a process that is warm.

It has imported the package and what others wrote, most of the time of a short run, and no test.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pkgutil
import sys
import tempfile
from collections.abc import Sequence
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
    """Run tests; return pytest's exit code and its output.

    Parameters
    ----------
    tests : sequence of str
        As pytest's command line takes them.
    name : str
        Of a bug that is planted before.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        process = _FORKED.Process(target=_pytest, args=(folder, name, tests, output))
        process.start()
        process.join(_SECONDS_MAX)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode - _ENDED, output.read_text("utf-8")


def _pytest(folder: str, planted: str, tests: Sequence[str], output: Path) -> None:
    with output.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.chdir(ROOT)
    if planted:
        from tests.mutants.planted import MUTANTS

        (patch,) = (mutant.patch for mutant in MUTANTS if mutant.name == planted)
        patch.plant()
    gc.freeze()  # pytest collects garbage several times at its end: not among what was imported
    options = ["-q", "-x", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    # pytest sweeps the folders of other runs from the one that all share by default.
    options += ["--basetemp", f"{folder}/tests"]
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    sys.exit(_ENDED + pytest.main([*options, *tests]))
