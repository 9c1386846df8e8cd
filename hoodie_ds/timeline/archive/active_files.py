"""The files of instants on the active timeline: read to be archived, then deleted in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from hoodie_ds.errors import NotFoundError
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.timeline.archive.archive import ActiveFile
from hoodie_ds.timeline.instant import COMPLETES_AS, Instant, State
from hoodie_ds.timeline.instant_time import format_time
from hoodie_ds.timeline.paths import LAYOUTS, instant_path

Steps = Mapping[Instant, FileStatus]
"""The files of one instant, each with its step."""


def active_files(storage: Storage, layout: int, instants: Iterable[Instant]) -> dict[str, Steps]:
    """Return the files of instants on the active timeline, by instant time."""
    rule = LAYOUTS[layout]
    actions = {instant.time: instant.action for instant in instants}
    found: dict[str, dict[Instant, FileStatus]] = {time: {} for time in actions}
    for status in storage.list(rule.folder):
        step = rule.parse(status.path.rpartition("/")[2])
        if step is None or step.time not in actions:
            continue
        # A savepoint has the time of the commit that it keeps, and stays with it.
        if COMPLETES_AS.get(step.action, step.action) is actions[step.time]:
            found[step.time][step] = status
    return dict(found)


def contents(storage: Storage, files: Steps, utc: bool) -> list[ActiveFile]:
    """Read the files of an instant."""
    found = []
    for step, status in files.items():
        with suppress(NotFoundError):  # another archiver has it
            body = storage.read(instant_path(step))
            written_ms = status.modified_ms
            written = format_time(written_ms, utc) if written_ms else step.time
            found.append(ActiveFile(step, body, written))
    return found


def delete_active(storage: Storage, files: Iterable[Steps]) -> None:
    """Delete the files of instants, the oldest first, in an order that is right at every moment."""
    steps: Collection[Instant] = [step for one in files for step in one]
    # An inflight instant was requested, so the requested file is deleted after the inflight one.
    for state in (State.INFLIGHT, State.REQUESTED):
        storage.delete_many([instant_path(step) for step in steps if step.state is state])
    for step in steps:  # one by one: a bulk deletion has no order
        if step.state is State.COMPLETED:
            storage.delete(instant_path(step))
