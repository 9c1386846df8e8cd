"""What a filter rules out in one table: partitions, buckets, and rows of base files.

A log file may have a row of any key, and other values for a row of the base file. So with log
files, only partition and key of a row rule it out, which no change alters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.filters.predicate import In, Predicate
from hoodie_ds.filters.pruning import may_match
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.index.bucket_identifier import bucket_prefix
from hoodie_ds.index.bucket_index import constant_buckets
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.reader.pruning.key_values import record_keys
from hoodie_ds.reader.pruning.partition_values import PartitionValues
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.fs_view import PREFIX_LENGTH
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Some record keys."""

    keys: frozenset[str]

    def among(self, records: RecordSet) -> RecordSet:
        """Return the records that have one of the keys."""
        found = pc.is_in(records.rows.column(RECORD_KEY), value_set=self._array)
        return records.take(np.flatnonzero(found.to_numpy()))

    def row_groups(self, reader: BaseFileReader, numbers: Sequence[int]) -> list[int]:
        """Return the row groups of a base file that may have one of the keys."""
        bloom = reader.bloom_filter()
        keys = self._array if bloom is None else self._array.filter(bloom.may_contain(self._array))
        wanted, column = In((RECORD_KEY,), keys), pa.field(RECORD_KEY, pa.string())
        return [n for n in numbers if may_match(wanted, {RECORD_KEY: reader.bounds(n, column)}.get)]

    @property
    def _array(self) -> pa.Array:
        return pa.array(sorted(self.keys), pa.string())


@dataclass(slots=True)
class Pruner:
    """Rules out what cannot match a predicate, in a table with the columns of `schema`.

    `keys` are those that the predicate allows, if it allows few, and `buckets` the table's buckets,
    if they are known then.
    """

    predicate: Predicate
    schema: pa.Schema
    partitions: PartitionValues
    keys: KeyFilter | None
    buckets: Buckets | None
    _prefixes: dict[int, frozenset[str]] = field(default_factory=dict)
    _kept: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        predicate: Predicate,
        properties: TableProperties,
        schema: pa.Schema,
        storage: Storage,
        timeline: Timeline,
    ) -> Pruner:
        """Return what rules files and rows of a table out, as it is read."""
        keys = record_keys(predicate, properties, schema)
        values = PartitionValues(properties, schema)
        if keys is None:
            return cls(predicate, schema, values, None, None)
        buckets = constant_buckets(properties, storage, timeline)
        return cls(predicate, schema, values, KeyFilter(keys), buckets)

    def keeps(self, file: FileStatus) -> bool:
        """Whether rows of a data file's group may match."""
        folder = file.folder
        kept = self._kept.get(folder)
        if kept is None:
            kept = self._kept[folder] = may_match(self.predicate, self.partitions.of(folder).get)
        if not kept or self.buckets is None or self.keys is None:
            return kept
        name = file.path.rpartition("/")[2].removeprefix(".")
        return name[:PREFIX_LENGTH] in self._buckets(folder)

    def _buckets(self, partition_path: str) -> frozenset[str]:
        assert self.buckets is not None
        assert self.keys is not None
        count = self.buckets.num_buckets_in(partition_path)
        if count not in self._prefixes:
            keys = pa.chunked_array([sorted(self.keys.keys)], pa.string())
            found = {bucket_prefix(int(bucket)) for bucket in self.buckets.hashed(keys, count)}
            self._prefixes[count] = frozenset(found)
        return self._prefixes[count]

    def row_groups(
        self, reader: BaseFileReader, partition_path: str, numbers: Sequence[int], is_merged: bool
    ) -> list[int]:
        """Return the row groups among some of a base file that may have rows which match.

        `is_merged` says whether log files are merged into the file.
        """
        left = list(numbers)
        if not is_merged:
            partition = self.partitions.of(partition_path)
            known = partial(self._known, reader, partition)
            left = [n for n in left if may_match(self.predicate, partial(known, n))]
        if self.keys is not None and left and RECORD_KEY in self.schema.names:
            left = self.keys.row_groups(reader, left)
        return left

    def _known(
        self, reader: BaseFileReader, partition: Mapping[str, Bounds], number: int, column: str
    ) -> Bounds | None:
        """What a row group's partition says of a column, or else the footer."""
        at = self.schema.get_field_index(column)
        if at < 0:
            return None
        return partition.get(column) or reader.bounds(number, self.schema.field(at))
