"""The buffer of a writer, and the thread that flushes mini-batches (RFC-24, step 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from hoodie_ds.environment import Clock
from hoodie_ds.sink.messages import WriteMetrics


class Flusher:
    """Runs flushes one after another, in the order of their submission.

    One thread is enough: encoders release the interpreter's lock, so it runs in parallel with the
    task's own thread, and a file group's blocks cannot overtake one another.
    """

    def __init__(self, clock: Clock, metrics: WriteMetrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hoodie-flush")
        self._pending: deque[tuple[Future[None], int]] = deque()
        self.in_flight_bytes = 0

    def submit(self, flush: Callable[[], None], size: int) -> None:
        """Submit a flush of `size` bytes, which holds its rows until it has succeeded."""
        self._metrics.num_flushes += 1
        self._metrics.flushed_bytes += size
        self.in_flight_bytes += size
        self._pending.append((self._pool.submit(self._timed, flush), size))

    def collect(self) -> None:
        """Remove finished flushes; like all methods that wait, raise the error of a failed one."""
        while self._pending and self._pending[0][0].done():
            self.wait_for_one()

    def wait_for_one(self) -> None:
        """Wait for the oldest flush, if there is one."""
        if self._pending:
            flush, size = self._pending.popleft()
            flush.result()
            self.in_flight_bytes -= size

    def close(self) -> None:
        """Wait for all flushes."""
        while self._pending:
            self.wait_for_one()
        self._pool.shutdown()

    def discard(self) -> None:
        """Cancel flushes that have not begun, and wait for the others."""
        self._pool.shutdown(cancel_futures=True)

    def _timed(self, flush: Callable[[], None]) -> None:
        started = self._clock.now_ms()
        flush()
        self._metrics.flush_ms += self._clock.now_ms() - started


class RowBuffer:
    """Tables of one schema, in order of arrival."""

    def __init__(self) -> None:
        self._rows: list[pa.Table] = []
        self.nbytes = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows (user columns and ``_hoodie_record_key``)."""
        self._rows.append(rows)
        self.nbytes += rows.nbytes

    def take(self) -> list[pa.Table]:
        """Remove and return all rows, as one table, or none."""
        rows = [pa.concat_tables(self._rows)] if self._rows else []
        self._rows.clear()
        self.nbytes = 0
        return rows
