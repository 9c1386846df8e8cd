"""Shows what each micro-batch cost the sink, beside Spark's own ``StreamingQueryProgress``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import HoodieError
from hoodie_ds.sink.metrics import METRICS_KEY
from hoodie_ds.sink.replay_guard import BATCH_KEY, BatchId
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.timeline import load_timeline, read_commit

_LOOK_BACK: Final = 20
"""Commits to look through: other writers' may lie after the batch's own."""

_log = logging.getLogger("hoodie_ds")


class CommitListener(StreamingQueryListener):
    """Reports the metrics of each micro-batch's commit, read from the table.

    Parameters
    ----------
    opts : mapping of str to str
        ``path`` of the table, and what else it takes to read it.
    report : callable, optional
        Takes the metrics by name: ``instant``, ``batch_id``, and the fields of ``WriteMetrics``.
        Logs them by default.

    Examples
    --------
    >>> spark.streams.addListener(hoodie_ds.CommitListener(opts))  # doctest: +SKIP
    """

    def __init__(
        self,
        opts: Mapping[str, str],
        report: Callable[[Mapping[str, str | int]], None] | None = None,
    ) -> None:
        options = ReadOptions.parse(opts)
        self._path, self._storage_options = options.base_path, options.storage_options
        self._report = report or _log_metrics

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report the batch, if it was a commit; a table that cannot be read stops no query."""
        batch = BatchId(str(event.progress.id), int(event.progress.batchId))
        try:
            found = commit_metrics(
                open_storage(self._path, self._storage_options, for_write=False), batch
            )
        except HoodieError as error:
            _log.warning("no metrics of %s: %s", batch, error)
            return
        if found is not None:
            self._report(found)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""


def commit_metrics(storage: Storage, batch: BatchId) -> dict[str, str | int] | None:
    """Read the metrics of a micro-batch's commit; None if it was none, or is long past."""
    for instant in reversed(load_timeline(storage).commits[-_LOOK_BACK:]):
        extra = read_commit(storage, instant).extra
        if extra.get(BATCH_KEY) == batch.to_json():
            metrics = json.loads(extra.get(METRICS_KEY, "{}"))
            return {"instant": instant.time, "batch_id": batch.batch_id, **metrics}
    return None


def _log_metrics(metrics: Mapping[str, str | int]) -> None:
    _log.info("%s", ", ".join(f"{name} {value}" for name, value in metrics.items()))
