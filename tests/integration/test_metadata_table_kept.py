"""Writes and services of a table with a metadata table keep it: it lists what the folders hold."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.metadata_table.follower import MetadataFollower
from hoodie_ds.metadata_table.stored import latest_compaction
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, SimulatedCrash
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import HEARTBEATS, METADATA_TABLE, instant_path
from tests.golden.test_metadata_tables import unzipped
from tests.integration.test_metadata_table import (
    RETAINED,
    findings,
    in_folders,
    listed,
    listing,
    make,
)
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.metadata_tables import recorded
from tests.rows import without_meta
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, found, trips

METADATA = "hoodie.metadata.enable"
MOST = "hoodie.metadata.compact.max.delta.commits"
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def begun(path: Path, version: str, kind: str, **options: str) -> HoodieTable:
    """A table of one row with a metadata table."""
    given = {**TRIPS, RETAINED: "1", VERSION: version, TYPE: kind, **options}
    given = {key: text for key, text in given.items() if text}
    table = HoodieTable(str(path), given)
    table.upsert(trips(("a", "x", 0, 1.0)))
    recorded(path)
    return table


def killed(path: Path, effect: Effect, put: str) -> None:
    """A write that dies beside an operation."""
    storage = FaultyStorage(LocalStorage(str(path)), [Fault(effect, path=put)])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(path), TRIPS, storage=storage).upsert(trips(("a", "x", 1, 2.0)))


def assert_kept(path: Path) -> None:
    """Compare the listing with the folders, and the rows that are read by either."""
    assert listed(path) == in_folders(path)
    assert findings(path) == {}
    by_folders = HoodieTable(str(path), {METADATA: "false"})
    assert found(HoodieTable(str(path))) == found(by_folders)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_lists_what_writes_and_services_leave(tmp_path: Path, version: str, kind: str) -> None:
    table = begun(tmp_path, version, kind)
    make(tmp_path, version, kind)
    assert_kept(tmp_path)
    table.upsert(trips(("undone", "x", 9, 9.0), ("undone too", "new", 9, 9.0)))
    table.rollback()
    assert_kept(tmp_path)
    table.savepoint()
    kept = table.timeline.savepoints[-1].time
    for ts in (20, 21):
        table.upsert(trips(("later", "x", ts, 9.0), ("new", "u", ts, 1.0)))
    table.clean()
    table.restore(kept)
    assert_kept(tmp_path)
    table.delete_partitions(["z"])
    table.upsert(trips(("a", "x", 30, 1.0)))
    table.clean()
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_it_lists_what_a_clustering_leaves(tmp_path: Path, version: str) -> None:
    small = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    table = begun(tmp_path, version, KINDS[0], **{BUCKETS: ""}, **small)
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert table.cluster()
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_files_of_change_data_are_listed(tmp_path: Path, version: str) -> None:
    table = begun(tmp_path, version, KINDS[0], **{"hoodie.table.cdc.enabled": "true"})
    table.upsert(trips(("a", "x", 1, 2.0)))
    assert any(path.endswith(".cdc") for path in listed(tmp_path))
    assert_kept(tmp_path)


@pytest.mark.parametrize("name", ["v6_cow_files__first", "v6_cow_files"])
def test_a_metadata_table_of_hudi_is_kept(tmp_path: Path, name: str) -> None:
    path = Path(unzipped(name, tmp_path))
    table = HoodieTable(str(path), {RETAINED: "1"})
    rows = without_meta(table.read())
    for _ in range(3):
        table.upsert(rows.slice(0, 2))
    table.clean()
    by = listing(path)
    assert by is not None
    there = {str(file.relative_to(path)) for file in path.glob("*/*.parquet")}
    assert {file.path for file in by.files(by.partitions())} == there
    assert not [f for f in table.inspect.verify().findings if f.kind is Kind.METADATA_TABLE]
    assert table.read().num_rows == rows.num_rows


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_commit_costs_as_many_operations_after_many(tmp_path: Path, version: str) -> None:
    storage = FaultyStorage(LocalStorage(str(tmp_path)))
    begun(tmp_path, version, KINDS[1])
    table = HoodieTable(str(tmp_path), {**TRIPS, VERSION: version}, storage=storage)
    costs = []
    for ts in range(1, 34):
        before = len(storage.recorder.operations)
        table.upsert(trips(("a", "x", ts, 1.0)))
        done = storage.recorder.operations[before:]
        costs.append(sum(METADATA_TABLE in one.path for one in done))
    usual = {"6": 7, "9": 6}[version]
    compacted = [cost for cost in costs[1:] if cost != usual]
    assert len(compacted) == 3
    assert max(compacted) < 80


def test_a_process_that_was_stopped_puts_nothing_into_a_later_slice(tmp_path: Path) -> None:
    table = begun(tmp_path, "6", KINDS[0])
    for ts in (1, 2):
        table.upsert(trips(("a", "x", ts, 2.0)))
    written, last = table.timeline.commits[-2:]
    opened = open_table(LocalStorage(str(tmp_path)))
    changes = file_changes(opened.storage, written)
    kept = in_metadata_table(tmp_path)
    MetadataFollower().before(opened, written, changes)
    assert in_metadata_table(tmp_path) == kept
    for instant in (tmp_path / METADATA_TABLE / ".hoodie").glob("[0-9]*"):
        if not instant.name.startswith(last.time):
            instant.unlink()  # archived
    for file in (tmp_path / ".hoodie").glob(f"{written.time}*"):
        file.unlink()
    kept = in_metadata_table(tmp_path)
    MetadataFollower().before(opened, written, changes)
    assert in_metadata_table(tmp_path) == kept


def in_metadata_table(path: Path) -> set[Path]:
    return {file for file in (path / METADATA_TABLE).rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("listed_as", "lost"), [("files,secondary_index_a", "sec"), ("files,strange", "strange")]
)
def test_partitions_that_cannot_be_kept_are_refused(
    tmp_path: Path, listed_as: str, lost: str
) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    path = tmp_path / ".hoodie/hoodie.properties"
    path.write_text(path.read_text().replace("partitions=files", f"partitions={listed_as}"))
    with pytest.raises(OptionError, match=f"cannot keep {lost}"):
        table.upsert(trips(("b", "x", 1, 1.0)))


def test_a_dead_write_is_recorded_before_an_expression_index_goes(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    killed(tmp_path, Effect.CRASH_BEFORE, f"{METADATA_TABLE}/files/*")
    path = tmp_path / ".hoodie/hoodie.properties"
    path.write_text(path.read_text().replace("partitions=files", "partitions=files,expr_index_a"))
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert len(table.timeline.commits) > 2
    assert_kept(tmp_path)
    assert table.properties.metadata_partitions == ("files",)


def test_one_that_is_being_built_is_refused(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    path = tmp_path / ".hoodie/hoodie.properties"
    path.write_text(path.read_text() + "\nhoodie.table.metadata.partitions.inflight=files\n")
    with pytest.raises(OptionError, match="cannot keep files"):
        table.upsert(trips(("b", "x", 1, 1.0)))


def test_a_change_of_the_version_drops_it_on_request(tmp_path: Path) -> None:
    begun(tmp_path, "6", KINDS[0])
    HoodieTable(str(tmp_path), {**TRIPS, METADATA: "false"}).upgrade(9)
    assert not (tmp_path / METADATA_TABLE).exists()


@pytest.mark.parametrize(("version", "kind"), [("6", "MERGE_ON_READ"), ("9", "COPY_ON_WRITE")])
def test_it_stays_small_in_a_long_stream(tmp_path: Path, version: str, kind: str) -> None:
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    begun(tmp_path, version, kind)
    table = HoodieTable(str(tmp_path), {**TRIPS, RETAINED: "1", **few})
    for ts in range(1, 50):
        table.upsert(trips(("a", "x", ts, 1.0)))
        if ts % 3 == 0:
            table.clean()
            table.archive()
            assert_active(tmp_path)
    assert_kept(tmp_path)
    by = listing(tmp_path)
    assert by is not None
    assert len(table.timeline.commits) < 25
    assert len(by.metadata.timeline.commits) < 45
    (slice_,) = by.metadata.slices("files")
    assert len(slice_.logs) <= 10


def assert_active(path: Path) -> None:
    """Instants whose log files are not compacted yet are on the table's active timeline."""
    by = listing(path)
    assert by is not None
    timeline = by.metadata.timeline
    compacted = latest_compaction(timeline)
    deltas = (i for i in timeline.completed if i.action is Action.DELTA_COMMIT)
    since = {i.time for i in deltas if i.ended > compacted and i.time[0] == "2"}
    assert since <= {i.time for i in by.metadata.data.instants}


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", KINDS)
def test_hudi_rs_reads_by_one_that_was_compacted_and_cleaned(
    tmp_path: Path, version: str, kind: str
) -> None:
    """It takes what it does not know of the times of services for files that are not there."""
    options = {**TRIPS, VERSION: version, TYPE: kind, METADATA: "true", MOST: "3"}
    table = HoodieTable(str(tmp_path), options)
    for ts in range(18):
        table.upsert(trips((f"k{ts}", f"p{min(ts, 6)}", ts, 1.0)))
    by = listing(tmp_path)
    assert by is not None
    assert {Action.COMMIT, Action.CLEAN} < {i.action for i in by.metadata.timeline.completed}
    assert read_with_hudi_rs(tmp_path).num_rows == 18


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_is_made_on_request(tmp_path: Path, version: str, kind: str) -> None:
    make(tmp_path, version, kind)
    options = {**TRIPS, RETAINED: "1", METADATA: "true"}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(trips(("a", "x", 50, 1.0)))
    assert table.properties.metadata_partitions == ("files",)
    assert_kept(tmp_path)
    for ts in range(51, 64):
        table.upsert(trips(("a", "x", ts, 1.0)))
    table.clean()
    assert_kept(tmp_path)


