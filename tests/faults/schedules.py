"""Schedule explorer: processes that stop where a phase begins, run in every order there is.

A process is a thread of its own, but one alone runs at a time: from one border between phases to
the next. Borders are found from what it asks its storage for, so nothing in the code under test
knows of them, and a schedule, the order in which processes are let on, does the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from threading import Semaphore

from hoodie_ds.errors import HoodieError
from hoodie_ds.testing.fault import Kind, Operation
from hoodie_ds.testing.faulty_storage import FaultyStorage
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.testing.simulated import SimulatedCrash, forget_process


class ScheduleError(AssertionError):
    """A check failed after a schedule; says which one, by which it can be played again."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of what a process does, known by the operation that begins it.

    Parameters
    ----------
    name : str
        For messages.
    kind : Kind, optional
        Kind of the operation; the first phase of a process needs none.
    paths : tuple of str
        Shell patterns, one of which its path fits; ``*`` takes in ``/`` too.
    """

    name: str
    kind: Kind | None = None
    paths: tuple[str, ...] = ()

    def begins(self, operation: Operation) -> bool:
        """Whether it begins with an operation."""
        return operation.kind is self.kind and any(
            fnmatchcase(operation.path, pattern) for pattern in self.paths
        )


@dataclass(frozen=True, slots=True)
class Actor:
    """A process of a schedule.

    Parameters
    ----------
    name : str
        One letter, which stands for it in schedules.
    work : callable
        What it does on the storage given, the same in every run but for what others do. It may
        raise `SimulatedCrash` and `HoodieError`. Where it has to wait for another process, it
        calls the second argument, which lets the others on.
    phases : sequence of Phase
        In their order. One that a run does not come to is passed over with all after it.
    """

    name: str
    work: Callable[[FaultyStorage, Callable[[], None]], None]
    phases: Sequence[Phase]


def schedules(*actors: Actor) -> Iterator[str]:
    """Yield all orders in which the phases of two actors can follow one another.

    Returns
    -------
    iterator of str
        The names of the actors, once for each phase: with six phases each there are 924.
    """
    first, second = actors
    turns = len(first.phases) + len(second.phases)
    for chosen in combinations(range(turns), len(first.phases)):
        yield "".join(first.name if turn in chosen else second.name for turn in range(turns))


def explore(
    fresh: Callable[[], MemoryStorage],
    actors: Sequence[Actor],
    check: Callable[[MemoryStorage, Sequence[BaseException | None]], None],
    orders: str | Iterable[str],
) -> int:
    """Play schedules, one after another, and check what each leaves.

    Parameters
    ----------
    fresh : callable
        Makes the table before, for each schedule anew.
    actors : sequence of Actor
        The processes.
    check : callable
        Given the table afterwards, and for each actor what it raised or None. Asserts.
    orders : str or iterable of str
        What `schedules` yields, some of it, or a single one.

    Returns
    -------
    int
        Number of schedules.

    Raises
    ------
    ScheduleError
        The check failed.
    """
    number = 0
    # One order is a text, whose letters are no orders.
    orders = [orders] if isinstance(orders, str) else orders
    for number, order in enumerate(orders, 1):  # noqa: B007
        left = fresh()
        forget_process()
        told = f"schedule {order}"
        try:
            raised, trace = play(left, actors, order)
            told += f" ({' '.join(trace)}; {_outcomes(actors, raised)})"
            check(left, raised)
        except (AssertionError, HoodieError) as error:
            raise ScheduleError(f"{told}: {error}") from error
    return number


def _outcomes(actors: Sequence[Actor], raised: Sequence[BaseException | None]) -> str:
    return ", ".join(
        f"{actor.name} raised {error!r}" if error else f"{actor.name} succeeded"
        for actor, error in zip(actors, raised, strict=True)
    )


def play(
    storage: MemoryStorage, actors: Sequence[Actor], order: str
) -> tuple[list[BaseException | None], list[str]]:
    """Let actors on in an order; those that are not at their end after it run to it.

    Returns
    -------
    tuple of list and list of str
        What each actor raised, and the phases in the order in which they began.
    """
    trace: list[str] = []
    with ThreadPoolExecutor(len(actors)) as threads:
        running = {actor.name: _Process(actor, storage, trace) for actor in actors}
        for process in running.values():
            process.start(threads)
        for name in order:
            running[name].let_on()
        while waiting := [process for process in running.values() if not process.ended]:
            for process in waiting:
                process.let_on()
    return [process.outcome() for process in running.values()], trace


class _Process:
    """An actor on a thread that waits at the borders of its phases."""

    def __init__(self, actor: Actor, storage: MemoryStorage, trace: list[str]) -> None:
        self._actor = actor
        self._trace = trace
        self._reached = 0
        self._mine, self._theirs = Semaphore(0), Semaphore(0)
        self._storage = FaultyStorage(storage, before_each=self._before_each)
        self._done: Future[None] | None = None

    @property
    def ended(self) -> bool:
        return self._done is not None and self._done.done()

    def start(self, threads: ThreadPoolExecutor) -> None:
        """Begin; it waits until it is let on."""
        self._done = threads.submit(self._run)
        self._done.add_done_callback(lambda _: self._theirs.release())

    def let_on(self) -> None:
        """Let it run to the next border, or to its end."""
        if not self.ended:
            self._mine.release()
            self._theirs.acquire()

    def outcome(self) -> BaseException | None:
        """What it raised, if that is something that a process may raise."""
        assert self._done is not None
        error = self._done.exception()
        if error is not None and not isinstance(error, (HoodieError, SimulatedCrash)):
            raise error
        return error

    def _run(self) -> None:
        self._mine.acquire()
        self._trace.append(f"{self._actor.name}:{self._actor.phases[0].name}")
        self._actor.work(self._storage, self._wait)

    def _before_each(self, operation: Operation) -> None:
        following = self._actor.phases[self._reached + 1 :]
        if following and following[0].begins(operation):
            self._reached += 1
            self._wait()
            self._trace.append(f"{self._actor.name}:{following[0].name}")

    def _wait(self) -> None:
        self._theirs.release()
        self._mine.acquire()
