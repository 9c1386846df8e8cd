"""The sync of a Delta log: one version brings it up to date with the Hudi table.

Each version names the Hudi commits that it covers, and has their files and the ``txn`` actions of
their micro-batches. So the next sync does exactly the rest, even after a crash; of two concurrent
syncs one puts the version, and the other compares again.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import pyarrow as pa
import xxhash

from hoodie_ds.columns.meta_columns import COMMIT_TIME, with_meta_columns
from hoodie_ds.environment import Clock, IdSource
from hoodie_ds.errors import DeltaSyncError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.delta.changes import Changes, changes_since, covered, whole_table
from hoodie_ds.sync.delta.columns import protocol, schema_string
from hoodie_ds.sync.delta.files import Action, add_action, escaped, remove_action
from hoodie_ds.sync.delta.log import (
    LOG,
    Head,
    SyncPoint,
    put_version,
    read_head,
    read_snapshot,
    tidy,
    with_checkpoint,
)
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import check_files_as_now, table_schema
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline

_BY_ITSELF: Final = "read the table by itself, or write the rows into a new one"
_TRIES: Final = 20
_MOST_SEARCHED: Final = 20
"""Commits in which micro-batches are searched if the log does not have them."""
_REARRANGES: Final = "CLUSTER"
_CONFIGURATION: Final = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
"""A vacuum deletes no file that is younger, in the log or not."""
_SKIPPING: Final = "delta.dataSkippingStatsColumns"
_PLAIN: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
"""Names that need no quotes in a list of columns."""


@dataclass(frozen=True, slots=True)
class DeltaSync:
    """What a sync did, or would do; false if the log was up to date.

    Parameters
    ----------
    version : int
        Newest version of the Delta log afterwards; -1 if there is no log and none is needed.
    instant : str
        Time of the newest Hudi commit in it.
    added, removed : int
        Number of data files that were added and removed.
    is_whole : bool
        Whether the whole table was compared with the whole log.
    is_changed : bool
        Whether there was anything to do.
    dry : bool
        Whether nothing was done, and this is what a sync would do.
    """

    version: int
    instant: str = ""
    added: int = 0
    removed: int = 0
    is_whole: bool = False
    is_changed: bool = False
    dry: bool = False

    def __bool__(self) -> bool:
        return self.is_changed

    def __str__(self) -> str:
        if not self.is_changed:
            return f"the Delta log is up to date: version {self.version}"
        noun = "file" if self.added == 1 else "files"
        files = f"{self.added:,} {noun} added, {self.removed:,} removed"
        what = f"Delta version {self.version}, Hudi instant {self.instant}: {files}"
        return f"dry {what}" if self.dry else what


@dataclass(frozen=True, slots=True)
class _Version:
    """The next version of a log."""

    actions: list[Action]
    synced: SyncPoint
    result: DeltaSync


def sync(
    table: Table, clock: Clock, ids: IdSource, *, whole: bool = False, dry: bool = False
) -> DeltaSync:
    """Bring the Delta log of a table up to date."""
    storage = table.storage
    for _ in range(_TRIES):
        head = read_head(storage)  # before the timeline, so that the timeline is not older
        timeline = table.load_timeline()
        version = _next(table, timeline, head, clock.now_ms(), whole=whole)
        if version is None:
            return DeltaSync(head.version, head.synced.instant if head.synced else "")
        if dry:
            return replace(version.result, dry=True)
        info = {
            "timestamp": clock.now_ms(),
            "operation": "HUDI SYNC",
            "operationParameters": {},
            "hudiInstant": version.synced.instant,
            "attempt": ids.unique(),
        }
        if put_version(storage, head, version.actions, info, version.synced):
            tidy(storage, head, version.synced)
            return version.result
    raise DeltaSyncError(
        f"{storage.root}/{LOG}: other processes put {_TRIES} versions meanwhile; the next sync "
        "brings the log up to date"
    )


def _next(
    table: Table, timeline: Timeline, head: Head, now_ms: int, *, whole: bool
) -> _Version | None:
    """Return the next version of a log; None if the log is up to date."""
    check_files_as_now(table, timeline, _BY_ITSELF)
    columns = table_schema(table, timeline)
    storage, last = table.storage, head.synced or SyncPoint()
    if columns is None and not last.num_files:
        return None
    found = None
    if head.synced is not None and not whole:
        found = changes_since(storage, timeline, head.synced)
    is_whole = found is None
    changes = found or whole_table(storage, timeline)
    removed, added = _difference(storage, head, changes)
    bounded = frozenset() if columns is None else _bounded_columns(table, columns)
    configuration = _configuration(bounded)
    schema, meta = "", last.meta  # of a table whose commits are all rolled back
    if columns is not None:
        schema = schema_string(columns, meta=table.properties.populate_meta_fields)
        meta = xxhash.xxh64_hexdigest(f"{schema} {configuration}".encode())
    if changes.removed is not None and not changes.commits and meta == last.meta:
        return None
    up_to, after, pending = covered(timeline)
    synced = SyncPoint(
        instant=_newest(timeline),
        up_to=up_to,
        after=after,
        pending=pending,
        num_files=last.num_files + len(added) - len(removed),
        meta=meta,
        checkpoints=last.checkpoints,
        batches=_batches(storage, timeline, changes, last),
        table_id=last.table_id or _new_id(table, timeline),
    )
    if is_whole:
        synced = replace(synced, num_files=len(changes.added))
        if not (added or removed) and meta == last.meta and _knows(last, synced):
            return None
    moves = {commit.operation_type for commit in _read(storage, changes.commits)} == {_REARRANGES}
    actions: list[Action] = []
    if meta != last.meta:
        actions += [
            {"protocol": protocol(schema)},
            {"metaData": _meta(table, synced, schema, configuration, now_ms)},
        ]
    actions += [
        {"txn": {"appId": query, "version": number, "lastUpdated": now_ms}}
        for query, number in synced.batches.items()
        if last.batches.get(query) != number
    ]
    actions += [{"remove": remove_action(path, now_ms, changes=not moves)} for path in removed]
    actions += [
        {"add": add_action(storage, changes.added[path], bounded, changes=not moves)}
        for path in added
    ]
    done = DeltaSync(
        head.version + 1, synced.instant, len(added), len(removed), is_whole, is_changed=True
    )
    return _Version(actions, with_checkpoint(head, synced), done)


def _knows(last: SyncPoint, synced: SyncPoint) -> bool:
    """Whether a log covers all commits of another sync point; some may be archived since."""
    known = {*last.after, *(time for time in synced.after if padded(time) <= last.up_to)}
    return last.instant == synced.instant and known.issuperset(synced.after)


def _difference(storage: Storage, head: Head, changes: Changes) -> tuple[list[str], list[str]]:
    """Return the files to remove, as named in the log, and those to add, as named on storage."""
    if changes.removed is not None:
        return sorted(escaped(changes.removed)), sorted(changes.added)
    log = read_snapshot(storage, head).files
    gone = sorted(log.keys() - escaped(changes.added))
    return gone, sorted(path for path in changes.added if not escaped([path]) <= log.keys())


def _meta(
    table: Table, synced: SyncPoint, schema: str, configuration: Mapping[str, str], now_ms: int
) -> Action:
    """Return the ``metaData`` action."""
    return {
        "id": synced.table_id,
        "name": table.properties.name,
        "description": None,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": now_ms,
    }


def _bounded_columns(table: Table, columns: pa.Schema) -> frozenset[str]:
    """Columns with bounds in the log: key, partition and ordering fields that readers filter by.

    They must be integers or strings, with names that need no quotes.
    """
    properties = table.properties
    fields = properties.partition_fields + properties.record_key_fields
    schema = with_meta_columns(columns) if properties.populate_meta_fields else columns
    wanted = {COMMIT_TIME, *fields, *properties.ordering_fields}
    return frozenset(
        one.name
        for one in schema
        if one.name in wanted
        and _PLAIN.fullmatch(one.name)
        and (pa.types.is_signed_integer(one.type) or pa.types.is_string(one.type))
    )


def _configuration(bounded: Iterable[str]) -> dict[str, str]:
    """Return the properties of the Delta table, which name the columns with bounds."""
    names = ",".join(sorted(bounded))
    return {**_CONFIGURATION, **({_SKIPPING: names} if names else {})}


def _new_id(table: Table, timeline: Timeline) -> str:
    """Return the identifier of the Delta table for as long as its log exists."""
    named = f"{table.storage.root} {table.properties.name} {_newest(timeline)}"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, named))


def _batches(
    storage: Storage, timeline: Timeline, changes: Changes, last: SyncPoint
) -> dict[str, int]:
    """Return the newest micro-batch of each query; our commits have those before them too."""
    known = {} if changes.removed is None else dict(last.batches)
    newest = tuple(islice(timeline.commits_backwards(), _MOST_SEARCHED))
    commits = newest[::-1] if changes.removed is None else changes.commits
    for commit in _read(storage, commits):
        if commit.is_ours:
            known.update((query, max(found)) for query, found in commit.batches.items() if found)
    return known


def _read(storage: Storage, commits: Iterable[Instant]) -> list[CommitMetadata]:
    return [read_commit(storage, instant) for instant in commits]


def _newest(timeline: Timeline) -> str:
    return next((i.time for i in timeline.commits_backwards()), "")
