"""A merge by several tasks: which of them have which file groups, and rows of the source.

The file groups are distributed over the tasks as by a shuffle of an upsert. A row of the source
goes to the tasks of all file groups with its values of the columns by which rows match. If there is
none it matches no row, and goes to the task of the key with which it is inserted. So each task
decides by itself what becomes of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers, one_chunk
from hoodie_ds.columns.meta_columns import PARTITION_PATH, RECORD_KEY
from hoodie_ds.errors import OptionError
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.index.buckets import first_task
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask
from hoodie_ds.sink.locate.matched_rows import Places
from hoodie_ds.sink.locate.merged_rows import (
    ChangedRows,
    MergeCounts,
    NewKeys,
    merge_in,
    new_rows,
    unique_columns,
)
from hoodie_ds.sink.numbered_rows import NumberedRows
from hoodie_ds.sink.row_merge import Matching
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId


class Role(IntEnum):
    """What a task gets a row for, in this order."""

    NONE = 0  # a task has a row at least
    MATCHED = 1
    INSERTED = 2
    STORED = 3  # the key of a row of the table


@dataclass(frozen=True)
class MergeTasks:
    """The tasks of the merge of a plan, whose source has no rows here."""

    plan: WritePlan
    number: int

    def __getstate__(self) -> dict[str, object]:
        """Send the fields alone, as plans do."""
        return {"plan": self.plan, "number": self.number}

    def parts(self, slices: Iterable[ScanTask]) -> list[tuple[ScanTask, ...]]:
        """Return which slices belong to each task."""
        found: list[list[ScanTask]] = [[] for _ in range(self.number)]
        for slice_ in slices:
            found[self.of_group(slice_.slice.group)].append(slice_)
        return [*map(tuple, found)]

    def of_group(self, group: FileGroupId) -> int:
        """Return the task of a file group."""
        index = self.plan.index
        if isinstance(index, BucketIndex):
            at = index.buckets.check_name(group)
        else:
            at = self._places.position(group)
        return (first_task(group.partition_path, self.number) + at) % self.number

    def of_keys(self, keys: pa.Table) -> Numbers:
        """Return the task of each of some `unique_columns`."""
        index, records = self.plan.index, keys.column(RECORD_KEY)
        assert index is not None
        spread = index.spread(self.number)
        if index.is_global or not keys.num_rows:
            return spread.ids_by_key(records).astype(np.int64) % self.number
        paths = one_chunk(keys.column(PARTITION_PATH)).dictionary_encode()
        firsts = np.array([first_task(path, self.number) for path in paths.dictionary.to_pylist()])
        ids = spread.ids(records, paths).astype(np.int64)
        tasks: Numbers = (firsts[paths.indices.to_numpy()] + ids) % self.number
        return tasks

    def of_new(self, rows: pa.Table) -> Numbers:
        """Return the task of each row of the source that matches none; -1 if it inserts none."""
        tasks = np.full(rows.num_rows, -1)
        for at, new in new_rows(self.plan, rows):
            if self.plan.index is None:
                tasks[at] = at % self.number
            else:
                tasks[at] = self.of_keys(unique_columns(self.plan, new))
        return tasks

    @property
    def unique_names(self) -> list[str]:
        """The names of `unique_columns`."""
        index = self.plan.index
        return [RECORD_KEY] if index and index.is_global else [RECORD_KEY, PARTITION_PATH]

    def matched_values(self, scan: ScanPlan) -> Iterator[pa.Table]:
        """Yield the values by which rows of slices match, most of them once."""
        merge = merge_in(self.plan)
        for task in scan.tasks:
            for rows in scan.executor.read(task, [*merge.pairs]):
                values = merge.matched_by(rows, merge.pairs)
                yield values.group_by(values.column_names, use_threads=False).aggregate([])

    @property
    def compares_keys(self) -> bool:
        """Whether keys of new rows may be stored in rows that do not match."""
        merge, plan = merge_in(self.plan), self.plan
        inserts = plan.index is not None and merge.of_rows(Matching.NOT_MATCHED)
        return bool(inserts) and not merge.finds_keys(plan.table.properties)

    def merged(
        self,
        task: int,
        scan: ScanPlan,
        given: Iterator[tuple[Role, pa.Table]],
        counts: MergeCounts,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a task writes of its slices, as `merged_rows` does.

        `given` are the rows that it gets, in the order of their roles: of the source, and at last
        `stored_keys`.
        """
        rows = _Given(given)
        merge = merge_in(self.plan)
        batches = chain.from_iterable(part.to_batches() for part in rows.of(Role.MATCHED))
        source = NumberedRows.spooled(merge.source.schema, batches)
        own = replace(self.plan, change=replace(merge, source=source))
        yield from ChangedRows(own, counts).rows(scan, self._places)
        keys = NewKeys(own)
        for part in rows.of(Role.INSERTED):
            for _, new in new_rows(own, part):
                self._check_stable(task, new)
                keys.add(new)
                counts.inserted += new.num_rows
                yield from self._places.of_new(new, self.number).to_batches()
        keys.check()
        keys.check_not_among(rows.of(Role.STORED))

    def _check_stable(self, task: int, new: pa.Table) -> None:
        """Refuse new rows with other keys than those by which they came here."""
        index = self.plan.index
        if index is not None and (self.of_keys(unique_columns(self.plan, new)) != task).any():
            raise OptionError(
                "set",
                ", ".join(self.plan.table.properties.record_key_fields),
                "a function that makes keys of new rows must return the same for the same rows",
            )

    @cached_property
    def _places(self) -> Places:
        return Places(self.plan)


class _Given:
    """Rows that come by their roles, each of which is taken whole and in order."""

    def __init__(self, given: Iterator[tuple[Role, pa.Table]]) -> None:
        self._given = given
        self._next = next(given, None)

    def of(self, role: Role) -> Iterator[pa.Table]:
        """Yield the rows of a role."""
        while self._next is not None and self._next[0] == role:
            yield self._next[1]
            self._next = next(self._given, None)
