"""Bugs that the harness found, one line each: the scenario, and what goes wrong in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, SimulatedCrash, one_thread
from tests.faults.stream import found
from tests.faults.swept import Sweep

LOG = frozenset({Kind.WRITE})
FOUND = {
    "a torn log file stopped every reader until the next batch": (
        "upsert, mor",
        Fault(Effect.TORN, kinds=LOG, path="*.log.*", keep=1),
    ),
    "a log file cut in its content did, too": (
        "upsert, three tasks, mor",
        Fault(Effect.TORN, kinds=LOG, path="*.log.*", keep=900),
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_stays_fixed(what: str) -> None:
    name, fault = FOUND[what]
    with one_thread():
        swept = Sweep(name)
        left = swept.start.copy()
        with pytest.raises(SimulatedCrash) as raised:
            swept.play(FaultyStorage(left, [replace(fault)]))
        swept.check(left, raised.value)


def test_a_committed_log_file_that_is_damaged_is_still_an_error() -> None:
    with one_thread():
        swept = Sweep("upsert, mor")
        left = swept.start.copy()
        swept.play(left)
        path = next(path for path in left.files if ".log." in path)
        left.replace(path, left.read(path)[:900])
        with pytest.raises(CorruptFileError, match="has 900 bytes"):
            found(left)
