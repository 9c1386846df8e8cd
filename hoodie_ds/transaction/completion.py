"""The completed file of an instant: its name, and the one function that puts it.

In layout 2 the name holds the completion time, by which readers find out which log files a later
base file includes (Hudi's ``CompletionTimeQueryView``). It is later than every time on the
timeline, whatever the clocks say, and is chosen once: for a write by the decision to complete it,
for an instant that any process may complete by a file that the first of them puts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from hoodie_ds.environment import Clock
from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.followers import own_followers
from hoodie_ds.table.schema_on_read import put_history
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.loading import steps_at
from hoodie_ds.timeline.paths import V1, completion_path, instant_path
from hoodie_ds.timeline.timeline import Timeline


def completion_time(table: Table, timeline: Timeline, clock: Clock) -> str:
    """Choose the completion time of an instant; empty where the layout has none."""
    if table.layout == V1.version:
        return ""
    return next_time(clock.now_ms(), table.properties.timeline_in_utc, timeline.latest_time)


def find_completed(storage: Storage, instant: Instant) -> Instant | None:
    """Return the completed instant of the timeline; None if it is not completed."""
    if instant.layout == V1.version:  # its name is known
        completed = V1.parse(V1.file_name(instant.at(State.COMPLETED)))
        assert completed is not None, instant
        with suppress(NotFoundError):
            storage.read(instant_path(completed))
            return completed
        return None
    is_savepoint = instant.action is Action.SAVEPOINT
    for step in steps_at(storage, instant.layout, instant.time):
        is_one = (step.action is Action.SAVEPOINT) is is_savepoint
        if is_one and step.state is State.COMPLETED:
            return step
    return None


def put_completed(
    table: Table,
    completed: Instant,
    body: bytes,
    ranges: Mapping[str, Mapping[str, ColumnRange]] | None = None,
) -> bool:
    """Make an instant of any action visible: notify the table's own followers, put the file.

    The history of numbered columns comes before, as a reader of the commit needs it. If a process
    dies in between, the next one that completes the instant repeats all, so followers may be
    notified twice. `ranges` are what the process knows of the columns of files, by path.

    Returns False if another process put a different file or rolled the instant back. Raises
    `CommitOutcomeUnknownError` if it is unknown whether the instant is visible.
    """
    path = instant_path(completed)
    put_history(table, completed, body)
    if own := own_followers(table):
        changes = replace(FileChanges.of(completed, body, path), ranges=ranges or {})
        for follower in own:
            follower.before(table, completed, changes)
    try:
        return put_decisively(table.storage, path, body)
    except AlreadyExistsError:  # and deleted since: others completed the instant and rolled it back
        return False


def carry_over(storage: Storage, path: str, body: bytes) -> None:
    """Put a file of an instant that has ended where another layout has it; idempotent.

    No follower is notified: readers see the file only once the table's properties name the layout.
    """
    try:
        storage.put_if_absent(path, body)
    except AlreadyExistsError:
        if storage.read(path) != body:  # of an earlier attempt, before the table changed again
            storage.replace(path, body)


def complete(table: Table, instant: Instant, body: bytes, clock: Clock) -> None:
    """Complete an instant that several processes may be completing at once."""
    completed = _agreed(table, instant, clock)
    if completed is not None:
        put_completed(table, completed, body)
    if table.layout != V1.version:
        table.storage.delete(completion_path(instant.time))


def _agreed(table: Table, instant: Instant, clock: Clock) -> Instant | None:
    """Return an instant with the completion time that all choose; None if it is completed."""
    if table.layout == V1.version:
        return instant.completed("")
    storage, path = table.storage, completion_path(instant.time)
    chosen = completion_time(table, table.load_timeline(), clock)
    try:
        storage.put_if_absent(path, chosen.encode())
    except AlreadyExistsError:
        with suppress(NotFoundError):  # else the process that put it has finished
            chosen = storage.read(path).decode()
    # Only now, as the process that completes an instant deletes the chosen time afterwards.
    if find_completed(storage, instant) is not None:
        return None
    return instant.completed(chosen)
