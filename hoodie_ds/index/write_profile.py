"""The write profile: which file groups have room for inserts (Hudi's ``UpsertPartitioner``).

Small base files are filled before new ones are begun, so that a table that grows slowly does not
end up with many small files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from hoodie_ds.config.enums import TableType
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.planned_services import clustering, compacting
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.timeline import Timeline

_DEFAULT_LIMIT: Final = 100 << 20
_COMMITS_ASKED: Final = 20


@dataclass(frozen=True, slots=True)
class SmallFile:
    """The latest slice of a file group that takes inserts, and how many rows it has room for."""

    slice: FileSlice
    num_rows: int


@dataclass(frozen=True)
class WriteProfile:
    """Sizes in a table as of a timeline; options say which files are small."""

    table: Table
    timeline: Timeline
    options: WriteOptions

    @property
    def limit_bytes(self) -> int:
        """Size below which a base file is small; 0 if none is."""
        given = self.options.small_file_bytes
        if given is not None:
            return given
        return _DEFAULT_LIMIT if self.table.properties.record_key_fields else 0

    @cached_property
    def record_bytes(self) -> float:
        """Average size of a stored record, by the newest commit that is large enough to measure.

        A few commits are read, as in Hudi (``hoodie.record.size.estimator.max.commits``).
        """
        enough = self.options.record_size_threshold * self.limit_bytes
        for instant in islice(self.timeline.commits_backwards(), _COMMITS_ASKED):
            stats = file_changes(self.table.storage, instant).added.values()
            size = sum(stat.total_write_bytes for stat in stats)
            rows = sum(stat.num_writes for stat in stats)
            if rows and size > enough:
                return size / rows
        return float(self.options.record_bytes_estimate)

    def small_files(self, slices: Sequence[FileSlice]) -> list[SmallFile]:
        """Choose the file groups of a partition that take inserts, the smallest first.

        A slice with log files takes none: Hudi's indexes on the JVM look for keys in base files,
        and a new base file would have to be merged with the log files first. Nor does a slice that
        a pending compaction or clustering rewrites.
        """
        limit, largest = self.limit_bytes, self.options.parquet_max_file_bytes
        storage, timeline = self.table.storage, self.timeline
        planned = {*compacting(storage, timeline), *clustering(storage, timeline)}
        free = [found for found in slices if not found.logs and found.group not in planned]
        small = [found for found in free if found.base and found.size < limit]
        found = [
            SmallFile(slice_, int((largest - slice_.size) / self.record_bytes))
            for slice_ in sorted(small, key=lambda found: (found.size, found.group))
        ]
        roomy = [room for room in found if room.num_rows > 0]
        if self.table.properties.table_type is TableType.MERGE_ON_READ:
            return roomy[: self.options.small_file_candidates]
        return roomy