def test_a_log_file_that_was_put_is_not_put_again(tmp_path: Path) -> None:
    table = begun(tmp_path, "6", KINDS[0])
    killed(tmp_path, Effect.CRASH_AFTER, f"{METADATA_TABLE}/files/*")
    table.upsert(trips(("b", "x", 2, 1.0)))
    logs = [file.name for file in (tmp_path / METADATA_TABLE / "files").glob(".files-*.log.*")]
    tokens = [name.rpartition("_")[2] for name in logs if not name.endswith("_0-0-0")]
    assert len(set(tokens)) == len(tokens) == 2
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_log_file_is_put_into_an_instant_that_is_inflight(tmp_path: Path, version: str) -> None:
    """Of a dead writer the JVM deletes what belongs to a pending instant, and later counts all."""
    table = begun(tmp_path, version, KINDS[0])
    killed(tmp_path, Effect.CRASH_AFTER, f"{METADATA_TABLE}/files/*")
    (dead,) = table.timeline.pending
    states = (tmp_path / METADATA_TABLE / ".hoodie").rglob(f"{dead.time}.deltacommit*")
    assert sorted(state.suffix for state in states) == [".inflight", ".requested"]


def test_none_is_made_while_a_write_is_pending(tmp_path: Path) -> None:
    several = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": (
            "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
        ),
    }
    table = HoodieTable(str(tmp_path), {**TRIPS, **several})
    table.upsert(trips(("a", "x", 0, 1.0)))
    pending = Instant("20200101000000000", Action.COMMIT, State.INFLIGHT, layout=1)
    file = tmp_path / instant_path(pending)
    file.write_bytes(b"")
    (tmp_path / instant_path(pending.at(State.REQUESTED))).write_bytes(b"")
    heartbeat = tmp_path / HEARTBEATS / pending.time
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.write_bytes(b"")
    made_one = {**TRIPS, **several, METADATA: "true"}
    HoodieTable(str(tmp_path), made_one).upsert(trips(("b", "x", 1, 1.0)))
    assert not HoodieTable(str(tmp_path)).properties.metadata_partitions


