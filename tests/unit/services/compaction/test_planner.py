"""When a compaction is due, and which file groups it takes: by the rules of Apache Hudi."""

from __future__ import annotations

import pytest

from hoodie_ds.services.compaction.planner import CompactionPlanner
from hoodie_ds.services.results import Compaction
from hoodie_ds.testing import FaultyStorage, Kind
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import instant_path
from tests.faults import foreign
from tests.faults.writers import Place
from tests.tables import trips
from tests.unit.services.compaction.compacted_tables import (
    compactor,
    rows,
    scheduled,
    table,
    timeline,
    upsert,
)

TRIGGER = "hoodie.compact.inline.trigger.strategy"
COMMITS = "hoodie.compact.inline.max.delta.commits"
SECONDS = "hoodie.compact.inline.max.delta.seconds"
STRATEGY = "hoodie.compaction.strategy"
CLASSES = "org.apache.hudi.table.action.compact.strategy."
IO = "hoodie.compaction.target.io"


def _is_due(place: Place, **options: str) -> bool:
    """In the second after the last write."""
    worker = compactor(place, **options)
    planner = CompactionPlanner(worker.table, worker.context.options)
    time = f"{int(str(timeline(place).latest_time)[:14]) + 1}000"
    return planner.is_due(timeline(place), time)


@pytest.mark.parametrize(
    ("trigger", "commits", "seconds", "due"),
    [
        ("NUM_COMMITS", 3, 99, True),
        ("NUM_COMMITS", 4, 1, False),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 3, 99, True),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 4, 1, False),
        ("TIME_ELAPSED", 99, 3, True),
        ("TIME_ELAPSED", 1, 4, False),
        ("NUM_AND_TIME", 3, 3, True),
        ("NUM_AND_TIME", 3, 4, False),
        ("NUM_AND_TIME", 4, 3, False),
        ("NUM_OR_TIME", 3, 4, True),
        ("NUM_OR_TIME", 4, 3, True),
        ("NUM_OR_TIME", 4, 4, False),
    ],
)
def test_a_first_compaction_counts_from_the_first_delta_commit(
    trigger: str, commits: int, seconds: int, due: bool
) -> None:
    """Of the three delta commits the first lies three seconds before the plan."""
    place = table("x")
    upsert(place, 3, "x")
    assert _is_due(place, **{TRIGGER: trigger, COMMITS: str(commits), SECONDS: str(seconds)}) is due


def test_the_next_one_counts_from_the_last_compaction() -> None:
    place = table("x")
    assert place.table.compact()
    upsert(place, 3, "x")
    assert _is_due(place, **{COMMITS: "1"})
    assert not _is_due(place, **{COMMITS: "2"})
    # It was planned in the second after the second commit, in which the next one was written too.
    assert _is_due(place, **{TRIGGER: "TIME_ELAPSED", SECONDS: "2"})
    assert not _is_due(place, **{TRIGGER: "TIME_ELAPSED", SECONDS: "3"})


def test_a_plan_counts_only_where_requests_do() -> None:
    place = table("x")
    scheduled(place)
    upsert(place, 3, "x")
    assert _is_due(place, **{COMMITS: "3"})
    assert not _is_due(place, **{TRIGGER: "NUM_COMMITS_AFTER_LAST_REQUEST", COMMITS: "2"})
    assert _is_due(place, **{TRIGGER: "NUM_COMMITS_AFTER_LAST_REQUEST", COMMITS: "1"})


def test_nothing_is_due_in_a_table_without_delta_commits() -> None:
    place = table("x")
    time = timeline(place).latest_time
    gone = (".deltacommit", ".deltacommit.inflight", ".deltacommit.requested")
    for path in [path for path in place.storage.files if path.endswith(gone)]:
        place.storage.delete(path)
    worker = compactor(place, **{TRIGGER: "NUM_OR_TIME", COMMITS: "1", SECONDS: "1"})
    planner = CompactionPlanner(worker.table, worker.context.options)
    assert not planner.is_due(timeline(place), str(time))


def _plan(place: Place, **options: str) -> CompactionPlan | None:
    return compactor(place, **options).preview()


