"""Whether a batch may be committed beside what others committed since it began.

File groups are compared, as in Hudi. That is not enough where new keys begin file groups of their
own: two writers may have stored the same new key, each in another one, so keys are compared there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np

from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.enums import UpdatesStrategy
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    ClusteringConflictError,
    CorruptFileError,
    NotFoundError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.sink.locate.key_locations import key_lookup, stored_keys
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.planned_services import planned_groups
from hoodie_ds.timeline.bodies.clean_metadata import later_cleans, read_plan
from hoodie_ds.timeline.bodies.commit_metadata import PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import REPLACING, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore
from hoodie_ds.timeline.standing import Standing, counts, standing_of
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.other_engines import has_own_lock, unshared_lock
from hoodie_ds.transaction.rollback import UNDONE_ACTIONS

T = TypeVar("T")

_log = logging.getLogger("hoodie_ds")


def retry_after_conflicts(options: WriteOptions, write: Callable[[], T]) -> T:
    """Write a batch from its beginning, once more after each conflict as often as options say.

    Parameters
    ----------
    options : WriteOptions
        How to write; a single writer has nobody to go on beside.
    write : callable
        Begins, writes and commits the batch.

    Returns
    -------
    object
        What `write` returned.

    Raises
    ------
    WriteConflictError
        Another writer was faster each time.
    """
    retries = options.concurrency.conflict_retries if options.concurrency.is_shared else 0
    for number in range(retries):
        with suppress(WriteConflictError):
            return write()
        _log.info("%s: conflict %d, the batch is written again", options.base_path, number + 1)
    return write()


def check_groups(
    plan: WritePlan,
    time: str,
    timeline: Timeline,
    statuses: Sequence[WriteStatus],
    replaced: Mapping[str, Sequence[str]],
) -> None:
    """Refuse if a commit that this batch did not see touched the same file groups.

    `replaced` has the file ids that the batch replaces, by partition path; to them also belongs
    what has since been added to the same partitions.

    Raises
    ------
    OptionError
        There is a commit of another engine, which takes another lock.
    WriteConflictError
        There is such a commit, or one that could not know of this instant and comes after it; or
        a compaction or clustering of such file groups was planned, which will not have the rows;
        or a compaction was cancelled, after which log files of the batch may be named.
    """
    storage = plan.table.storage
    touched = {status.group for status in statuses}
    touched |= {FileGroupId(path, file_id) for path, ids in replaced.items() for file_id in ids}
    awaited = {instant.time for instant in plan.timeline.pending_compactions}
    rescale = plan.index.changed_by(storage, plan.timeline, timeline) if plan.index else None
    if rescale is not None:
        # Rows are of buckets that the table has no more; their file groups may be new ones.
        raise _conflict(plan, rescale, "gave the table another number of buckets")
    for instant, commit in _unseen(plan, timeline):
        if has_own_lock(plan.options.concurrency) and not commit.is_ours:
            raise unshared_lock(instant, plan.options.concurrency)
        if instant.time in awaited:
            continue  # the batch has left it what it was to merge
        others = {FileGroupId(stat.partition_path, stat.file_id) for stat in commit.stats}
        others |= {FileGroupId(p, file_id) for p, ids in commit.replaced.items() for file_id in ids}
        common = sorted(touched & others) or [g for g in others if g.partition_path in replaced]
        if plan.rescales:
            common = common or sorted(others)  # also those of a new partition are in other buckets
        if common:
            raise _conflict(plan, instant, f"changed file group {common[0]}")
        pending = commit.extra.get(PENDING_KEY)
        knows = pending is None or time in pending.split()
        if padded(time) < padded(instant.time) and not knows:
            # The replay guard is read from the newest commit and from those it names.
            raise _conflict(plan, instant, f"is later than {time} and does not know of it")
    _check_services(plan, timeline, touched, replaced)
    for instant in plan.timeline.pending_compactions:
        if standing_of(storage, timeline, instant.time) is Standing.UNKNOWN:
            raise _conflict(plan, instant, "was cancelled", instant.action.value)


def check_based(plan: WritePlan, timeline: Timeline) -> None:
    """Refuse if what a batch was made from is not in the table any more.

    Other engines take commits back: by a restore to a savepoint, or by rolling back the newest.

    Parameters
    ----------
    plan : WritePlan
        The write.
    timeline : Timeline
        As it is now.

    Raises
    ------
    TimelineError
        A restore is pending.
    WriteConflictError
        A commit that the batch has seen is gone, or there was a restore; or commits that it has not
        seen may be archived.
    """
    refuse_restore(plan.table.storage.root, timeline)
    for instant in timeline.restores:
        if instant not in plan.timeline.restores:
            raise _conflict(plan, instant, "restored the table to an earlier state", "restore")
    for instant in plan.timeline.commits_beyond(timeline):
        if not instant.num_batches and not counts(plan.table.storage, timeline, instant.time):
            raise _conflict(plan, instant, "was taken back")
    for instant in _perhaps_archived(plan, timeline):
        raise _conflict(plan, instant, "or what followed it was archived")


def _perhaps_archived(plan: WritePlan, timeline: Timeline) -> Iterator[Instant]:
    """Writes that a batch has not seen completed, and of which the timeline tells nothing any more.

    A write that was pending when the batch began may have completed and left the timeline. And what
    the batch has seen last may have left it, with others that came after it.
    """
    began = plan.timeline
    pending = (i for i in began.pending if i.action in UNDONE_ACTIONS)
    seen = [i for i in islice(began.commits_backwards(), 1) if not i.num_batches]
    for instant in (*seen, *pending):
        gone = not timeline.at(instant.time) and timeline.starts_after(instant.time)
        if gone and not is_undone(plan.table.storage, timeline, instant.time):
            yield instant


def check_not_cleaned(plan: WritePlan, timeline: Timeline) -> None:
    """Refuse if a clean took files that a batch needed, which saw none of their successors.

    Files that are gone look as if there never were any: the batch may have begun file groups anew.
    A clean keeps what whoever has an instant pending may look at, so this is for a batch that had
    begun and not opened its instant yet, further behind than the retention.

    Parameters
    ----------
    plan : WritePlan
        The write.
    timeline : Timeline
        As it is now.

    Raises
    ------
    WriteConflictError
        There was such a clean, or its plan cannot be read.
    """
    for clean in later_cleans(plan.timeline, timeline):
        try:
            cleaned = read_plan(plan.table.storage, clean).groups
        except (NotFoundError, CorruptFileError) as error:
            raise _conflict(
                plan, clean, f"has a plan that tells nothing ({error})", "clean"
            ) from error
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
    # A batch leaves to compactions what they are to merge, if it knew of them; of clusterings none.
    before = {i.time for i in plan.timeline.pending if i.action not in REPLACING}
    for instant in timeline.pending:
        if instant.time in before:
            continue
        what = "clustering" if instant.action in REPLACING else instant.action.value
        try:
            planned = planned_groups(plan.table.storage, instant)
        except (CorruptFileError, UnsupportedTableError) as error:
            raise _conflict(
                plan, instant, f"has a plan that tells nothing ({error})", what
            ) from error
        common = sorted(touched & planned) or [g for g in planned if g.partition_path in replaced]
        if common and instant.action in REPLACING:
            raise _clustering_conflict(plan, instant, common[0])
        if common:
            raise _conflict(plan, instant, f"was planned for file group {common[0]}", what)


def _clustering_conflict(
    plan: WritePlan, instant: Instant, group: FileGroupId
) -> ClusteringConflictError:
    return ClusteringConflictError(
        f"{plan.table.storage.root}: clustering {instant.time} was planned for file group {group}, "
        "and would lose what this batch changes there; the batch is not committed and can be run "
        f"again once the clustering is complete (HoodieTable.cluster()) or taken off the timeline "
        f"(HoodieTable.rollback('{instant.time}')); with "
        f"{ClusteringOptions.updates_strategy.key} = {UpdatesStrategy.ALLOW.value} and "
        f"{ClusteringOptions.rollback_on_conflict.key} = true a batch takes such a clustering "
        "off the timeline",
        instant.time,
    )


def check_new_keys(plan: WritePlan, own: Instant, timeline: Timeline) -> None:
    """Refuse if a commit that this batch did not see brought the same new keys.

    The manifest of `own`, the batch's instant, is there.

    Raises
    ------
    WriteConflictError
        A key was inserted by both; names it.
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
    """Commits that were not there when a batch began."""
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
