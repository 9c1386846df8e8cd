"""What a reader of a schedule asks in turns, and the answers that are right."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from hoodie_ds import HoodieTable
from hoodie_ds.reader.commit_range import moment
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage
from tests.faults.stream import Model, Step, plain
from tests.tables import timeline_of

Rows = list[list[tuple[str, Any]]]


@dataclass(frozen=True)
class Past:
    """A table of several commits, before others are at work on it.

    Parameters
    ----------
    steps : tuple of Step
        What its commits wrote.
    at : int
        How many of them the moment has that is asked for: all but the last, if there are several.
    time : str
        The moment.
    bound : str
        Where a range begins that holds the last commit of the moment and what comes after it.
    """

    steps: tuple[Step, ...]
    at: int
    time: str
    bound: str

    @classmethod
    def of(cls, storage: MemoryStorage, steps: Sequence[Step]) -> Past:
        """Take what a table has."""
        commits = timeline_of(storage).commits
        assert len(commits) == len(steps)
        at = max(len(steps) - 1, 1)
        bounds = ["000", *map(moment, commits)]
        return cls(tuple(steps), at, commits[at - 1].time, bounds[at - 1])


@dataclass(frozen=True)
class Question:
    """A query, and the answer to it once further steps are committed."""

    ask: Callable[[HoodieTable, Past], Rows]
    answer: Callable[[Past, Sequence[Step]], Rows]

    def found(self, storage: Any, past: Past) -> Rows:
        """Ask a table."""
        return self.ask(HoodieTable(storage.root, storage=cast(Storage, storage)), past)


def _rows(*steps: Step) -> Rows:
    return _model(steps).plain()


def _model(steps: Sequence[Step]) -> Model:
    model = Model()
    for step in steps:
        model = model.after(step)
    return model


def _after_changes(table: HoodieTable, past: Past) -> Rows:
    """What the changes since a moment make of the rows of that moment."""
    rows = {(row["city"], row["id"]): row for row in _model(past.steps[: past.at - 1]).rows}
    told = table.read_changes(past.bound).to_pylist()
    for change in sorted(told, key=lambda row: (row["ts_ms"], row["op"])):
        old, new = (json.loads(change[side] or "null") for side in ("before", "after"))
        if old is not None:
            assert plain([rows.pop((old["city"], old["id"]))]) == plain([old])
        if new is not None:
            rows[new["city"], new["id"]] = new
    return plain(rows.values())


QUESTIONS: Final = (
    Question(
        lambda table, past: plain(table.read().to_pylist()),
        lambda past, more: _rows(*past.steps, *more),
    ),
    Question(
        lambda table, past: plain(table.read(as_of=past.time).to_pylist()),
        lambda past, more: _rows(*past.steps[: past.at]),
    ),
    Question(
        lambda table, past: plain(table.read_incremental(past.bound).to_pylist()),
        lambda past, more: _rows(*past.steps[past.at - 1 :], *more),
    ),
    Question(_after_changes, lambda past, more: _rows(*past.steps, *more)),
)
"""The latest rows, those of a moment, what was written since a moment, and what was changed."""
