"""Every operation of every scenario fails once, in every way: the stream still gives the model."""

from __future__ import annotations

import pytest

from hoodie_ds.testing import CRASHES, ERRORS, sweep, sweep_pairs
from tests.faults.scenarios import SCENARIOS, VERSIONS
from tests.faults.swept import Sweep
from tests.tally import tally
from tests.tiers import in_turn

pytestmark = pytest.mark.usefixtures("one_thread")

TWINS = {"merge, cow", "merge, three tasks, cow", "record index, cow", "update by a filter, mor"}
"""Scenarios that take long; by day the same is tried in tables of the other type alone."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), in_turn(SCENARIOS, VERSIONS, every=2, at_night=TWINS))
def test_the_process_may_end_at_every_operation(name: str, version: str) -> None:
    swept = Sweep(name, version=version)
    tally("crash points", sweep(swept.start, swept.play, swept.check, CRASHES))
    tally("scenarios")


def test_the_process_may_end_in_a_table_of_version_9() -> None:
    """Its timeline tells when an instant was completed, its log files whose they are."""
    swept = Sweep("upsert, mor", version="9")
    assert sweep(swept.start, swept.play, swept.check, CRASHES, every=3) > 15


@pytest.mark.parametrize(
    ("name", "version"), [("change data, cow", "6"), ("change data, mor", "9")]
)
def test_the_process_may_end_while_it_logs_changes(name: str, version: str) -> None:
    """Files of change data come and go with the base files that they are beside."""
    swept = Sweep(name, version=version)
    whole = swept.start.copy()
    swept.play(whole)
    assert any(path.endswith(".cdc") for path in whole.files)
    assert sweep(swept.start, swept.play, swept.check, CRASHES, every=7) > 5


def test_the_process_that_recovers_may_end_too() -> None:
    swept = Sweep("upsert, mor")
    assert sweep_pairs(swept.start, swept.play, swept.recover, swept.check_after_two, 90) > 5


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_all_pairs_of_ends(name: str, version: str) -> None:
    swept = Sweep(name, version=version)
    tried = sweep_pairs(swept.start, swept.play, swept.recover, swept.check_after_two)
    tally("pairs of crashes, nightly", tried)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), in_turn(SCENARIOS, VERSIONS, 1, 5))
def test_every_operation_may_fail(name: str, version: str) -> None:
    swept = Sweep(name, version=version)
    tally("failed operations", sweep(swept.start, swept.play, swept.check, ERRORS))
