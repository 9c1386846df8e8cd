"""Timeline layout 1, of table version 6: ``.hoodie/<time>.<action>[.<state>]``.

Two names are irregular and live only here: the inflight file of a ``commit`` has no action in it,
and a compaction completes under the name of a commit (a log compaction under that of a delta
commit).
"""

from __future__ import annotations

from typing import Final

from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.layout.layout import Layout


class LayoutV1:
    """The layout of tables of version 6."""

    version: Final = 1
    folder: Final = ".hoodie"
    clustering: Final = Action.REPLACE_COMMIT

    def file_name(self, instant: Instant) -> str:
        """Return the name of the file that records a step of an instant."""
        time, action = instant.time, instant.action
        if instant.state is State.REQUESTED:
            return f"{time}.{action.value}.requested"
        if instant.state is State.INFLIGHT:
            middle = "" if action is Action.COMMIT else f".{action.value}"
            return f"{time}{middle}.inflight"
        match action:
            case Action.COMPACTION:
                return f"{time}.commit"
            case Action.LOG_COMPACTION:
                return f"{time}.deltacommit"
            case _:
                return f"{time}.{action.value}"

    def parse(self, name: str) -> Instant | None:
        """Read a file name of the folder; None for a file that is not an instant."""
        time, _, form = name.partition(".")
        found = _FORMS.get(form)
        # Digits in other scripts are digits to Python: such a name is not an instant.
        if found is None or len(time) not in (14, 17) or not (time.isascii() and time.isdigit()):
            return None
        return Instant(time, *found)


V1: Final[Layout] = LayoutV1()
"""The layout of every table that this release writes to."""

# A compaction never completes under its own name: the names that it shares are others' already.
_FORMS: Final[dict[str, tuple[Action, State]]] = {}
for _action in filter(lambda action: action is not Action.CLUSTERING, Action):
    for _state in State:
        _FORMS.setdefault(V1.file_name(Instant("", _action, _state))[1:], (_action, _state))
