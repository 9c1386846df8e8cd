"""Counts of what tests try come from all workers, and too few of them are seen."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tally
from tests.tiers import AT_NIGHT

ROOT = Path(__file__).parents[1]
COUNTING = """
import pytest
from tests.tally import tally

@pytest.fixture
def _before():
    tally("seeds", 100)

@pytest.mark.parametrize("n", range(4))
def test_some(n, _before):
    tally("seeds")
    tally("schedules", n)
"""


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=AT_NIGHT)])
def test_what_all_workers_counted_is_added_up(tmp_path: Path, workers: int) -> None:
    (tmp_path / "test_some.py").write_text(COUNTING)
    written = tmp_path / "new" / "tally.json"
    options = ["-q", "-n", str(workers), "-p", "tests.tally", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, f"--tally={written}", "-c", "/dev/null"]
    subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, timeout=300
    )
    assert json.loads(written.read_text()) == {"seeds": 404, "schedules": 6}


def test_every_kind_that_is_not_tried_is_missed() -> None:
    enough = {name: goal.least for name, goal in tally.GOALS.items()}
    for name, goal in tally.GOALS.items():
        few = {**enough, name: 0}
        assert tally.missed(few, (goal.run,)) == [name]


def test_what_tests_count_has_a_least_number() -> None:
    """So that none is refused by night."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "tally":
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    assert name.value in tally.GOALS, f"{path.name} counts {name.value!r}"


def test_a_name_without_a_least_number_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"'unheard of' is not in tests/tally\.csv"):
        tally.tally("unheard of")


def test_what_was_tried_too_seldom_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enough = {name: goal.least for name, goal in tally.GOALS.items() if goal.run == "full"}
    most, rest = tmp_path / "most", tmp_path / "rest"
    most.write_text(json.dumps({**enough, "seeds": 1}))
    rest.write_text(json.dumps({"seeds": enough["seeds"] - 1, "pairs of crashes, nightly": 1}))
    assert tally.main([str(most), str(rest)]) == 0
    assert "too few" not in capsys.readouterr().out
    rest.write_text(json.dumps({"seeds": enough["seeds"] - 2, "races, versitygw": 1}))
    assert tally.main([str(most), str(rest)]) == 1
    few = [line for line in capsys.readouterr().out.splitlines() if line.endswith("  <- too few")]
    assert [line.partition(" of at least ")[2].split(maxsplit=1)[1] for line in few] == [
        "seeds  <- too few",
        "races, versitygw  <- too few",
    ]
    assert tally.main(["--nightly", str(most), str(rest)]) == 1
