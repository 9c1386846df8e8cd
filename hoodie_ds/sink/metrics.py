"""What a batch cost, as recorded in its commit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

METRICS_KEY: Final = "_hoodie_ds_metrics"
"""Key in a commit's extra metadata: JSON object of the fields of `WriteMetrics`."""


@dataclass(slots=True)
class WriteMetrics:
    """Counters of one task, or of all tasks of a batch."""

    num_flushes: int = 0  # mini-batches written before their task had all its rows
    flushed_bytes: int = 0
    max_buffered_bytes: int = 0  # in Arrow; bytes being flushed count twice
    write_ms: int = 0  # taking rows, and waiting for them
    flush_ms: int = 0  # in the thread that flushes
    close_ms: int = 0  # finishing the files
    num_compacted: int = 0  # file groups compacted by the batch
    num_failed_services: int = 0  # tasks whose part of a table service failed
    service_ms: int = 0

    @staticmethod
    def total(parts: Iterable[WriteMetrics]) -> WriteMetrics:
        """Add tasks up; of the largest buffers, take the largest."""
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
