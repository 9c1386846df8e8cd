from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.pairs import Play
from tests.faults.scenarios import VERSIONS
from tests.faults.stopped import FURTHER, STOPPED, stop
from tests.tables import VERSION
from tests.tiers import in_turn

pytestmark = pytest.mark.usefixtures("one_thread")


def every_operation(name: str, version: str) -> int:
    pair, mode = {**STOPPED, **FURTHER}[name]
    pair = replace(pair, options={**pair.options, VERSION: version})
    play = Play(f"stopped-{len(name)}", pair, mode)
    number = 0
    while stop(play, number + 1):
        number += 1
    return number


@pytest.mark.parametrize(("name", "version"), in_turn(STOPPED, VERSIONS, every=2))
def test_a_process_is_stopped_and_resumes(name: str, version: str) -> None:
    assert every_operation(name, version) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), in_turn(FURTHER, VERSIONS, every=2))
def test_further_processes_are_stopped_and_resume(name: str, version: str) -> None:
    assert every_operation(name, version) > 5
