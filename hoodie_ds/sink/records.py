"""From rows of a batch to records of file groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, one_chunk
from hoodie_ds.columns.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.errors import RecordKeyError, UnsupportedTableError
from hoodie_ds.formats.hfile.writer import KEY_BYTES_MAX
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.hints import command
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.record.deletes import deletes_among
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.sink.write_plan import WritePlan


@dataclass(frozen=True, slots=True)
class BucketKey:
    """A bucket of a partition."""

    partition_path: str
    bucket: int


def to_records(plan: WritePlan, rows: pa.Table) -> RecordSet:
    """Return rows, in the table's types and with their record keys, as records.

    A row is a delete if the operation is, or if its columns say so.
    """
    deleted = are_deletes(plan, rows)
    if IS_DELETED in rows.column_names and IS_DELETED not in plan.schema.names:
        rows = rows.drop_columns([IS_DELETED])  # a mark of the sink's own
    return RecordSet(rows, deleted, tuple(resolve(rows, path) for path in plan.ordering_fields))


def are_deletes(plan: WritePlan, rows: pa.Table) -> Mask:
    """Which rows are deletes; see `to_records`."""
    if plan.operation is Operation.DELETE:
        return np.ones(rows.num_rows, dtype=np.bool_)
    return deletes_among(rows, plan.table.properties.delete_marker)


class KeyedRows:
    """Rows of the table's user columns, whose keys and partition paths are made once.

    Further columns stay. Rows of the table itself bring what their fields may not say: the
    partition that they are `stored_in`, and `automatic` keys in a table without record keys.
    """

    def __init__(
        self,
        plan: WritePlan,
        rows: pa.Table,
        automatic: pa.ChunkedArray | None = None,
        stored_in: pa.ChunkedArray | None = None,
    ) -> None:
        self._plan = plan
        self._automatic = automatic
        self._stored_in = stored_in
        self.rows = rows

    @cached_property
    def keys(self) -> pa.Array:
        """The record key (string) of each row."""
        if self._automatic is not None:
            return one_chunk(self._automatic)
        return self._plan.key_generator.record_keys(self.rows)

    @cached_property
    def paths(self) -> pa.DictionaryArray:
        """The partition path of each row."""
        if self._stored_in is not None:
            return one_chunk(self._stored_in).dictionary_encode()
        return partitions_of(self._plan, self.rows)

    @property
    def with_keys(self) -> pa.Table:
        """The rows with ``_hoodie_record_key``."""
        return self.rows.append_column(RECORD_KEY, self.keys)

    def check(self) -> None:
        """Refuse rows without key or with an impossible partition before anything is written.

        Only a task's first rows are checked that early; later ones fail the batch as well, whose
        instant is then rolled back.
        """
        if self._plan.index is not None:
            _ = self.keys
        _ = self.paths


def check_stored_keys(plan: WritePlan, rows: pa.Table) -> None:
    """Refuse stored rows that a write would move: their keys or paths are made differently.

    Then the options for keys are unknown. Tables without meta columns store neither, and a global
    index may have left rows in other partitions. In a table without record keys there must be
    automatic ones.
    """
    if not plan.table.properties.populate_meta_fields or not rows.num_rows:
        return
    made = KeyedRows(plan, rows)
    is_global = plan.index is not None and plan.index.is_global
    columns = [] if is_global else [(PARTITION_PATH, made.paths)]
    if plan.index is not None:
        columns.append((RECORD_KEY, made.keys))
    elif rows.column(RECORD_KEY).null_count:
        raise UnsupportedTableError(
            f"table {plan.table.properties.name!r} has neither record keys nor Hudi's automatic "
            "ones, so its rows cannot be changed; overwrite its partitions"
        )
    for name, column in columns:
        stored = rows.column(name).cast(pa.string())
        same = pc.equal(stored, column.cast(pa.string()))
        if not pc.all(same, skip_nulls=False).as_py():
            at = pc.index(pc.fill_null(same, False), False).as_py()
            raise UnsupportedTableError(
                f"table {plan.table.properties.name!r} has {name} = {stored[at].as_py()!r} where "
                f"its key generator makes {column[at].as_py()!r}; give the options for keys that "
                "its writers use"
            )


def check_indexed(plan: WritePlan, keyed: KeyedRows) -> None:
    """Refuse rows of which an index in the metadata table could have no entry: it is too long.

    Such a commit could not be completed once it is decided.
    """
    if plan.keeps_record_index:
        _check_entries(plan, RECORD_INDEX, keyed.keys)
    for index in plan.secondary:
        values = one_chunk(keyed.rows.column(index.column))
        if _longest(values) + _longest(keyed.keys) > KEY_BYTES_MAX // 4:  # escaped ones double
            _check_entries(plan, index.partition, index.keys(values, one_chunk(keyed.keys)))


def _longest(column: pa.Array | pa.ChunkedArray) -> int:
    """Return how many bytes the longest string has; 0 of a column that has none."""
    is_text = pa.types.is_string(column.type)
    return pc.max(pc.binary_length(column)).as_py() or 0 if is_text else 0


def _check_entries(plan: WritePlan, partition: str, entries: pa.Array | pa.ChunkedArray) -> None:
    longest = _longest(entries)
    if longest > KEY_BYTES_MAX:
        root = plan.table.storage.root
        drop = command("metadata", "drop", root, "--partition", partition)
        raise RecordKeyError(
            f"{root}: a row has {longest} bytes of keys and values in the metadata table's "
            f"{partition}, which can have {KEY_BYTES_MAX}; shorten them, or write without that "
            f"index, and if it is there drop it with {drop}"
        )


def distinct_partitions(plan: WritePlan, rows: pa.Table) -> set[str]:
    """Return the partition paths of rows that need no more than the partition fields."""
    names = {path.partition(".")[0] for path in plan.table.properties.partition_fields}
    fields = [f for f in plan.schema if f.name in names and f.name in rows.column_names]
    return set(partitions_of(plan, conform(rows, pa.schema(fields))).dictionary.to_pylist())


def split_by_bucket(buckets: Buckets, keyed: KeyedRows) -> Iterator[tuple[BucketKey, pa.Table]]:
    """Split rows, with their record keys, by bucket, keeping their order within each."""
    paths, rows = keyed.paths, keyed.with_keys
    ids = buckets.ids(keyed.keys, paths)
    partitions = paths.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    stride = int(ids.max(initial=0)) + 1
    for code, part in split(rows, partitions * stride + ids):
        partition, bucket = divmod(code, stride)
        yield BucketKey(paths.dictionary[partition].as_py(), bucket), part


def split_by_partition(paths: pa.DictionaryArray, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Split rows by their partition paths, keeping their order within each."""
    if rows.num_rows and len(paths.dictionary) == 1:
        yield paths.dictionary[0].as_py(), rows
        return
    codes = paths.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    for code, part in split(rows, codes):
        yield paths.dictionary[code].as_py(), part


def partitions_of(plan: WritePlan, rows: pa.Table) -> pa.DictionaryArray:
    """The partition path of each row; refuses one whose folder Hudi on the JVM could not open."""
    paths = plan.key_generator.partition_paths(rows)
    for path in paths.dictionary.to_pylist():
        if ":" in path:
            names = ", ".join(plan.key_generator.spec.partition_fields)
            raise RecordKeyError(
                f"partition path {path[:200]!r} of field {names} holds a ':', which Hudi on "
                "the JVM cannot open; create the table with "
                "hoodie.datasource.write.partitionpath.urlencode=true, or format the value without "
                "it"
            )
    return paths


def split(rows: pa.Table, codes: npt.NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Split rows by a number for each, keeping their order within each."""
    if len(codes) == 0:
        return
    if (codes == codes[0]).all():
        yield int(codes[0]), rows
        return
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.diff(sorted_codes, prepend=sorted_codes[0] - 1))
    ends = np.append(starts[1:], len(codes))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        # A copy for each: slices of one copy would all stay in memory until the last is flushed.
        yield int(sorted_codes[start]), rows.take(order[start:end])
