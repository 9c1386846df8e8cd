"""SIGKILL of the driver at named points of a micro-batch, and starts from the checkpoint (T12)."""

from __future__ import annotations

import random
from itertools import product

import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from tests.spark import fail_points
from tests.spark.cluster import two_hosts
from tests.spark.streams import VERSION_9, Job
from tests.tally import tally
from tests.tiers import by_day

pytestmark = pytest.mark.spark

KILLS: dict[str, tuple[str, ...]] = {
    name: (name,)
    for name in (
        "before begin",
        "begun",
        "instant requested",
        "instant open",
        "data file in the middle",
        "data file whole",
        "task done",
        "before commit",
        "manifest put",
        "turn taken",
        "completed file put",
        "committed",
    )
}
KILLS |= {
    "in recovery, before it completes": ("manifest put", "before the completed file"),
    "in recovery, rollback requested": ("data file whole", "rollback requested"),
    "in recovery, rollback half done": ("task done", "data file rolled back"),
    "in recovery, rollback completed": ("before the manifest", "rollback completed"),
}
"""Points at which one application after the other dies; the next one gets through."""

KINDS = [*product(("cow", "mor"), ("", " bloom", " 9"))]

SOME = [
    ("data file in the middle", "mor bloom"),
    ("manifest put", "mor 9"),
    ("in recovery, rollback half done", "mor"),
    ("in recovery, before it completes", "cow bloom"),
]
"""By day; at night all points of all kinds."""


def kill(job: Job, name: str) -> None:
    """Kill a stream in its third batch, look, start it again, and look again."""
    for point in KILLS[name]:
        job.run_until_killed(point)
        assert job.actual() in (job.expected(2), job.expected(3)), "a part of a batch is visible"
    job.run()
    job.check()


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("job", ["append"], indirect=True)
def test_a_driver_killed_while_it_appends(job: Job) -> None:
    kill(job, "data file in the middle")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "job"), SOME, indirect=["job"])
def test_a_driver_killed_at_a_point(job: Job, name: str) -> None:
    kill(job, name)
    tally("Spark drivers killed", len(KILLS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("job", ["append"], indirect=True)
def test_a_driver_killed_within_foreach_batch(job: Job) -> None:
    job.extra = {"foreach_batch": "yes"}
    kill(job, "manifest put")
    tally("Spark drivers killed")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("job", "name"),
    by_day(
        [("append", "data file whole"), ("cow 9", "before begin"), ("mor", "committed")],
        [("append", "data file whole")],
    ),
    indirect=["job"],
)
def test_a_driver_killed_between_two_tables(job: Job, name: str) -> None:
    """Out of one table and into another, each commit of the one as a batch of the other."""
    source = HoodieTable(str(job.folder / "from"), {"hoodie.table.name": "rows", **VERSION_9})
    for number in range(job.files):
        source.insert(pq.read_table(job.folder / "source" / f"{number}.parquet"))
    job.extra = {"out_of": str(job.folder / "from")}
    kill(job, name)
    tally("Spark drivers killed", len(KILLS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("job", by_day(["cow", "mor", "mor bloom"], ()), indirect=True)
def test_a_table_gets_other_versions_between_the_kills_of_its_stream(job: Job) -> None:
    kills = ("manifest put", 9), ("completed file put", 8), ("data file whole", 6)
    for done, (point, version) in enumerate(kills, 1):
        job.run_until_killed(point, after=done)
        change = job.table.upgrade if version == 9 else job.table.downgrade
        change(version)
        assert job.table.properties.version == version
        assert job.actual() in (job.expected(done), job.expected(done + 1))
    job.run()
    job.check()
    tally("Spark drivers killed", len(kills))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", KILLS)
@pytest.mark.parametrize("job", ["".join(kind) for kind in KINDS], indirect=True)
def test_every_point_and_kind(job: Job, name: str) -> None:
    if "data file rolled back" in KILLS[name]:
        # without it the tasks of a copy-on-write table stage rows, and leave no data file
        job.extra = {"shuffle": "yes"}
    kill(job, name)
    tally("streams killed, nightly")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("job", ["mor"], indirect=True)
@pytest.mark.parametrize(("batches", "restarts"), [(12, 2), (500, 10)])
def test_a_long_stream_with_restarts(job: Job, batches: int, restarts: int) -> None:
    """Killed anywhere, again and again."""
    draw = random.Random(batches)
    job.files, job.rows = batches, 40
    job.write_source()
    points = [name for name, single in KILLS.items() if len(single) == 1]
    for restart in range(restarts):
        after = (restart + 1) * batches // (restarts + 1)
        job.run_until_killed(draw.choice(points), after, timeout=1200)
    job.run(timeout=1200)
    job.check()
    tally("batches of streams killed again and again, nightly", batches)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("job", by_day(["cow", "mor bloom"], {"mor bloom"}), indirect=True)
def test_tasks_that_fail_are_tried_again_with_their_rows_in_another_order(job: Job) -> None:
    job.extra = {"master": "local[2,3]", "shuffle": "yes"}
    for after, point in enumerate(("data file begun", "data file in the middle", "task done")):
        fail_points.Armed(point, "raise", after).put(job.points)
    job.run()
    assert len(fail_points.struck(job.points)) == 3
    done = fail_points.attempts(job.folder)
    assert len({(batch, task) for word, batch, task, n in done if word == "ended" and n == 1}) == 3
    job.check()


@pytest.mark.slow
@pytest.mark.parametrize("job", ["mor"], indirect=True)
def test_speculative_attempts(job: Job) -> None:
    """Two attempts of a task at once: the first one sleeps, goes on too late, or is killed."""
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.executor.memory": "1g",
    }
    for after, seconds in enumerate((60.0, 2.0, 60.0)):
        armed = fail_points.Armed("data file in the middle", "wait", after, seconds)
        armed.put(job.points)
    with two_hosts(job.folder / "cluster") as cluster:
        job.extra = {"master": cluster.url, "shuffle": "yes", "conf": conf}
        job.run()
    assert len(fail_points.struck(job.points)) == 3
    done = fail_points.attempts(job.folder)
    second = {(batch, task) for word, batch, task, n in done if word == "ended" and n == 1}
    first = {(batch, task) for word, batch, task, n in done if word == "ended" and n == 0}
    assert len(second - first) >= 2, "no attempt was overtaken by another"
    job.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "seconds"),
    by_day([("cow", 0.1), ("mor bloom", 1.5)], {("mor bloom", 1.5)}),
    indirect=["job"],
)
def test_a_query_stopped_in_the_middle_of_a_write(job: Job, seconds: float) -> None:
    """Its tasks go on for a while, beside those of the query that follows in the application."""
    armed = fail_points.Armed("data file in the middle", "stop", seconds=seconds)
    armed.put(job.points)
    job.run()
    assert fail_points.struck(job.points) == [armed.point]
    job.check()
