"""Opening the instant of a batch: by its first row, by whichever task is first, once."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from hoodie_ds.config.table_keys import CREATE_SCHEMA
from hoodie_ds.errors import AlreadyExistsError, NotFoundError, WriteConflictError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.hashing_config import put_hashing_config
from hoodie_ds.table.opened import create_table
from hoodie_ds.timeline.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import claim_path, instant_path
from hoodie_ds.timeline.replace_plan import empty_plan


def open_instant(batch: Batch) -> str:
    """Put the instant of a batch on the timeline, or join it where another task already has.

    Names on the timeline never change once taken, so all tasks of a batch, starting from the same
    proposed time, end at the same one.

    Returns
    -------
    str
        The instant's time.
    """
    ensure_table(batch)
    storage = batch.table.storage
    body = CommitMetadata(
        operation_type=batch.operation.value.upper(), extra={OWNER_KEY: batch.owner}
    ).to_bytes()
    plan = empty_plan() if batch.action is Action.REPLACE_COMMIT else b""
    time = batch.proposed_time
    while True:
        if not _claim(storage, time, batch.owner):
            time = following(time)
            continue
        instant = Instant(time, batch.action, State.REQUESTED)
        with suppress(AlreadyExistsError):
            storage.put_if_absent(instant_path(instant), plan)
        inflight = instant.at(State.INFLIGHT)
        try:
            storage.put_if_absent(instant_path(inflight), body)
        except AlreadyExistsError:
            if owner_of(storage, inflight) != batch.owner:
                time = following(time)
                continue
        return time


def go_on(batch: Batch, prepared: Instant) -> Batch:
    """Return a batch that joins an instant which earlier micro-batches have opened.

    Raises
    ------
    WriteConflictError
        The instant is gone.
    """
    inflight = prepared.at(State.INFLIGHT)
    owner = owner_of(batch.table.storage, inflight)
    if owner is None:
        raise WriteConflictError(
            f"{batch.table.storage.root}: another writer finished or undid instant "
            f"{prepared.time} while this batch began; run the batch again"
        )
    return replace(batch, proposed_time=prepared.time, owner=owner)


def _claim(storage: Storage, time: str, owner: str) -> bool:
    """Take an instant time; the names on the timeline alone would let another action share it."""
    path = claim_path(time)
    with suppress(AlreadyExistsError):
        storage.put_if_absent(path, owner.encode())
        return True
    with suppress(NotFoundError):
        return storage.read(path) == owner.encode()
    return False


def ensure_table(batch: Batch, with_schema: bool = False) -> None:
    """Create the table of a batch that found none.

    Parameters
    ----------
    batch : Batch
        The batch.
    with_schema : bool
        Whether the table is to record the batch's columns, since no commit of it will.

    Raises
    ------
    WriteConflictError
        Another writer created another table at the same time.
    """
    if batch.creation_ms is None:
        return
    properties = batch.table.properties
    if with_schema:
        properties = properties.with_changes({CREATE_SCHEMA: batch.avro_schema})
    created = create_table(batch.table.storage, properties, batch.creation_ms)
    if not created.properties.same_table(properties):
        raise WriteConflictError(
            f"{batch.table.storage.root}: another writer has just created table "
            f"{created.properties.name!r} here with other properties; run the write again"
        )
    put_hashing_config(created)


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
