"""Routers: from rows of a batch to their file groups (RFC-24's bucket assigner)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import Operation
from hoodie_ds.index.bucket_identifier import bucket_prefix, unused_file_id
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.index.buckets import Buckets, only_slice
from hoodie_ds.index.protocol import KeyLookup
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.table_slices import tasks_of
from hoodie_ds.sink.hidden_columns import LOCATION_COLUMN
from hoodie_ds.sink.locate.key_locations import key_lookup
from hoodie_ds.sink.records import (
    BucketKey,
    KeyedRows,
    are_deletes,
    split,
    split_by_bucket,
    split_by_partition,
)
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import PartitionFiles


@dataclass(frozen=True, slots=True)
class Target:
    """The file group of some rows, and its latest slice if it has one.

    The file id is empty for rows that begin new groups.
    """

    group: FileGroupId
    latest: FileSlice | None

    @property
    def begins_groups(self) -> bool:
        """Whether the rows are inserts for new file groups."""
        return not self.group.file_id


class Router(Protocol):
    """Decides where rows go (RFC-24's bucket assigner)."""

    def route(
        self, keyed: KeyedRows, locations: Numbers | None = None
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Split rows by target, keeping their order within each.

        The parts also have ``_hoodie_record_key``. `locations` are those that an assigner found
        before.
        """
        ...

    def positions(self, latest: FileSlice, keys: pa.Array) -> Numbers | None:
        """Return where keys are in the base file of a slice, -1 where they are not in one row.

        None if this process has not looked there.
        """
        ...


class BucketRouter:
    """A bucket of a partition is one file group, whichever writer began it."""

    def __init__(self, plan: WritePlan, buckets: Buckets) -> None:
        self._plan = plan
        self._buckets = buckets
        self._view = plan.view
        self._files: dict[str, PartitionFiles] = {}
        self._targets: dict[BucketKey, Target] = {}
        self._checked: set[FileGroupId] = set()

    def route(
        self, keyed: KeyedRows, locations: Numbers | None = None
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Split rows by bucket; see `Router`."""
        for key, part in split_by_bucket(self._buckets, keyed):
            target = self._targets.get(key)
            if target is None:
                target = self._targets[key] = self._target(key)
            yield target, part

    def positions(self, latest: FileSlice, keys: pa.Array) -> Numbers | None:
        """Return where a change has found keys; see `Router`."""
        return _found_by_change(self._plan, latest, keys)

    def _target(self, key: BucketKey) -> Target:
        latest = None if self._plan.rescales else self._latest(key)
        if latest is not None and not self._plan.operation.replaces:
            return Target(latest.group, latest)
        # File groups that this batch replaces are in use until its commit.
        live = {latest.group.file_id} if latest else self._live_ids(key)
        taken = self._view.replaced_ids(key.partition_path) | live
        return Target(FileGroupId(key.partition_path, unused_file_id(key.bucket, taken)), None)

    def _live_ids(self, key: BucketKey) -> set[str]:
        """File ids of a bucket under the old number of buckets, which a rescale replaces."""
        if not self._plan.rescales:
            return set()
        files = self._files.get(key.partition_path)
        if files is None:
            files = self._files[key.partition_path] = self._view.partition(key.partition_path)
        slices = files.latest_slices(bucket_prefix(key.bucket))
        return {slice_.group.file_id for slice_ in slices}

    def _latest(self, key: BucketKey) -> FileSlice | None:
        files = self._files.get(key.partition_path)
        if files is None:
            files = self._files[key.partition_path] = self._view.partition(key.partition_path)
            self._check_names(files)
            if self._plan.table.properties.num_buckets is None:
                self._check_some(files)
        # A partition may have thousands of buckets, and a batch rows of only a few.
        latest = only_slice(self._buckets, files.latest_slices(bucket_prefix(key.bucket)))
        if latest is not None:
            self._check_hash(latest)
        return latest

    def _check_names(self, files: PartitionFiles) -> None:
        """Refuse a partition with file groups of another writer that belong to no bucket."""
        for prefix in files.prefixes:
            bucket = int(prefix) if prefix.isascii() and prefix.isdigit() else None
            if bucket is None or bucket >= self._buckets.num_buckets:
                for slice_ in files.latest_slices(prefix):
                    self._buckets.check_name(slice_.group)

    def _check_some(self, files: PartitionFiles) -> None:
        """Check some file groups of a partition, whether or not the batch goes there.

        With another number of buckets all its keys may go to new buckets.
        """
        for prefix in islice(sorted(files.prefixes), _CHECKED_GROUPS):
            for slice_ in files.latest_slices(prefix):
                self._check_hash(slice_)

    def _check_hash(self, slice_: FileSlice) -> None:
        """Check stored keys, in a table whose properties do not record how they were hashed."""
        if self._plan.table.properties.num_buckets is not None or slice_.group in self._checked:
            return
        self._checked.add(slice_.group)
        first = slice_ if slice_.base is None else replace(slice_, logs=())
        for rows in islice(self._plan.slice_reader(self._plan.view).read(first, [RECORD_KEY]), 1):
            self._buckets.check(slice_, rows.column(RECORD_KEY).slice(0, _CHECKED_KEYS))


_CHECKED_GROUPS: Final = 8
"""File groups of a partition whose keys are checked."""
_CHECKED_KEYS: Final = 1000


class LookupRouter:
    """Updates go where their key is stored or they were found, other rows to new groups."""

    def __init__(self, plan: WritePlan, task: int = 0) -> None:
        self._plan = plan
        self._task = task
        self._view = plan.view
        self._slices: dict[str, list[FileSlice]] = {}

    def route(
        self, keyed: KeyedRows, locations: Numbers | None = None
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Split rows by file group; see `Router`."""
        for path, part, numbers, _ in self.locate(keyed, locations):
            slices = self.latest_slices(path)
            for number, some in split(part, numbers):
                if number >= 0:
                    yield Target(slices[number].group, slices[number]), some
                elif self._plan.operation is not Operation.DELETE:
                    yield Target(FileGroupId(path, ""), None), some

    def locate(
        self, keyed: KeyedRows, locations: Numbers | None = None
    ) -> Iterator[tuple[str, pa.Table, Numbers, bool]]:
        """Split rows by partition, and look their file groups up unless `locations` are given.

        Yields the partition path; rows with ``_hoodie_record_key``; for each the position of its
        slice among the `latest_slices`, negative if its key is in none; and whether the rows are
        repeated for another slice, as their keys are in several.
        """
        rows = keyed.with_keys
        if locations is not None:
            rows = rows.append_column(LOCATION_COLUMN, pa.array(locations))
        for path, part in split_by_partition(keyed.paths, rows):
            if locations is None:
                found = self._find(self.latest_slices(path), part)
                yield path, part, found.first, False
                for nth in range(1, found.most):
                    at, numbers = found.nth(nth)
                    yield path, part.take(pa.array(at)), numbers, True
            else:
                known = part.column(LOCATION_COLUMN).to_numpy()
                yield path, part.drop_columns(LOCATION_COLUMN), known, False

    def latest_slices(self, path: str) -> list[FileSlice]:
        """The latest slices of a partition, by file id, in which keys are looked up."""
        known = self._slices.get(path)
        if known is None:
            slices = [] if self._plan.operation.replaces else self._view.latest_slices(path)
            known = self._slices[path] = slices
        return known

    def own_slices(self, path: str, num_tasks: int) -> list[FileSlice]:
        """Those of the `latest_slices` that belong to this one of some tasks."""
        slices = self.latest_slices(path)
        tasks = tasks_of(slices, num_tasks)
        return [slices[at] for at in np.flatnonzero(tasks == self._task)]

    @property
    def asks_index(self) -> bool:
        """Whether keys are looked up in a record index; see `KeyLookup`."""
        return self._plan.looks_up and self._lookup.asks_index

    def positions(self, latest: FileSlice, keys: pa.Array) -> Numbers | None:
        """Return where a look-up or a change has found keys; see `Router`."""
        if self._plan.change is None and self._plan.looks_up:
            return self._lookup.positions(latest, keys)
        return _found_by_change(self._plan, latest, keys)

    @cached_property
    def _lookup(self) -> KeyLookup:
        return key_lookup(self._plan)

    def _find(self, slices: list[FileSlice], rows: pa.Table) -> RecordLocations:
        if not self._plan.looks_up or not slices:
            return RecordLocations.nowhere(rows.num_rows)
        found = self._lookup.find(slices, rows.column(RECORD_KEY).combine_chunks())
        if not found.tombstones.any():
            return found
        # Deletes go to slices with old deletes of the key too: a late row may come to any of them.
        return found.only(~found.tombstones | are_deletes(self._plan, rows)[found.keys])


def _found_by_change(plan: WritePlan, latest: FileSlice, keys: pa.Array) -> Numbers | None:
    """Where the rows of a change are; only row groups are read that may have some of them."""
    if plan.change is None:
        return None
    return plan.slice_reader(plan.view).positions(latest, pa.chunked_array([keys]))


def router_of(plan: WritePlan, task: int) -> Router:
    """Return the router of a task's rows; without record keys those bring their locations."""
    if isinstance(plan.index, BucketIndex):
        return BucketRouter(plan, plan.index.buckets)
    return LookupRouter(plan, task)
