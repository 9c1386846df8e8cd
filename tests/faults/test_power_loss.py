"""The machine may stop at any moment: whatever its disk has kept by then, the stream goes on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.path import is_unfinished
from hoodie_ds.testing import MemoryStorage, SimulatedCrash, forget_process
from tests.faults.power_loss import Disk
from tests.faults.scenarios import SCENARIOS, VERSIONS
from tests.faults.swept import Sweep
from tests.tally import tally
from tests.tiers import in_turn

pytestmark = pytest.mark.usefixtures("one_thread")

SAMPLED = 24
"""States that are looked at of each scenario, of some hundreds."""


def lose_power(name: str, version: str, folder: Path, most: int | None = None) -> int:
    """Run a scenario on a disk, and go on from what the disk may hold; returns the states tried."""
    swept = Sweep(name, version=version)
    for path, body in swept.start.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)
    with Disk(str(folder)) as disk:
        swept.play(LocalStorage(str(folder)), disk.reached)
    states = list(disk.states())
    chosen = states if most is None else random.Random(name).sample(states, most)
    for committed, files in chosen:
        # Listings of a disk leave out what a killed process has not given its name yet.
        kept = {path: body for path, body in files.items() if not is_unfinished(Path(path).name)}
        swept.committed = committed
        forget_process()
        swept.check(MemoryStorage(str(folder), kept), SimulatedCrash())
    return len(chosen)


def test_power_may_be_lost_in_the_first_batch(tmp_path: Path) -> None:
    assert lose_power("first batch, cow", "6", tmp_path) > SAMPLED


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), in_turn(SCENARIOS, VERSIONS, every=4))
def test_power_may_be_lost_at_any_moment(name: str, version: str, tmp_path: Path) -> None:
    tally("power losses", lose_power(name, version, tmp_path, SAMPLED))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_all_losses_of_power(name: str, version: str, tmp_path: Path) -> None:
    tally("power losses, nightly", lose_power(name, version, tmp_path))
