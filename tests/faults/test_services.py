"""A table service that ends at any operation, or is overtaken in any order, does no harm."""

from __future__ import annotations

import pytest

from hoodie_ds.testing import CRASHES, ERRORS, sweep, sweep_pairs
from tests.faults import archives, cleans, rewriting, undoing
from tests.faults.scenarios import VERSIONS
from tests.faults.schedules import explore, schedules
from tests.faults.services import Beside, GoneOnWith, Killed, Make, part_of_schedules
from tests.tally import GOALS, tally
from tests.tiers import by_day, in_turn

KILLED: dict[str, Make[Killed]] = {
    **rewriting.KILLED,
    **cleans.KILLED,
    **archives.KILLED,
    **undoing.KILLED,
}
GONE_ON_WITH: dict[str, tuple[Make[GoneOnWith], int]] = {
    "compaction": (rewriting.KILLED["compaction"], 50),
    "clustering, copy-on-write": (rewriting.KILLED["clustering, copy-on-write"], 50),
    "clean, commits, cow": (cleans.KILLED["clean, commits, cow"], 1),
    "clean, replaced, mor": (cleans.KILLED["clean, replaced, mor"], 1),
}
"""Of how many pairs of crashes one is tried."""
BESIDE: dict[str, Make[Beside]] = {
    **rewriting.BESIDE,
    **cleans.BESIDE,
    **archives.BESIDE,
    **undoing.BESIDE,
}
FEW = {
    ("compaction", "9"): 23,
    ("clustering, merge-on-read", "6"): 31,
    ("clean, commits, cow", "9"): 5,
    ("archiving, mor, several", "6"): 11,
    ("archiving, cow", "9"): 11,
    ("savepoint, mor", "6"): 7,
    ("rollback, cow", "9"): 7,
    ("restore, mor", "6"): 11,
    ("compaction, change data", "9"): 37,
    ("clean, change data, cow", "9"): 17,
}
"""Of how many crash points the quick suite tries one."""


def _service(name: str) -> str:
    return name.partition(",")[0]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), in_turn(KILLED, VERSIONS, every=2))
def test_the_process_may_end_at_every_operation(name: str, version: str) -> None:
    killed = KILLED[name](version=version)
    tally(
        f"crash points, {_service(name)}", sweep(killed.start, killed.play, killed.check, CRASHES)
    )


def test_each_service_has_a_least_number_of_crash_points() -> None:
    assert {f"crash points, {_service(name)}" for name in KILLED} <= GOALS.keys()


@pytest.mark.parametrize(("name", "version"), by_day(FEW, [*FEW][:2] + [*FEW][2::2]))
def test_the_process_may_end_at_some_operations(name: str, version: str) -> None:
    killed, few = KILLED[name](version=version), FEW[name, version]
    assert sweep(killed.start, killed.play, killed.check, CRASHES, few) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(("name", "version"), in_turn(reversed(KILLED), VERSIONS, every=2))
def test_every_operation_may_fail(name: str, version: str, every: int) -> None:
    killed = KILLED[name](version=version)
    tried = sweep(killed.start, killed.play, killed.check, ERRORS, every)
    tally("failed operations of services", tried)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", GONE_ON_WITH)
def test_the_resuming_process_may_end_too(name: str, version: str) -> None:
    make, every = GONE_ON_WITH[name]
    killed = make(version=version)
    tried = sweep_pairs(killed.start, killed.play, killed.again, killed.check_after_two, every)
    tally("pairs of crashes of services, nightly", tried)
    assert tried > 20


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", BESIDE)
def test_every_schedule(name: str, version: str) -> None:
    play = BESIDE[name](version=version)
    tried = explore(play.fresh, play.actors, play.check, schedules(*play.actors))
    tally("schedules of services, nightly", tried)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), in_turn(BESIDE, VERSIONS, every=2))
def test_a_twelfth_of_all_schedules(name: str, version: str) -> None:
    play = BESIDE[name](version=version)
    orders = part_of_schedules(name, play.actors, 12)
    tally("schedules of services", explore(play.fresh, play.actors, play.check, orders))


@pytest.mark.parametrize(("name", "version"), in_turn([*BESIDE][1:], VERSIONS, 1, every=2))
def test_some_schedules(name: str, version: str) -> None:
    play = BESIDE[name](version=version)
    orders = part_of_schedules(name, play.actors, 130)
    assert explore(play.fresh, play.actors, play.check, orders) == 7