def test_one_whose_folder_is_lost_is_not_kept(tmp_path: Path) -> None:
    table = begun(tmp_path, "9", KINDS[0])
    shutil.rmtree(tmp_path / METADATA_TABLE)
    with pytest.raises(OptionError, match="cannot keep files up to date"):
        table.upsert(trips(("a", "x", 1, 2.0)))
    assert found(table) == [("a", "x", 0, 1.0)]


def test_none_is_made_of_what_a_dead_process_left(tmp_path: Path) -> None:
    make(tmp_path, "9", KINDS[0])
    rest = tmp_path / METADATA_TABLE / "files/files-0000-0_0-0-0_00000000000000000.hfile"
    rest.parent.mkdir(parents=True)
    rest.write_bytes(b"of a dead process")
    HoodieTable(str(tmp_path), {**TRIPS, METADATA: "true"}).upsert(trips(("a", "x", 50, 1.0)))
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_files_of_a_dead_write_that_it_has_go_with_a_rollback(tmp_path: Path, version: str) -> None:
    """Hudi's writers record a write there first, and may die before they complete it."""
    table = begun(tmp_path, version, KINDS[0])
    storage = FaultyStorage(
        LocalStorage(str(tmp_path)), [Fault(Effect.CRASH_BEFORE, path="*/manifest_*")]
    )
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(tmp_path), TRIPS, storage=storage).upsert(trips(("dead", "x", 9, 9.0)))
    opened = open_table(LocalStorage(str(tmp_path)))
    (dead,) = opened.load_timeline().pending
    sizes = {p: (tmp_path / p).stat().st_size for p in in_folders(tmp_path) - listed(tmp_path)}
    assert sizes
    stats = {p: WriteStat("", p, p.partition("/")[0], file_size_bytes=n) for p, n in sizes.items()}
    done = dead.completed("" if version == "6" else following(dead.time))
    MetadataFollower().before(opened, done, FileChanges(added=stats))
    assert found(HoodieTable(str(tmp_path))) == [("a", "x", 0, 1.0)]
    table.upsert(trips(("b", "x", 10, 1.0)))
    assert table.timeline.rollbacks
    assert_kept(tmp_path)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_clean_that_was_killed_is_no_damage(tmp_path: Path, version: str) -> None:
    table = begun(tmp_path, version, "COPY_ON_WRITE")
    for ts in (1, 2, 3):
        table.upsert(trips(("a", "x", ts, 1.0)))
    storage = FaultyStorage(
        LocalStorage(str(tmp_path)), [Fault(Effect.CRASH_BEFORE, path=f"{METADATA_TABLE}/files*")]
    )
    before = in_folders(tmp_path)
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(tmp_path), {RETAINED: "1"}, storage=storage).clean()
    assert in_folders(tmp_path) < before
    assert findings(tmp_path) == {}
    table.clean()
    assert_kept(tmp_path)
