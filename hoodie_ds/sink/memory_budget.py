"""How ``write.task.max.size`` is divided within a task.

The limit covers all that a task holds for its rows, as in Hudi's Flink writer: buffers are half of
it; the other half is for combining rows of one key and for encoding, which need copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.write_options import WriteOptions


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Shares of a task's memory, in Arrow bytes."""

    buffer_bytes: int  # rows waiting to be written, of all file groups
    flush_bytes: int  # rows of one file group flushed together
    encode_bytes: int  # rows encoded as one row group or log block
    locating_bytes: int
    """Rows whose global keys are located together; as much again is for the result."""
    chunk_bytes: int  # rows taken at once
    lookup_bytes: int  # stored record keys that an index caches

    @classmethod
    def of(cls, options: WriteOptions) -> MemoryBudget:
        """Divide the limit of a write."""
        cap = options.task_max_bytes
        return cls(
            cap // 2,
            min(options.batch_bytes, cap // 4),
            cap // 8,
            max(1, cap // 4),
            cap // 16,
            cap // 8,
        )
