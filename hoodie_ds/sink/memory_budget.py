"""How ``write.task.max.size`` is shared out within a task.

The cap is on all that a task holds for its rows, as in Hudi's Flink writer: buffers are half of it;
the other half is for combining rows of one key and for encoding, which need copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.write_options import WriteOptions


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Shares of a task's memory, in Arrow bytes.

    Parameters
    ----------
    buffer_bytes : int
        Rows that wait to be written, those of all file groups together.
    flush_bytes : int
        Rows of one file group that are flushed together.
    encode_bytes : int
        Rows that are encoded as one row group or log block.
    locating_bytes : int
        Rows whose keys are compared together where they are unique in the whole table; half of the
        buffers' share, as the other half is for what comes out of it.
    chunk_bytes : int
        Rows that are taken at once.
    lookup_bytes : int
        Stored record keys that an index keeps for the next rows.
    """

    buffer_bytes: int
    flush_bytes: int
    encode_bytes: int
    locating_bytes: int
    chunk_bytes: int
    lookup_bytes: int

    @classmethod
    def of(cls, options: WriteOptions) -> MemoryBudget:
        """Share out the cap of a write."""
        cap = options.task_max_bytes
        return cls(
            cap // 2,
            min(options.batch_bytes, cap // 4),
            cap // 8,
            max(1, cap // 4),
            cap // 16,
            cap // 8,
        )
