"""Planted bugs are found, each by the test that is named for it."""

from __future__ import annotations

import pytest

from tests.mutants import planted
from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.runs import FAILED, PASSED, run_tests
from tests.tally import tally
from tests.tiers import by_day


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    code, output = run_tests([mutant.test], mutant.name)
    assert code == FAILED, output
    assert "TypeError" not in output, "it is called with other arguments than its function"
    tally("planted bugs")


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([1, 40], {40}))
def test_without_a_bug_the_same_tests_pass(every: int) -> None:
    """By day some of them: all have their own turn, in a process that is not forked."""
    code, output = run_tests(sorted({mutant.test for mutant in MUTANTS})[::every])
    assert code == PASSED, output


@pytest.mark.slow
def test_bugs_have_names_of_their_own_and_tests_that_exist() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    code, output = run_tests(["--collect-only", *sorted({mutant.test for mutant in MUTANTS})])
    assert code == PASSED, output


def test_what_is_changed_is_there() -> None:
    for mutant in MUTANTS:
        mutant.patch.check()


def test_every_planted_bug_is_tried() -> None:
    lists = [value for value in vars(planted).values() if isinstance(value, list)]
    written = {one.name for found in lists for one in found if isinstance(one, Mutant)}
    assert written == {mutant.name for mutant in MUTANTS}
