"""What the user says about clustering: which of Hudi's classes plans it."""

from __future__ import annotations

import logging
import re

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import PartitionFilter
from hoodie_ds.config.ignored_options import IGNORED, IGNORED_PREFIXES, reason_to_warn
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from tests.tables import TRIPS, trips

CLASS = "hoodie.clustering.plan.strategy.class"
FILTER = "hoodie.clustering.plan.partition.filter.mode"
PACKAGE = "org.apache.hudi.client.clustering.plan.strategy."


@pytest.mark.parametrize("key", [CLASS, "clustering.plan.strategy.class"])
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("SparkSizeBasedClusteringPlanStrategy", "NONE"),
        ("FlinkSizeBasedClusteringPlanStrategy", "NONE"),
        ("SparkRecentDaysClusteringPlanStrategy", "RECENT_DAYS"),
        ("SparkSelectedPartitionsClusteringPlanStrategy", "SELECTED_PARTITIONS"),
    ],
)
def test_a_class_stands_for_what_hudi_makes_of_it(key: str, name: str, mode: str) -> None:
    """As ``TestClusteringPlanStrategyConfigCompatibility`` of Hudi has it."""
    parsed = WriteOptions.parse({"path": "/t", key: PACKAGE + name})
    assert parsed.clustering.partition_filter is PartitionFilter(mode)
    same = WriteOptions.parse({"path": "/t", key: PACKAGE + name, FILTER: mode})
    assert same.clustering == parsed.clustering


def test_a_class_of_sizes_leaves_the_filter_to_its_option() -> None:
    options = {"path": "/t", CLASS: f"{PACKAGE}SparkSizeBasedClusteringPlanStrategy"}
    parsed = WriteOptions.parse({**options, FILTER: "RECENT_DAYS"})
    assert parsed.clustering.partition_filter is PartitionFilter.RECENT_DAYS


def test_a_class_and_a_filter_that_differ_are_refused() -> None:
    options = {"path": "/t", CLASS: f"{PACKAGE}SparkRecentDaysClusteringPlanStrategy"}
    message = f"{FILTER}' = 'NONE' is refused: the class that {CLASS} names stands for RECENT_DAYS"
    with pytest.raises(OptionError, match=re.escape(message)):
        WriteOptions.parse({**options, FILTER: "NONE"})


@pytest.mark.parametrize(
    "name", ["SparkConsistentBucketClusteringPlanStrategy", "SparkSingleFileSortPlanStrategy"]
)
def test_another_class_is_refused_with_those_that_are_there(name: str) -> None:
    table = HoodieTable("memory://classes-of-clustering", TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0)))
    allowed = f"{PACKAGE}SparkSizeBasedClusteringPlanStrategy"
    with pytest.raises(OptionError, match=f"{re.escape(name)}' is refused: .*{re.escape(allowed)}"):
        table.cluster({CLASS: PACKAGE + name})


def test_partitions_that_are_selected_by_class_are_clustered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = HoodieTable("memory://selected-by-class", TRIPS | {"hoodie.index.type": "SIMPLE"})
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0), ("c", "z", 1, 1.0)))
    first, last = (
        f"hoodie.clustering.plan.strategy.cluster.{w}.partition" for w in ("begin", "end")
    )
    options = {CLASS: f"{PACKAGE}SparkSelectedPartitionsClusteringPlanStrategy"}
    with caplog.at_level(logging.WARNING):
        alone = "hoodie.clustering.plan.strategy.single.group.clustering.enabled"
        (done,) = table.cluster({**options, first: "y", last: "z", alone: "true"}, dry=True)
    paths = [one.partition_path for group in done.plan.groups for one in group.slices]
    assert sorted(paths) == ["y", "z"]
    assert CLASS not in caplog.text


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.archive.merge.enable",
        "hoodie.clean.multiple.enabled",
        "hoodie.clustering.execution.strategy.class",
        "hoodie.clustering.inline",
        "hoodie.compaction.preserve.commit.metadata",
        "hoodie.layout.optimize.curve.build.method",
        "clustering.tasks",
        "compaction.tasks",
    ],
)
def test_no_service_that_there_is_counts_as_missing(key: str) -> None:
    reason = reason_to_warn(key, "x")
    assert reason
    assert "no such table service" not in reason


def test_log_compaction_and_expiry_alone_are_no_services_here() -> None:
    told = {key for key, why in {**IGNORED, **IGNORED_PREFIXES}.items() if "no such table" in why}
    assert told == {"hoodie.log.compaction.", "hoodie.partition.ttl."}
