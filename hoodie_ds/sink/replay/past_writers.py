"""What is known of writers that commits do not carry: a file for each, beside the decision log.

Commits would grow with every writer that ever wrote. So a writer that has not written for long is
put aside before a commit leaves it out, under the number of its highest batch: put once, and true
for ever. It is looked for when a batch comes whose writer the newest commits do not name.

A query whose first batches had no rows has no commit that names it. A mark here does, so that it
is not taken for one whose earlier batches went elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import writer_folder

_MARK: Final = "without_rows"
_DIGITS: Final = 19


def recall(storage: Storage, guard: ReplayGuard, batch_id: BatchId) -> ReplayGuard:
    """Return the guard with what was put aside of a batch's writer, if it does not name it.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    guard : ReplayGuard
        From the newest commits.
    batch_id : BatchId
        The batch.

    Raises
    ------
    CorruptFileError
        What was put aside cannot be read.
    """
    for name in filter(None, (batch_id.query_id, batch_id.formerly)):
        if name in guard.committed:
            return guard
        found = _find(storage, name)
        if found is not None:
            return guard.merged(found)
    return guard


def put_aside(storage: Storage, guards: Iterable[ReplayGuard]) -> None:
    """Keep what guards say, each of one writer, before a commit is made that does not carry it."""
    for guard in guards:
        ((name, text),) = guard.committed.items()
        folder = writer_folder(name)
        own = f"{folder}/{text.zfill(_DIGITS)}"
        with suppress(AlreadyExistsError):
            storage.put_if_absent(own, json.dumps(guard.entries()).encode())
        for status in storage.list(folder):
            if status.path < own or status.path.endswith(_MARK):
                storage.delete(status.path)


def mark(storage: Storage, batch_id: BatchId) -> None:
    """Remember a query that has brought no rows yet."""
    with suppress(AlreadyExistsError):
        body = json.dumps({"query": batch_id.query_id}).encode()
        storage.put_if_absent(f"{writer_folder(batch_id.query_id)}/{_MARK}", body)


def _find(storage: Storage, name: str) -> ReplayGuard | None:
    while True:
        listed = [status.path for status in storage.list(writer_folder(name))]
        numbered = [path for path in listed if not path.endswith(_MARK)]
        if not numbered:
            return ReplayGuard({name: ""}) if listed else None
        with suppress(NotFoundError):  # a later one has taken its place
            return _parse(storage.read(numbered[-1]), numbered[-1])


def _parse(body: bytes, path: str) -> ReplayGuard:
    try:
        entries = {str(key): str(text) for key, text in json.loads(body).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            f"{path} does not say what a writer has committed: {body[:100]!r}; restore it from a "
            "copy of the table"
        ) from error
    return ReplayGuard.parse(entries, path)
