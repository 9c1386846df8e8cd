"""The decision log: the order in which writers decide about instants, with or without a lock.

A lock alone does not make commits safe: its holder may be stopped for longer than the lock lasts
and continue as if it still held it. So every decision, to complete an instant, to roll it back or
to schedule a table service, is the next entry of a log, put if absent, so only one writer can
append it. A writer applies the newest decision before it appends its own. If another was faster,
the name of its entry is taken. (The fencing token of a lock, made part of the commit.)

A log in `FORMER_DECISIONS` is continued in `DECISIONS`: its entries are read in place, and the next
number is put in the new folder only. Nothing is moved, so a crash leaves nothing half done.
Processes of earlier releases do not see the new folder: they must have ended.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    CorruptFileError,
    NotFoundError,
    StorageError,
)
from hoodie_ds.hints import COPY
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import (
    DECISIONS,
    FORMER_DECISIONS,
    LAYOUTS,
    V1,
    number_in,
    numbered_path,
)

_KEPT: Final = 20
"""Number of decisions that are not deleted, so a late writer rarely finds its number free."""


class Outcome(Enum):
    """What a decision does with an instant."""

    COMPLETE = "complete"
    ROLL_BACK = "roll back"
    KEEP_OPEN = "prepare"
    """Keep its batches and wait for further ones; there is nothing to apply."""
    UNDO = "take back"
    """Roll back a completed write or a planned compaction by hand; the decision has the plan."""
    SCHEDULE = "schedule"
    """Put the plan of a table service on the timeline."""
    CHANGE_VERSION = "change version"
    """Change the table's version to the one that is the decision's plan."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the log."""

    number: int  # from 1
    outcome: Outcome
    instant: Instant
    decided_by: str  # a string that no other attempt to append has
    # replay guard entries; other engines archive commits, but no decisions
    carried: Mapping[str, str] = field(default_factory=dict)
    plan: bytes = b""  # requested file of a service, plan of a rollback, or the table version
    completion_time: str = ""  # empty if the layout has none
    seen: tuple[str, ...] = ()  # times of commits later than the instant, which it fits
    path: str = field(default="", compare=False)

    @property
    def completed(self) -> Instant:
        """The instant as it is completed."""
        return self.instant.completed(self.completion_time)

    @property
    def table_version(self) -> int | None:
        """The version that the table changes to; None for other decisions."""
        return int(self.plan) if self.outcome is Outcome.CHANGE_VERSION else None

    def to_bytes(self) -> bytes:
        """Return the content of the entry's file."""
        body: dict[str, object] = {
            "decision": self.outcome.value,
            "instant": self.instant.time,
            "action": self.instant.action.value,
            "by": self.decided_by,
            "carried": dict(self.carried),
        }
        if self.instant.layout != V1.version:
            body |= {"layout": self.instant.layout, "completion": self.completion_time}
        if self.seen:
            body["seen"] = self.seen
        if self.plan:
            body["plan"] = b64encode(self.plan).decode()
        return json.dumps(body).encode()

    @classmethod
    def from_bytes(cls, number: int, body: bytes, path: str) -> Decision:
        """Read an entry's file."""
        try:
            found = json.loads(body)
            layout, ended = int(found.get("layout", V1.version)), str(found.get("completion", ""))
            named = str(found["instant"]), Action(found["action"]), State.INFLIGHT
            instant = Instant(*named, layout=LAYOUTS[layout].version)
            carried = {str(key): str(value) for key, value in found["carried"].items()}
            plan = b64decode(found.get("plan", ""), validate=True)
            outcome = Outcome(found["decision"])
            if outcome is Outcome.CHANGE_VERSION:
                int(plan)
            by, seen = str(found["by"]), tuple(map(str, found.get("seen", ())))
            return cls(number, outcome, instant, by, carried, plan, ended, seen, path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(f"{path} is not a logged decision: {body[:100]!r}") from error


def newest_decision(storage: Storage) -> Decision | None:
    """Return the last decision that was appended; None before the first."""
    while True:
        paths = _logged(storage, at_least=1)
        if not paths:
            return None
        with suppress(NotFoundError):  # deleted after many others were appended
            return _read(storage, paths, max(paths))


def logged_decisions(storage: Storage) -> list[Decision]:
    """Return the decisions that are still in the log, the oldest first."""
    found, paths = [], _logged(storage)
    for number in paths:
        with suppress(NotFoundError):  # deleted after many others were appended
            found.append(_read(storage, paths, number))
    return found


def damaged_decisions(storage: Storage) -> dict[str, CorruptFileError]:
    """Return the errors that reading damaged entries raises, by path."""
    paths = _logged(storage)
    errors = {path: _damage(storage, paths, number) for number, path in paths.items()}
    return {path: error for path, error in errors.items() if error is not None}


def _damage(storage: Storage, paths: Mapping[int, str], number: int) -> CorruptFileError | None:
    try:
        with suppress(NotFoundError):
            _read(storage, paths, number)
    except CorruptFileError as error:
        return error
    return None


def was_scheduled(storage: Storage, instant: Instant) -> bool:
    """Whether one of the decisions still in the log scheduled an instant."""
    paths = _logged(storage)
    for number in reversed(paths):
        with suppress(NotFoundError):
            found = _read(storage, paths, number)
            if found.outcome is Outcome.SCHEDULE and found.instant.time == instant.time:
                return True
    return False


def next_decision(
    before: Decision | None, outcome: Outcome, instant: Instant, decided_by: str
) -> Decision:
    """Return the decision after another one, with the entries that it carries."""
    if before is None:
        return Decision(1, outcome, instant, decided_by)
    return Decision(before.number + 1, outcome, instant, decided_by, before.carried)


def append_decision(storage: Storage, decision: Decision) -> bool:
    """Append a decision, if it is still the next one.

    Returns False if other writers were faster: then either the decision does not count, or others
    have found and applied it. Raises `CommitOutcomeUnknownError` if it is unknown whether it was
    appended.
    """
    path = numbered_path(DECISIONS, decision.number)
    if not put_decisively(storage, path, decision.to_bytes()):
        return False
    try:
        paths = _logged(storage, at_least=_KEPT + 1)
        if not paths:
            raise StorageError("the storage lists no decision at all")
    except StorageError as error:
        raise CommitOutcomeUnknownError(
            f"{storage.root}/{path} was put, but whether it is the newest decision could not be "
            f"read ({error}); nothing was deleted, the next batch checks it"
        ) from error
    if max(paths) != decision.number:
        return False  # the number may have been free because its decision was deleted
    with suppress(StorageError):  # the next decision deletes them
        for earlier in list(paths.values())[:-_KEPT]:
            storage.delete(earlier)
    return True


def _read(storage: Storage, paths: Mapping[int, str], number: int) -> Decision:
    """Read an entry of the log. All but the newest are applied, and may go as old ones do."""
    try:
        return Decision.from_bytes(number, storage.read(paths[number]), paths[number])
    except CorruptFileError as error:
        delete = "delete it, as later decisions follow it"
        if number == max(paths):
            delete = "if the last change of the table has ended, delete it while no process writes"
        raise CorruptFileError(f"{storage.root}/{error.damage}", f"{COPY}, or {delete}") from error


def _logged(storage: Storage, at_least: int = _KEPT) -> dict[int, str]:
    """Paths of logged decisions by number, the oldest first.

    Includes the former log unless the new one has `at_least` decisions.
    """
    paths = _numbered(storage, DECISIONS)
    if 1 in paths or len(paths) >= at_least:
        return paths
    return _numbered(storage, FORMER_DECISIONS) | paths


def _numbered(storage: Storage, folder: str) -> dict[int, str]:
    listed = ((number_in(status.path), status.path) for status in storage.list(folder))
    return dict(sorted((number, path) for number, path in listed if number is not None))
