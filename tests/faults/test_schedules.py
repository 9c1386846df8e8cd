"""All interleavings of two processes' phases: no update is lost, and no reader sees a part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hoodie_ds.testing import ScheduleError, explore, one_thread, schedules
from tests.faults.pairs import NIGHTLY, PAIRS, SEVERAL, SINGLE, Pair, Play
from tests.faults.tally import COUNTS, reached, tally


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def all_of(name: str, pair: Pair) -> int:
    play = Play(name, pair, SEVERAL)
    return explore(play.fresh, play.actors, play.check, schedules(*play.actors))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_every_schedule_of_a_pair(name: str) -> None:
    tally("schedules", all_of(name, PAIRS[name]))
    tally("pairs", 1)
    if COUNTS["pairs"] == len(PAIRS):
        reached("schedules")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", NIGHTLY)
def test_every_schedule_of_further_pairs(name: str) -> None:
    tally("schedules, nightly", all_of(name, NIGHTLY[name]))
    tally("further pairs", 1)
    if COUNTS["further pairs"] == len(NIGHTLY):
        reached("schedules, nightly")


def test_six_phases_each_make_924_schedules() -> None:
    play = Play("pair", PAIRS["writer, writer"], SINGLE)
    orders = list(schedules(*play.actors))
    assert len(set(orders)) == len(orders) == 924


@pytest.mark.parametrize("order", ["ababababbaab", "aaaaaabbbbbb"])
def test_a_schedule_does_the_same_again(order: str) -> None:
    play = Play("pair", PAIRS["recovery, recovery"], SINGLE)
    traces = [play.trace(order) for _ in range(2)]
    assert traces[0] == traces[1]
    assert {"a:begin", "a:undo", "b:begin"} <= set(traces[0])


@pytest.mark.parametrize(
    ("name", "order"),
    [("writer, writer", "abbaaaabbabb"), ("writer, rollback", "aaaabababbbb")],
)
def test_what_single_writers_do_to_one_another_is_found(name: str, order: str) -> None:
    """Both pass the check before either commits; recovery meets a writer that is not dead."""
    play = Play(name, PAIRS[name], SINGLE)
    with pytest.raises(ScheduleError, match=f"schedule {order} .a:begin"):
        explore(play.fresh, play.actors, play.check, [order])


def test_a_task_may_write_on_while_its_instant_is_undone() -> None:
    """Roll-back has listed the markers when the task puts another one."""
    play = Play("late", PAIRS["writer, rollback"], SEVERAL)
    assert explore(play.fresh, play.actors, play.check, ["aabbaabbbbaa"]) == 1
