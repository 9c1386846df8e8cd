"""Routes the rows of a bucket-indexed table to the file groups of their buckets."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hoodie_ds.formats.base_file_reader import BaseFileReader
from hoodie_ds.index.bucket import bucket_prefix, unused_file_id
from hoodie_ds.index.bucket_layout import BucketLayout, only_slice
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.sink.assignment import Numbers
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.records import BucketKey, split_by_bucket
from hoodie_ds.sink.target import Target
from hoodie_ds.table.checked_file import open_base_file
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import PartitionFiles


class BucketRouter:
    """A bucket of a partition is one file group, whoever began it.

    Parameters
    ----------
    batch : Batch
        The batch.
    layout : BucketLayout
        The table's buckets.
    """

    def __init__(self, batch: Batch, layout: BucketLayout) -> None:
        self._batch = batch
        self._layout = layout
        self._view = batch.view
        self._files: dict[str, PartitionFiles] = {}
        self._targets: dict[BucketKey, Target] = {}

    def route(
        self, rows: pa.Table, places: Numbers | None = None
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Part rows by bucket; see `Router`."""
        for key, part in split_by_bucket(self._batch, self._layout, rows):
            target = self._targets.get(key)
            if target is None:
                target = self._targets[key] = self._target(key)
            yield target, part

    def _target(self, key: BucketKey) -> Target:
        latest = self._latest(key)
        if latest is not None and not self._batch.operation.replaces:
            return Target(latest.group, latest)
        # What this batch replaces is in use until its commit.
        live = {latest.group.file_id} if latest else set()
        taken = self._view.replaced_ids(key.partition_path) | live
        return Target(FileGroupId(key.partition_path, unused_file_id(key.bucket, taken)), None)

    def _latest(self, key: BucketKey) -> FileSlice | None:
        files = self._files.get(key.partition_path)
        if files is None:
            files = self._files[key.partition_path] = self._view.partition(key.partition_path)
            self._check_names(files)
        # A partition may have thousands of buckets, and a batch rows of a few.
        latest = only_slice(self._layout, files.latest_slices(bucket_prefix(key.bucket)))
        if latest is not None and self._batch.table.properties.num_buckets is None:
            self._check_hash(latest)
        return latest

    def _check_names(self, files: PartitionFiles) -> None:
        """Refuse a partition in which another writer has begun file groups of no bucket."""
        for prefix in files.prefixes:
            bucket = int(prefix) if prefix.isascii() and prefix.isdigit() else None
            if bucket is None or bucket >= self._layout.num_buckets:
                for slice_ in files.latest_slices(prefix):
                    self._layout.check_name(slice_.group)

    def _check_hash(self, latest: FileSlice) -> None:
        """Look at stored keys, in a table whose properties do not say how they were hashed."""
        if latest.base is None:
            return
        key_column = pa.schema([pa.field(RECORD_KEY, pa.string())])
        with open_base_file(self._batch.table.storage, latest.base) as source:
            reader = BaseFileReader(
                source, key_column, latest.base.path, trusted=latest.base.trusted
            )
            rows = next(reader.pieces(), None)
            if rows is not None:
                self._layout.check(latest, rows.column(RECORD_KEY).slice(0, 1000))
