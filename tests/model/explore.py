"""Every state that a protocol can reach, nearest first, so that the first wrong trace is shortest.

A model is a start, the steps out of a state, and what is wrong with a state. States are named
tuples, hashable all the way down; their parts are kept once however many states share them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

State = TypeVar("State", bound=tuple[Any, ...])


class Model(Protocol[State]):
    """A protocol, its bounds, and which of its rules are in force."""

    def start(self) -> State:
        """Where everything begins."""
        ...

    def steps(self, state: State) -> Iterable[tuple[str, State]]:
        """What may happen next, and where it leads. No step is ever forced to be the next."""
        ...

    def wrong(self, state: State) -> str | None:
        """The broken promise, if there is one."""
        ...

    def unfinished(self, state: State) -> str | None:
        """What is left to do in a state that no step leads out of, if there is anything."""
        ...


class Explored(NamedTuple):
    """What came of it."""

    states: int
    exhausted: bool
    wrong: str | None
    trace: tuple[str, ...]

    def __str__(self) -> str:
        """The story, one step a line."""
        if self.wrong is None:
            return f"holds in {self.states:,} states" + ("" if self.exhausted else ", not all")
        steps = (f"{number:3} {step}" for number, step in enumerate(self.trace, 1))
        return "\n".join([f"{self.wrong} ({self.states:,} states)", *steps])


def explore(model: Model[State], limit: int) -> Explored:
    """Look at up to `limit` states, nearest first."""
    start = model.start()
    came: dict[State, tuple[State | None, str]] = {start: (None, "")}
    kept: dict[Hashable, Hashable] = {}
    near = [start]
    while near:
        far = []
        for state in near:
            ended = True
            for step, reached in model.steps(state):
                ended = False
                if reached in came:
                    continue
                once = (kept.setdefault(part, part) for part in reached)
                found = tuple.__new__(type(reached), once)
                came[found] = state, str(kept.setdefault(step, step))
                wrong = model.wrong(found)
                if wrong is not None:
                    return Explored(len(came), False, wrong, _trace(came, found))
                if len(came) >= limit:
                    return Explored(len(came), False, None, ())
                far.append(found)
            if ended and (left := model.unfinished(state)) is not None:
                return Explored(len(came), False, left, _trace(came, state))
        near = far
    return Explored(len(came), True, None, ())


def _trace(came: dict[State, tuple[State | None, str]], state: State) -> tuple[str, ...]:
    steps = []
    before, step = came[state]
    while before is not None:
        steps.append(step)
        before, step = came[before]
    return tuple(reversed(steps))
