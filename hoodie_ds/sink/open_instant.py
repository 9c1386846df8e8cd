"""Opening the instant of a batch: by its first row, by whichever task is first, once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hoodie_ds.config.enums import Operation
from hoodie_ds.config.properties.keys import CREATE_SCHEMA
from hoodie_ds.errors import AlreadyExistsError, NotFoundError, WriteConflictError
from hoodie_ds.sink.batch import Batch, write_action
from hoodie_ds.sink.overtaken import remedy
from hoodie_ds.table.hashing_config import put_hashing_config
from hoodie_ds.table.table import check_unchanged, create_table
from hoodie_ds.timeline.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import instant_path, start_path
from hoodie_ds.timeline.replace_plan import empty_plan
from hoodie_ds.timeline.timeline import load_timeline
from hoodie_ds.transaction.heartbeat import beat
from hoodie_ds.transaction.ownership import claim, owner_of


def open_instant(batch: Batch) -> str:
    """Put the instant of a batch on the timeline, or join it where another task already has.

    Names on the timeline never change once taken, so all tasks of a batch, starting from the same
    proposed time, end at the same one.

    Returns
    -------
    str
        The instant's time.

    Raises
    ------
    UnsupportedTableError
        The table was upgraded since the batch began.
    WriteConflictError
        The instant holds earlier micro-batches, and is not to be had any more; or the table's
        properties were changed.
    """
    ensure_table(batch)
    if batch.creation_ms is None:
        check_unchanged(batch.table)
    storage = batch.table.storage
    body = CommitMetadata(
        operation_type=batch.operation.value.upper(), extra={OWNER_KEY: batch.owner}
    ).to_bytes()
    plan = empty_plan() if batch.action is Action.REPLACE_COMMIT else b""
    shared = batch.options.concurrency.is_shared
    time = _start_after_others(batch) if shared else batch.proposed_time
    while True:
        if shared:
            beat(storage, time)  # first: nobody is to take the instant for a dead writer's
        instant = Instant(time, batch.action, State.REQUESTED)
        inflight = instant.at(State.INFLIGHT)
        if owner_of(storage, inflight) == batch.owner:
            return time  # another task of the batch was first
        free = _not_past(batch, time)
        if free != time:
            time = free
            continue
        # A claim is let go once its instant is on the timeline, so look there after it.
        if not claim(storage, time, batch.owner) or _is_anothers(batch, instant):
            time = _next(batch, time)
            continue
        with suppress(AlreadyExistsError):
            storage.put_if_absent(instant_path(instant), plan)
        try:
            storage.put_if_absent(instant_path(inflight), body)
        except AlreadyExistsError:
            if owner_of(storage, inflight) != batch.owner:
                time = _next(batch, time)
                continue
        return time


def _not_past(batch: Batch, time: str) -> str:
    """Return a time, or a later one where it counts as that of an archived instant.

    A late task may bring the time of its own batch, which others completed and another engine
    archived. Put on the timeline again, it would hide what the batch has committed.
    """
    storage = batch.table.storage
    if not batch.options.concurrency.is_shared and _holds_last_known(batch):
        return time
    timeline = load_timeline(storage)
    if timeline.commit_at(time) is not None:  # all that archiving may have left of it by now
        return _next(batch, time)
    past = timeline.starts_after(time) and not timeline.is_pending(time)
    return _later(batch, time) if past else time


def _holds_last_known(batch: Batch) -> bool:
    """Whether a commit before the batch's instant is still there, as the oldest are archived first.

    Asked for by name, as the timeline grows. A savepoint says nothing: archiving passes it over.
    """
    timeline = batch.timeline
    kept = {savepoint.time for savepoint in timeline.savepoints}
    known = (i for i in reversed(timeline.commits) if not i.num_batches and i.time not in kept)
    last = next(known, None)
    if last is None:
        return False
    with suppress(NotFoundError):
        batch.table.storage.read(instant_path(last.at(State.REQUESTED)))
        return True
    return False


def _later(batch: Batch, time: str) -> str:
    """Return a later time for a batch that began before the table had commits.

    Raises
    ------
    WriteConflictError
        The time was the batch's already, or others went on for long since the batch began.
    """
    later = time if batch.timeline.commits else _start_after_others(batch)
    if later <= time:
        raise WriteConflictError(
            f"{batch.table.storage.root}: instant {time} of this batch lies before the start of "
            "the active timeline, so it was completed and archived, or others went on without "
            f"it; nothing is written under it; {remedy(batch.options)}"
        )
    return later


def _next(batch: Batch, time: str) -> str:
    """Return the time to try after one that is taken."""
    if batch.timeline.prepared is not None:
        raise WriteConflictError(
            f"{batch.table.storage.root}: instant {time}, which holds earlier micro-batches of "
            "this query, is another writer's now; run the batch again"
        )
    return following(time)


def _is_anothers(batch: Batch, instant: Instant) -> bool:
    """Whether another action has the time of an instant.

    Beside other engines it may be any. Of writers like ours that know of no other, an old driver
    among them, it is a rollback or the other one of the two that write; asked for by name, as the
    timeline grows.
    """
    storage = batch.table.storage
    if batch.options.concurrency.is_shared:
        return load_timeline(storage).has_other(instant)
    usual = write_action(batch.table.properties, Operation.UPSERT)
    write = usual if batch.operation.replaces else Action.REPLACE_COMMIT
    for other in (write, Action.ROLLBACK):  # of a recovery that saw the same timeline
        with suppress(NotFoundError):
            storage.read(instant_path(replace(instant, action=other)))
            return True
    return False


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


def _start_after_others(batch: Batch) -> str:
    """Choose a time later than what other writers opened since the batch began.

    All tasks have to choose the same: the first one to come writes its choice down for the rest.
    """
    storage, proposed = batch.table.storage, batch.proposed_time
    timeline = load_timeline(storage)
    for instant in (*timeline.completed, *timeline.pending):
        candidate = instant.time >= proposed and instant.action is batch.action
        if candidate and owner_of(storage, instant.at(State.INFLIGHT)) == batch.owner:
            return instant.time
    path = start_path(proposed, batch.attempt)
    latest = timeline.latest_time
    start = proposed if latest is None or latest < proposed else following(latest)
    try:
        storage.put_if_absent(path, start.encode())
    except AlreadyExistsError:
        start = storage.read(path).decode()
    return start


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
