"""Rows that say which kind of change they are, as Flink writes them in changelog mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa

from hoodie_ds.sink import records

Change = tuple[str | None, str, int, str]


def changes(*rows: Change) -> pa.Table:
    """Rows: operation, id, ts, v."""
    operations, keys, times, values = zip(*rows, strict=True)
    return pa.table(
        {
            "_hoodie_operation": pa.array(operations, pa.string()),
            "id": pa.array(keys),
            "ts": pa.array(times, pa.int64()),
            "v": pa.array(values),
        }
    )


def content(rows: pa.Table) -> list[tuple[str, int, str]]:
    """What is left, without the operations: Hudi on Spark stores nulls there."""
    return sorted((row["id"], row["ts"], row["v"]) for row in rows.to_pylist())


BATCHES = (
    changes(("I", "a", 5, "1"), ("I", "b", 5, "1"), ("I", "c", 5, "1"), ("I", "d", 5, "1"),
            ("D", "e", 5, "1"), ("-U", "f", 5, "1"), ("U", "g", 5, "1")),
    changes(("U", "a", 6, "2"), ("D", "b", 6, "2"), ("-U", "c", 6, "2"), ("D", "d", 1, "2"),
            ("U", "e", 6, "2"), ("D", "h", 6, "2")),
    changes(("I", "b", 7, "3"), ("-U", "g", 8, "3"), ("U", "g", 9, "4")),
)  # fmt: skip
BY_EVENT_TIME = (
    [("a", 5, "1"), ("b", 5, "1"), ("c", 5, "1"), ("d", 5, "1"), ("g", 5, "1")],
    [("a", 6, "2"), ("d", 5, "1"), ("e", 6, "2"), ("g", 5, "1")],
    [("a", 6, "2"), ("b", 7, "3"), ("d", 5, "1"), ("e", 6, "2"), ("g", 9, "4")],
)
"""What Apache Hudi 1.2 on Spark has after each batch; `tests/interop` asks it."""
BY_COMMIT_TIME = (
    BY_EVENT_TIME[0],
    *([row for row in rows if row[0] != "d"] for rows in BY_EVENT_TIME[1:]),
)


@contextmanager
def logged_as_rows() -> Iterator[None]:
    """Let writes take no row for a delete, as Flink does: it logs them as they are."""

    def none(plan: object, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.zeros(rows.num_rows, dtype=np.bool_)

    with mock.patch.object(records, "are_deletes", none):
        yield
