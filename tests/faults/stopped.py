"""Processes that are stopped before a storage operation, and go on after others took over.

What a SIGSTOP, a long pause of a virtual machine or a hanging network does, at every operation of
a write, of a recovery and of a read, inside of what a schedule takes for one phase.
"""

from __future__ import annotations

from hoodie_ds.errors import HoodieError
from hoodie_ds.testing import FaultyStorage, Operation, SimulatedCrash, forget_process
from tests.faults.pairs import DEAD_MS, MINE, NO_KEYS, ONE, SEVERAL, SINGLE, YOURS, Pair, Play
from tests.faults.scenarios import BLOOM, COW, MOR, SPAN
from tests.faults.stream import HALF_OPEN, Step

OTHERS = Step(YOURS, tasks=2)
STOPPED = {
    "a writer, mor": (Pair(Step(MINE), OTHERS, MOR), SINGLE),
    "one of several writers, mor": (Pair(Step(MINE), OTHERS, MOR), SEVERAL),
    "a recovery, mor": (Pair(None, OTHERS, MOR, dead=Step(MINE)), SINGLE),
    "a recovery beside several writers, mor": (Pair(None, OTHERS, MOR, dead=Step(MINE)), SEVERAL),
    "a reader of a table that is recovered, mor": (
        Pair(None, OTHERS, MOR, dead=Step(MINE), reader=True),
        SINGLE,
    ),
}
"""The first process is stopped, the second one takes over; alone, or as one of several writers."""
FURTHER = {
    "a writer, cow": (Pair(Step(MINE, tasks=2), OTHERS, COW), SINGLE),
    "a writer of a log file for each task, mor": (Pair(Step(MINE, tasks=2), OTHERS, MOR), SINGLE),
    "one of several writers, bloom": (Pair(Step(MINE), OTHERS, BLOOM), SEVERAL),
    "a first write, mor": (Pair(Step(MINE), OTHERS, MOR, before=()), SINGLE),
    "a recovery, cow": (Pair(None, OTHERS, COW, dead=Step(MINE)), SINGLE),
    "a recovery before an overwrite, mor": (
        Pair(None, Step(YOURS, "insert_overwrite"), MOR, dead=Step(MINE)),
        SINGLE,
    ),
    "a driver left behind, mor": (Pair(Step(MINE), Step(MINE), MOR, same_query=True), SINGLE),
    "a driver left behind, append-only": (
        Pair(
            Step(MINE, "insert"),
            Step(MINE, "insert"),
            NO_KEYS,
            (Step(ONE, "insert"),),
            same_query=True,
        ),
        SINGLE,
    ),
    "a driver left behind in an instant of several batches": (
        Pair(
            Step(MINE, "insert", tasks=2),
            Step(MINE, "insert", tasks=2),
            {**NO_KEYS, **SPAN},
            (Step(ONE, "insert"), Step(YOURS, "insert"), Step(YOURS, "insert")),
            same_query=True,
        ),
        SINGLE,
    ),
    "a reader of a table that is recovered, cow": (
        Pair(None, OTHERS, COW, dead=Step(MINE), reader=True),
        SINGLE,
    ),
}


def stop(play: Play, number: int) -> bool:
    """Stop the first process before its n-th operation, and check what comes of it.

    Returns
    -------
    bool
        False if it has no such operation.
    """
    left = play.fresh()
    forget_process()
    raised: list[BaseException | None] = [None, None]
    reached: list[Operation] = []

    def work(at: int, storage: FaultyStorage) -> None:
        try:
            play.actors[at].work(storage, lambda: None)
        except (HoodieError, SimulatedCrash) as error:
            raised[at] = error

    def before(operation: Operation) -> None:
        if operation.number == number:
            reached.append(operation)
            play.clock.advance(DEAD_MS)
            work(1, FaultyStorage(left))

    work(0, FaultyStorage(left, before_each=before))
    if not reached:
        return False
    told = f"stopped before operation {number}, {reached[0]}; raised {raised}"
    try:
        assert raised[1] is None, "who took over was kept from it"
        play.check(left, raised, HALF_OPEN)
    except (AssertionError, HoodieError) as error:
        raise AssertionError(f"{told}: {error}") from error
    return True
