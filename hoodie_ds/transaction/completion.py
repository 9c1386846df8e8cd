"""The completed file of an instant: its name, and the one function that puts it.

In layout 2 the name holds the completion time, by which readers tell what a later base file has
taken in (Hudi's ``CompletionTimeQueryView``). It is later than every time that is known as it is
chosen, whatever the clocks say, and chosen once: for a write by the decision to complete it, for
what any process may end by a file that the first one of them puts.
"""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.environment import Clock
from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.storage.protocol import Storage, names_in
from hoodie_ds.sync.followers import own_followers
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.layout import LAYOUTS, V1
from hoodie_ds.timeline.paths import completion_path, instant_path
from hoodie_ds.timeline.timeline import Timeline


def completion_time(table: Table, timeline: Timeline, clock: Clock) -> str:
    """Choose the completion time of an instant; empty where the layout has none."""
    if table.layout == V1.version:
        return ""
    return next_time(clock.now_ms(), table.properties.timeline_in_utc, timeline.latest_time)


def find_completed(storage: Storage, instant: Instant) -> Instant | None:
    """Return an instant as it is completed on the timeline; None if it is not there."""
    if instant.layout == V1.version:  # its name is known
        completed = V1.parse(V1.file_name(instant.at(State.COMPLETED)))
        assert completed is not None, instant
        with suppress(NotFoundError):
            storage.read(instant_path(completed))
            return completed
        return None
    layout, time = LAYOUTS[instant.layout], instant.time
    # Every task asks this once: no timeline is made of the names, however many there are.
    listed = sorted(name for name in names_in(storage, layout.folder) if name.startswith(time))
    is_savepoint = instant.action is Action.SAVEPOINT
    for step in filter(None, map(layout.parse, listed)):
        is_one = step.time == time and (step.action is Action.SAVEPOINT) is is_savepoint
        if is_one and step.state is State.COMPLETED:
            return step
    return None


def put_completed(table: Table, completed: Instant, body: bytes) -> bool:
    """Make an instant visible, whichever action it is of and whichever process ends it.

    The table's own followers are notified first. If a process dies in between, the next one that
    ends the instant does both, so they may be notified again.

    Returns False if another process has ended the instant otherwise. Raises
    `CommitOutcomeUnknownError` if it is unknown whether the instant is visible.
    """
    path = instant_path(completed)
    if own := own_followers(table):
        changes = FileChanges.of(completed, body, path)
        for follower in own:
            follower.before(table, completed, changes)
    try:
        return put_decisively(table.storage, path, body)
    except AlreadyExistsError:  # and gone again: others ended the instant, and took it back
        return False


def carry_over(storage: Storage, path: str, body: bytes) -> None:
    """Put a file of an instant that has ended where another layout has it; may be done again.

    Nothing becomes visible by that, but by the properties that name the layout, so no follower is
    told.
    """
    try:
        storage.put_if_absent(path, body)
    except AlreadyExistsError:
        if storage.read(path) != body:  # of an attempt that ended before the table went on
            storage.replace(path, body)


def complete(table: Table, instant: Instant, body: bytes, clock: Clock) -> None:
    """Complete an instant that several processes may be ending at once."""
    completed = _agreed(table, instant, clock)
    if completed is not None:
        put_completed(table, completed, body)
    if table.layout != V1.version:
        table.storage.delete(completion_path(instant.time))


def _agreed(table: Table, instant: Instant, clock: Clock) -> Instant | None:
    """Return an instant with the completion time that all choose; None if it has completed."""
    if table.layout == V1.version:
        return instant.completed("")
    storage, path = table.storage, completion_path(instant.time)
    chosen = completion_time(table, table.load_timeline(), clock)
    try:
        storage.put_if_absent(path, chosen.encode())
    except AlreadyExistsError:
        with suppress(NotFoundError):  # else the process that put it has finished
            chosen = storage.read(path).decode()
    # Looked for after that: who completes an instant deletes what it has chosen.
    if find_completed(storage, instant) is not None:
        return None
    return instant.completed(chosen)
