"""Hudi's BUCKET index with the engine SIMPLE (RFC-29): the hash of a key names its file group.

A table records its buckets, since all its writers and readers have to hash alike. Their number is
changed by a rescale alone, which rewrites the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock
from hoodie_ds.errors import HoodieError
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.hashing_config import (
    HashingConfig,
    complete_hashing_config,
    load_hashing_config,
)
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import REPLACING, Instant
from hoodie_ds.timeline.paths import HASHING_CONFIGS
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Every key belongs to one of the buckets of its partition; see `Index`.

    Parameters
    ----------
    buckets : Buckets
        The table's buckets.
    """

    buckets: Buckets
    kind: ClassVar = IndexType.BUCKET
    is_global: ClassVar = False

    @classmethod
    def of(
        cls,
        properties: TableProperties,
        options: WriteOptions,
        stored: HashingConfig | None,
        groups: Iterable[FileGroupId],
    ) -> BucketIndex:
        """Return the index of a table, some of whose file groups are given; see `Buckets.of`.

        Raises
        ------
        UnsupportedTableError
            A file group is named after no bucket.
        """
        buckets = Buckets.of(properties, options, stored)
        for group in groups:
            buckets.check_name(group)
        return cls(buckets)

    def spread(self, num_tasks: int) -> Buckets:
        """Return the table's buckets, round the tasks."""
        return self.buckets

    def complete_change(self, table: Table, timeline: Timeline, clock: Clock) -> tuple[Table, bool]:
        """Complete what a rescale has left, or a creation; see `complete_hashing_config`."""
        return complete_hashing_config(table, timeline, clock.now_ms())

    def changed_by(self, storage: Storage, began: Timeline, now: Timeline) -> Instant | None:
        """Return a rescale, even one in which all file groups of a write are new ones."""
        for instant in now.commits_beyond(began):
            if instant.action in REPLACING:
                before = load_hashing_config(storage, began)
                if load_hashing_config(storage, now) != before:
                    return instant
        return None


def known_buckets(
    properties: TableProperties, options: WriteOptions, storage: Storage, timeline: Timeline
) -> Buckets | None:
    """Return the buckets of a table as of a timeline; None if there are none, or none are known."""
    if properties.index_type not in (None, IndexType.BUCKET):
        return None
    stored = load_hashing_config(storage, timeline)
    if stored is None and (properties.num_buckets or options.num_buckets) is None:
        return None
    return Buckets.of(properties, options, stored)


def constant_buckets(
    properties: TableProperties, storage: Storage, timeline: Timeline
) -> Buckets | None:
    """Return the buckets that files can be pruned by, whichever moment of a table is read.

    None where there are none, where a rescale changed them, or where they cannot be followed here.
    """
    if properties.index_type is not IndexType.BUCKET or len(storage.list(HASHING_CONFIGS)) > 1:
        return None
    try:
        return Buckets.recorded(properties, load_hashing_config(storage, timeline))
    except HoodieError:
        return None
