"""Test runs with a package of their own, forked from a process that is warm.

It has imported what others wrote, half of the time of a short run, and nothing of ours.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hoodie_ds"
PASSED, FAILED = 0, 1
"""pytest's exit codes; others tell that no test ran, or that none could be collected."""

_SECONDS_MAX = 300
_ENDED = 64
"""Added to pytest's exit codes: a process that ends by an error of its own has one of them, 1."""
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    ["fastavro", "fsspec", "hypothesis.stateful", "pandas", "pyarrow.parquet", "pytest"]
)


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests with the package of a folder; return pytest's exit code and its output."""
    output = copy / "output"
    process = _FORKED.Process(target=_pytest, args=(copy, tests, output))
    process.start()
    process.join(_SECONDS_MAX)
    process.kill()
    process.join()
    assert process.exitcode is not None
    return process.exitcode - _ENDED, output.read_text("utf-8")


def _pytest(copy: Path, tests: Sequence[str], output: Path) -> None:
    with output.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.chdir(ROOT)
    options = ["-q", "-x", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    sys.exit(_ENDED + pytest.main([*options, "-o", f"pythonpath={copy} .", *tests]))


def copied(folder: Path) -> Path:
    """Copy the package into a folder."""
    shutil.copytree(PACKAGE, folder / "hoodie_ds", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def module_with(text: str, package: Path = PACKAGE) -> Path:
    """Find the one module of a package in which a text occurs once."""
    found = [path for path in package.rglob("*.py") if text in path.read_text("utf-8")]
    assert len(found) == 1, f"{text!r} occurs in {len(found)} modules"
    assert found[0].read_text("utf-8").count(text) == 1, f"{text!r} occurs more than once"
    return found[0]
