"""A storage whose answers are not what is stored, at every operation that reads (F8 to F10).

Readers give the right rows or an error of ours; writers too, and leave nothing that is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product
from random import Random
from typing import Any

import pytest

from hoodie_ds.errors import CorruptFileError, HoodieError
from hoodie_ds.testing import (
    ANOMALIES,
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    SimClock,
    fault_points,
    forget_process,
)
from tests.faults.scenarios import BLOOM, BOTH, COW, MANY, MOR, ONE, SCENARIOS, TIPS, TWO, VERSIONS
from tests.faults.stream import Step, begin, found, run
from tests.faults.swept import Sweep
from tests.tables import TRIPS, VERSION, trips
from tests.tally import tally
from tests.tiers import by_day

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = {"cow": COW, "mor": MOR, "cow, bloom": {**COW, **BLOOM}, "mor, bloom": {**MOR, **BLOOM}}
STEPS = (Step(ONE), Step(BOTH), Step(TWO, "delete"), Step(MANY, "insert_overwrite"), Step(TIPS))
WHOLE = {"hoodie.streaming.batches.per.commit": "1"}
TIMELINES = (".hoodie", ".hoodie/timeline")


def written(kind: str, version: str) -> tuple[MemoryStorage, list[Any]]:
    """A table, and what it read as after each batch."""
    options = {k: v for k, v in {**TRIPS, **KINDS[kind], VERSION: version}.items() if v}
    clock = SimClock()
    history: list[Any] = []
    table = MemoryStorage(clock=clock)
    for number, step in enumerate(STEPS):
        clock.advance(1000)
        run(table, options, number, step, number, clock=clock)
        history.append(found(table))
    return table, history


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(KINDS, VERSIONS), {("cow", "6"), ("mor, bloom", "9")})
)
def test_a_reader_gives_the_rows_or_an_error(kind: str, version: str) -> None:
    table, history = written(kind, version)
    whole = FaultyStorage(table)
    assert found(whole) == history[-1]
    seen = set()
    for operation, fault in fault_points(whole.recorder.operations, ANOMALIES):
        # A timeline that lags is that of a moment before.
        lags = fault.effect is Effect.LAGGING and operation.path in TIMELINES
        try:
            rows = found(FaultyStorage(table, [fault]))
        except HoodieError:
            seen.add(fault.effect)
        else:
            assert rows in (history if lags else history[-1:]), (operation, fault)
    assert seen >= {Effect.LAGGING, Effect.MISSIZED, Effect.MISSING, Effect.FLIPPED, Effect.SHORT}


SOME_ANSWERS = ("upsert, cow", "6", 5)


@pytest.mark.parametrize(
    ("name", "version", "every"),
    by_day([SOME_ANSWERS, *product(SCENARIOS, VERSIONS, [1])], {SOME_ANSWERS}),
)
def test_a_writer_leaves_nothing_wrong(name: str, version: str, every: int) -> None:
    swept = Sweep(name, version=version)
    whole = FaultyStorage(swept.start.copy())
    swept.play(whole)
    # A storage whose listings lag is not supported: a file group looks new.
    tried = ANOMALIES - {Effect.LAGGING}
    for _, fault in islice(fault_points(whole.recorder.operations, tried), 0, None, every):
        left = swept.start.copy()
        raised = None
        forget_process()
        try:
            swept.play(FaultyStorage(left, [fault]))
        except HoodieError as error:
            raised = error
        if swept.spans and raised is None:
            # Where the second batch found no open instant, it waits in one of its own.
            begin(left, {**swept.opts, **WHOLE}, trips().schema, "another")
        swept.check(left, raised)
        tally("odd answers, nightly")


def test_large_staged_rows_that_cannot_be_read_again_are_named() -> None:
    """They are compared with their checksum when they are first opened."""
    draw = Random(0)
    rows = trips(*((draw.randbytes(6_000).hex(), "xy"[n % 2], n, 1.0) for n in range(200)))
    scenario = replace(SCENARIOS["bloom, small files, cow"], steps=(Step(rows, tasks=2),))
    swept = Sweep("large rows", scenario)
    left = swept.start.copy()
    opened = frozenset({Kind.OPEN})
    fault = Fault(Effect.SHORT, kinds=opened, path="*/staged/*", skip=2, keep=1_100_000)
    with pytest.raises(CorruptFileError, match=r"staged/.* cannot be read as it was") as raised:
        swept.play(FaultyStorage(left, [fault]))
    swept.check(left, raised.value)
