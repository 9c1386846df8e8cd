"""The plan of a compaction, byte by byte as Apache Hudi writes it."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.timeline.bodies.compaction_plan import (
    PLAN_SCHEMA,
    CompactionOperation,
    CompactionPlan,
    compacted_groups,
)
from tests.golden.golden_tables import golden_file

PATH = "20261122115244442.compaction.requested"
ID, BASE = "58aa769b-17e2-4a0d-9ce1-4b653c30e706-0", "20261122115234355"
OPERATION = CompactionOperation(
    partition_path="",
    file_id=ID,
    base_instant=BASE,
    base_file=f"{ID}_0-191-196_{BASE}.parquet",
    log_files=(f".{ID}_{BASE}.log.1_0-208-213", f".{ID}_{BASE}.log.2_0-208-213"),
    metrics={
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_IO_MB": 0.0,
        "TOTAL_IO_READ_MB": 0.0,
        "TOTAL_LOG_FILES_SIZE": 2075.0,
        "TOTAL_IO_WRITE_MB": 0.0,
    },
)


def _hudis() -> bytes:
    return golden_file("v6_mor_compaction_requested", r"compaction\.requested")


def test_hudis_plan_reads() -> None:
    assert CompactionPlan.from_bytes(_hudis(), PATH) == CompactionPlan((OPERATION,))
    assert compacted_groups(_hudis(), PATH) == {("", ID)}


def test_ours_is_hudis_in_schema_and_record() -> None:
    """Read by another implementation of Avro; the sync marker alone is free."""
    written = CompactionPlan((OPERATION,)).to_bytes()
    ours, hudis = (fastavro.reader(io.BytesIO(data)) for data in (written, _hudis()))
    assert json.loads(ours.metadata["avro.schema"]) == json.loads(hudis.metadata["avro.schema"])
    assert list(ours) == list(hudis)
    assert len(written) == len(_hudis())


def test_what_is_written_reads_again() -> None:
    log_only = CompactionOperation("p", "f-0", BASE, None, (".f-0_1.log.1_0-1-1",), {"A": 1.5})
    plan = CompactionPlan((log_only, OPERATION), ("q", "p/r"))
    assert CompactionPlan.from_bytes(plan.to_bytes(), PATH) == plan


def test_whole_paths_are_taken_for_their_names() -> None:
    record = {
        "operations": [
            {
                "baseInstantTime": None,
                "deltaFilePaths": ["file:/t/p/.f-0_1.log.1_0-1-1"],
                "dataFilePath": "file:/t/p/f-0_0-1-1_1.parquet",
                "fileId": "f-0",
                "partitionPath": "p",
            }
        ]
    }
    (one,) = CompactionPlan.from_bytes(write_record(PLAN_SCHEMA, record), PATH).operations
    assert (one.base_file, one.log_files) == ("f-0_0-1-1_1.parquet", (".f-0_1.log.1_0-1-1",))
    assert (one.base_instant, one.metrics) == ("", {})


def test_a_plan_without_anything_to_do() -> None:
    data = write_record(PLAN_SCHEMA, {"operations": None})
    assert CompactionPlan.from_bytes(data, PATH) == CompactionPlan()


def test_another_record_is_no_plan() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    with pytest.raises(CorruptFileError, match=rf"{PATH} is not the plan of a compaction"):
        CompactionPlan.from_bytes(write_record(schema, {"n": 1}), PATH)
