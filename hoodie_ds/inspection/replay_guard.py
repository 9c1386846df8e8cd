"""Checks that each writer's micro-batches are in order and that the table knows the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.inspection.archived_instants import archived_backwards
from hoodie_ds.inspection.findings import Finding, Kind
from hoodie_ds.inspection.instants import batch_of
from hoodie_ds.sink.replay.past_writers import recall
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline

_REPLAYED: Final = (
    "its rows may be in the table twice: compare the table with the source, or restore it to the "
    "commit before"
)
_FORGOTTEN: Final = (
    "a batch that comes again would be written again: restore the newest commit's file from a "
    "copy, or the table to a commit before the batch"
)


def guard_findings(table: Table, timeline: Timeline) -> Iterator[Finding]:
    """Yield what is wrong with the replay guard of a table whose commits can be read."""
    storage, last = table.storage, dict[str, int]()
    for instant in timeline.commits:
        commit, path = read_commit(storage, instant), commit_path(instant)
        query, batch = batch_of(commit)
        if batch is not None:
            if batch <= last.get(query, -1):
                message = f"batch {batch} of {query} comes after its batch {last[query]}"
                yield Finding(Kind.REPLAY_GUARD, path, message, _REPLAYED)
            last[query] = max(batch, last.get(query, -1))
    try:
        guard = ReplayGuard.load(storage, timeline)
        for query, batch in last.items():
            wanted = BatchId(query, batch)
            known = recall(storage, timeline, guard, wanted).highest(wanted)
            if known < batch or (known > batch and not _is_archived(table, query, known)):
                message = f"batch {batch} is in the table, and the newest commit knows {known}"
                yield Finding(Kind.REPLAY_GUARD, query, message, _FORGOTTEN)
    except CorruptFileError as error:
        yield Finding.of(Kind.REPLAY_GUARD, storage.root, error)


def _is_archived(table: Table, query: str, batch: int) -> bool:
    """Whether an archived commit wrote a batch, though an older one is on the timeline."""
    commits = (archived.commit() for archived in archived_backwards(table, bodies=True))
    return any(commit is not None and batch_of(commit) == (query, batch) for commit in commits)
