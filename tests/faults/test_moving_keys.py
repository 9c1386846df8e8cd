"""Keys that tasks move to other partitions, by a record index, wherever the process ends."""

from __future__ import annotations

from itertools import product

import pytest

from hoodie_ds.metadata_table import task_keys
from hoodie_ds.testing import CRASHES, FaultyStorage, Recorder, sweep
from tests.faults.scenarios import COW, MOR, MOVES, RECORDS, SMALL, VERSIONS, Scenario
from tests.faults.stream import Step
from tests.faults.swept import Sweep
from tests.faults.test_metadata_table import indexed
from tests.tables import trips
from tests.tiers import AT_NIGHT

pytestmark = pytest.mark.usefixtures("one_thread")

WAYS = ("by file group", "by key")
FIRST = trips(*((key, "xy"[n % 2], 1, 1.0) for n, key in enumerate("abcdefgh")))
MORE = trips(*((key, "xy"[n % 2], 1, 1.0) for n, key in enumerate("ijkl")))
MOVED = trips(
    *((key, "yx"[n % 2], 2, 2.0) for n, key in enumerate("abc")), ("d", "y", 2, 2.0),
    ("i", "z", 2, 2.0), ("m", "x", 2, 2.0), ("n", "y", 2, 2.0),
)  # fmt: skip
GONE = trips(("a", "elsewhere", 3, 3.0), ("e", "x", 3, 3.0), ("m", "x", 3, 3.0))
BACK = trips(("a", "x", 4, 4.0), ("b", "y", 4, 4.0), ("i", "x", 4, 4.0), ("o", "z", 4, 4.0))


def moving(way: str, kind: dict[str, str]) -> Scenario:
    """A table of several file groups, and batches of two tasks each."""
    moved, gone, back = (
        Step(rows, operation, tasks=2, sent=way)
        for rows, operation in ((MOVED, "upsert"), (GONE, "delete"), (BACK, "upsert"))
    )
    options = {**kind, **RECORDS, **SMALL, MOVES: "true"}
    return Scenario((Step(FIRST, tasks=2), Step(MORE)), (moved, gone, back), options)


CASES = [*product(WAYS, ("cow", "mor"), VERSIONS)]


@pytest.mark.parametrize(
    ("way", "kind", "version", "every"),
    [
        *(pytest.param(*case, 60) for case in CASES if case[:2] != ("by key", "mor")),
        *(pytest.param(*case, 2, marks=AT_NIGHT) for case in CASES),
    ],
)
def test_they_are_in_one_partition(
    way: str, kind: str, version: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)
    swept = Sweep("moves", moving(way, {"cow": COW, "mor": MOR}[kind]), version)
    recorder = Recorder()
    swept.play(FaultyStorage(swept.start.copy(), recorder=recorder))
    stages = any("/staged/" in operation.path for operation in recorder.operations)
    assert stages == (way == "by key" and kind == "cow")
    check = indexed(swept, swept.check)
    assert sweep(swept.start, swept.play, check, CRASHES, every) > 400 // every
