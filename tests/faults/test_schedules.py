"""All interleavings of two processes' phases: no update is lost, and no reader sees a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hoodie_ds.testing import ScheduleError, explore, schedules
from tests.faults.pairs import NIGHTLY, PAIRS, SEVERAL, SINGLE, Pair, Play
from tests.faults.services import part_of_schedules
from tests.tally import tally

pytestmark = pytest.mark.usefixtures("one_thread")


def all_of(name: str, pair: Pair, mode: Mapping[str, str] = SEVERAL) -> int:
    play = Play(name, pair, mode)
    return explore(play.fresh, play.actors, play.check, schedules(*play.actors))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_every_schedule_of_a_pair(name: str) -> None:
    tally("schedules", all_of(name, PAIRS[name]))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", NIGHTLY)
def test_every_schedule_of_further_pairs(name: str) -> None:
    tally("schedules, nightly", all_of(name, NIGHTLY[name]))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", [*PAIRS, *NIGHTLY])
def test_every_schedule_of_writers_that_know_of_no_other(name: str) -> None:
    assert all_of(name, {**PAIRS, **NIGHTLY}[name], SINGLE) == 924


@pytest.mark.parametrize("name", ["writer, writer, mor", "writer, rollback, mor", "writer, reader"])
def test_some_schedules_in_a_table_of_version_9(name: str) -> None:
    pair = {**PAIRS, **NIGHTLY}[name]
    later = replace(pair, options={**pair.options, "hoodie.write.table.version": "9"})
    play = Play(name, later, SEVERAL)
    assert any(path.startswith(".hoodie/timeline/") for path in play.start.files)
    orders = part_of_schedules(name, play.actors, 60)
    assert explore(play.fresh, play.actors, play.check, orders) == 15


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


def test_a_lost_update_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explorer itself can fail: the second writer commits over what it has not seen."""
    monkeypatch.setattr("hoodie_ds.sink.commit.commit.check_groups", lambda *_: None)
    play = Play("lost", PAIRS["writer, writer"], SEVERAL)
    with pytest.raises(ScheduleError, match=r"schedule bbbaaaaaabbb \(b:begin .* is not what"):
        explore(play.fresh, play.actors, play.check, ["bbbaaaaaabbb"])
