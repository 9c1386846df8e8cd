"""The metrics of a micro-batch's commit, and who may take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Final, Protocol

from hoodie_ds.errors import TableNotFoundError
from hoodie_ds.inspection.instants import CommitRow
from hoodie_ds.services.failures import noted_failures
from hoodie_ds.sink.messages import METRICS_KEY
from hoodie_ds.sink.replay_guard import BATCH_KEY, BatchId
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.loading import read_commit

_LOOK_BACK: Final = 20
"""Commits to search: other writers may have committed after the batch."""


class MetricsSink(Protocol):
    """Takes the metrics of commits: any callable that sends them to OpenTelemetry, StatsD, a log.

    It is called once for each commit. Strings are attributes, such as ``path`` and ``instant``;
    integers are measurements of this commit alone, so that they can be added up, but for
    ``batch_id``, which numbers the batch, and ``max_buffered_bytes``. Names that end with ``_ms``
    are milliseconds, with ``_bytes`` bytes; all others are counts. "What each micro-batch costs" in
    ``conf/README.md`` lists them. More may be added, and none is renamed.
    """

    def __call__(self, metrics: Mapping[str, str | int], /) -> object:
        """Take the metrics of one commit by name; the return value is ignored."""


def commit_metrics(storage: Storage, batch: BatchId) -> dict[str, str | int] | None:
    """Read the metrics of a micro-batch's commit; None if there is none, or it is long past."""
    try:
        timeline = open_table(storage).load_timeline()
    except TableNotFoundError:  # there was no row yet
        return None
    for instant in islice(timeline.commits_backwards(), _LOOK_BACK):
        commit = read_commit(storage, instant)
        if commit.extra.get(BATCH_KEY) == batch.to_json():
            did = CommitRow.of(instant, commit)
            return {
                "instant": instant.time,
                "batch_id": batch.batch_id,
                "num_rows": did.rows_in or 0,
                "num_inserts": did.inserted,
                "num_updates": did.updated,
                "num_deletes": did.deleted,
                "num_files": did.files,
                "written_bytes": did.bytes,
                **json.loads(commit.extra.get(METRICS_KEY, "{}")),
                **_failures(storage, instant),
            }
    return None


def _failures(storage: Storage, instant: Instant) -> dict[str, str | int]:
    """The table services that failed after a commit, which does not know of those on the driver."""
    failed = noted_failures(storage, instant.time)
    if not failed:
        return {}
    return {"num_failed_services": len(failed), "failed_services": "; ".join(map(str, failed))}
