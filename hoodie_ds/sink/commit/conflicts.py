"""Whether a batch may be committed despite what others committed since it began.

File groups are compared, as in Hudi. That is not enough if new keys begin new file groups: two
writers may have stored the same new key in two, so their keys are compared.

The newest commit holds the schema of the whole table. So a commit with fewer columns would remove
those that others have added, and their values with the next rewrite of a base file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.enums import UpdatesStrategy
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    ClusteringConflictError,
    CorruptFileError,
    NotFoundError,
    SchemaError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.index.bucket_clustering import obstacle_to
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.log import Log
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.schema import check_case, evolve
from hoodie_ds.sink.locate.key_locations import key_lookup, stored_keys
from hoodie_ds.sink.locate.matched_rows import may_hold_matches
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.planned_services import planned_groups
from hoodie_ds.table.table_schema import column_history, declared_schema, schema_instant
from hoodie_ds.timeline.bodies.clean_metadata import read_plan
from hoodie_ds.timeline.bodies.commit_metadata import PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import REPLACING, WRITE_ACTIONS, Action, Instant
from hoodie_ds.timeline.instant_status import InstantStatus, counts, status_of
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.lost_instants import refuse_lost
from hoodie_ds.transaction.other_engines import has_own_lock, unshared_lock
from hoodie_ds.transaction.rollback import UNDONE_ACTIONS

T = TypeVar("T")
_WRITES_FILES: Final = (*WRITE_ACTIONS, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


def retry_after_conflicts(options: WriteOptions, write: Callable[[], T]) -> T:
    """Begin, write and commit a batch, again after each conflict, as often as options say.

    A single writer does not retry.
    """
    retries = options.concurrency.conflict_retries if options.concurrency.is_shared else 0
    for number in range(retries):
        with suppress(WriteConflictError):
            return write()
        Log(options.base_path).info("conflict %d, the batch is written again", number + 1)
    return write()


def check_groups(
    plan: WritePlan,
    time: str,
    timeline: Timeline,
    written: Collection[FileGroupId],
    replaced: Mapping[str, Sequence[str]],
) -> None:
    """Refuse if a commit that this batch did not see touched the same file groups.

    `written` are those of the batch, and `replaced` the file ids that it replaces, by partition
    path; file groups added to the same partitions since then conflict, too, and so do those in
    which a batch that changes rows by a filter would have looked for them. So do a later commit
    that could not know of this instant, a compaction or clustering planned for such file groups,
    which would not include the rows, and a cancelled compaction, after which log files of the batch
    may be named. A commit of another engine, which takes another lock, is an `OptionError`.
    """
    storage = plan.table.storage
    touched = {*written}
    touched |= {FileGroupId(path, file_id) for path, ids in replaced.items() for file_id in ids}
    awaited = {instant.time for instant in plan.timeline.pending_compactions}
    rescale = plan.index.changed_by(storage, plan.timeline, timeline) if plan.index else None
    if rescale is not None:
        # The rows are hashed into old buckets; their file groups may be new ones.
        raise _conflict(plan, rescale, "gave the table another number of buckets")
    is_read = may_hold_matches(plan)
    for instant, commit in _unseen(plan, timeline):
        if has_own_lock(storage, plan.options.concurrency) and not commit.is_ours:
            raise unshared_lock(storage, instant, plan.options.concurrency)
        if instant.time in awaited:
            continue  # the batch has not touched what it merges
        others = {FileGroupId(stat.partition_path, stat.file_id) for stat in commit.stats}
        others |= {FileGroupId(p, file_id) for p, ids in commit.replaced.items() for file_id in ids}
        common = sorted(touched & others) or [g for g in others if g.partition_path in replaced]
        if plan.rescales:
            common = common or sorted(others)  # those of a new partition are in other buckets, too
        if not commit.is_rewrite:
            common = common or sorted(filter(is_read, others))
        if common:
            raise _conflict(plan, instant, f"changed file group {common[0]}")
        pending = commit.extra.get(PENDING_KEY)
        knows = pending is None or time in pending.split()
        if padded(time) < padded(instant.time) and not knows:
            # The replay guard is read from the newest commit and the ones it names.
            raise _conflict(plan, instant, f"is later than {time} and does not know of it")
    _check_services(plan, timeline, touched, replaced)
    for instant in plan.timeline.pending_compactions:
        if status_of(storage, timeline, instant.time) is InstantStatus.UNKNOWN:
            raise _conflict(plan, instant, "was cancelled", instant.action.value)


def check_based(plan: WritePlan, timeline: Timeline) -> None:
    """Refuse if the table has lost what a batch was made from.

    Other engines undo commits: by a restore to a savepoint, or by rolling back the newest. Commits
    that the batch has not seen may also have been archived. A pending restore is a `TimelineError`.
    """
    refuse_restore(plan.table.storage.root, timeline)
    for instant in timeline.restores:
        if instant not in plan.timeline.restores:
            raise _conflict(plan, instant, "restored the table to an earlier state", "restore")
    for instant in plan.timeline.commits_beyond(timeline):
        if not instant.num_batches and not counts(plan.table.storage, timeline, instant.time):
            raise _conflict(plan, instant, "was rolled back")
    for instant in _perhaps_archived(plan, timeline):
        raise _conflict(plan, instant, "or what followed it was archived")


def _perhaps_archived(plan: WritePlan, timeline: Timeline) -> Iterator[Instant]:
    """Writes that a batch has not seen completed, and that have left the timeline.

    A write that was pending when the batch began may have been completed and archived. The last
    commit that the batch has seen may have been archived as well, with others after it.
    """
    began = plan.timeline
    pending = (i for i in began.pending if i.action in UNDONE_ACTIONS)
    seen = [i for i in islice(began.commits_backwards(), 1) if not i.num_batches]
    for instant in (*seen, *pending):
        gone = not timeline.at(instant.time) and timeline.starts_after(instant.time)
        if gone and not is_undone(plan.table.storage, timeline, instant.time):
            yield instant


def check_not_cleaned(plan: WritePlan, timeline: Timeline) -> None:
    """Refuse if a clean deleted files that a batch needed, and that saw none of their successors.

    Missing files look as if there never were any: the batch may have begun new file groups. A clean
    keeps what any pending instant may read, so this is for a batch that had begun and not yet
    opened its instant, longer than the retention.
    """
    for clean in timeline.cleans_beyond(plan.timeline):
        try:
            cleaned = read_plan(plan.table.storage, clean).groups
        except (NotFoundError, CorruptFileError) as error:
            raise _conflict(plan, clean, f"has an unreadable plan ({error})", "clean") from error
        for _, commit in _unseen(plan, timeline):
            begun = {(s.partition_path, s.file_id) for s in commit.stats if s.log is None}
            begun |= {(p, file_id) for p, ids in commit.replaced.items() for file_id in ids}
            for partition, file_id in sorted(begun & cleaned):
                group = FileGroupId(partition, file_id)
                raise _conflict(plan, clean, f"took files of file group {group}", "clean")


def _check_services(
    plan: WritePlan,
    timeline: Timeline,
    touched: set[FileGroupId],
    replaced: Mapping[str, Sequence[str]],
) -> None:
    # Known compactions merge what the batch leaves to them; clusterings always conflict.
    before = {i.time for i in plan.timeline.pending if i.action not in REPLACING}
    for instant in timeline.pending:
        if instant.time in before:
            continue
        what = "clustering" if instant.action in REPLACING else instant.action.value
        try:
            planned = planned_groups(plan.table.storage, instant)
        except (CorruptFileError, UnsupportedTableError) as error:
            raise _conflict(plan, instant, f"has an unreadable plan ({error})", what) from error
        common = sorted(touched & planned) or [g for g in planned if g.partition_path in replaced]
        if common and instant.action in REPLACING:
            refuse_lost(plan.table, (instant.time,))  # it is complete, and its file is lost
            raise _clustering_conflict(plan, instant, common[0])
        if common:
            raise _conflict(plan, instant, f"was planned for file group {common[0]}", what)


def _clustering_conflict(
    plan: WritePlan, instant: Instant, group: FileGroupId
) -> ClusteringConflictError:
    command = plan.table.command
    fits = obstacle_to(plan.table, instant) is None
    carried_out = f"complete by {command('cluster')} or " if fits else ""
    return ClusteringConflictError(
        f"{plan.table.storage.root}: clustering {instant.time} was planned for file group {group}, "
        "and would lose what this batch changes there; the batch is not committed and can be run "
        f"again once the clustering is {carried_out}rolled back by "
        f"{command('rollback', instant.time)}; with "
        f"{ClusteringOptions.updates_strategy.key} = {UpdatesStrategy.ALLOW.value} and "
        f"{ClusteringOptions.rollback_on_conflict.key} = true a batch rolls such a clustering "
        "back",
        instant.time,
    )


def check_new_keys(plan: WritePlan, own: Instant, timeline: Timeline) -> None:
    """Refuse if a commit that this batch did not see inserted the same new keys; name one.

    The manifest of `own`, the batch's instant, must be there.
    """
    if not isinstance(plan.index, LookupIndex) or not plan.looks_up:
        return
    unseen = _unseen(plan, timeline)
    theirs = {group: instant for instant, commit in unseen for group in _inserted_into(commit)}
    ours = _inserted_into(read_commit(plan.table.storage, own)) if theirs else set()
    after = replace(plan, timeline=timeline.with_joined(own))
    slices = _slices(after, {*theirs, *ours} if ours else set())
    lookup = key_lookup(after)
    for slice_ in (found for found in slices if found.group in ours):
        near = [o for o in slices if o.group in theirs and _may_share_keys(plan.index, slice_, o)]
        if not near:
            continue
        keys = stored_keys(after, slice_)
        locations = lookup.find(near, keys, live_only=True).first
        found = np.flatnonzero(locations >= 0)
        if len(found):
            row = int(found[0])
            other = theirs[near[locations[row]].group]
            raise _conflict(plan, other, f"inserted record key {keys[row].as_py()!r} too")


def _unseen(plan: WritePlan, timeline: Timeline) -> list[tuple[Instant, CommitMetadata]]:
    """Commits that were completed since a batch began."""
    unseen = timeline.commits_beyond(plan.timeline)
    return [(i, read_commit(plan.table.storage, i)) for i in unseen]


def _inserted_into(commit: CommitMetadata) -> set[FileGroupId]:
    return {
        FileGroupId(stat.partition_path, stat.file_id) for stat in commit.stats if stat.num_inserts
    }


def _may_share_keys(index: LookupIndex, one: FileSlice, other: FileSlice) -> bool:
    return index.is_global or one.group.partition_path == other.group.partition_path


def _slices(plan: WritePlan, groups: set[FileGroupId]) -> list[FileSlice]:
    paths = sorted({group.partition_path for group in groups})
    return [s for path in paths for s in plan.view.latest_slices(path) if s.group in groups]


def _conflict(
    plan: WritePlan, instant: Instant, what: str, action: str = "commit"
) -> WriteConflictError:
    return WriteConflictError(
        f"{plan.table.storage.root}: {action} {instant.time} {what} while this batch was written; "
        f"the batch is not committed and can be run again; {plan.options.concurrency.remedy}"
    )


def merged_schema(plan: WritePlan, time: str, timeline: Timeline) -> pa.Schema:
    """Return the table's user columns once a batch is committed after commits of others.

    These are the columns of the newest commit, then those that the batch adds; a column has the
    wider one of two types. Files with fewer or narrower columns stay readable. `WriteConflictError`
    if the schemas do not fit, or a commit with a later time than the batch would have to hold it.
    """
    if column_history(plan.table, timeline).version != plan.history.version:
        by = "ALTER TABLE, or a write that took the numbers of the columns away,"
        raise _schema_conflict(plan, by, "files have them under the names of before")
    stored = declared_schema(plan.table, timeline)
    if plan.columns is not None:
        if stored != plan.columns.before:
            raise _schema_conflict(plan, "another writer", "it has changed them")
        _check_is_latest(plan, time, timeline)
        return plan.schema
    if stored is None or stored == plan.schema:
        return plan.schema
    instant = schema_instant(plan.table, timeline)
    by = f"commit {instant.time}" if instant else "another writer"
    try:
        check_case(stored, plan.schema)
        _check_same_text(stored, plan.schema, plan.table.properties)
        columns = evolve(stored, plan.schema, allow_missing=True)
    except SchemaError as error:
        raise _schema_conflict(plan, by, str(error)) from error
    if instant is not None and padded(instant.time) > padded(time):
        added = _first_difference(evolve(stored, stored, allow_missing=True), columns)
        if added is not None:
            raise _schema_conflict(plan, by, f"it is later than {time} and has {added}")
    return columns


def _check_is_latest(plan: WritePlan, time: str, timeline: Timeline) -> None:
    """Refuse to alter columns under files of later times, which were made with the former names."""
    others = (*timeline.commits_beyond(plan.timeline), *timeline.pending)
    later = [i for i in others if padded(i.time) > padded(time) and i.action in _WRITES_FILES]
    if later:
        raise _conflict(plan, later[0], f"is later than {time} and may have the former columns")


def _check_same_text(stored: pa.Schema, batch: pa.Schema, properties: TableProperties) -> None:
    """Refuse other types of columns whose values are keys, paths or ranks already.

    Unlike before a write, nothing can be cast any more.
    """
    named = properties.record_key_fields + properties.partition_fields + properties.ordering_fields
    for path in named:
        one, other = (resolve(schema.empty_table(), path).type for schema in (stored, batch))
        if one != other and (pa.types.is_floating(one) or pa.types.is_floating(other)):
            raise SchemaError(f"column {path!r} is {one} in the table and {other} in the batch")


def _first_difference(stored: pa.Schema, columns: pa.Schema) -> str | None:
    """The first column that the batch adds or widens."""
    for field in columns:
        if field.name not in stored.names:
            return f"no column {field.name!r}"
        if field.type != (known := stored.field(field.name).type):
            return f"column {field.name!r} as {known}, not {field.type}"
    return None


def _schema_conflict(plan: WritePlan, by: str, what: str) -> WriteConflictError:
    return WriteConflictError(
        f"{plan.table.storage.root}: the columns of {by} and of this batch do not fit: "
        f"{what}; the batch is not committed and can be run again"
    )
