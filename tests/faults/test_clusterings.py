"""A clustering that ends at any operation, or is overtaken in any order, changes no row."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from hoodie_ds.testing import CRASHES, ERRORS, explore, one_thread, schedules, sweep, sweep_pairs
from tests.faults.clusterings import ALLOW, TABLES, ClusteringPlay, KilledClustering
from tests.faults.pairs import SEVERAL, SINGLE
from tests.tally import tally

MODES = {"single": SINGLE, "several": SEVERAL, "gives way": {**SEVERAL, **ALLOW}}
BESIDE = {"writer": True, "clustering": False}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_a_clustering_may_end_at_every_operation(kind: str) -> None:
    killed = KilledClustering(kind)
    tally("crash points", sweep(killed.start, killed.play, killed.check, CRASHES))


@pytest.mark.slow
def test_every_operation_of_a_clustering_may_fail() -> None:
    killed = KilledClustering(planned=True)
    tally("failed operations", sweep(killed.start, killed.play, killed.check, ERRORS))


@pytest.mark.slow
@pytest.mark.nightly
def test_the_process_that_goes_on_may_end_too() -> None:
    killed = KilledClustering(planned=True)
    tried = sweep_pairs(killed.start, killed.play, killed.again, killed.check_after_two, 50)
    assert tried > 20


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("beside", BESIDE)
def test_every_schedule_of_a_clustering(beside: str, mode: str) -> None:
    play = ClusteringPlay(MODES[mode], BESIDE[beside])
    tally(
        "schedules, nightly", explore(play.fresh, play.actors, play.check, schedules(*play.actors))
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("beside", BESIDE)
def test_some_schedules_of_a_clustering(beside: str, mode: str) -> None:
    play = ClusteringPlay(MODES[mode], BESIDE[beside])
    some = Random(16).sample(list(schedules(*play.actors)), 4)
    assert explore(play.fresh, play.actors, play.check, some) == len(some)


def test_a_clustering_may_end_at_some_operations() -> None:
    """A few of the crash points, for the quick suite."""
    killed = KilledClustering("merge-on-read", planned=True)
    seen = iter(range(10**6))

    def check(left: object, raised: BaseException | None) -> None:
        if next(seen) % 31 == 0:
            killed.check(left, raised)  # type: ignore[arg-type]

    assert sweep(killed.start, killed.play, check, CRASHES) > 100
