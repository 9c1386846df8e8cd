"""A table with a metadata table, whose processes end at every operation: it never lacks a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.metadata_table import task_keys
from hoodie_ds.metadata_table.column_records import partition_key
from hoodie_ds.metadata_table.follower import MetadataFollower
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.payload import STATS
from hoodie_ds.metadata_table.record_keys import digest
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.sink.hidden_columns import Assignment, TaskOwnership
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.table import find_table
from hoodie_ds.testing import CRASHES, MemoryStorage, sweep
from hoodie_ds.timeline.file_changes import file_changes
from tests.faults import cleans, rewriting, undoing
from tests.faults.scenarios import (
    BEGUN,
    BLOOM,
    BOTH,
    COW,
    MOR,
    ONE,
    RECORDS,
    TWO,
    VERSIONS,
    Scenario,
)
from tests.faults.services import Check, Killed, Make, one_in
from tests.faults.stream import Step
from tests.faults.swept import Sweep
from tests.integration.test_record_index_kept import assert_indexed
from tests.metadata_tables import Recorder
from tests.tables import PARTITION, found, trips
from tests.tiers import by_day, in_turn

pytestmark = pytest.mark.usefixtures("one_thread")

OF_PARTITIONS = {
    **BLOOM,
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
}
MORE = trips(("a", "x", 3, 3.0), ("e", "y", 3, 3.0), ("f", "z", 3, 3.0))
EMPTIED = (Step(ONE), Step(ONE, "delete"))

SERVICES: dict[str, Make[Killed]] = {
    "compaction": rewriting.KILLED["compaction"],
    "clustering, copy-on-write": rewriting.KILLED["clustering, copy-on-write"],
    "clean, commits, cow": cleans.KILLED["clean, commits, cow"],
    **{
        name: undoing.KILLED[name]
        for name in ("rollback, cow", "rollback, mor", "restore, mor", "restore, cow")
    },
}


def recorded(storage: MemoryStorage) -> None:
    """Give a table a metadata table that has caught up."""
    recorder = Recorder(storage)
    recorder.begin()
    recorder.index([RECORD_KEY], "V2")
    table = recorder.table
    for instant in sorted(table.load_timeline().completed, key=lambda one: one.ended):
        MetadataFollower().before(table, instant, file_changes(storage, instant))


def assert_kept(left: MemoryStorage, *, is_settled: bool = False) -> None:
    """By the metadata table a reader finds what it finds by folders; once settled, no file more."""
    table = find_table(left)
    assert table is not None
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None, "it was dropped"
    by = MetadataListing.of(metadata)
    assert by is not None, "an instant is visible that it lacks"
    known = HoodieTable(left.root, storage=left)
    assert found(known) == found(
        HoodieTable(left.root, {"hoodie.metadata.enable": "false"}, storage=left)
    )
    if "column_stats" in metadata.partitions:
        assert_described(left, metadata)
    if is_settled:
        listed = {file.path: file.size for file in by.files(by.partitions())}
        there = {path: len(data) for path, data in left.files.items() if _is_data(path)}
        assert listed == there


def assert_described(left: MemoryStorage, metadata: MetadataTable) -> None:
    """Each latest base file has statistics."""
    groups = metadata.records("column_stats")
    described = {
        key for group in groups for key, one in group.items() if not one[STATS]["isDeleted"]
    }
    for slice_ in known_slices(left):
        if slice_.base is not None:
            key = partition_key(slice_.group.partition_path, RECORD_KEY)
            assert key + digest(str(slice_.base.name)) in described


def known_slices(left: MemoryStorage) -> Iterator[FileSlice]:
    """The latest file slices of a table."""
    return PinnedTable.latest(left).slices()


def _is_data(path: str) -> bool:
    return not path.startswith(".hoodie") and ".hoodie_partition" not in path


def kept(check: Check, recover: Callable[[MemoryStorage], object]) -> Check:
    """Look at what was left, and at it after a recovery."""

    def checked(left: MemoryStorage, raised: BaseException | None) -> None:
        assert_kept(left)
        recovered = left.copy()
        recover(recovered)
        assert_kept(recovered, is_settled=True)
        check(left, raised)
        assert_kept(left)

    return checked


@pytest.mark.parametrize(("name", "version"), in_turn(("upsert, mor", "upsert, cow"), VERSIONS))
def test_an_upsert_is_listed_wherever_its_process_ends(name: str, version: str) -> None:
    sweep_writes(name, version, every=5)


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(
    ("name", "version"), in_turn(("rollback, mor", "insert overwrite, cow"), VERSIONS, 1)
)
def test_a_write_is_listed_wherever_its_process_ends(name: str, version: str, every: int) -> None:
    sweep_writes(name, version, every)


def sweep_writes(name: str, version: str, every: int) -> None:
    swept = Sweep(name, version=version)
    recorded(swept.start)
    check = kept(one_in(29 // every, swept.check), swept.recover)
    assert sweep(swept.start, swept.play, check, CRASHES, every) > 50 // every


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(("name", "version"), in_turn(SERVICES, VERSIONS, 1, every=2))
def test_a_service_is_listed_wherever_its_process_ends(name: str, version: str, every: int) -> None:
    killed = SERVICES[name](version=version)
    recorded(killed.start)

    def finish(left: MemoryStorage) -> None:
        killed.play(left)  # type: ignore[arg-type]

    check = kept(one_in(23 // every, killed.check), finish)
    assert sweep(killed.start, killed.play, check, CRASHES, every) > 20 // every


@pytest.mark.parametrize(
    ("version", "every"), by_day([("9", 5), *product(VERSIONS, [1])], {("9", 5)})
)
def test_one_is_made_wherever_its_process_ends(version: str, every: int) -> None:
    switched_on = Step(TWO, options={"hoodie.metadata.enable": "true"})
    swept = Sweep("made", Scenario(BEGUN, (switched_on,)), version)
    some = one_in(29 // every, swept.check)

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        table = find_table(left)
        assert table is not None
        if table.properties.metadata_partitions:
            assert_kept(left)
        some(left.copy(), raised)
        if raised is not None:
            swept._replay(left)
        assert_kept(left, is_settled=True)

    assert sweep(swept.start, swept.play, check, CRASHES, every) > 50 // every


RECORDED: dict[str, Scenario] = {
    "record index of each partition, cow": Scenario(
        EMPTIED, (Step(ONE), Step(BOTH, tasks=2)), {**COW, **OF_PARTITIONS}
    ),
    "record index of each partition, mor": Scenario(
        EMPTIED, (Step(ONE), Step(BOTH, tasks=2)), {**MOR, **OF_PARTITIONS}
    ),
    "secondary index, cow": Scenario(EMPTIED, (Step(ONE), Step(TWO)), {**COW, **RECORDS}),
    "secondary index, mor": Scenario(EMPTIED, (Step(ONE), Step(TWO)), {**MOR, **RECORDS}),
}
"""Tables with indexes of their rows."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", by_day(RECORDED, {"record index of each partition, mor", "secondary index, cow"})
)
def test_indexes_of_rows_are_right_wherever_a_process_ends(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = Sweep(name, RECORDED[name], "9")
    if name.startswith("secondary"):
        recorder = Recorder(swept.start)
        recorder.add(secondary_index_by_ts=[f"secondary-index-by-ts-000{n}-0" for n in range(2)])
        recorder.define(secondary_index_by_ts=("ts", "V2"))
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)
    assert sweep(swept.start, swept.play, indexed(swept, swept.check), CRASHES, every=3) > 30


