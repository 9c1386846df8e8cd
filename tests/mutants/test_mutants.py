"""Planted bugs are found, each by the test that is named for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mutants import planted
from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.runs import FAILED, PASSED, PlantedRuns, run_tests
from tests.tally import tally
from tests.tiers import by_day

TESTS = sorted({mutant.test for mutant in MUTANTS})


@pytest.fixture(scope="module")
def planted_runs() -> Iterator[PlantedRuns]:
    with PlantedRuns() as runs:
        yield runs


BY_FILE = sorted(MUTANTS, key=lambda one: ("tests/spark/" not in one.test, one.file))
"""Sorted by the file of their tests, those that start Spark first."""

BY_DAY = 2
"""Of how many bugs that follow one another by day one is planted."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", by_day(BY_FILE, BY_FILE[::BY_DAY]), ids=lambda mutant: mutant.name
)
def test_a_planted_bug_is_found(planted_runs: PlantedRuns, mutant: Mutant) -> None:
    code, output = planted_runs.run(mutant.name, mutant.test)
    assert code == FAILED, output
    assert "TypeError" not in output, "it is called with other arguments than its function"
    tally("planted bugs")


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([1, 40], {40}))
def test_without_a_bug_the_same_tests_pass(every: int) -> None:
    """By day some of them: all have their own turn, in a process that is not forked."""
    code, output = run_tests(TESTS[::every])
    assert code == PASSED, output


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([1, 40], {40}))
def test_without_a_bug_they_pass_in_forks(planted_runs: PlantedRuns, every: int) -> None:
    """A test that fails in a fork for other reasons would find any bug."""
    for test in TESTS[::every]:
        if not test.startswith("tests/spark/"):
            code, output = planted_runs.run_forked(test)
            assert code == PASSED, f"{test}: {output}"


@pytest.mark.slow
def test_bugs_have_names_of_their_own_and_tests_that_exist() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    code, output = run_tests(["--collect-only", *TESTS])
    assert code == PASSED, output


def test_what_is_changed_is_there() -> None:
    for mutant in MUTANTS:
        mutant.patch.check()


def test_every_planted_bug_is_tried() -> None:
    lists = [value for value in vars(planted).values() if isinstance(value, list)]
    written = {one.name for found in lists for one in found if isinstance(one, Mutant)}
    assert written == {mutant.name for mutant in MUTANTS}
