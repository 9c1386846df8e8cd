"""Exactly once on real Spark: replayed batches, instants of several batches, other masters."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.timeline.instant import Action
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.spark.streams import KEYED, Job
from tests.tally import tally
from tests.tiers import AT_NIGHT, by_day

pytestmark = pytest.mark.spark


SERVICES = {"cow": [Action.CLEAN], "mor": [Action.COMMIT]}
"""What a job does for a table after some batches: a first compaction leaves nothing to clean."""


def delete_newest_commit_log_entry(checkpoint: Path) -> None:
    commits = checkpoint / "commits"
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / f"{newest}").unlink()
    (commits / f".{newest}.crc").unlink(missing_ok=True)


@pytest.mark.slow  # test_replay.py has the same in one session
@pytest.mark.parametrize(
    ("job", "foreach_batch"),
    [
        pytest.param("cow", "", marks=AT_NIGHT),
        ("mor", ""),
        pytest.param("append", "", marks=AT_NIGHT),
        ("append", "yes"),
    ],
    indirect=["job"],
)
def test_a_replayed_batch_changes_nothing(job: Job, foreach_batch: str) -> None:
    job.extra = {"foreach_batch": foreach_batch}
    job.run()
    before = [str(instant) for instant in job.table.timeline.completed]
    assert len(before) == job.files
    assert job.actual() == job.expected()
    delete_newest_commit_log_entry(job.folder / "checkpoint")
    job.run()
    assert [str(instant) for instant in job.table.timeline.completed] == before
    assert job.actual() == job.expected()


def num_commits(job: Job) -> int:
    return len(job.table.timeline.commits)


@pytest.mark.slow
@pytest.mark.parametrize("job", by_day(["mor", "mor 9", "append"], {"mor 9"}), indirect=True)
def test_an_instant_over_several_batches_and_a_driver_killed_in_it(job: Job) -> None:
    job.options = {"hoodie.streaming.batches.per.commit": "4"}
    # The first two batches are in, the third is under way.
    job.run_until_killed("data file in the middle")
    tally("Spark drivers killed")
    assert num_commits(job) == 0
    job.run()
    assert num_commits(job) == 1
    delete_newest_commit_log_entry(job.folder / "checkpoint")
    job.run()
    assert num_commits(job) == 1
    # The fifth batch waits in an instant of its own, which whoever comes next completes.
    options = {**KEYED, "hoodie.table.name": "events"} if job.kind != "append" else {}
    nothing = pq.read_schema(job.folder / "source" / "0.parquet").empty_table()
    HoodieTable(str(job.folder / "table"), options).insert(nothing)
    assert num_commits(job) == 2
    assert job.actual() == job.expected()
    assert_same_rows(read_with_hudi_rs(str(job.folder / "table")), job.table.read())


@pytest.mark.slow
@pytest.mark.parametrize("job", by_day(["cow", "mor", "mor 9"], {"mor"}), indirect=True)
def test_local_cluster(job: Job) -> None:
    job.extra = {"master": "local-cluster[2,1,1024]", "shuffle": "yes"}
    job.run()
    assert job.actual() == job.expected()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "foreach_batch"),
    by_day(product(("cow", "mor"), ("", "yes")), {("cow", "yes")}),
    indirect=["job"],
)
def test_spark_connect(job: Job, foreach_batch: str) -> None:
    job.extra = {"remote": "local[2]", "shuffle": "yes", "foreach_batch": foreach_batch}
    # The stream leaves its services to a job.
    job.options = {"hoodie.table.services.enabled": "false"}
    job.extra["services"] = {
        "hoodie.table.services.enabled": "true",
        "hoodie.compact.inline.max.delta.commits": str(job.files),
        "hoodie.clean.commits.retained": "1",
    }
    out = job.run()
    assert job.actual() == job.expected()
    actions = [instant.action for instant in job.table.timeline.completed]
    assert actions[job.files :] == SERVICES[job.kind]
    expected = job.expected()
    assert isinstance(expected, dict)
    assert int(out.split()[-1]) == len(expected)
