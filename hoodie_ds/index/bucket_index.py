"""Hudi's BUCKET index with the engine SIMPLE (RFC-29): the hash of a key names its file group.

A table records its buckets, since all its writers and readers must hash alike. Only a rescale,
which rewrites the table, changes their number.
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
    """Every key belongs to one of the buckets of its partition; see `Index`."""

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
        """Return the index of a table; refuse one of whose `groups` is not named after a bucket."""
        buckets = Buckets.of(properties, options, stored)
        for group in groups:
            buckets.check_name(group)
        return cls(buckets)

    def spread(self, num_tasks: int) -> Buckets:
        """Return the table's buckets, round-robin over the tasks."""
        return self.buckets

    def complete_change(self, table: Table, timeline: Timeline, clock: Clock) -> tuple[Table, bool]:
        """Complete an interrupted rescale or creation; see `complete_hashing_config`."""
        return complete_hashing_config(table, timeline, clock.now_ms())

    def changed_by(self, storage: Storage, began: Timeline, now: Timeline) -> Instant | None:
        """Return a rescale, even if all file groups of the write are new."""
        for instant in now.commits_beyond(began):
            if instant.action in REPLACING:
                before = load_hashing_config(storage, began)
                if load_hashing_config(storage, now) != before:
                    return instant
        return None


def known_buckets(
    properties: TableProperties, options: WriteOptions, storage: Storage, timeline: Timeline
) -> Buckets | None:
    """Return the buckets of a table as of a timeline; None if it has none, or they are unknown."""
    if properties.index_type not in (None, IndexType.BUCKET):
        return None
    stored = load_hashing_config(storage, timeline)
    if stored is None and (properties.num_buckets or options.num_buckets) is None:
        return None
    return Buckets.of(properties, options, stored)


def constant_buckets(
    properties: TableProperties, storage: Storage, timeline: Timeline
) -> Buckets | None:
    """Return the buckets for pruning files, at any moment of a table that is read.

    None if there are none, if a rescale changed them, or if their rules cannot be followed here.
    """
    if properties.index_type is not IndexType.BUCKET or len(storage.list(HASHING_CONFIGS)) > 1:
        return None
    try:
        return Buckets.recorded(properties, load_hashing_config(storage, timeline))
    except HoodieError:
        return None
