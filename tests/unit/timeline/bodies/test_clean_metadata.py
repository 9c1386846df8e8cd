"""Bodies of clean instants: as Apache Hudi writes them, and what is not taken from others."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.timeline.bodies.clean_metadata import (
    METADATA_SCHEMA,
    PLAN_SCHEMA,
    CleanerPlan,
    CleanMetadata,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.golden.golden_tables import golden_file

_GOLDEN = "v6_cow_cleaned"
_EARLIEST = Instant("20250101000000000", Action.COMMIT, State.COMPLETED)


def _opened(data: bytes) -> tuple[Any, Any]:
    """Schema and record of a container, as fastavro reads them."""
    reader = fastavro.reader(io.BytesIO(data))
    (record,) = reader
    assert reader.metadata is not None
    return json.loads(reader.metadata["avro.schema"]), record


def test_a_plan_of_hudi_is_written_again_as_it_was() -> None:
    data = golden_file(_GOLDEN, r"\.clean\.requested$")
    schema, record = _opened(data)
    plan = CleanerPlan.from_bytes(data, "path")
    files = record["filePathsToBeDeletedPerPartition"]
    partition, (first, *_) = next(iter(files.items()))
    root = first["filePath"].removesuffix(f"/{partition}/{plan.files[partition][0]}")
    assert root.startswith("file:/")
    assert _opened(plan.to_bytes(root)) == (schema, record)
    assert len(plan.paths) == sum(map(len, files.values()))


def test_a_result_of_hudi_is_written_again_as_it_was() -> None:
    schema, record = _opened(golden_file(_GOLDEN, r"\.clean$"))
    plan = CleanerPlan.from_bytes(golden_file(_GOLDEN, r"\.clean\.requested$"), "path")
    done = plan.done(record["startCleanTime"], record["timeTakenInMillis"])
    assert _opened(done) == (schema, record)
    said = CleanMetadata.from_bytes(done, "path")
    assert (said.earliest, said.last_completed, said.savepoints) == (
        record["earliestCommitToRetain"],
        record["lastCompletedCommitTimestamp"],
        frozenset(),
    )


def test_a_plan_that_counts_versions_names_no_commit() -> None:
    plan = CleanerPlan("KEEP_LATEST_FILE_VERSIONS", None, "", {"": ("a_0-0-0_1.parquet",)})
    assert CleanerPlan.from_bytes(plan.to_bytes("/t"), "path") == plan
    assert CleanMetadata.from_bytes(plan.done("1", 2), "path").earliest == ""


def test_savepoints_are_known_by_their_times() -> None:
    extra = {"savepointed_timestamps": "20250101000000000,20250102000000000"}
    plan = CleanerPlan("KEEP_LATEST_COMMITS", _EARLIEST, "", {}, extra)
    assert CleanerPlan.from_bytes(plan.to_bytes("/t"), "path") == plan
    known = CleanMetadata.from_bytes(plan.done("1", 0), "path").savepoints
    assert known == {"20250101000000000", "20250102000000000"}


def _plan(**fields: object) -> bytes:
    return write_record(PLAN_SCHEMA, {"policy": "KEEP_LATEST_COMMITS", **fields})


def test_a_plan_of_an_old_release_has_bare_names() -> None:
    data = _plan(filesToBeDeletedPerPartition={"p/q": ["a_0-0-0_1.parquet"]})
    assert CleanerPlan.from_bytes(data, "path").paths == ("p/q/a_0-0-0_1.parquet",)


def test_base_files_of_a_bootstrap_are_not_the_tables() -> None:
    files = [
        {"filePath": "file:/other/p/b.parquet", "isBootstrapBaseFile": True},
        {"filePath": "file:/t/p/a.parquet", "isBootstrapBaseFile": False},
    ]
    data = _plan(filePathsToBeDeletedPerPartition={"p": files})
    assert CleanerPlan.from_bytes(data, "path").paths == ("p/a.parquet",)


@pytest.mark.parametrize(
    ("partition", "file"),
    [
        ("p", "/t/q/a.parquet"),
        ("p", "/t/p/.."),
        ("p", "/t/p/"),
        (".hoodie", "/t/.hoodie/hoodie.properties"),
        (".hoodie/metadata", "hoodie.properties"),
    ],
)
def test_a_plan_deletes_files_of_its_partitions_alone(partition: str, file: str) -> None:
    files = [{"filePath": file, "isBootstrapBaseFile": False}]
    data = _plan(filePathsToBeDeletedPerPartition={partition: files})
    with pytest.raises(CorruptFileError, match=r"x\.clean\.requested is to delete"):
        CleanerPlan.from_bytes(data, "x.clean.requested")


@pytest.mark.parametrize("schema", [PLAN_SCHEMA, METADATA_SCHEMA], ids=["plan", "metadata"])
def test_another_record_is_refused(schema: dict[str, Any]) -> None:
    fields = [{"name": "other", "type": "int"}]
    data = write_record({"type": "record", "name": schema["name"], "fields": fields}, {"other": 1})
    read = CleanerPlan.from_bytes if schema is PLAN_SCHEMA else CleanMetadata.from_bytes
    with pytest.raises(CorruptFileError, match="the path"):
        read(data, "the path")
