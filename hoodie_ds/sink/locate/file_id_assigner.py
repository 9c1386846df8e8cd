"""RFC-24's file id assigner: upstream of the shuffle it says which task each row belongs to.

Updates go to the task of the file group that holds their key; inserts are spread over the tasks by
their key, and join the small files of the task that they come to. So rows of one file group, and
rows of one key, always meet in one task.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.arrow_columns import Numbers
from hoodie_ds.formats.conform import conform
from hoodie_ds.index.bucket import KeyParsing
from hoodie_ds.index.bucket_layout import BucketLayout, first_task
from hoodie_ds.meta_columns import RECORD_KEY
from hoodie_ds.sink.hidden_columns import LOCATION_COLUMN, TASK_COLUMN, encode_locations
from hoodie_ds.sink.locate.routers import IndexRouter
from hoodie_ds.sink.records import KeyedRows
from hoodie_ds.sink.write_plan import WritePlan

_POSITION: Final = "_hoodie_ds_position"


class FileIdAssigner:
    """Assigns rows of a table whose index looks keys up.

    Parameters
    ----------
    plan : WritePlan
        What the coordinator would decide, in a view that all assigners of the batch share.
    num_tasks : int
        Tasks that the shuffle spreads rows over.
    """

    def __init__(self, plan: WritePlan, num_tasks: int) -> None:
        self._plan = plan
        self._num_tasks = num_tasks
        self._router = IndexRouter(plan)
        self._spread = key_spread(plan.table.properties.record_key_fields, num_tasks)

    def assign(self, rows: pa.Table) -> pa.Table:
        """Add the hidden columns to rows.

        Parameters
        ----------
        rows : pyarrow.Table
            As they come from Spark.

        Returns
        -------
        pyarrow.Table
            The rows in their order. One whose key is in several file groups comes once for each,
            since their tasks may be different ones.
        """
        typed = conform(rows, self._plan.schema)
        typed = typed.append_column(_POSITION, pa.array(np.arange(rows.num_rows)))
        parts = [
            (part.column(_POSITION).to_numpy(), *self._assigned(path, part, numbers))
            for path, part, numbers in self._router.locate(KeyedRows(self._plan, typed))
        ]
        at, tasks, locations = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(at, kind="stable")
        at = at[order]
        if len(at) > rows.num_rows:
            rows = rows.take(at)
        copies = np.diff(at, prepend=-1) == 0
        encoded = encode_locations(self._plan.timeline.digest, locations[order], copies)
        return rows.append_column(TASK_COLUMN, pa.array(tasks[order])).append_column(
            LOCATION_COLUMN, encoded
        )

    def _assigned(self, path: str, part: pa.Table, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """The task and the location of each row of a partition."""
        by_key = self._spread.key_buckets(part.column(RECORD_KEY))
        slots = np.where(numbers < 0, by_key, numbers)
        tasks = (first_task(path, self._num_tasks) + slots) % self._num_tasks
        return tasks.astype(np.int32), np.where(numbers < 0, -self._num_tasks, numbers)


def key_spread(record_key_fields: tuple[str, ...], num_tasks: int) -> BucketLayout:
    """Return a layout of one bucket for each task, to spread keys evenly."""
    keys = record_key_fields
    return BucketLayout(num_tasks, keys, keys, KeyParsing.LAST_COMMA_BEFORE_COLON)
