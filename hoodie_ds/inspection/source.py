"""A table as it is, or was at an instant of its active timeline."""

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
from hoodie_ds.services.earlier_state import check_files_are_kept, timeline_at
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.metadata_table import record_index


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is inspected; `verify` compares files with the checksums of their commits.

    `options` are those of its writers, with what the table does not record, such as buckets.
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
        """Return the table after a completed write of the active timeline, or at a date.

        Dates have the forms of ``as.of.instant``. Raises `TimelineError` if there is no such write
        or its files were cleaned.
        """
        now = self.latest()
        date = query_instant(time) if "-" in time else None
        if date is not None:
            return travel(now, date)
        if now.timeline.commit_at(time) is None:
            first = now.timeline.first_commit
            newest = next(now.timeline.commits_backwards(), None)
            span = f"from {first.time} to {newest.time}" if first and newest else "without commits"
            raise TimelineError(
                f"{self.storage.root}: {time} is no completed write of the active timeline, which "
                f"is {span}; {command('commits', self.storage.root)} lists them"
            )
        what = f"the table as of {time}"
        check_files_are_kept(now.table, now.timeline, time, what, retained=False)
        return now.at(timeline_at(now.timeline, time))