def _partitions(plan: CompactionPlan | None) -> list[str]:
    return [] if plan is None else [one.partition_path for one in plan.operations]


def test_a_plan_names_the_files_of_each_slice_with_their_sizes() -> None:
    place = table("x")
    upsert(place, 3, "x")
    (slice_,) = foreign.slices(place.storage, "x")
    assert slice_.base is not None
    first, second = slice_.logs
    plan = _plan(place)
    assert plan is not None
    assert plan.operations == (
        CompactionOperation(
            "x",
            slice_.group.file_id,
            timeline(place).commits[0].time,
            str(slice_.base.name),
            (first.file_name, second.file_name),
            {
                "TOTAL_LOG_FILES": 2.0,
                "TOTAL_LOG_FILES_SIZE": float(first.size + second.size),
                "TOTAL_IO_READ_MB": 0.0,
                "TOTAL_IO_WRITE_MB": 0.0,
                "TOTAL_IO_MB": 0.0,
            },
        ),
    )


def test_a_slice_without_a_base_file_is_written_as_a_whole_one() -> None:
    """Of its size nothing is known, so Hudi takes that of a full base file: 120 MB."""
    place = table("x")
    place.table.delete(rows(1, "z").select(["id", "city"]))
    plan = _plan(place)
    assert plan is not None
    (metrics,) = (one.metrics for one in plan.operations if one.base_file is None)
    assert (metrics["TOTAL_IO_WRITE_MB"], metrics["TOTAL_IO_MB"]) == (120.0, 120.0)


def _unequal() -> Place:
    """Partitions with two, three and four log files, of which the first's are the largest."""
    place = table("a", "b", "c")
    for number, partitions in ((3, "bc"), (4, "bc"), (5, "c")):
        upsert(place, number, *partitions)
    place.clock.advance(1000)
    place.table.upsert(trips(*((f"a long key {i}", "a", i, i / 7) for i in range(1000))))
    return place


def _log_bytes(place: Place) -> dict[str, int]:
    slices = {partition: foreign.slices(place.storage, partition)[0] for partition in "abc"}
    return {p: sum(log.size for log in found.logs) for p, found in slices.items()}


@pytest.mark.parametrize(
    ("strategy", "chosen"),
    [
        ("LogFileSizeBased", ["a", "c", "b"]),
        ("LogFileNumBased", ["c", "b", "a"]),
        ("BoundedIO", ["a", "b", "c"]),
        ("UnBounded", ["a", "b", "c"]),
    ],
)
def test_a_strategy_orders(strategy: str, chosen: list[str]) -> None:
    place = _unequal()
    sizes = _log_bytes(place)
    assert sizes["a"] > sizes["c"] > sizes["b"]
    options = {STRATEGY: f"{CLASSES}{strategy}CompactionStrategy"}
    assert _partitions(_plan(place, **options)) == chosen
    if strategy == "LogFileSizeBased":
        assert _partitions(_plan(place)) == chosen, "it is the default"


def test_few_log_files_wait_by_option() -> None:
    options = {
        STRATEGY: f"{CLASSES}LogFileNumBasedCompactionStrategy",
        "hoodie.compaction.logfile.num.threshold": "3",
    }
    plan = _plan(_unequal(), **options)
    assert _partitions(plan) == ["c", "b"]
    assert plan is not None
    assert plan.missing_partitions == ("a",)


def test_few_bytes_of_log_files_wait_by_option() -> None:
    place = _unequal()
    least = _log_bytes(place)["c"]
    plan = _plan(place, **{"hoodie.compaction.logfile.size.threshold": str(least)})
    assert _partitions(plan) == ["a", "c"]
    assert plan is not None
    assert plan.missing_partitions == ("b",)
    assert _plan(place, **{"hoodie.compaction.logfile.size.threshold": str(10**9)}) is None


