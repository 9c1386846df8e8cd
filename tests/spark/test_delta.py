"""SIGKILL of the driver of a stream with a Delta log: readers of Delta see each batch once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.loading import read_commit
from tests.delta import SYNC, assert_same, delta
from tests.spark.streams import Job
from tests.tally import tally
from tests.tiers import by_day

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMPACTED = {"hoodie.compact.inline.max.delta.commits": "2"}


@pytest.mark.parametrize(
    ("job", "point"),
    by_day(
        [("cow", "before the Delta version"), ("mor 9", "Delta version put")],
        [],
    ),
    indirect=["job"],
)
def test_a_driver_killed_beside_its_delta_log(job: Job, point: str) -> None:
    """The batch is in the table; the log has it, or the next one brings it."""
    job.options = {**SYNC, **COMPACTED}
    path = Path(job.path)
    job.run_until_killed(point)
    assert job.actual() in (job.expected(2), job.expected(3))
    before = delta(path)
    keys = before.to_pyarrow_table(columns=["_hoodie_record_key"]).column(0)
    assert len(pc.unique(keys)) == len(keys)
    job.run()
    job.check()
    assert_same(path)
    assert delta(path).transaction_version(query_of(job)) == job.files - 1
    tally("Spark drivers killed")


def query_of(job: Job) -> str:
    """The query, as the commits name it."""
    storage, commits = LocalStorage(job.path), job.table.timeline.commits
    (query,) = {q for instant in commits for q in read_commit(storage, instant).batches}
    return query
