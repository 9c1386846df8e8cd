"""Instants and commits of the active timeline and the archive, the newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from hoodie_ds.errors import OptionError
from hoodie_ds.inspection.archived_instants import archived_backwards
from hoodie_ds.sink.commit.commit_record import ROWS_KEY
from hoodie_ds.sink.replay_guard import BATCH_KEY
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import LAYOUTS
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class InstantRow:
    """An instant of a table, its action and state in Hudi's words.

    The duration is the time from its first file to its last, None where it is not known. Tables of
    version 6 have it by the storage's times of the files, which a copy of the table loses.
    """

    time: str
    action: str
    state: str
    completion_time: str  # empty in tables of version 6
    duration_ms: int | None
    archived: bool


@dataclass(frozen=True, slots=True)
class CommitRow:
    """What a completed write did; a compaction or clustering changes no rows."""

    time: str
    action: str
    operation: str
    inserted: int
    updated: int
    deleted: int
    rows_written: int  # in all files written
    files: int
    partitions: int
    bytes: int
    replaced: int  # file groups that it replaced or deleted
    write_amplification: float | None  # rows written for each changed row
    rows_in: int | None  # rows of the input, where the writer records them
    query: str  # streaming query or writer, empty where the commit does not record it
    batch: int | None
    archived: bool

    @classmethod
    def of(cls, instant: Instant, commit: CommitMetadata, archived: bool = False) -> CommitRow:
        """Return the row of a commit."""
        stats = commit.stats
        counts = (0, 0, 0)
        if not commit.is_rewrite:
            counts = (
                sum(s.num_inserts for s in stats),
                sum(s.num_update_writes for s in stats),
                sum(s.num_deletes for s in stats),
            )
        changed, written = sum(counts), sum(s.num_writes for s in stats)
        rows_in, (query, batch) = commit.extra.get(ROWS_KEY, ""), batch_of(commit)
        return cls(
            instant.time,
            instant.action.value,
            commit.operation_type,
            *counts,
            written,
            len(stats),
            len({s.partition_path for s in stats}),
            sum(s.file_size_bytes for s in stats),
            sum(map(len, commit.replaced.values())),
            written / changed if changed else None,
            int(rows_in) if rows_in.isdecimal() else None,
            query,
            batch,
            archived,
        )


def batch_of(commit: CommitMetadata) -> tuple[str, int | None]:
    """Return the streaming query of a commit and the number of its micro-batch."""
    with suppress(ValueError, TypeError, KeyError):
        found = json.loads(commit.extra[BATCH_KEY])
        return str(found["query"]), int(found["batch"])
    return "", None


def instant_rows(
    table: Table,
    timeline: Timeline,
    action: str | None = None,
    state: str | None = None,
    archived: bool = True,
) -> Iterator[InstantRow]:
    """Yield the instants of a table, the newest first; the archive is read lazily."""
    wanted = None if action is None else _one_of(Action, "action", action)
    asked = None if state is None else _one_of(State, "state", state)
    return (
        row
        for row in _instant_rows(table, timeline, archived and asked in (None, State.COMPLETED))
        if (wanted is None or row.action == wanted.value)
        and (asked is None or row.state == asked.value)
    )


def _one_of(kind: type[Action] | type[State], name: str, given: str) -> Action | State:
    try:
        return kind(given)
    except ValueError:
        raise OptionError(name, given, f"give one of {', '.join(k.value for k in kind)}") from None


def _instant_rows(table: Table, timeline: Timeline, archived: bool) -> Iterator[InstantRow]:
    written = {} if table.layout != 1 else _written(table)
    for instant in sorted(timeline.instants, key=lambda i: padded(i.time), reverse=True):
        end = instant.completion_time
        spent = _spent(written, instant) if not end else _taken(instant, instant.time, end)
        kind, state = instant.action.value, instant.state.value
        yield InstantRow(instant.time, kind, state, end, spent, False)
    if not archived:
        return
    for found in archived_backwards(table):
        one = found.instant
        spent = _taken(one, found.begun, found.ended)
        kind, state = one.action.value, one.state.value
        yield InstantRow(one.time, kind, state, one.completion_time, spent, True)


_Written = dict[tuple[str, bool, State], int]


def _written(table: Table) -> _Written:
    """Return when the files of instants of layout 1 were written, by the storage's clock.

    A savepoint has the time of its commit, so the key says whether it is one.
    """
    layout = LAYOUTS[table.layout]
    found = {}
    for status in table.storage.list(layout.folder):
        instant = layout.parse(status.path.rpartition("/")[2])
        if instant is not None and status.modified_ms:
            key = instant.time, instant.action is Action.SAVEPOINT, instant.state
            found[key] = status.modified_ms
    return found


def _spent(written: _Written, instant: Instant) -> int | None:
    saves = instant.action is Action.SAVEPOINT
    ended = written.get((instant.time, saves, State.COMPLETED))
    first = State.INFLIGHT if saves else State.REQUESTED  # a savepoint is not requested
    begun = written.get((instant.time, saves, first))
    if instant.state is not State.COMPLETED or ended is None or begun is None:
        return None
    return max(ended - begun, 0) or None  # files of a copy have the same time


def _taken(instant: Instant, begun: str, ended: str) -> int | None:
    """Return the milliseconds that an instant took; a savepoint does not record its begin."""
    return None if instant.action is Action.SAVEPOINT else _between(begun, ended)


def _between(begun: str, ended: str) -> int | None:
    """Return the milliseconds between two instant times; None if one of them is invalid."""
    try:
        start, end = (
            datetime.strptime(f"{padded(time)}000", "%Y%m%d%H%M%S%f") for time in (begun, ended)
        )
    except ValueError:
        return None
    return max(round((end - start).total_seconds() * 1000), 0)


def commit_rows(table: Table, timeline: Timeline, archived: bool = True) -> Iterator[CommitRow]:
    """Yield what the completed writes of a table did, the newest first."""
    for instant in timeline.commits_backwards():
        yield CommitRow.of(instant, read_commit(table.storage, instant))
    if archived:
        for found in archived_backwards(table, bodies=True):
            if found.instant.action in WRITE_ACTIONS and (commit := found.commit()) is not None:
                yield CommitRow.of(found.instant, commit, True)