def test_slices_beyond_the_target_wait_for_the_next_plan() -> None:
    """Slices without a base file count 120 MB each: two reach a target of 200 MB."""
    place = table("x")
    for partition in ("p", "q", "r"):
        place.clock.advance(1000)
        place.table.delete(rows(1, partition).select(["id", "city"]))
    bounded = {STRATEGY: f"{CLASSES}BoundedIOCompactionStrategy", IO: "200"}
    plan = _plan(place, **bounded)
    assert _partitions(plan) == ["p", "q"]
    assert plan is not None
    assert plan.missing_partitions == ("r", "x")
    unbounded = {STRATEGY: f"{CLASSES}UnBoundedCompactionStrategy", IO: "200"}
    assert _partitions(_plan(place, **unbounded)) == ["p", "q", "r", "x"]


@pytest.mark.parametrize("archived", [True, False])
def test_partitions_that_a_plan_left_out_are_looked_at_again(archived: bool) -> None:
    """Also when the commits that wrote to them are archived."""
    place = table("x", "y")
    (done,) = place.table.compact()
    assert sorted(_partitions(done.plan)) == ["x", "y"]
    upsert(place, 3, "x", "y")
    upsert(place, 4, "x")
    chosen = _bounded(place)
    assert chosen.plan.missing_partitions == ("y",)
    before = [instant.time for instant in timeline(place).commits][:-1]
    upsert(place, 5, "z")
    if archived:
        foreign.archive(place.storage, before)
    assert "y" in _partitions(_plan(place))


def _bounded(place: Place) -> Compaction:
    """Compact those with two log files, not those with one."""
    strategy = {
        STRATEGY: f"{CLASSES}LogFileNumBasedCompactionStrategy",
        "hoodie.compaction.logfile.num.threshold": "2",
    }
    (done,) = place.table.compact(strategy)
    return done


def test_of_a_compacted_table_only_partitions_with_log_files_are_listed() -> None:
    place = table("x", "y")
    place.table.compact()
    upsert(place, 3, "y")
    storage = FaultyStorage(place.storage)
    assert _partitions(compactor(place, storage).preview()) == ["y"]
    listed = {one.path for one in storage.recorder.operations if one.kind is Kind.LIST}
    assert "y" in listed
    assert not listed & {"", "x"}


def test_all_partitions_are_listed_if_the_last_plan_is_gone() -> None:
    place = table("x", "y")
    (done,) = place.table.compact()
    upsert(place, 3, "x", "y")
    requested = Instant(str(done.instant_time), Action.COMPACTION, State.REQUESTED)
    place.storage.delete(instant_path(requested))
    assert sorted(_partitions(_plan(place))) == ["x", "y"]


def test_groups_in_another_plan_are_left_out() -> None:
    place = table("x", "y", "z")
    time = following(str(timeline(place).latest_time))
    foreign.plan_compaction(place.storage, time, foreign.slices(place.storage, "x"))
    clustering = following(time)
    foreign.plan_clustering(place.storage, clustering, foreign.slices(place.storage, "y"))
    assert _partitions(_plan(place)) == ["z"]


@pytest.mark.parametrize("action", [Action.DELTA_COMMIT, Action.REPLACE_COMMIT])
def test_nothing_is_planned_while_a_write_is_pending(action: Action) -> None:
    """Its log files would be of slices that are compacted without them."""
    place = table("x")
    time = following(str(timeline(place).latest_time))
    instant = Instant(time, action, State.REQUESTED)
    place.storage.put_if_absent(instant_path(instant), b"")
    assert _plan(place) is None
    assert not place.table.compact()


def test_log_files_that_no_commit_names_are_not_planned() -> None:
    """Those of a late task: another engine would look for them after they were swept."""
    place = table("x", "y")
    (slice_,) = foreign.slices(place.storage, "x")
    name = slice_.logs[0].file_name.replace(".log.1_", ".log.2_")
    place.storage.put_if_absent(f"x/{name}", b"")
    plan = _plan(place)
    assert plan is not None
    assert [len(one.log_files) for one in plan.operations] == [1, 1]
    place.table.compact()
    upsert(place, 3, "y")
    (slice_,) = foreign.slices(place.storage, "x")
    late = f".{slice_.group.file_id}_{slice_.base_instant}.log.1_0-1-1"
    place.storage.put_if_absent(f"x/{late}", b"")
    assert _partitions(_plan(place)) == ["y"]
