"""Crash-point sweep: runs a scenario once, then again with a fault at each of its operations.

`sweep_pairs` crashes the process that recovers from each crash as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from hoodie_ds.errors import HoodieError
from hoodie_ds.testing.fault import (
    MUTATING,
    OF_CONTENT,
    OF_LISTINGS,
    Effect,
    Fault,
    Kind,
    Operation,
)
from hoodie_ds.testing.faulty_storage import FaultyStorage
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.testing.simulated import SimulatedCrash, forget_process

CRASHES: Final = frozenset({Effect.CRASH_BEFORE, Effect.CRASH_AFTER, Effect.TORN})
"""The process ends."""

ERRORS: Final = frozenset({Effect.LOST_ANSWER, Effect.FAILED, Effect.REPEATED})
"""The process continues with an error."""

_READS: Final = frozenset({Kind.READ, Kind.OPEN})
_KINDS: Final = {
    Effect.CRASH_AFTER: MUTATING,  # after a read a crash leaves what one before it leaves
    Effect.TORN: frozenset({Kind.WRITE}),
    Effect.LOST_ANSWER: MUTATING,
    Effect.REPEATED: frozenset({Kind.PUT}),
    Effect.MISSING: _READS,
    **dict.fromkeys(OF_CONTENT, _READS),
    **dict.fromkeys(OF_LISTINGS, frozenset({Kind.LIST})),
}
_KEEPS: Final = {Effect.SHORT: (0, 1, 100), Effect.ZEROED: (1, 4096), Effect.LAGGING: (1, 3)}


class SweepError(AssertionError):
    """A check failed after a fault; says which fault, and at which operation."""


def fault_points(
    operations: Iterable[Operation], effects: Iterable[Effect] = CRASHES
) -> Iterator[tuple[Operation, Fault]]:
    """Yield the faults to try, one by one, on a scenario that does these operations.

    Parameters
    ----------
    operations : iterable of Operation
        As recorded without a fault.
    effects : iterable of Effect
        What may go wrong. A torn file is tried with 0, 1, half and all but one of its bytes.
    """
    wanted = sorted(effects)
    for operation in operations:
        for effect in wanted:
            if operation.kind not in _KINDS.get(effect, frozenset(Kind)):
                continue
            size = operation.size
            torn = (0, 1, size // 2, size - 1)
            keeps = torn if effect is Effect.TORN else _KEEPS.get(effect, (1,))
            for keep in sorted(set(keeps)):
                yield operation, Fault(effect, at=operation.number, keep=keep)


def sweep(
    start: MemoryStorage,
    scenario: Callable[[FaultyStorage], None],
    check: Callable[[MemoryStorage, BaseException | None], None],
    effects: Iterable[Effect] = CRASHES,
    every: int = 1,
) -> int:
    """Run a scenario with a fault at every operation, one at a time, and check what is left.

    Parameters
    ----------
    start : MemoryStorage
        The table before the scenario; copied for each run.
    scenario : callable
        Does the same work on the storage in every run. It may raise `SimulatedCrash`
        and `HoodieError`, nothing else.
    check : callable
        Asserts on what the run left, and on the error that it raised, if any.
    effects : iterable of Effect
        See `fault_points`.
    every : int
        Try only every n-th fault.

    Returns
    -------
    int
        Number of runs with a fault.

    Raises
    ------
    SweepError
        The check failed.
    """
    left, operations = _recorded(start, scenario)
    check(left, None)
    tried = 0
    for operation, fault in islice(fault_points(operations, effects), every - 1, None, every):
        left, raised = _run(start, scenario, fault)
        _checked(check, left, raised, _point(operation, fault))
        tried += 1
    return tried


def sweep_pairs(
    start: MemoryStorage,
    scenario: Callable[[FaultyStorage], None],
    recovery: Callable[[FaultyStorage], None],
    check: Callable[[MemoryStorage, BaseException | None], None],
    every: int = 1,
) -> int:
    """Crash a scenario at every operation, and its recovery at every operation of its own.

    Parameters
    ----------
    start, scenario, check
        See `sweep`; what is checked is what the second crash left.
    recovery : callable
        Work of the next process on what the first one left. Crashes that leave the same files
        share one sweep.
    every : int
        Try only every n-th pair.

    Returns
    -------
    int
        Number of pairs tried.

    Raises
    ------
    SweepError
        The check failed.
    """
    _, operations = _recorded(start, scenario)
    seen: set[int] = set()
    passed = tried = 0
    for operation, fault in fault_points(operations):
        left, raised = _run(start, scenario, fault)
        state = hash(frozenset(left.files.items()))
        if raised is None or state in seen:
            continue
        seen.add(state)
        _, recovering = _recorded(left, recovery)
        for second, crash in fault_points(recovering):
            passed += 1
            if passed % every:
                continue
            tried += 1
            again, raised = _run(left, recovery, crash)
            _checked(check, again, raised, f"{_point(operation, fault)}, {_point(second, crash)}")
    return tried


def _recorded(
    start: MemoryStorage, scenario: Callable[[FaultyStorage], None]
) -> tuple[MemoryStorage, list[Operation]]:
    """Return what a scenario leaves and does without a fault."""
    left = start.copy()
    forget_process()
    process = FaultyStorage(left)
    scenario(process)
    return left, process.recorder.operations


def _run(
    start: MemoryStorage, scenario: Callable[[FaultyStorage], None], fault: Fault
) -> tuple[MemoryStorage, BaseException | None]:
    """Return what a scenario leaves and raises with a fault."""
    left = start.copy()
    forget_process()
    try:
        scenario(FaultyStorage(left, [fault]))
    except (SimulatedCrash, HoodieError) as error:
        return left, error
    return left, None


def _point(operation: Operation, fault: Fault) -> str:
    return f"{fault.effect.value} (keep {fault.keep}) at operation {operation}"


def _checked(
    check: Callable[[MemoryStorage, BaseException | None], None],
    left: MemoryStorage,
    raised: BaseException | None,
    point: str,
) -> None:
    try:
        check(left, raised)
    except (AssertionError, HoodieError) as error:
        raise SweepError(f"{point}: {error}") from error
