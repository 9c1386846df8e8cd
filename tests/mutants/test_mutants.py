"""Planted bugs, and that their texts are still where they would be planted."""

from __future__ import annotations

import re

import pytest

from tests.mutants.__main__ import check
from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.runs import ROOT, module_with
from tests.tally import tally


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_bug_can_be_planted(mutant: Mutant) -> None:
    module = module_with(mutant.old)
    compile(module.read_text("utf-8").replace(mutant.old, mutant.new), str(module), "exec")
    path, test = mutant.test.partition("[")[0].split("::")
    assert re.search(rf"^def {test}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_bugs_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.old, mutant.new, mutant.test) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.slow
def test_every_planted_bug_is_found() -> None:
    assert check(MUTANTS) == []
    tally("planted bugs", len(MUTANTS))
