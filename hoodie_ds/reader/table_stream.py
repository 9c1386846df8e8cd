"""A stream out of a table: which commits come next, and the query of their rows.

A position of a stream is the time of a commit by which incremental queries count: in tables of
version 6 its requested time, in later ones its completion time. A batch of a stream is the
incremental query from one position to the next. If the table's version changes, positions are
converted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie_ds.config.enums import HollowCommits, IncrementalFormat, QueryType
from hoodie_ds.config.query_instant import EARLIEST, FIRST, LATEST
from hoodie_ds.config.query_options import IncrementalOptions, StreamOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.reader.change_executor import CHANGES
from hoodie_ds.reader.commit_range import commits_in_range, moment
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.query import Query, open_query
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import V1


@dataclass
class TableStream:
    """Follows the commits of a table, by the limits and the start of its options."""

    storage: Storage
    options: ReadOptions
    _passed: frozenset[str] | None = field(default=None, init=False)
    _layout: int | None = field(default=None, init=False)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows, as the table is now; or those of changes."""
        if self.options.stream.format is IncrementalFormat.CDC:
            return CHANGES
        return self._pinned().schema

    def initial(self) -> str:
        """Return the position where the stream begins; what was committed there is left out."""
        start = self.options.stream.start
        if start == LATEST:
            return self.newest(FIRST)
        return FIRST if start == EARLIEST else start

    def newest(self, after: str) -> str:
        """Return the position of the newest commit that a stream may take; `after` if none is."""
        *_, last = (after, *map(moment, _commits(self._pinned(), after)))
        return last

    @property
    def layout(self) -> int:
        """Layout of the timeline of the last position, by which it counts."""
        return self._layout or self._layout_now

    def moved(self, position: str, layout: int | None) -> str:
        """Return a position of the time when the timeline had some layout, the present one if None.

        Raises `TimelineError` if commits have another order now, with the position between others.
        """
        if layout is None or layout == self._layout_now:
            return position
        pinned = self._pinned()
        ends: dict[bool, list[str]] = {True: [], False: []}
        for instant in pinned.timeline.commits:
            if not file_changes(self.storage, instant).is_rewrite:
                ends[instant.time <= position].append(instant.ended)
        passed, left = max(ends[True], default=position), min(ends[False], default=None)
        if layout == V1.version and (left is None or passed < left):
            return passed
        raise TimelineError(
            f"{self.storage.root}: the table has become one of another version since this stream "
            f"was at {position}, and orders commits otherwise; begin a new query with "
            f"{StreamOptions.start.key} after what has been read"
        )

    def next(self, after: str, limited: bool = True, up_to: str | None = None) -> str:
        """Return the end of the batch that begins at a position; `after` if there is no news.

        A limited batch takes no more than the options allow, but at least one commit, and none
        beyond the position `up_to`. Raises `TimelineError` if a commit has come between those that
        the stream has passed.
        """
        pinned = self._pinned()
        self._refuse_late(pinned, after)
        commits = _commits(pinned, after)
        if up_to is not None:
            commits = [i for i in commits if moment(i) <= up_to]
        taken = list(self._within_limits(commits)) if limited else commits
        until = moment(taken[-1]) if taken else after
        self._passed = _begun_until(pinned, until)
        return until

    def query(self, after: str, until: str) -> Query:
        """Open the query of the batch between two positions.

        Raises `TimelineError` if the batch reaches back to commits that have been cleaned or
        archived, unless it begins with the first commit: then a reader of rows can get no more than
        what is still in the table.
        """
        given = self.options.stream
        is_first = after == FIRST and given.format is IncrementalFormat.LATEST_STATE
        asked = IncrementalOptions(
            begin=after,
            end=until,
            format=given.format,
            full_scan=is_first or given.full_scan,
            hollow_commits=HollowCommits.FAIL,
        )
        options = replace(self.options, query_type=QueryType.INCREMENTAL, incremental=asked)
        return open_query(self.storage, options)

    @property
    def _layout_now(self) -> int:
        return open_table(self.storage).layout

    def _pinned(self) -> PinnedTable:
        pinned = PinnedTable.latest(self.storage, self.options.merge_hook, verify=False)
        self._layout = pinned.timeline.layout
        return pinned

    def _refuse_late(self, pinned: PinnedTable, after: str) -> None:
        """Fail if a commit has come that an earlier load should have shown.

        In version 6 a writer whose clock is behind may begin a commit at a time before others that
        are complete.
        """
        if self._passed is None:
            return
        for time in sorted(_begun_until(pinned, after) - self._passed):
            late = pinned.timeline.commit_at(time)
            if late is not None and not file_changes(self.storage, late).is_rewrite:
                raise TimelineError(
                    f"{self.storage.root}: commit {time} was begun before {after}, which this "
                    "stream has passed, and came later; its writer's clock is behind. Begin a new "
                    f"query with {StreamOptions.start.key} before it, or upgrade the table to "
                    "version 9, which orders commits by their completion"
                )

    def _within_limits(self, commits: list[Instant]) -> Iterator[Instant]:
        files, given = 0, self.options.stream
        for number, instant in enumerate(commits):
            if given.max_files is not None:
                files += len(file_changes(self.storage, instant).added)
            too_many = given.max_files is not None and files > given.max_files
            if number and (too_many or number == given.max_commits):
                return
            yield instant


def _commits(pinned: PinnedTable, after: str) -> list[Instant]:
    """The commits after a position, in order, up to an incomplete one."""
    options = IncrementalOptions(begin=after, hollow_commits=HollowCommits.BLOCK)
    return list(commits_in_range(pinned, options).active)


def _begun_until(pinned: PinnedTable, position: str) -> frozenset[str]:
    """Times of the commits of version 6 that were begun up to a position; else none."""
    if pinned.timeline.layout != V1.version:
        return frozenset()
    return frozenset(i.time for i in pinned.timeline.commits if i.time <= position)
