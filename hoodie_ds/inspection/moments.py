"""A table as it was at an instant of its active timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie_ds.config.query_instant import query_instant
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.hints import command
from hoodie_ds.index.bucket_index import known_buckets
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.index.choice import keys_are_global
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.time_travel import travel
from hoodie_ds.services.past import check_files_are_kept, timeline_at
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.metadata_table import record_index


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is looked into.

    Parameters
    ----------
    storage : Storage
        Rooted at its base path.
    merge_hook : str or callable, optional
        What merges rows in merge mode CUSTOM.
    verify : bool
        Whether files are compared with the checksums of their commits.
    options : WriteOptions, optional
        What writers of the table are told that it does not record, such as its number of buckets.
    """

    storage: Storage
    merge_hook: str | Callable[..., object] | None = None
    verify: bool = True
    options: WriteOptions | None = None

    def buckets(self, pinned: PinnedTable) -> Buckets | None:
        """Return the buckets of a table with a bucket index; None if their number is not known."""
        if self.options is None:
            return None
        return known_buckets(pinned.table.properties, self.options, self.storage, pinned.timeline)

    def keys_are_global(self, pinned: PinnedTable) -> bool:
        """Whether the table's index keeps a record key unique over all partitions."""
        properties, options = pinned.table.properties, self.options
        if not properties.record_key_fields or not properties.partition_fields:
            return False
        if record_index(pinned.table) == "table":
            return True
        if options is None:
            return False
        index = options.index_type or properties.index_type
        return index is not None and keys_are_global(index, properties, options)

    def latest(self) -> PinnedTable:
        """Return the table as it is now; see `PinnedTable.latest`."""
        return PinnedTable.latest(self.storage, self.merge_hook, self.verify)

    def at(self, time: str) -> PinnedTable:
        """Return the table as it was once a write had completed, or at a date.

        Parameters
        ----------
        time : str
            Instant time of a completed write of the active timeline; or a date, in the forms of
            ``as.of.instant``.

        Raises
        ------
        TimelineError
            There is no such write, or files of then were cleaned.
        """
        now = self.latest()
        date = query_instant(time) if "-" in time else None
        if date is not None:
            return travel(now, date)
        if now.timeline.commit_at(time) is None:
            first = now.timeline.first_commit
            newest = next(now.timeline.commits_backwards(), None)
            told = f"from {first.time} to {newest.time}" if first and newest else "without commits"
            raise TimelineError(
                f"{self.storage.root}: {time} is no completed write of the active timeline, which "
                f"is {told}; {command('commits', self.storage.root)} lists them"
            )
        what = f"the table as of {time}"
        check_files_are_kept(now.table, now.timeline, time, what, retained=False)
        return now.at(timeline_at(now.timeline, time))
