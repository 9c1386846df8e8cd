"""Test runs in which a bug is planted, forked from a process that is warm.

It has imported the package and what others wrote, most of the time of a short run, and no test.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.patches import Text

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hoodie_ds"
PASSED, FAILED = 0, 1
"""pytest's exit codes; others tell that no test ran, or that none could be collected."""

_SECONDS_MAX = 300
_ENDED = 64
"""Added to pytest's exit codes: a process that ends by an error of its own has one of them, 1."""
_FORKED = multiprocessing.get_context("forkserver")
_OTHERS = ("fastavro", "fsspec", "hypothesis.stateful", "pandas", "pyarrow.parquet", "pytest")
_OURS = [module.name for module in pkgutil.walk_packages([str(PACKAGE)], "hoodie_ds.")]
_FORKED.set_forkserver_preload([*_OTHERS, *_OURS])


def run_tests(tests: Sequence[str], name: str = "", text: Text | None = None) -> tuple[int, str]:
    """Run tests; return pytest's exit code and its output.

    Parameters
    ----------
    tests : sequence of str
        As pytest's command line takes them.
    name : str
        Of a bug that is planted before.
    text : Text, optional
        The bug, if it is one in the package's text: the tests run with a copy.
    """
    with tempfile.TemporaryDirectory() as folder:
        if text is not None:
            _change(Path(folder), text)
        output = Path(folder) / "output"
        planted = "" if text is not None else name
        process = _FORKED.Process(
            target=_pytest, args=(folder, planted, text is not None, tests, output)
        )
        process.start()
        process.join(_SECONDS_MAX)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode - _ENDED, output.read_text("utf-8")


def _pytest(folder: str, planted: str, changed: bool, tests: Sequence[str], output: Path) -> None:
    with output.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.chdir(ROOT)
    if planted:
        from tests.mutants.planted import MUTANTS

        (patch,) = (mutant.patch for mutant in MUTANTS if mutant.name == planted)
        assert not isinstance(patch, Text)
        patch.plant()
    if changed:  # the copy of the package is imported anew
        for module in [name for name in sys.modules if name.partition(".")[0] == PACKAGE.name]:
            del sys.modules[module]
    options = ["-q", "-x", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    # pytest sweeps the folders of other runs from the one that all share by default.
    options += ["--basetemp", f"{folder}/tests"]
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    sys.exit(_ENDED + pytest.main([*options, "-o", f"pythonpath='{folder}' .", *tests]))


def module_with(text: str, package: Path = PACKAGE) -> Path:
    """Find the one module of a package in which a text occurs once."""
    found = [path for path in package.rglob("*.py") if text in path.read_text("utf-8")]
    assert len(found) == 1, f"{text!r} occurs in {len(found)} modules"
    assert found[0].read_text("utf-8").count(text) == 1, f"{text!r} occurs more than once"
    return found[0]


def _change(folder: Path, text: Text) -> None:
    """Put a copy of the package, with a bug, into a folder."""
    copy = folder / "hoodie_ds"
    shutil.copytree(PACKAGE, copy)  # with the bytecode, which is valid where the text is the same
    module = module_with(text.old, copy)
    module.write_text(module.read_text("utf-8").replace(text.old, text.new), "utf-8")
