"""All interleavings of a writer's phases with what another engine does to the table."""

from __future__ import annotations

from itertools import product

import pytest

from tests.faults.foreign_pairs import BESIDES, BesidePlay
from tests.faults.scenarios import VERSIONS
from tests.faults.schedules import ScheduleError, explore, schedules
from tests.tiers import by_day

pytestmark = pytest.mark.usefixtures("one_thread")


VERSIONED = [*product([name for name in BESIDES if name != "upgrade"], VERSIONS), ("upgrade", "6")]


SOME = {(name, VERSIONS[n % 2]) for n, name in enumerate(BESIDES) if name != "upgrade"}


@pytest.mark.parametrize(("name", "version"), by_day(VERSIONED, SOME | {("upgrade", "6")}))
def test_every_schedule_with_another_engine(name: str, version: str) -> None:
    play = BesidePlay(name, version)
    expected = 28 if len(BESIDES[name].phases) == 2 else 7
    assert explore(play.fresh, play.actors, play.check, schedules(*play.actors)) == expected


LEFT_OUT = {
    "compaction": ("hoodie_ds.sink.commit.conflicts._check_services", lambda *_: None),
    "clustering": ("hoodie_ds.sink.commit.conflicts._check_services", lambda *_: None),
    "new column": ("hoodie_ds.sink.commit.commit.merged_schema", lambda plan, *_: plan.schema),
    "upgrade": ("hoodie_ds.sink.commit.commit.check_table_unchanged", lambda *_: None),
}


# In version 9 a log file belongs to a slice by its completion time: no compaction passes it over.
NEEDED = [one for one in VERSIONED if one[0] in LEFT_OUT and one != ("compaction", "9")]


@pytest.mark.parametrize(("name", "version"), NEEDED)
def test_each_check_finds_its_error(
    name: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The explorer itself can fail."""
    monkeypatch.setattr(*LEFT_OUT[name])
    _finds_it(name, version)


def test_either_of_two_checks_finds_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie_ds.sink.commit.commit.check_based", lambda *_: None)
    test_every_schedule_with_another_engine("restore", "6")
    monkeypatch.setattr("hoodie_ds.sink.commit.commit.check_not_undone", lambda *_: None)
    _finds_it("restore", "6")


def _finds_it(name: str, version: str) -> None:
    play = BesidePlay(name, version)
    with pytest.raises(ScheduleError):
        explore(play.fresh, play.actors, play.check, schedules(*play.actors))
