"""A process ends at any operation of a stream with a Delta log: what deltalake reads stays true."""

from __future__ import annotations

from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieError, HoodieTable
from hoodie_ds.testing import (
    CRASHES,
    ERRORS,
    FaultyStorage,
    MemoryStorage,
    SimulatedCrash,
    fault_points,
    forget_process,
)
from tests.delta import READ_OPTIMISED, SYNC, delta
from tests.faults.scenarios import BEGUN, BOTH, COW, MOR, TWO, Scenario
from tests.faults.stream import QUERY, Step, plain, run
from tests.faults.swept import LATER, Sweep
from tests.tally import tally

pytestmark = pytest.mark.usefixtures("one_thread")

SERVICES = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}
STEPS = (Step(TWO), Step(TWO, "delete"), Step(BOTH))
TABLES = [("6", COW), ("9", MOR), ("6", MOR), ("9", COW)]


class Deltas:
    """A stream with a Delta log, and what deltalake's reader says of what is left of it."""

    def __init__(self, folder: Path, options: dict[str, str], version: str) -> None:
        self.folder, self.numbers = folder, count()
        scenario = Scenario(BEGUN, STEPS, {**options, **SERVICES, **SYNC})
        self.sweep = Sweep("delta", scenario, version)
        left = self.sweep.start.copy()
        whole, self.allowed = FaultyStorage(left), [self.ours(left)]
        forget_process()
        self.sweep.play(whole, lambda _: self.allowed.append(self.ours(left)))
        self.operations = whole.recorder.operations

    def copy(self, left: MemoryStorage) -> Path:
        root = self.folder / str(next(self.numbers))
        for path, body in left.files.items():
            if not path.startswith(".hoodie/"):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(body)
        return root

    def ours(self, storage: Any) -> list[list[tuple[str, Any]]]:
        table = HoodieTable(storage.root, READ_OPTIMISED, storage=storage)
        return plain(table.read().to_pylist())

    def rows(self, left: MemoryStorage) -> list[list[tuple[str, Any]]]:
        return plain(delta(self.copy(left)).to_pyarrow_table().to_pylist())

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """The log shows a state of the table, and all of it once the stream has gone on."""
        assert self.rows(left) in [*self.allowed, self.ours(left)]
        if raised is not None:
            self.sweep._replay(left)
            assert self.rows(left) == self.ours(left)
        # The end of the stream may have failed in its sync alone: one more batch.
        number = 1 + len(STEPS)
        run(left, self.sweep.opts, number, STEPS[-1], 2 * LATER)
        assert self.rows(left) == self.ours(left)
        assert delta(self.copy(left)).transaction_version(QUERY) == number
        assert not HoodieTable(left.root, storage=left).sync_delta(dry=True)

    def fail(self, effects: frozenset[Any], every: int) -> int:
        """Try one in so many faults."""
        tried = 0
        for operation, fault in islice(fault_points(self.operations, effects), 0, None, every):
            left, raised = self.sweep.start.copy(), None
            forget_process()
            try:
                self.sweep.play(FaultyStorage(left, [fault]))
            except (SimulatedCrash, HoodieError) as error:
                raised = error
            try:
                self.check(left, raised)
            except (AssertionError, HoodieError) as error:
                raise AssertionError(f"{fault} at {operation}: {error}") from error
            tried += 1
        return tried


@pytest.mark.parametrize(("version", "options"), TABLES[:2])
def test_the_process_may_end_at_some_operations(
    tmp_path: Path, version: str, options: dict[str, str]
) -> None:
    assert Deltas(tmp_path, options, version).fail(CRASHES, 67) > 3


@pytest.mark.slow
@pytest.mark.parametrize("effects", [CRASHES, ERRORS])
@pytest.mark.parametrize(("version", "options"), TABLES[:2])
def test_many_operations_may_be_the_last_or_fail(
    tmp_path: Path, version: str, options: dict[str, str], effects: frozenset[Any]
) -> None:
    tally("delta faults", Deltas(tmp_path, options, version).fail(effects, 6))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("effects", [CRASHES, ERRORS])
@pytest.mark.parametrize(("version", "options"), TABLES)
def test_every_operation_may_be_the_last_or_fail(
    tmp_path: Path, version: str, options: dict[str, str], effects: frozenset[Any]
) -> None:
    tally("delta faults, nightly", Deltas(tmp_path, options, version).fail(effects, 1))
