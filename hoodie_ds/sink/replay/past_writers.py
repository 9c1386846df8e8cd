"""What is known of writers that commits do not carry: files for each, beside the decision log.

Commits would grow with every writer that ever wrote. So a writer that has not written for long is
put aside before a commit leaves it out, under that commit's time and the number of the writer's
highest batch. It is looked for when a batch comes whose writer the newest commits do not name. Then
the newest commit in the table that has left the writer out tells of it: one that is taken back says
nothing any more, and what an earlier one said counts again. So nothing is forgotten that the table
may go back to: only what comes before the newest that is archived.

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
from hoodie_ds.timeline.paths import LEFT_OUT, put_aside_path, writer_folder
from hoodie_ds.timeline.standing import counts
from hoodie_ds.timeline.timeline import Timeline

_MARK: Final = "without_rows"


def recall(
    storage: Storage, timeline: Timeline, guard: ReplayGuard, batch_id: BatchId
) -> ReplayGuard:
    """Return the guard with what was put aside of a batch's writer, if it does not name it.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is looked at.
    guard : ReplayGuard
        From its newest commits.
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
        found = _find(storage, timeline, name)
        if found is not None:
            return guard.merged(found)
    return guard


def put_aside(
    storage: Storage, timeline: Timeline, time: str, guards: Iterable[ReplayGuard]
) -> None:
    """Keep what guards say, each of one writer, before a commit is made that does not carry it.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table before the commit.
    time : str
        The commit's.
    guards : iterable of ReplayGuard
        What it leaves out.
    """
    for guard in guards:
        ((name, text),) = guard.committed.items()
        with suppress(AlreadyExistsError):
            own = put_aside_path(name, int(text), time)
            storage.put_if_absent(own, json.dumps(guard.entries()).encode())
        is_told = False
        for path in _told(storage, writer_folder(name))[0]:
            if is_told:
                storage.delete(path)
            is_told = is_told or _is_archived(storage, timeline, _left_out_by(path))


def mark(storage: Storage, batch_id: BatchId) -> None:
    """Remember a query that has brought no rows yet."""
    with suppress(AlreadyExistsError):
        body = json.dumps({"query": batch_id.query_id}).encode()
        storage.put_if_absent(f"{writer_folder(batch_id.query_id)}/{_MARK}", body)


def _find(storage: Storage, timeline: Timeline, name: str) -> ReplayGuard | None:
    while True:
        told, has_mark = _told(storage, writer_folder(name))
        with suppress(NotFoundError):  # deleted meanwhile, as a later one tells
            for path in told:
                time = _left_out_by(path)
                if not time or counts(storage, timeline, time):
                    return _parse(storage.read(path), path)
            return ReplayGuard({name: ""}) if has_mark else None


def _told(storage: Storage, folder: str) -> tuple[list[str], bool]:
    """Files that tell of a writer, the newest first, and whether it has a mark.

    Those of releases before come last.
    """
    paths = [status.path for status in storage.list(folder)]
    told = sorted((path for path in paths if not path.endswith(_MARK)), reverse=True)
    return told, len(told) < len(paths)


def _left_out_by(path: str) -> str:
    """Time of the commit that has left a writer out; empty in files of releases before."""
    name = path.rpartition("/")[2]
    return name.removeprefix(LEFT_OUT).partition("_")[0] if name.startswith(LEFT_OUT) else ""


def _is_archived(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether a commit has been archived, and so is in the table for good."""
    on_timeline = timeline.commit_at(time) is not None
    return bool(time) and not on_timeline and counts(storage, timeline, time)


def _parse(body: bytes, path: str) -> ReplayGuard:
    try:
        entries = {str(key): str(text) for key, text in json.loads(body).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            f"{path} does not say what a writer has committed: {body[:100]!r}; restore it from a "
            "copy of the table"
        ) from error
    return ReplayGuard.parse(entries, path)
