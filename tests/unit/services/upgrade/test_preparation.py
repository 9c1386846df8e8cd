"""What a table has beside its rows when its version changes: plans, savepoints, other tables."""

from __future__ import annotations

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.properties.keys import METADATA_PARTITIONS
from hoodie_ds.errors import OptionError, TimelineError, UnsupportedTableError
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.upgrade.preparation import check_ready
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.table.table import open_table, update_properties
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.transaction.open_instant import begin_plan
from tests.tables import BUCKETS, KEY, TRIPS, TYPE, TYPES, VERSION, found, trips

CHANGES = [(6, 9), (9, 6), (8, 9)]
CONSENT = {"hoodie.metadata.enable": "false"}
FILES = ".hoodie/metadata/files"
ROWS = [("a", "x", 2, 2.0), ("b", "x", 1, 1.0)]


def _table(storage: MemoryStorage, kind: str, version: int, **more: str) -> HoodieTable:
    options = {**TRIPS, BUCKETS: "1", TYPE: kind, **more}
    table = HoodieTable(storage.root, options, storage=storage)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)), {VERSION: str(version)})
    table.upsert(trips(("a", "x", 2, 2.0)))
    return table


def _change(table: HoodieTable, to: int) -> None:
    _ = table.upgrade(to) if to > table.properties.version else table.downgrade(to)
    assert table.properties.version == to


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("before", "to"), CHANGES)
def test_a_metadata_table_goes_where_the_user_agrees(kind: str, before: int, to: int) -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage, kind, before)
    update_properties(open_table(storage), {METADATA_PARTITIONS: "files"}, (), 0)
    storage.put_if_absent(f"{FILES}/f.hfile", b"")
    with pytest.raises(OptionError, match="set the option to false to drop it"):
        _change(table, to)
    assert (table.properties.version, table.properties.metadata_partitions) == (before, ("files",))
    options = {**TRIPS, BUCKETS: "1", **CONSENT}
    table = HoodieTable(storage.root, options, storage=storage)
    way = table.upgrade if to > before else table.downgrade
    assert way(to, dry=True).changed[METADATA_PARTITIONS] is None
    assert storage.list(FILES)
    _change(table, to)
    assert METADATA_PARTITIONS not in table.properties.raw
    assert not storage.list(FILES)
    assert found(table) == ROWS


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("before", "to"), CHANGES)
def test_a_clustering_that_waits_is_carried_out(
    kind: str, before: int, to: int, begun: bool
) -> None:
    storage = MemoryStorage("memory://t")
    options = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    table = _table(storage, kind, before, **options)
    table.insert(trips(("c", "x", 1, 1.0)))
    clusterer = Clusterer(table._services())
    planned = clusterer.schedule()
    assert planned is not None
    if begun:
        instant = clusterer.table.instant(
            str(planned.instant_time), clusterer.action, State.REQUESTED
        )
        begin_plan(clusterer.storage, instant)
    _change(table, to)
    assert table.timeline.pending == ()
    commit = table.timeline.commit_at(str(planned.instant_time))
    assert commit is not None
    assert commit.action is Action.REPLACE_COMMIT
    assert found(table) == [*ROWS, ("c", "x", 1, 1.0)]
    table.upsert(trips(("c", "x", 2, 2.0)))
    assert found(table) == [*ROWS, ("c", "x", 2, 2.0)]


@pytest.mark.parametrize(("before", "to"), CHANGES)
def test_a_compaction_and_a_clean_that_wait_are_carried_out(before: int, to: int) -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage, "MERGE_ON_READ", before)
    for _ in range(2):
        table.compact()
        table.upsert(trips(("b", "x", 1, 2.0)))
    assert table.clean({"hoodie.clean.commits.retained": "1"})
    (clean,) = (i for i in table.timeline.completed if i.action is Action.CLEAN)
    storage.delete(instant_path(clean))
    table.upsert(trips(("b", "x", 1, 3.0)))
    assert Compactor(table._services()).schedule()
    table.upsert(trips(("b", "x", 1, 4.0)))
    _change(table, to)
    assert table.timeline.pending == ()
    assert [i for i in table.timeline.completed if i.action is Action.CLEAN]
    assert found(table) == [ROWS[0], ("b", "x", 1, 4.0)]


