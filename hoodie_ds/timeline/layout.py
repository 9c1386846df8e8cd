"""Timeline layouts: folders and names of the files of instants; all else is the same in each."""

from __future__ import annotations

import re
from typing import Final, Protocol

from hoodie_ds.timeline.instant import COMPLETES_AS, Action, Instant, State

_NAME: Final = re.compile(r"([0-9]{17}|[0-9]{14})(?:_([0-9]{17}))?\.(.+)", re.ASCII)


class Layout(Protocol):
    """Folder and names of the files of instants."""

    @property
    def version(self) -> int:
        """Its number, as ``hoodie.timeline.layout.version`` has it."""
        ...

    @property
    def clustering(self) -> Action:
        """The action of a clustering until it completes, as a replace commit."""
        ...

    @property
    def folder(self) -> str:
        """The folder of the active timeline, relative to a table's base path."""
        ...

    def file_name(self, instant: Instant) -> str:
        """Return the name of the file that records a step of an instant."""
        ...

    def parse(self, name: str) -> Instant | None:
        """Read a file name of the folder; None for a file that is not an instant."""
        ...


def _pending_name(instant: Instant) -> str:
    middle = f".{instant.action.value}"
    if instant.state is State.INFLIGHT and instant.action is Action.COMMIT:
        middle = ""  # as in Hudi
    return f"{instant.time}{middle}.{instant.state.value}"


class _LayoutV1:
    """Layout 1, of tables of version 6: ``.hoodie/<time>.<action>[.<state>]``.

    A compaction completes under the name of a commit, a log compaction as a delta commit.
    """

    version: Final = 1
    folder: Final = ".hoodie"
    clustering: Final = Action.REPLACE_COMMIT

    def file_name(self, instant: Instant) -> str:
        time, action = instant.time, instant.action
        if instant.state is not State.COMPLETED:
            return _pending_name(instant)
        done = action if action is Action.CLUSTERING else COMPLETES_AS.get(action, action)
        return f"{time}.{done.value}"

    def parse(self, name: str) -> Instant | None:
        time, _, form = name.partition(".")
        found = _FORMS_V1.get(form)
        # Python also accepts digits of other scripts: such a name is not an instant.
        if found is None or len(time) not in _LENGTHS_V1 or not (time.isascii() and time.isdigit()):
            return None
        return Instant(time, *found)


V1: Final[Layout] = _LayoutV1()
_LENGTHS_V1: Final = (14, 17, 20)
"""Digits of times; a metadata table gives its own actions the time of a commit and a suffix."""

# A compaction never completes under its own name: the names that it shares are others' already.
_FORMS_V1: Final[dict[str, tuple[Action, State]]] = {}
for _action in filter(lambda action: action is not Action.CLUSTERING, Action):
    for _state in State:
        _FORMS_V1.setdefault(V1.file_name(Instant("", _action, _state))[1:], (_action, _state))


class _LayoutV2:
    """Layout 2, of tables of versions 8 and 9.

    ``.hoodie/timeline/<time>[_<completion>].<form>``: names of pending instants are those of layout
    1, and a completed one has its completion time in the name. A clustering is an action of its own
    until it completes, as a replace commit. An instant that completed before its table was upgraded
    may be without a completion time (Hudi's ``InstantFileNameParserV2``).
    """

    version: Final = 2
    folder: Final = ".hoodie/timeline"
    clustering: Final = Action.CLUSTERING

    def file_name(self, instant: Instant) -> str:
        time, action = instant.time, instant.action
        if instant.state is not State.COMPLETED:
            return _pending_name(instant)
        end = f"_{instant.completion_time}" if instant.completion_time else ""
        return f"{time}{end}.{COMPLETES_AS.get(action, action).value}"

    def parse(self, name: str) -> Instant | None:
        match = _NAME.fullmatch(name)
        if match is None or match[3] not in _FORMS_V2:
            return None
        action, state = _FORMS_V2[match[3]]
        if match[2] is not None and state is not State.COMPLETED:
            return None
        return Instant(match[1], action, state, layout=self.version, completion_time=match[2] or "")


V2: Final[Layout] = _LayoutV2()

_FORMS_V2: Final = {
    V2.file_name(Instant("", action, state))[1:]: (action, state)
    for action in Action
    for state in State
    if state is not State.COMPLETED or action not in COMPLETES_AS
}

LAYOUTS: Final[dict[int, Layout]] = {layout.version: layout for layout in (V1, V2)}
"""The known layouts, by ``hoodie.timeline.layout.version``."""
