"""RFC-24's file id assigner: before the shuffle it assigns each row to a task.

Updates go to the task of the file group that holds their key; inserts are distributed by their key,
and join small files of their task. So rows of one file group, and rows of one key, always meet in
one task. With a global index rows are distributed by their key alone, unless a record index says
where keys are: in one place each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.index.buckets import first_task
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.sink.hidden_columns import (
    LOCATION_COLUMN,
    TASK_COLUMN,
    digest_by_index,
    digest_by_key,
    encode_locations,
    mark_copies,
)
from hoodie_ds.sink.locate.key_locations import KeyLocations
from hoodie_ds.sink.locate.routers import LookupRouter
from hoodie_ds.sink.records import KeyedRows
from hoodie_ds.sink.write_plan import WritePlan

_POSITION: Final = "_hoodie_ds_position"

Tasks = npt.NDArray[np.int32]


class FileIdAssigner:
    """Assigns rows to the tasks of a shuffle, if the table's index looks keys up.

    All assigners of a batch share the view of the plan.
    """

    def __init__(self, plan: WritePlan, num_tasks: int) -> None:
        self._plan = plan
        self._num_tasks = num_tasks
        self._router = LookupRouter(plan)
        self._stored = KeyLocations(plan)
        assert isinstance(plan.index, LookupIndex), plan.index
        self._is_global = plan.index.is_global
        self._spread = plan.index.spread(num_tasks)
        self._digest = self._way(plan.index)

    def assign(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Add the hidden columns to rows from Spark.

        Rows whose key is in several file groups are repeated for each, as their tasks may differ.
        """
        typed = conform(rows, self._plan.taken_schema)
        if self._is_global:
            keys = KeyedRows(self._plan, typed).keys
            yield self._marked(rows, self._tasks(keys), np.full(rows.num_rows, -self._num_tasks))
            return
        typed = typed.append_column(_POSITION, pa.array(np.arange(rows.num_rows)))
        tasks = np.zeros(rows.num_rows, dtype=np.int32)
        locations = np.zeros(rows.num_rows, dtype=np.int64)
        for path, part, numbers, is_again in self._router.locate(KeyedRows(self._plan, typed)):
            at = part.column(_POSITION).to_numpy()
            by_key = self._spread.ids_by_key(part.column(RECORD_KEY))
            slots = np.where(numbers < 0, by_key, numbers)
            of_part = (first_task(path, self._num_tasks) + slots) % self._num_tasks
            if is_again:
                yield self._marked(rows.take(at), of_part.astype(np.int32), mark_copies(numbers))
                continue
            tasks[at] = of_part
            locations[at] = np.where(numbers < 0, -self._num_tasks, numbers)
        yield self._marked(rows, tasks, locations)

    def _way(self, index: LookupIndex) -> int:
        """The digest that says how rows are sent; see `Assignment`."""
        digest = self._plan.timeline.digest
        if (self._stored if self._is_global else self._router).asks_index:
            return digest_by_index(digest)
        if self._is_global:
            return digest_by_key(index, self._num_tasks, ())
        return digest

    def _tasks(self, keys: pa.Array) -> Tasks:
        """The task of each key of the whole table."""
        tasks = self._spread.ids_by_key(pa.chunked_array([keys]))
        stored = self._stored.tasks(keys, self._num_tasks)
        if stored is not None:
            tasks = np.where(stored < 0, tasks, stored)
        return tasks.astype(np.int32)

    def _marked(self, rows: pa.Table, tasks: Tasks, locations: Numbers) -> pa.Table:
        encoded = encode_locations(self._digest, locations)
        return rows.append_column(TASK_COLUMN, pa.array(tasks)).append_column(
            LOCATION_COLUMN, encoded
        )
