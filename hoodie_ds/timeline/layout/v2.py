"""Timeline layout 2, of table versions 8 and 9: ``.hoodie/timeline/<time>[_<completion>].<form>``.

Names of pending instants are those of layout 1, and a completed one has its completion time in
the name. A clustering is an action of its own until it completes, as a replace commit. An instant
that completed before its table was upgraded may be without a completion time (Hudi's
``InstantFileNameParserV2``).
"""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.timeline.instant import COMPLETES_AS, Action, Instant, State
from hoodie_ds.timeline.layout.layout import Layout

_NAME: Final = re.compile(r"([0-9]{17}|[0-9]{14})(?:_([0-9]{17}))?\.(.+)", re.ASCII)


class LayoutV2:
    """The layout of tables of versions 8 and 9."""

    version: Final = 2
    folder: Final = ".hoodie/timeline"
    clustering: Final = Action.CLUSTERING

    def file_name(self, instant: Instant) -> str:
        """Return the name of the file that records a step of an instant."""
        time, action = instant.time, instant.action
        if instant.state is State.REQUESTED:
            return f"{time}.{action.value}.requested"
        if instant.state is State.INFLIGHT:
            middle = "" if action is Action.COMMIT else f".{action.value}"
            return f"{time}{middle}.inflight"
        end = f"_{instant.completion_time}" if instant.completion_time else ""
        return f"{time}{end}.{COMPLETES_AS.get(action, action).value}"

    def parse(self, name: str) -> Instant | None:
        """Read a file name of the folder; None for a file that is not an instant."""
        match = _NAME.fullmatch(name)
        if match is None or match[3] not in _FORMS:
            return None
        action, state = _FORMS[match[3]]
        if match[2] is not None and state is not State.COMPLETED:
            return None
        return Instant(match[1], action, state, layout=self.version, completion_time=match[2] or "")


V2: Final[Layout] = LayoutV2()
"""The layout of tables of versions 8 and 9."""

_FORMS: Final = {
    V2.file_name(Instant("", action, state))[1:]: (action, state)
    for action in Action
    for state in State
    if state is not State.COMPLETED or action not in COMPLETES_AS
}
