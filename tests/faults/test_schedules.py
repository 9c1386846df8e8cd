"""All interleavings of two processes' phases: no update is lost, and no reader sees a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.faults.pairs import NIGHTLY, PAIRS, SEVERAL, SINGLE, Play
from tests.faults.scenarios import VERSIONS
from tests.faults.schedules import ScheduleError, explore, schedules
from tests.faults.services import part_of_schedules
from tests.tables import VERSION
from tests.tally import tally

pytestmark = pytest.mark.usefixtures("one_thread")


EVERY = {**PAIRS, **NIGHTLY}


def made(name: str, version: str, mode: Mapping[str, str] = SEVERAL) -> Play:
    """A pair at work on a table of a version."""
    pair = EVERY[name]
    play = Play(name, replace(pair, options={**pair.options, VERSION: version}), mode)
    later = any(path.startswith(".hoodie/timeline/") for path in play.start.files)
    assert later == (version == "9" and bool(pair.before))
    return play


def part_of(name: str, play: Play, one_in: int) -> int:
    """Explore one in so many of all schedules."""
    orders = part_of_schedules(name, play.actors, one_in)
    return explore(play.fresh, play.actors, play.check, orders)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", PAIRS)
def test_an_eighth_of_the_schedules_of_a_pair(name: str, version: str) -> None:
    tally("schedules", part_of(f"{name} {version}", made(name, version), 8))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", EVERY)
def test_every_schedule_of_a_pair(name: str, version: str) -> None:
    tally("schedules, nightly", part_of(name, made(name, version), 1))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", EVERY)
def test_every_schedule_of_single_writers(name: str, version: str) -> None:
    play = made(name, version, SINGLE)
    assert part_of(name, play, 1) == len([*schedules(*play.actors)])


@pytest.mark.parametrize("name", ["writer, writer, mor", "writer, rollback, mor", "writer, reader"])
def test_some_schedules_in_a_table_of_version_9(name: str) -> None:
    assert part_of(name, made(name, "9"), 60) == 15


def test_six_phases_each_make_924_schedules() -> None:
    play = Play("pair", PAIRS["writer, writer"], SINGLE)
    orders = list(schedules(*play.actors))
    assert len(set(orders)) == len(orders) == 924


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_what_changes_have_read_counts_unless_told_otherwise(isolation: str) -> None:
    """An update makes a row that a merge deletes, which inserts one that the update doubles."""
    mode = {**SEVERAL, "hoodie.py.change.isolation": isolation}
    play, order = made("update by a filter, merge", "9", mode), ["abaaabbbbaab"]
    if isolation == "serializable":
        assert explore(play.fresh, play.actors, play.check, order) == 1
        return
    with pytest.raises(ScheduleError, match=r"a succeeded, b succeeded\): what was committed is"):
        explore(play.fresh, play.actors, play.check, order)


@pytest.mark.parametrize("order", ["ababababbaab", "aaaaaabbbbbb"])
def test_a_schedule_does_the_same_again(order: str) -> None:
    play = Play("pair", PAIRS["recovery, recovery"], SINGLE)
    traces = [play.trace(order) for _ in range(2)]
    assert traces[0] == traces[1]
    assert {"a:begin", "a:undo", "b:begin"} <= set(traces[0])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lost_update_is_found(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The explorer itself can fail: the second writer commits over what it has not seen."""
    monkeypatch.setattr("hoodie_ds.sink.commit.commit.check_groups", lambda *_: None)
    play = made("writer, writer", version)
    with pytest.raises(ScheduleError, match=r"schedule bbbaaaaaabbb \(b:begin .* is not what"):
        explore(play.fresh, play.actors, play.check, ["bbbaaaaaabbb"])
