"""Rows as a shuffle by the hash of their keys has sent them to tasks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.sink.hidden_columns import (
    LOCATION_COLUMN,
    TASK_COLUMN,
    digest_by_key,
    encode_locations,
)
from hoodie_ds.sink.write_plan import WritePlan


def sent_by_key(plan: WritePlan, rows: pa.Table, tasks: npt.ArrayLike, num_tasks: int) -> pa.Table:
    """Rows with the hidden columns, sent to one task or each to its own."""
    count = rows.num_rows
    owners = pa.array(np.broadcast_to(tasks, count), pa.int32())
    rows = rows.append_column(TASK_COLUMN, owners)
    if not isinstance(plan.index, LookupIndex):
        return rows
    digest = digest_by_key(plan.index, num_tasks, plan.table.properties.partition_fields)
    way = encode_locations(digest, np.full(count, -num_tasks))
    return rows.append_column(LOCATION_COLUMN, way)
