"""Reports what each micro-batch cost the sink, next to Spark's own ``StreamingQueryProgress``."""

from __future__ import annotations

import atexit
import json
import logging
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.utils import is_remote

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import HoodieError, TableNotFoundError
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.services.failures import noted_failures
from hoodie_ds.sink.messages import METRICS_KEY
from hoodie_ds.sink.replay_guard import BATCH_KEY, BatchId
from hoodie_ds.storage.connect import storage_to_read
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.loading import read_commit

_LOOK_BACK: Final = 20
"""Commits to search: other writers may have committed after the batch."""

_LAST_REPORTS_MS: Final = 2_000
"""How long the end of a process waits for the reports of finished batches."""

_log = logging.getLogger("hoodie_ds")


class CommitListener(StreamingQueryListener):
    """Reports the metrics of each micro-batch's commit, read from the table.

    Parameters
    ----------
    opts : mapping of str to str
        ``path`` of the table, and options to read it.
    report : callable, optional
        Takes the metrics by name: ``path`` of the table, ``instant``, ``batch_id``, and the fields
        of ``WriteMetrics``; if table services of the batch failed, ``failed_services`` says which
        and why, and ``num_failed_services`` counts those of the driver too. By default they are
        logged at level INFO, or, in a process that has set up no logging, written to standard
        error.

    Examples
    --------
    >>> spark.streams.addListener(hoodie_ds.CommitListener(opts))  # doctest: +SKIP
    """

    def __init__(
        self,
        opts: Mapping[str, str],
        report: Callable[[Mapping[str, str | int]], None] | None = None,
    ) -> None:
        options = ReadOptions.parse(given_options(opts))
        self._options = options
        self._report = report or _show
        atexit.register(_leave, weakref.ref(self))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report the batch, if it was a commit; a table that cannot be read stops no query."""
        batch = BatchId(str(event.progress.id), int(event.progress.batchId))
        try:
            found = commit_metrics(storage_to_read(self._options), batch)
        except HoodieError as error:
            _log.warning("no metrics of %s: %s", batch, error)
            return
        if found is not None:
            self._report({"path": self._options.base_path, **found})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""


def commit_metrics(storage: Storage, batch: BatchId) -> dict[str, str | int] | None:
    """Read the metrics of a micro-batch's commit; None if there is none, or it is long past."""
    try:
        timeline = open_table(storage).load_timeline()
    except TableNotFoundError:  # there was no row yet
        return None
    for instant in islice(timeline.commits_backwards(), _LOOK_BACK):
        extra = read_commit(storage, instant).extra
        if extra.get(BATCH_KEY) == batch.to_json():
            metrics = json.loads(extra.get(METRICS_KEY, "{}"))
            failed = noted_failures(storage, instant.time)
            if failed:  # the commit does not know of those on the driver
                metrics["num_failed_services"] = len(failed)
                metrics["failed_services"] = "; ".join(map(str, failed))
            return {"instant": instant.time, "batch_id": batch.batch_id, **metrics}
    return None


def _show(metrics: Mapping[str, str | int]) -> None:
    line = ", ".join(f"{name} {value}" for name, value in metrics.items())
    if _log.hasHandlers():
        _log.info("%s", line)
    else:  # Python would drop it
        sys.stderr.write(f"hoodie_ds: {line}\n")


def _leave(own: weakref.ref[CommitListener]) -> None:
    """Remove a listener at the end of the process, once finished batches are reported.

    Otherwise Spark would go on calling it, and print the stack of each unanswered call.
    """
    listener, spark = own(), SparkSession.getActiveSession()
    if listener is None or spark is None or is_remote():
        return
    with suppress(Py4JError, PySparkException):
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_LAST_REPORTS_MS)
    with suppress(Py4JError, PySparkException):
        spark.streams.removeListener(listener)
