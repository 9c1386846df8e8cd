"""Pytest plugin that adds up how much the tests try: crash points, schedules, damaged files.

A test calls `tally("crash points", 40)`. What it counted travels with its report, from a worker of
pytest-xdist too, and `--tally FILE` writes the sums of a run. `python -m tests.tally FILE...` adds
up the files of several runs and fails where a sum is below the least number in `tests/tally.csv`.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest


class Goal(NamedTuple):
    """The least number of something in the runs that count it.

    Parameters
    ----------
    least : int
        The number.
    run : str
        `full`: runs of `.ci/run`; `optional`: the same, unless it cannot be tried there at all, or
        is not among the variants of its test that such a run tries;
        `nightly`: `-m nightly`.
    """

    least: int
    run: str


def _goals() -> dict[str, Goal]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return {row["what"]: Goal(int(row["least"]), row["run"]) for row in csv.DictReader(file)}


GOALS: Final = _goals()

_PROPERTY = "tally"
_counted: Counter[str] = Counter()
"""What has been counted in this process since its last report."""


def tally(what: str, number: int = 1) -> None:
    """Count.

    Parameters
    ----------
    what : str
        A name of `tests/tally.csv`.
    number : int
        How many more of it were tried.
    """
    assert what in GOALS, f"{what!r} is not in tests/tally.csv: add it there"
    _counted[what] += number


class _Sums:
    """Adds up the reports of all workers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sums: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, counted in report.user_properties:
            if name == _PROPERTY and isinstance(counted, dict):
                self.sums.update(counted)

    def pytest_sessionfinish(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.sums, indent=1, sort_keys=True) + "\n", "utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tally`."""
    parser.addoption("--tally", type=Path, metavar="FILE", help="write what the tests tried")


def pytest_configure(config: pytest.Config) -> None:
    """Add up where the reports of all tests arrive, which is no worker."""
    path = config.getoption("tally")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Sums(path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what was counted since the last report into this one."""
    report = yield
    if _counted:
        report.user_properties.append((_PROPERTY, dict(_counted)))
        _counted.clear()
    return report


def missed(sums: Mapping[str, int], runs: Iterable[str]) -> list[str]:
    """Return the names whose sums are below their least numbers.

    Parameters
    ----------
    sums : Mapping[str, int]
        How many of each name were tried.
    runs : Iterable[str]
        The kinds of runs whose goals are meant.
    """
    return [
        name
        for name, goal in GOALS.items()
        if goal.run in runs
        and sums.get(name, 0) < goal.least
        and not (goal.run == "optional" and name not in sums)
    ]


def main(arguments: Sequence[str]) -> int:
    """Add up files of `--tally`; return 1 if something was tried too seldom.

    Parameters
    ----------
    arguments : Sequence[str]
        Those of the command line: the files, `--nightly` for goals of a nightly run.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.tally")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--nightly", action="store_true", help="compare with a nightly run's goals")
    given = parser.parse_args(arguments)
    sums: Counter[str] = Counter()
    for file in given.files:
        counted: dict[str, Any] = json.loads(file.read_text("utf-8"))
        sums.update(counted)
    runs = ("nightly",) if given.nightly else ("full", "optional")
    few = missed(sums, runs)
    for name, goal in GOALS.items():
        if goal.run in runs:
            told = "  <- too few" if name in few else ""
            print(f"{sums[name]:>11,} of at least {goal.least:>9,} {name}{told}")
    return 1 if few else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