def indexed(swept: Sweep, whole: Check) -> Check:
    """Look at the indexes of what was left, and of it after recoveries."""

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        assert_indexed(left)
        without = left.copy()
        for path in without.files:
            if "/keys/" in path:  # what tasks have made, as an upgrade by Hudi may delete it
                without.delete(path)
        for recovered in (left.copy(), without):
            swept.recover(recovered)
            assert_indexed(recovered)
        whole(left, raised)
        assert_indexed(left)

    return check


LOGGED = {**MOR, "hoodie.metadata.record.index.enable": "true", PARTITION: ""}
DELETED = Scenario(BEGUN, (Step(TWO, "delete"), Step(MORE, tasks=2)), {**COW, **RECORDS})
OF_TASKS: dict[str, tuple[str, Scenario]] = {
    "delete": ("9", DELETED),
    "delete, version 6": ("6", DELETED),
    "upsert": ("6", Scenario(BEGUN, (Step(TWO), Step(MORE, tasks=2)), {**MOR, **RECORDS})),
    "log files": ("9", Scenario(BEGUN, (Step(TWO, "delete"), Step(MORE)), LOGGED)),
    "log files, version 6": ("6", Scenario(BEGUN, (Step(TWO, "delete"), Step(MORE)), LOGGED)),
    "rollback": ("9", Scenario(BEGUN, (Step(MORE),), {**COW, **RECORDS}, Step(MORE, tasks=2))),
    "of each its keys": ("9", Scenario(BEGUN, (Step(MORE, tasks=2),), {**MOR, **RECORDS})),
}
"""Tables of a version whose tasks make entries of the record index."""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", OF_TASKS)
def test_keys_of_tasks_are_right_wherever_a_process_ends(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)
    if name == "of each its keys":
        owns = TaskOwnership(groups=False, keys=True)
        monkeypatch.setattr(Assignment, "ownership", lambda *_: owns)
    version, scenario = OF_TASKS[name]
    swept = Sweep(name, scenario, version)
    check = indexed(swept, one_in(3, swept.check))
    assert sweep(swept.start, swept.play, check, CRASHES, every=3) > 15


SWITCHES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


def change(storage: object, name: str) -> None:
    """Make all partitions, or drop two of them."""
    table = HoodieTable("memory://made", storage=storage)  # type: ignore[arg-type]
    if name == "create":
        table.create_metadata_table(SWITCHES)
    elif "column_stats" in table.properties.metadata_partitions:
        table.drop_metadata_table(["column_stats"])


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(("name", "version"), in_turn(("create", "drop"), VERSIONS, 1))
def test_its_partitions_change_wherever_the_process_ends(
    name: str, version: str, every: int
) -> None:
    swept = Sweep("made", Scenario(BEGUN, (Step(TWO),)), version)
    if name == "drop":
        change(swept.start, "create")
    some = one_in(7 // every, swept.check)

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        table = HoodieTable(left.root, storage=left)
        rows = HoodieTable(left.root, {"hoodie.metadata.enable": "false"}, storage=left)
        assert found(table) == found(rows)
        swept.committed = 0
        some(left.copy(), raised)
        swept.play(left)
        assert found(table) == found(rows)
        change(left, name)
        assert_kept(left, is_settled=True)
        there = table.properties.metadata_partitions
        of_partitions = ("partition_stats",) if version == "9" else ()
        every = ("bloom_filters", "column_stats", "files", *of_partitions)
        assert there == (every if name == "create" else ("bloom_filters", "files"))

    tried = sweep(swept.start, lambda storage: change(storage, name), check, CRASHES, every)
    assert tried > 10 // every
