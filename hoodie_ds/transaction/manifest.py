"""Instants that span several micro-batches (RFC-24, step 3).

Each batch puts a manifest of all batches of the instant so far before Spark continues; the last
batch completes the instant. Until then its rows are invisible. A process that finds the instant
pending, and is not the writer that continues it, completes it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import (
    manifest_number,
    manifest_path,
    work_folder,
)
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.completion import put_completed
from hoodie_ds.transaction.failed_write import is_ours
from hoodie_ds.transaction.ownership import owner_of, takes_several_batches

InstantTest = Callable[[Table, Timeline, Instant], bool]
"""A test of a pending instant of a table, given its timeline."""


def never(table: Table, timeline: Timeline, instant: Instant) -> bool:
    """Return False for any instant."""
    return False


def newest_manifest(storage: Storage, instant: Instant) -> tuple[int, bytes] | None:
    """Return an instant's newest manifest and the number of its micro-batches; None without one.

    Raises `CorruptFileError` if the newest one is damaged and the instant takes several batches.
    """
    listed = (manifest_number(s.path) for s in storage.list(work_folder(instant.time)))
    number = max((n for n in listed if n is not None), default=None)
    if number is None:
        return None
    path = manifest_path(instant.time, number)
    try:
        body = storage.read(path)
        CommitMetadata.from_bytes(body, path)
    except NotFoundError:
        return None
    except CorruptFileError:
        owner = owner_of(storage, instant.at(State.INFLIGHT))
        if number > 1 or (owner is not None and takes_several_batches(owner)):
            raise  # Spark is past the batches in it: their rows would be lost
        return None
    return number, body


def complete_from_manifest(table: Table, completed: Instant) -> bool:
    """Put an instant's manifest as its completed file; returns False if it has no whole manifest.

    The temporary folder stays for the sweep: its markers announce files of lost attempts.
    """
    found = newest_manifest(table.storage, completed)
    if found is None:
        return False
    put_completed(table, completed, found[1])  # unless another recovery did
    return True


def find_joinable(
    table: Table,
    timeline: Timeline,
    action: Action,
    batches_per_commit: int,
    superseded: InstantTest = never,
) -> Instant | None:
    """Find the pending instant that the next micro-batch joins; None if it begins a new one.

    `superseded` says whether other instants committed the batches of an instant.
    """
    for instant in timeline.pending:
        if instant.action is action and is_ours(table, instant):
            found = newest_manifest(table.storage, instant)
            fits = found is not None and found[0] < batches_per_commit
            if found is not None and fits and not superseded(table, timeline, instant):
                return replace(instant.at(State.INFLIGHT), num_batches=found[0])
    return None
