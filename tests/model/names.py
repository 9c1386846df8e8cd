"""Names of log files: who deletes by name, and is stopped before, may meet another's file.

In table version 6 the name of a log file holds its slice and version, and a token. A writer that
was stopped, two recoveries of its write, and the writer that comes after them.

| step | function |
|---|---|
| late writer: begin | `open_data_file` |
| late writer: look, take away | `no_late_files` |
| recovery: list | `files_of` |
| recovery: delete, end | `rollback.roll_back` |
| next writer: choose | `LogTarget`, `log_token` |
| next writer: write, commit | `write_task`, `complete` |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

LATE, NEXT = "the late writer", "the next writer"
NOBODY = ""


class State(NamedTuple):
    """The slice, and how far everybody is."""

    files: tuple[str, ...] = (NOBODY, NOBODY)
    """Whose file has a name."""
    late: str = "begin"
    recoveries: tuple[str, ...] = ()
    undone: bool = False
    next: str = "choose"
    chosen: int = 0

    def put(self, name: int, owner: str) -> State:
        files = tuple(owner if at == name else old for at, old in enumerate(self.files))
        return self._replace(files=files)


@dataclass(frozen=True)
class Names:
    """The rules in force, and the bounds."""

    own_names: bool = True
    """Whether the names of an attempt are its own; else those of the first free version."""
    late_writer: bool = True
    """Whether the late writer goes on, and takes its file away."""
    recoveries: int = 2

    def start(self) -> State:
        return State(recoveries=("list",) * self.recoveries)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.late == "begin":
            yield "late: begin", state.put(0, LATE)._replace(late="stopped")
            return
        if state.late == "stopped" and state.undone and self.late_writer:
            yield "late: look", state._replace(late="take away")
        if state.late == "take away":
            yield "late: take away", state.put(0, NOBODY)._replace(late="ended")
        for at in range(self.recoveries):
            yield from self._recovery(state, at)
        yield from self._next(state)

    def wrong(self, state: State) -> str | None:
        if state.next == "committed" and state.files[state.chosen] != NEXT:
            return "the committed log file is gone"
        return None

    def unfinished(self, state: State) -> str | None:
        return None if state.next == "committed" else "the next writer does not commit"

    def _recovery(self, state: State, at: int) -> Iterator[tuple[str, State]]:
        follows = {"list": "delete", "delete": "end", "end": "ended"}
        step = state.recoveries[at]
        if step == "ended" or (step == "list" and state.undone):
            return
        steps = tuple(follows[s] if i == at else s for i, s in enumerate(state.recoveries))
        after = state._replace(recoveries=steps)
        if step == "delete":
            after = after.put(0, NOBODY)
        yield f"recovery {at}: {step}", after._replace(undone=state.undone or step == "end")

    def _next(self, state: State) -> Iterator[tuple[str, State]]:
        if state.next == "choose" and state.undone:
            taken = self.own_names or state.files[0] != NOBODY
            yield "next: choose", state._replace(next="write", chosen=int(taken))
        elif state.next == "write" and state.files[state.chosen] == NOBODY:
            yield "next: write", state.put(state.chosen, NEXT)._replace(next="commit")
        elif state.next == "commit":
            yield "next: commit", state._replace(next="committed")
