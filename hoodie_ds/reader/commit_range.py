"""Which commits an incremental query covers: begin exclusive, end inclusive.

In tables of version 6, and in CDC queries of all versions (Hudi's ``HoodieCDCExtractor``), the
requested times of commits count, else their completion times. All are compared as strings, as in
Hudi.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hoodie_ds.config.enums import HollowCommits
from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.errors import TimelineError, UnsupportedTableError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.time_travel import is_write
from hoodie_ds.timeline.archive.archive import archived_writes, archived_writes_ended_after
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import V1
from hoodie_ds.transaction.lost_instants import check_nothing_is_lost


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The completed commits of a range.

    `active` are those on the active timeline, in the order of the range, `archived` the others.
    """

    active: tuple[Instant, ...]
    archived: tuple[Instant, ...] = ()


def moment(instant: Instant, by_completion: bool = True) -> str:
    """Return the time that decides whether a completed commit is in a range."""
    has_end = by_completion and instant.layout != V1.version
    return instant.ended if has_end else instant.time


def commits_in_range(pinned: PinnedTable, options: IncrementalOptions) -> CommitRange:
    """Return the commits of a range.

    Raises `UnsupportedTableError` if the rows of the table do not have the commit that wrote them,
    `TimelineError` if a commit in the range may still complete, which the next query would miss,
    and `CorruptFileError` if the completed file of a commit is gone.
    """
    table, timeline = pinned.table, pinned.timeline
    check_nothing_is_lost(table, timeline)
    if not table.properties.populate_meta_fields:
        raise UnsupportedTableError(
            f"{table.storage.root}: its files are without Hudi's meta columns, so its rows do not "
            "say which commit wrote them; read a snapshot, as of an earlier moment if need be"
        )
    active = tuple(i for i in timeline.commits if _is_within(i, options))
    if timeline.layout == V1.version or not options.by_completion:
        active = _without_hollow(pinned, active, options.hollow_commits)
    active = tuple(sorted(active, key=partial(moment, by_completion=options.by_completion)))
    archived = _archived(pinned, options)
    return CommitRange(active, tuple(i for i in archived if _is_within(i, options)))


def _archived(pinned: PinnedTable, options: IncrementalOptions) -> list[Instant]:
    """Archived commits, with those of a range among them.

    A slow commit may have left the active timeline, and have been completed after the first one
    there.
    """
    table, timeline = pinned.table, pinned.timeline
    first = timeline.first_commit
    reaches_back = first is not None and (
        timeline.starts_after(options.begin) or options.begin < moment(first, options.by_completion)
    )
    if reaches_back:
        return archived_writes(table.storage, timeline, table.properties.archive_folder)
    if timeline.layout == V1.version or not options.by_completion:
        return []
    late = archived_writes_ended_after(table.storage, timeline, options.begin)
    return [i for i in late if not file_changes(table.storage, i).is_rewrite]


def _is_within(instant: Instant, options: IncrementalOptions) -> bool:
    time = moment(instant, options.by_completion)
    return options.begin < time and (options.end is None or time <= options.end)


def _without_hollow(
    pinned: PinnedTable, commits: tuple[Instant, ...], policy: HollowCommits
) -> tuple[Instant, ...]:
    """Refuse commits that are later than an incomplete one, or leave them out."""
    table = pinned.table
    hollow = next((i for i in pinned.timeline.pending if is_write(table.storage, i)), None)
    if hollow is None or all(instant.time < hollow.time for instant in commits):
        return commits
    if policy is HollowCommits.BLOCK:
        return tuple(instant for instant in commits if instant.time < hollow.time)
    raise TimelineError(
        f"{table.storage.root}: {hollow} is older than commits of the range and may still be "
        f"completed, and the next incremental query would pass over it; end the range before it, "
        f"set {IncrementalOptions.hollow_commits.key}={HollowCommits.BLOCK.value}, or have the "
        "instant rolled back"
    )
