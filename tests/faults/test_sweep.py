"""Every operation of every scenario fails once, in every way: the stream still gives the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_ds.testing import CRASHES, ERRORS, sweep, sweep_pairs
from tests.faults.scenarios import SCENARIOS, VERSION_9
from tests.faults.services import one_in
from tests.faults.swept import Sweep
from tests.tally import tally

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = (
    "upsert, cow",
    "upsert, mor",
    "first batch, cow",
    "first insert into a new partition, mor",
    "schema add, mor",
    "append without keys",
    "table create",
    "state, mor",
)

OF_VERSION_9 = (
    "upsert, mor",
    pytest.param("rollback, cow", marks=pytest.mark.slow),
    pytest.param("rollback, mor", marks=pytest.mark.slow),
    pytest.param("insert overwrite, cow", marks=pytest.mark.slow),
    pytest.param("two batches in an instant, mor", marks=pytest.mark.slow),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_process_may_end_at_every_operation(name: str) -> None:
    swept = Sweep(name)
    tally("crash points", sweep(swept.start, swept.play, swept.check, CRASHES))
    tally("scenarios")


@pytest.mark.parametrize("name", OF_VERSION_9)
def test_the_process_may_end_in_a_table_of_version_9(name: str) -> None:
    """Its timeline tells when an instant was completed, its log files whose they are."""
    scenario = SCENARIOS[name]
    swept = Sweep(name, replace(scenario, options={**scenario.options, **VERSION_9}))
    assert any(path.startswith(".hoodie/timeline/") for path in swept.start.files)
    assert sweep(swept.start, swept.play, one_in(3, swept.check), CRASHES) > 50


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("change data, cow", {}),
        ("change data, mor", VERSION_9),
        pytest.param("change data, cow", VERSION_9, marks=pytest.mark.slow),
    ],
)
def test_the_process_may_end_while_it_logs_changes(name: str, version: dict[str, str]) -> None:
    """Files of change data come and go with the base files that they are beside."""
    scenario = SCENARIOS[name]
    swept = Sweep(name, replace(scenario, options={**scenario.options, **version}))
    whole = swept.start.copy()
    swept.play(whole)
    assert any(path.endswith(".cdc") for path in whole.files)
    assert sweep(swept.start, swept.play, one_in(11, swept.check), CRASHES) > 50


def test_the_process_that_recovers_may_end_too() -> None:
    swept = Sweep("upsert, mor")
    assert sweep_pairs(swept.start, swept.play, swept.recover, swept.check_after_two, 200) > 5


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", SCENARIOS)
def test_all_pairs_of_ends(name: str) -> None:
    swept = Sweep(name)
    tried = sweep_pairs(swept.start, swept.play, swept.recover, swept.check_after_two)
    tally("pairs of crashes, nightly", tried)


ERRORS_TRIED = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SCENARIOS
]


@pytest.mark.parametrize("name", ERRORS_TRIED)
def test_every_operation_may_fail(name: str) -> None:
    swept = Sweep(name)
    tally("failed operations", sweep(swept.start, swept.play, swept.check, ERRORS))
