"""Which file groups are put together: the rules of Hudi's size-based plan, and its filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pytest

from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, OptionError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.services.clustering.planner import ClusteringPlanner
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, create_table
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.clustering_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
)
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import marker_path

PLAN = "hoodie.clustering.plan.strategy."
FILTER = "hoodie.clustering.plan.partition.filter.mode"
T1, T2, T3 = "20250101000000000", "20250102000000000", "20250103000000000"
AVRO = arrow_to_avro(pa.schema({"n": pa.int64()}), "t")


def _table(sizes: Mapping[str, int], time: str = T1) -> Table:
    """A table without record keys that has a base file of so many bytes for each path."""
    storage = MemoryStorage()
    options = WriteOptions.parse({"path": "/t", "hoodie.table.name": "t"})
    table = create_table(storage, TableProperties.create(options), 0)
    _commit(storage, sizes, time)
    return table


def _commit(storage: Storage, sizes: Mapping[str, int], time: str) -> None:
    stats = []
    for group, size in sizes.items():
        partition, _, file_id = group.rpartition("/")
        path = f"{group}_0-1-1_{time}.parquet"
        storage.put_if_absent(path, b"x" * size)
        stats.append(WriteStat(file_id, path, partition, file_size_bytes=size))
    body = CommitMetadata(tuple(stats), "INSERT", {SCHEMA_KEY: AVRO}).to_bytes(1)
    for state, data in ((".commit.requested", b""), (".inflight", b""), (".commit", body)):
        storage.put_if_absent(f".hoodie/{time}{state}", data)


_ALONE = f"{PLAN}single.group.clustering.enabled"


def _plan(table: Table, /, **options: str) -> ClusteringPlan | None:
    """By Hudi's default for file groups that no other one comes with."""
    given = {key.replace("__", "."): text for key, text in options.items()}
    parsed = WriteOptions.parse({"path": "/t", _ALONE: "true", **given})
    return ClusteringPlanner(table, parsed).plan(load_timeline(table.storage, 1))


def _groups(plan: ClusteringPlan | None) -> list[list[str]]:
    return [] if plan is None else [_ids(group.slices) for group in plan.groups]


def _ids(slices: Iterable[ClusteringSlice]) -> list[str]:
    return [f"{one.partition_path}/{one.file_id}" for one in slices]


def _limits(**options: str) -> dict[str, str]:
    return {f"{PLAN}{key.replace('_', '.')}": text for key, text in options.items()}


def test_file_groups_are_put_together_the_largest_first_up_to_a_size() -> None:
    table = _table({"p/a-0": 30, "p/b-0": 50, "p/c-0": 40, "p/d-0": 10, "q/e-0": 20})
    plan = _plan(table, **_limits(max_bytes_per_group="90", target_file_max_bytes="40"))
    assert _groups(plan) == [["p/b-0", "p/c-0"], ["p/a-0", "p/d-0"], ["q/e-0"]]
    assert plan is not None
    assert [group.num_output_groups for group in plan.groups] == [3, 1, 1]
    assert plan.groups[2].slices[0].base_file == f"e-0_0-1-1_{T1}.parquet"


def test_a_file_group_above_the_largest_size_comes_alone() -> None:
    table = _table({"p/a-0": 100, "p/b-0": 5})
    plan = _plan(table, **_limits(max_bytes_per_group="50"))
    assert _groups(plan) == [["p/a-0"], ["p/b-0"]]


def test_large_file_groups_are_left_as_they_are() -> None:
    table = _table({"p/a-0": 30, "p/b-0": 31, "p/c-0": 1})
    assert _groups(_plan(table, **_limits(small_file_limit="31"))) == [["p/a-0", "p/c-0"]]
    assert _plan(table, **_limits(small_file_limit="1")) is None


def test_a_plan_has_at_most_the_allowed_groups_and_lists_the_partitions_left_out() -> None:
    table = _table({f"{p}/{n}-0": 10 for p in "pqr" for n in "ab"})
    plan = _plan(table, **_limits(max_num_groups="3", max_bytes_per_group="10"))
    assert _groups(plan) == [["p/a-0"], ["p/b-0"], ["q/a-0"]]
    assert plan is not None
    assert plan.missing_partitions == ("q", "r")


def test_one_file_group_alone_is_rewritten_unless_it_is_switched_off() -> None:
    table = _table({"p/a-0": 10, "q/b-0": 10, "q/c-0": 10})
    assert _groups(_plan(table)) == [["p/a-0"], ["q/b-0", "q/c-0"]]
    assert _groups(_plan(table, **{_ALONE: "false"})) == [["q/b-0", "q/c-0"]]


def test_one_file_group_alone_is_rewritten_by_default_to_be_sorted() -> None:
    table = _table({"p/a-0": 10})
    for columns, expected in (({}, []), ({f"{PLAN}sort.columns": "n"}, [["p/a-0"]])):
        parsed = WriteOptions.parse({"path": "/t", **columns})
        plan = ClusteringPlanner(table, parsed).plan(load_timeline(table.storage, 1))
        assert _groups(plan) == expected


def test_the_latest_slice_is_what_counts() -> None:
    table = _table({"p/a-0": 10, "p/b-0": 10})
    _commit(table.storage, {"p/a-0": 500}, T2)
    assert _groups(_plan(table, **_limits(small_file_limit="100"))) == [["p/b-0"]]


