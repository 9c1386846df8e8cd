"""Reports what each micro-batch cost the sink, next to Spark's own ``StreamingQueryProgress``."""

from __future__ import annotations

import atexit
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
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
from hoodie_ds.errors import HoodieError
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.inspection.commit_metrics import MetricsSink, commit_metrics
from hoodie_ds.log import LOGGER, Log
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.storage.connect import storage_to_read

_LAST_REPORTS_MS: Final = 2_000
"""How long the end of a process waits for the reports of finished batches."""


class CommitListener(StreamingQueryListener):
    """Reports the metrics of each micro-batch's commit, read from the table.

    Parameters
    ----------
    opts : mapping of str to str
        ``path`` of the table, and options to read it.
    report : MetricsSink, optional
        Takes the metrics of each commit. By default they are logged at level INFO, or, in a process
        that has set up no logging, written to standard error.

    Examples
    --------
    >>> listener = hoodie_ds.CommitListener(opts)
    >>> spark.streams.addListener(listener)
    """

    def __init__(
        self,
        opts: Mapping[str, str],
        report: MetricsSink | None = None,
    ) -> None:
        self._options = ReadOptions.parse(given_options(opts))
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
            Log(self._options.base_path).warning("no metrics of %s: %s", batch, error)
            return
        if found is not None:
            self._report({"path": self._options.base_path, **found})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""


def _show(metrics: Mapping[str, str | int]) -> None:
    path, instant = str(metrics["path"]), str(metrics["instant"])
    line = ", ".join(f"{name} {value}" for name, value in metrics.items() if name != "path")
    if LOGGER.hasHandlers():
        Log(path, instant).info("%s", line)
    else:  # Python would drop it
        sys.stderr.write(f"hoodie_ds: {path}: {line}\n")


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
