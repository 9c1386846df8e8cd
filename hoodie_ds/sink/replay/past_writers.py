"""The batches of writers that commits do not carry: a file for each, next to the decision log.

Commits would grow with every writer that ever wrote. So before a commit leaves out a writer that
has not written for long, the writer's batches are stored in a file, under that commit's time and
the writer's highest batch number. The file is read when a batch comes whose writer the newest
commits do not name. The newest such file whose commit is in the table counts: if that commit is
rolled back, the file of an earlier one counts again. So everything is kept to which the table may
go back: only files before the newest archived one are deleted.

A query whose first batches had no rows has no commit that names it. A mark here names it, so that
it does not look like a query whose earlier batches went elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant_status import counts
from hoodie_ds.timeline.paths import LEFT_OUT, put_aside_path, writer_folder
from hoodie_ds.timeline.timeline import Timeline

_MARK: Final = "without_rows"


def recall(
    storage: Storage, timeline: Timeline, guard: ReplayGuard, batch_id: BatchId
) -> ReplayGuard:
    """Return the guard with the stored batches of a batch's writer, if it does not name it."""
    for name in filter(None, (batch_id.query_id, batch_id.formerly)):
        if name in guard.committed:
            return guard
        found = _find(storage, timeline, name)
        if found is not None:
            return guard.merged(found)
    return guard


def put_aside(
    storage: Storage, timeline: Timeline, time: str, guards: Iterable[ReplayGuard]
) -> None:
    """Store the guards, each of one writer, that the commit at `time` leaves out, before it.

    `timeline` is that before the commit.
    """
    for guard in guards:
        ((name, text),) = guard.committed.items()
        with suppress(AlreadyExistsError):
            own = put_aside_path(name, int(text), time)
            storage.put_if_absent(own, json.dumps(guard.entries()).encode())
        is_known = False
        for path in _files(storage, writer_folder(name))[0]:
            if is_known:
                storage.delete(path)
            is_known = is_known or _is_archived(storage, timeline, _left_out_by(path))


def mark(storage: Storage, batch_id: BatchId) -> None:
    """Record a query that has brought no rows yet."""
    with suppress(AlreadyExistsError):
        body = json.dumps({"query": batch_id.query_id}).encode()
        storage.put_if_absent(f"{writer_folder(batch_id.query_id)}/{_MARK}", body)


def _find(storage: Storage, timeline: Timeline, name: str) -> ReplayGuard | None:
    while True:
        files, has_mark = _files(storage, writer_folder(name))
        with suppress(NotFoundError):  # deleted meanwhile, as there is a later one
            for path in files:
                time = _left_out_by(path)
                if not time or counts(storage, timeline, time):
                    return _parse(storage.read(path), path)
            return ReplayGuard({name: ""}) if has_mark else None


def _files(storage: Storage, folder: str) -> tuple[list[str], bool]:
    """The files of a writer, newest first, and whether it has a mark.

    Files of earlier releases come last.
    """
    paths = [status.path for status in storage.list(folder)]
    files = sorted((path for path in paths if not path.endswith(_MARK)), reverse=True)
    return files, len(files) < len(paths)


def _left_out_by(path: str) -> str:
    """Time of the commit that left a writer out; empty in files of earlier releases."""
    name = path.rpartition("/")[2]
    return name.removeprefix(LEFT_OUT).partition("_")[0] if name.startswith(LEFT_OUT) else ""


def _is_archived(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether a commit has been archived, and so cannot be rolled back."""
    on_timeline = timeline.commit_at(time) is not None
    return bool(time) and not on_timeline and counts(storage, timeline, time)


def _parse(body: bytes, path: str) -> ReplayGuard:
    try:
        entries = {str(key): str(text) for key, text in json.loads(body).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            f"{path} does not say what a writer has committed: {body[:100]!r}",
            "restore it from a copy of the table",
        ) from error
    return ReplayGuard.parse(entries, path)
