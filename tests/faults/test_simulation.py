"""Seeded streams against the model, and that a seed is all it takes to see a failure again."""

from __future__ import annotations

import pytest

from hoodie_ds.testing import one_thread
from tests.faults.simulator import Simulation
from tests.tally import tally

SEEDS = 20
NIGHTLY = 5_000


def simulate(seed: int) -> str:
    """Run a seed; what fails says how to run it again."""
    try:
        with one_thread():
            return Simulation(seed).run()
    except Exception as error:
        again = f"python -c 'from tests.faults.test_simulation import simulate; simulate({seed})'"
        raise AssertionError(f"seed {seed}: {error}; again: {again}") from error


@pytest.mark.slow
def test_every_seed_gives_the_model() -> None:
    for seed in range(SEEDS):
        simulate(seed)
        tally("seeds")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_seeds(part: int) -> None:
    for seed in range(part, NIGHTLY, 10):
        simulate(seed)
        tally("seeds, nightly")


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_does_the_same_again(seed: int) -> None:
    assert simulate(seed) == simulate(seed)
