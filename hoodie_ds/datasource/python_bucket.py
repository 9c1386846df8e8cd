"""Computes the task of each row in Python, if no JVM expression can.

That is the case in a session without a JVM at hand, for keys of types that Spark formats
differently, and if the number of buckets depends on the partition path, which Spark would have to
make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from hoodie_ds.formats.avro.schema import normalise_schema
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.index.bucket_identifier import BucketIds
from hoodie_ds.index.buckets import Buckets, first_task
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec
from hoodie_ds.sink.hidden_columns import TASK_COLUMN


def task_mapper(
    buckets: Buckets, spec: KeySpec, num_tasks: int, by_key: bool = False
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that adds the task column.

    With `by_key` only the key decides, not the partition.
    """

    def add_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys = KeyGenerator.of(spec)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            typed = conform(rows, normalise_schema(rows.schema))
            tasks = _tasks(keys, buckets, typed, num_tasks, by_key)
            yield from rows.append_column(TASK_COLUMN, pa.array(tasks)).to_batches()

    return add_tasks


def _tasks(
    keys: KeyGenerator, buckets: Buckets, rows: pa.Table, num_tasks: int, by_key: bool
) -> BucketIds:
    if not rows.num_rows:
        return np.zeros(0, dtype=np.int32)
    paths = keys.partition_paths(rows)
    ids = buckets.ids(keys.record_keys(rows), paths)
    if by_key:
        return (ids % num_tasks).astype(np.int32)
    offsets = np.array(
        [
            first_task(path, num_tasks, buckets.num_buckets_in(path))
            for path in paths.dictionary.to_pylist()
        ],
        dtype=np.int64,
    )
    first = offsets.astype(np.int64)[paths.indices.to_numpy()]
    tasks: BucketIds = ((first + ids) % num_tasks).astype(np.int32)
    return tasks
