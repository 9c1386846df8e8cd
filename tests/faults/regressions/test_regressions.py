"""Bugs that the harness found, one line each: what went wrong, and in which scenario it does.

All were seen to fail again with their bug put back.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_ds.errors import CorruptFileError, HoodieError
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, SimulatedCrash
from tests.faults.pairs import NIGHTLY, PAIRS, SEVERAL, SINGLE, Play
from tests.faults.schedules import explore
from tests.faults.stream import found
from tests.faults.swept import Sweep

pytestmark = pytest.mark.usefixtures("one_thread")

LOG = frozenset({Kind.WRITE})
GONE = frozenset({Kind.DELETE})
READ = frozenset({Kind.READ})
OPEN = frozenset({Kind.OPEN})

ENDS = {
    "a torn log file stopped every reader until the next batch": (
        "upsert, mor",
        Fault(Effect.TORN, kinds=LOG, path="*.log.*", keep=1),
    ),
    "a log file cut in its content did, too": (
        "upsert, three tasks, mor",
        Fault(Effect.TORN, kinds=LOG, path="*.log.*", keep=900),
    ),
}
"""Of a process that ends."""

FAILURES = {
    "a batch that could not clean up after its commit was told as failed": (
        "upsert, cow",
        Fault(Effect.FAILED, kinds=GONE, path=".hoodie/.temp/*"),
    ),
}
"""Of an operation, after which the batch is in the table all the same."""

REFUSALS = {
    "a micro-batch left its open instant for another one over an owner that it misread": (
        "two batches in an instant, cow",
        Fault(Effect.FLIPPED, kinds=READ, path="*.inflight", skip=2),
    ),
    "staged rows were compared with their checksum when first opened, and then believed": (
        "bloom, small files, cow",
        Fault(Effect.SWAPPED, kinds=OPEN, path="*/staged/*", skip=5),
    ),
}
"""Of an answer that is not what is stored, for which the batch is refused, and comes again."""

ORDERS = {
    "a manifest that had lost its turn was completed over the winner's rows": (
        ("writer, writer", SINGLE, "abbaaabbaabb")
    ),
    "what another writer decided was not carried out before the next decision": (
        ("writer, writer", SEVERAL, "bbbaababaaba")
    ),
    "a task put a marker while its instant was undone, and its file stayed": (
        ("writer, rollback", SEVERAL, "aabbaabbbbaa")
    ),
    "a driver that stood still in its commit completed what had been rolled back": (
        ("writer, rollback", SINGLE, "aaabbbaaabbb")
    ),
    "a commit was rolled back between its decision and its completed file": (
        ("writer, rollback", SEVERAL, "aaabaababbbb")
    ),
    "the manifest of a driver left behind was completed after its successor's commit": (
        ("driver, driver left behind", SINGLE, "abaabbbabbaa")
    ),
    "an upsert opened its instant at the time of an overwrite that was complete": (
        ("overwrite, writer", SINGLE, "abaaaaabbbbb")
    ),
    "a column that another writer had added went with the commit of one that began before": (
        ("writer, writer that adds a column", SEVERAL, "bbaaabbbbaaa")
    ),
    "an overwrite did at that of an upsert": ("overwrite, writer", SINGLE, "abbbbbbaaaaa"),
}
"""Of the phases of two processes."""


@pytest.mark.parametrize("what", [*ENDS, *REFUSALS])
def test_a_batch_may_fail(what: str) -> None:
    name, fault = {**ENDS, **REFUSALS}[what]
    swept = Sweep(name)
    left = swept.start.copy()
    with pytest.raises(SimulatedCrash if what in ENDS else HoodieError) as raised:
        swept.play(FaultyStorage(left, [replace(fault)]))
    swept.check(left, raised.value)


@pytest.mark.parametrize("what", FAILURES)
def test_an_operation_may_fail(what: str) -> None:
    name, fault = FAILURES[what]
    swept = Sweep(name)
    left = swept.start.copy()
    failing = replace(fault)
    swept.play(FaultyStorage(left, [failing]))
    assert failing.times == 0
    swept.check(left, None)


@pytest.mark.parametrize("what", ORDERS)
def test_two_processes_may_meet(what: str) -> None:
    name, mode, order = ORDERS[what]
    play = Play("met", {**PAIRS, **NIGHTLY}[name], mode)
    assert explore(play.fresh, play.actors, play.check, [order]) == 1


def test_a_committed_log_file_that_is_damaged_is_still_an_error() -> None:
    swept = Sweep("upsert, mor")
    left = swept.start.copy()
    swept.play(left)
    path = next(path for path in left.files if ".log." in path)
    left.replace(path, left.read(path)[:900])
    with pytest.raises(CorruptFileError, match="has 900 bytes"):
        found(left)