@pytest.mark.parametrize("to", [8, 9])
def test_savepoints_of_log_files_can_be_read_in_the_later_version(to: int) -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage, "MERGE_ON_READ", 6)
    moments = [(i.time, found(table)) for i in table.timeline.commits[-1:]]
    for number in range(3, 12):
        table.upsert(trips(("a", "x", number, 0.5), ("b", "x", number % 4, float(number))))
        if number == 5:
            table.rollback()  # its block is hidden in a log file, which stays
            continue
        if number == 8:
            table.compact()
        newest = table.timeline.commits[-1].time
        moments.append((newest, found(table)))
    for time, _ in moments[::2]:
        table.savepoint(time)
    _change(table, to)
    assert not table.cleanup()  # their log files are named by no commit of the same time
    for time, rows in moments:
        read = table.read(columns=["id", "city", "ts", "fare"], as_of=time).to_pylist()
        assert sorted(tuple(row.values()) for row in read) == rows
    table.clean({"hoodie.clean.commits.retained": "1"})
    for time, rows in moments[::2]:
        read = table.read(columns=["id", "city", "ts", "fare"], as_of=time).to_pylist()
        assert sorted(tuple(row.values()) for row in read) == rows
    with pytest.raises(TimelineError, match="before the table's version was changed"):
        table.restore(moments[::2][-1][0])
    table.upsert(trips(("a", "x", 99, 9.0)))
    with pytest.raises(UnsupportedTableError, match="delete the savepoints first"):
        table.downgrade(6)
    for time, _ in moments[::2]:
        table.delete_savepoint(time)
    assert not table.cleanup()  # nor are they now that nothing else keeps them
    rows = found(table)
    table.downgrade(6)
    assert found(table) == rows


@pytest.mark.parametrize("kind", TYPES)
def test_a_table_of_a_database_is_taken_along_without_its_payload(kind: str) -> None:
    """In version 6 its rows could not be merged here; in version 9 they can."""
    mode = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    options = {**TRIPS, BUCKETS: "1", TYPE: kind, **mode}
    storage = MemoryStorage("memory://t")
    table = HoodieTable(storage.root, options, storage=storage)
    rows = trips(("a", "x", 2, 1.0), ("b", "x", 2, 1.0))
    table.upsert(rows.append_column("Op", [["I", "I"]]))
    if kind == "MERGE_ON_READ":
        table.compact()
    payload = "org.apache.hudi.common.model.AWSDmsAvroPayload"
    opened = open_table(storage)
    update_properties(
        opened,
        {"hoodie.compaction.payload.class": payload},
        ("hoodie.record.merge.mode", "hoodie.compaction.record.merger.strategy"),
        0,
    )
    table = HoodieTable(storage.root, {KEY: "id", BUCKETS: "1"}, storage=storage)
    gone = trips(("a", "x", 1, 3.0), ("b", "x", 1, 3.0)).append_column("Op", [["D", "U"]])
    with pytest.raises(OptionError, match="AWSDmsAvroPayload"):
        table.upsert(gone)
    table.upgrade(9)
    table.upsert(gone)
    assert found(table) == [("b", "x", 1, 3.0)]


def test_a_plan_of_an_unknown_kind_is_left_to_its_engine() -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage, "COPY_ON_WRITE", 9)
    storage.put_if_absent(".hoodie/timeline/20990101000000000.indexing.requested", b"")
    with pytest.raises(TimelineError, match="indexing requested: finish or roll back"):
        table.downgrade(6)
    assert found(table) == ROWS


def test_log_files_of_a_writer_that_did_not_stop_are_not_taken_along() -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage, "MERGE_ON_READ", 9)
    with pytest.raises(TimelineError, match="stop the writers"):
        check_ready(open_table(storage), table.timeline, 6)


def test_a_table_whose_savepoints_refuse_the_version_stays_as_it_is() -> None:
    """A dry run says so too, and nothing is compacted before."""
    storage = MemoryStorage("memory://t")
    table = _table(storage, "MERGE_ON_READ", 9)
    table.savepoint()
    before = dict(storage.files)
    for dry in (True, False):
        with pytest.raises(UnsupportedTableError, match="delete the savepoints first"):
            table.downgrade(6, dry=dry)
        assert storage.files == before


@pytest.mark.parametrize("kind", TYPES)
def test_merged_log_files_on_an_object_store_refuse_a_downgrade(kind: str) -> None:
    """Hudi on the JVM would merge them into the newest base files once more."""
    inner = MemoryStorage("memory://t")
    _table(inner, kind, 9)
    storage = RetryingStorage(inner, 1_000)
    table = HoodieTable(storage.root, {**TRIPS, BUCKETS: "1"}, storage=storage)
    if kind == "MERGE_ON_READ":
        with pytest.raises(UnsupportedTableError, match=r"merge them once more.*clean\.policy"):
            table.downgrade(6)
        assert table.downgrade(8).after == 8
        options = {
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        }
        assert table.clean(options)
        assert not [path for path in inner.files if ".log." in path]
    assert table.downgrade(6).after == 6
    assert found(table) == ROWS
