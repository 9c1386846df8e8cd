"""Opening the instant of a batch: by its first row, by whichever task is first, once."""

from __future__ import annotations

import json
from contextlib import suppress

from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import instant_path


def open_instant(batch: Batch) -> str:
    """Put the instant of a batch on the timeline, or join it where another task already has.

    Names on the timeline never change once taken, so all tasks of a batch, starting from the same
    proposed time, end at the same one.

    Returns
    -------
    str
        The instant's time.
    """
    storage = batch.table.storage
    body = CommitMetadata(
        operation_type=batch.operation.value.upper(), extra={OWNER_KEY: batch.owner}
    ).to_bytes()
    time = batch.proposed_time
    while True:
        instant = Instant(time, batch.action, State.REQUESTED)
        with suppress(AlreadyExistsError):
            storage.put_if_absent(instant_path(instant), b"")
        inflight = instant.at(State.INFLIGHT)
        try:
            storage.put_if_absent(instant_path(inflight), body)
        except AlreadyExistsError:
            if owner_of(storage, inflight) != batch.owner:
                time = following(time)
                continue
        return time


def owner_of(storage: Storage, inflight: Instant) -> str | None:
    """Return who opened an instant; None if it is gone or another engine's."""
    path = instant_path(inflight)
    try:
        return CommitMetadata.from_bytes(storage.read(path), path).extra.get(OWNER_KEY)
    except NotFoundError:
        return None


def owner_text(query_id: str, attempt: str) -> str:
    """Return the owner entry of a batch: its query and the attempt to write it."""
    return json.dumps({"query": query_id, "attempt": attempt}, sort_keys=True)
