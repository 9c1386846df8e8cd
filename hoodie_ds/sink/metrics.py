"""What a batch cost, as its commit records it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

METRICS_KEY: Final = "_hoodie_ds_metrics"
"""Key in a commit's extra metadata: JSON object of the fields of `WriteMetrics`."""


@dataclass(slots=True)
class WriteMetrics:
    """Counters of one task, or of all tasks of a batch.

    Parameters
    ----------
    num_flushes : int
        Mini-batches written before their task had all its rows.
    flushed_bytes : int
        Arrow bytes in them.
    max_buffered_bytes : int
        Arrow bytes that a task held at most, those being flushed counted twice.
    write_ms, flush_ms, close_ms : int
        Milliseconds spent in taking rows (waiting for them included), in the thread that flushes,
        and in finishing the files; over several tasks their sum.
    num_compacted : int
        File groups that were compacted beside the batch.
    num_failed_services : int
        Tasks whose part of a table service failed; the log says why.
    service_ms : int
        Milliseconds spent in table services.
    """

    num_flushes: int = 0
    flushed_bytes: int = 0
    max_buffered_bytes: int = 0
    write_ms: int = 0
    flush_ms: int = 0
    close_ms: int = 0
    num_compacted: int = 0
    num_failed_services: int = 0
    service_ms: int = 0

    @staticmethod
    def total(parts: Iterable[WriteMetrics]) -> WriteMetrics:
        """Add tasks up; of what was buffered at most, take the largest."""
        total = WriteMetrics()
        for part in parts:
            largest = max(total.max_buffered_bytes, part.max_buffered_bytes)
            sums = {name: value + getattr(part, name) for name, value in asdict(total).items()}
            total = WriteMetrics(**{**sums, "max_buffered_bytes": largest})
        return total

    @classmethod
    def from_json(cls, text: str) -> WriteMetrics:
        """Read what `to_json` wrote."""
        return cls(**{name: int(value) for name, value in json.loads(text).items()})

    def to_json(self) -> str:
        """Return the metrics as a commit carries them."""
        return json.dumps(asdict(self), sort_keys=True)