def test_metrics_are_those_of_hudi() -> None:
    table = _table({"p/a-0": 3 << 20, "p/b-0": (1 << 20) + 5})
    log = f"p/.a-0_{T1}.log.1_0-1-1"
    table.storage.put_if_absent(log, b"#HUDI#")
    plan = _plan(table)
    assert plan is not None
    assert plan.groups[0].metrics == {
        "TOTAL_LOG_FILES": 1.0,
        "TOTAL_IO_MB": 8.0,
        "TOTAL_IO_READ_MB": 4.0,
        "TOTAL_LOG_FILES_SIZE": 6.0,
        "TOTAL_IO_WRITE_MB": 4.0,
    }
    assert plan.groups[0].slices[0].log_files == (log.removeprefix("p/"),)


def test_log_files_are_named_as_hudi_does_the_newest_first() -> None:
    table = _table({"p/a-0": 10, "p/b-0": 10})
    logs = [f".a-0_{T1}.log.{number}_0-1-1" for number in (1, 2, 10)]
    for log in logs:
        table.storage.put_if_absent(f"p/{log}", b"#HUDI#")
    plan = _plan(table)
    assert plan is not None
    assert plan.groups[0].slices[0].log_files == tuple(reversed(logs))


def test_file_groups_of_services_and_pending_writes_are_left_out() -> None:
    table = _table({f"p/{n}-0": 10 for n in "abcd"})
    storage = table.storage
    slices = (ClusteringSlice("p", "a-0", ""),)
    planned = ClusteringPlan((ClusteringGroup(slices),)).to_bytes("/t")
    storage.put_if_absent(f".hoodie/{T2}.replacecommit.requested", planned)
    storage.put_if_absent(f".hoodie/{T3}.commit.requested", b"")
    announced = [f"p/b-0_0-2-2_{T3}.parquet", f"p/.c-0_{T1}.log.1_0-2-2", f"p/new_{T3}.parquet"]
    for path in announced:
        storage.put_if_absent(marker_path(T3, path, "CREATE"), b"")
    ended = marker_path("20240101000000000", "p/d-0_0-2-2_20240101000000000.parquet", "CREATE")
    storage.put_if_absent(ended, b"")
    assert _groups(_plan(table)) == [["p/d-0"]]


def test_a_missing_file_is_reported_when_planning() -> None:
    table = _table({"p/a-0": 10, "p/b-0": 10})
    lost = f"p/a-0_0-1-1_{T1}.parquet"
    table.storage.delete(lost)
    with pytest.raises(CorruptFileError, match=f"{lost} is missing"):
        _plan(table)


def test_a_table_without_commits_has_nothing_to_be_clustered() -> None:
    storage = MemoryStorage()
    options = WriteOptions.parse({"path": "/t", "hoodie.table.name": "t"})
    assert _plan(create_table(storage, TableProperties.create(options), 0)) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({FILTER: "RECENT_DAYS"}, ["d3", "d4"]),
        ({FILTER: "RECENT_DAYS", f"{PLAN}daybased.lookback.partitions": "1"}, ["d4"]),
        (
            {
                FILTER: "RECENT_DAYS",
                f"{PLAN}daybased.skipfromlatest.partitions": "1",
            },
            ["d2", "d3"],
        ),
        ({FILTER: "SELECTED_PARTITIONS"}, ["d1", "d2", "d3", "d4"]),
        (
            {
                FILTER: "SELECTED_PARTITIONS",
                f"{PLAN}cluster.begin.partition": "d2",
                f"{PLAN}cluster.end.partition": "d3",
            },
            ["d2", "d3"],
        ),
        ({f"{PLAN}partition.selected": "d3, d1"}, ["d1", "d3"]),
        ({f"{PLAN}partition.selected": "d1", f"{PLAN}partition.regex.pattern": "d3"}, ["d1"]),
        ({f"{PLAN}partition.regex.pattern": "d[23]"}, ["d2", "d3"]),
        ({f"{PLAN}partition.regex.pattern": "1|d4"}, ["d4"]),
        ({f"{PLAN}partition.regex.pattern": "(?i)D1|D.*4"}, ["d1", "d4"]),
        ({"clustering.plan.strategy.partition.regex.pattern": "d"}, []),
    ],
)
def test_partitions_are_chosen(options: dict[str, str], expected: list[str]) -> None:
    table = _table({f"d{n}/a-0": 10 for n in (2, 4, 1, 3)})
    assert _groups(_plan(table, **options)) == [[f"{path}/a-0"] for path in expected]


def test_an_expression_that_takes_time_without_bound_is_refused() -> None:
    with pytest.raises(OptionError, match="without back references"):
        WriteOptions.parse({"path": "/t", f"{PLAN}partition.regex.pattern": r"(a)\1"})


def test_sizes_of_flinks_options_are_megabytes() -> None:
    short = WriteOptions.parse(
        {
            "path": "/t",
            "clustering.plan.strategy.small.file.limit": "600",
            "clustering.plan.strategy.target.file.max.bytes": "1024",
        }
    ).clustering
    assert (short.small_file_bytes, short.target_file_bytes) == (600 << 20, 1024)


def test_a_partition_that_is_not_there_is_named() -> None:
    table = _table({f"{partition}/{n}": 10 for partition in "abcdefg" for n in range(2)})
    selected = {f"hoodie.{PLAN.removeprefix('hoodie.')}partition.selected": "c,x,y"}
    with pytest.raises(OptionError, match=r"x,y.*has a, b, c, d, e, \.\.\.") as caught:
        _plan(table, **selected)
    assert caught.value.key == f"{PLAN}partition.selected"
