"""The plan of a clustering, as Apache Hudi writes it."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.timeline.bodies.clustering_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    clustered_groups,
)
from hoodie_ds.timeline.bodies.replace_plan import empty_plan
from tests.golden.golden_tables import golden_file

PATH = "20261122114715656.replacecommit.requested"
PARTITION = "city=ams"
IDS = (
    ("c32467c1-807e-45f4-82c8-dce53adeb075-0", "0_0-2900-4154_20261122114713882"),
    ("f48aa110-e0cf-4d65-a656-ea687382522c-0", "0_0-2907-4162_20261122114714348"),
    ("aaca28bc-07b8-4ea9-ab3e-bbdf62691241-0", "0_0-2914-4170_20261122114715108"),
)
METRICS = dict.fromkeys(
    ("TOTAL_LOG_FILES", "TOTAL_IO_MB", "TOTAL_IO_READ_MB", "TOTAL_LOG_FILES_SIZE"), 0.0
)
PLAN = ClusteringPlan(
    (
        ClusteringGroup(
            tuple(
                ClusteringSlice(PARTITION, file_id, f"{file_id}{rest[1:]}.parquet")
                for file_id, rest in IDS
            ),
            1,
            {**METRICS, "TOTAL_IO_WRITE_MB": 0.0},
        ),
    ),
    strategy_params={"hoodie.clustering.plan.strategy.sort.columns": "name,qty"},
)


def _hudis() -> bytes:
    return golden_file("v6_cow_clustering_requested", r"replacecommit\.requested")


def test_hudis_plan_reads() -> None:
    assert ClusteringPlan.from_bytes(_hudis(), PATH) == PLAN
    assert clustered_groups(_hudis(), PATH) == {(PARTITION, file_id) for file_id, _ in IDS}


def test_ours_is_hudis_in_schema_and_record() -> None:
    """Read by another implementation of Avro."""
    written = PLAN.to_bytes("/tmp/golden/v6_cow_clustering")
    ours, hudis = (fastavro.reader(io.BytesIO(data)) for data in (written, _hudis()))
    assert json.loads(ours.metadata["avro.schema"]) == json.loads(hudis.metadata["avro.schema"])
    assert list(ours) == list(hudis)


def test_what_is_written_reads_again() -> None:
    logs = ClusteringSlice("", "f-0", "", (".f-0_1.log.1_0-1-1", ".f-0_1.log.2_0-1-1"))
    group = ClusteringGroup((logs,), 3, {"A": 1.5}, {"clustering.group.sequence.no": "1"})
    plan = ClusteringPlan((group, *PLAN.groups), "x.Y", {"k": "v"}, ("q", "p/r"))
    written = plan.to_bytes("s3://bucket/t")
    assert ClusteringPlan.from_bytes(written, PATH) == plan
    slice_ = read_record(written, PATH)["clusteringPlan"]["inputGroups"][0]["slices"][0]
    assert slice_["deltaFilePaths"][1] == "s3://bucket/t/.f-0_1.log.2_0-1-1"
    assert slice_["dataFilePath"] == ""


@pytest.mark.parametrize("data", [b"", empty_plan()])
def test_another_replacement_has_no_plan(data: bytes) -> None:
    assert ClusteringPlan.from_bytes(data, PATH) is None
    assert clustered_groups(data, PATH) == frozenset()


def test_a_plan_without_strategy_names_none() -> None:
    bare = {"type": "record", "name": "p", "fields": [{"name": "n", "type": "int"}]}
    body = {"type": "record", "name": "r", "fields": [{"name": "clusteringPlan", "type": bare}]}
    found = ClusteringPlan.from_bytes(write_record(body, {"clusteringPlan": {"n": 1}}), PATH)
    assert found == ClusteringPlan((), "")


def test_what_is_no_plan_is_named() -> None:
    one = {"type": "record", "name": "g", "fields": [{"name": "n", "type": "int"}]}
    groups = {"name": "inputGroups", "type": {"type": "array", "items": one}}
    plan = {"type": "record", "name": "c", "fields": [groups]}
    schema = {"type": "record", "name": "p", "fields": [{"name": "clusteringPlan", "type": plan}]}
    data = write_record(schema, {"clusteringPlan": {"inputGroups": [{"n": 1}]}})
    with pytest.raises(CorruptFileError, match=f"{PATH} is not the plan of a clustering"):
        ClusteringPlan.from_bytes(data, PATH)
