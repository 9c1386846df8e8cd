from __future__ import annotations

import pytest

from tests.faults.pairs import Play
from tests.faults.stopped import FURTHER, STOPPED, stop

pytestmark = pytest.mark.usefixtures("one_thread")


def every_operation(name: str) -> int:
    pair, mode = {**STOPPED, **FURTHER}[name]
    play = Play(f"stopped-{len(name)}", pair, mode)
    number = 0
    while stop(play, number + 1):
        number += 1
    return number


@pytest.mark.parametrize("name", STOPPED)
def test_a_process_is_stopped_and_goes_on(name: str) -> None:
    assert every_operation(name) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", FURTHER)
def test_further_processes_are_stopped_and_go_on(name: str) -> None:
    assert every_operation(name) > 5
