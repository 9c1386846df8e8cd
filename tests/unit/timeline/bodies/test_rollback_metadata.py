"""Plans of rollbacks, which Hudi carries out file group by file group."""

from __future__ import annotations

from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.timeline.bodies.rollback_metadata import (
    PartitionRollback,
    plan_to_bytes,
    planned_files,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.golden.golden_tables import golden_file

FAILED = Instant("20260101000000002", Action.DELTA_COMMIT, State.INFLIGHT)


def test_a_plan_names_the_slices_of_log_files_as_hudi_does() -> None:
    """Otherwise Hudi would put its command into a file group without a name."""
    theirs = golden_file("v6_mor_failed_rolled_back", r"\.rollback\.requested$")
    plan = plan_to_bytes("", FAILED, planned_files(theirs, "theirs"))
    wanted, found = (
        [
            (one["partitionPath"], one["fileId"], one["latestBaseInstant"], sizes)
            for one in read_record(data, "plan")["RollbackRequests"]
            if (sizes := [*one["logBlocksToBeDeleted"].values()])
        ]
        for data in (theirs, plan)
    )
    assert wanted
    assert sorted(found) == sorted(wanted)


def test_each_request_deletes_files_or_hides_blocks() -> None:
    """Hudi looks at the log files of a request only where it names no file to delete."""
    logs = {f"p/.{group}_20260101000000001.log.{n}_1-0-1": n for group in "ab" for n in (1, 2)}
    found = {"p": PartitionRollback(("p/c_1-0-1_20260101000000002.parquet", "p/d"), logs)}
    data = plan_to_bytes("/t", FAILED, found)
    requests = read_record(data, "plan")["RollbackRequests"]
    assert [(r["fileId"], r["filesToBeDeleted"], r["logBlocksToBeDeleted"]) for r in requests] == [
        ("", ["/t/p/c_1-0-1_20260101000000002.parquet"], {}),
        ("", ["/t/p/d"], {}),
        ("a", [], {f"/t/{path}": size for path, size in logs.items() if ".a_" in path}),
        ("b", [], {f"/t/{path}": size for path, size in logs.items() if ".b_" in path}),
    ]
    assert planned_files(data, "plan") == found
