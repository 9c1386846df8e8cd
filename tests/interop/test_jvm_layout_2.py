"""What only tables of versions 8 and 9 have, seen by us and by Apache Hudi on the JVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.task_writer import write_task
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TRIPS, TYPE, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

VERSIONS = ("8", "9")
THEIRS = {"hoodie.index.type": "BUCKET", "hoodie.compact.inline": "false"}
METADATA = "hoodie.metadata.enable"
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
}


def agree(jvm: JvmHudi, path: Path) -> list[tuple[str, str, int, float]]:
    """The rows, which all readers see."""
    table = HoodieTable(str(path))
    assert_same_rows(jvm.read(path), table.read())
    assert_same_rows(read_with_hudi_rs(path), table.read())
    return found(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_lists_our_instants_as_they_were_completed(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str
) -> None:
    path, options = tmp_path / "t", {**TRIPS, TYPE: "MERGE_ON_READ", TABLE_VERSION: version}
    table = HoodieTable(str(path), options)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)))
    jvm_hudi.write(path, trips(("b", "y", 2, 2.0)), {**options, **THEIRS})
    table.compact()
    table.overwrite(trips(("c", "y", 3, 3.0)), partitions_only=True)
    named = [file.name.split(".") for file in (path / ".hoodie/timeline").iterdir()]
    ours = {
        (*name[0].split("_"), name[1]) for name in named if len(name) == 2 and "commit" in name[1]
    }
    jvm_hudi.sql(f"create table listed_{version} using hudi location '{path}'")
    listed = jvm_hudi.sql(
        f"call show_commits(table => 'listed_{version}', limit => 100)"
    ).to_pylist()
    assert {(r["commit_time"], r["state_transition_time"], r["action"]) for r in listed} == ours
    assert len(listed) == 5
    assert agree(jvm_hudi, path) == [("a", "x", 2, 2.0), ("c", "y", 3, 3.0)]
    assert jvm_hudi.properties(path)["hoodie.table.version"] == version


@pytest.mark.parametrize("version", by_day(VERSIONS, {"8"}))
def test_a_metadata_table_of_theirs_goes_with_our_consent(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str
) -> None:
    path, options = tmp_path / "t", {**TRIPS, TYPE: "MERGE_ON_READ", TABLE_VERSION: version}
    with_metadata = {**options, **THEIRS, METADATA: "true"}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), with_metadata)
    assert (path / ".hoodie/metadata").is_dir()
    later = trips(("a", "x", 2, 2.0), ("c", "z", 2, 2.0))
    HoodieTable(str(path), options).upsert(later)
    assert (path / ".hoodie/metadata").is_dir()
    HoodieTable(str(path), {**options, METADATA: "false"}).upsert(later)
    assert not (path / ".hoodie/metadata").exists()
    rows = [("a", "x", 2, 2.0), ("b", "y", 1, 1.0), ("c", "z", 2, 2.0)]
    assert agree(jvm_hudi, path) == rows
    jvm_hudi.write(path, trips(("b", "y", 3, 3.0)), with_metadata)
    rows[1] = ("b", "y", 3, 3.0)
    assert_same_rows(jvm_hudi.read(path, {METADATA: "true"}), HoodieTable(str(path)).read())
    assert agree(jvm_hudi, path) == rows


def _written(path: Path, options: dict[str, str], rows: pa.Table) -> Callable[[], WriteResult]:
    """Write rows, and return their commit."""
    writer = Coordinator.of(WriteOptions.parse({**options, "path": str(path)}))
    batch = writer.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    return partial(writer.commit, [message])


@pytest.mark.parametrize("version", by_day(VERSIONS, {"9"}))
def test_a_write_lies_above_the_compaction_that_overtook_it(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str
) -> None:
    """Its log file is older than the base file by the time of its request, but not of its end."""
    path = tmp_path / "t"
    options = {**TRIPS, **SHARED, TYPE: "MERGE_ON_READ", TABLE_VERSION: version}
    table = HoodieTable(str(path), options)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)))
    commit = _written(path, options, trips(("b", "x", 2, 2.0)))
    jvm_hudi.call("run_compaction", path, {**options, **THEIRS}, op="scheduleAndExecute")
    commit()
    assert agree(jvm_hudi, path) == [("a", "x", 2, 2.0), ("b", "x", 2, 2.0)]
    jvm_hudi.write(path, trips(("a", "x", 3, 3.0)), {**options, **THEIRS})
    table.compact()
    assert agree(jvm_hudi, path) == [("a", "x", 3, 3.0), ("b", "x", 2, 2.0)]
