"""Writing the archive of layout 2: Apache Hudi's entries anew, beside its own files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.testing.fault import Kind, Operation
from hoodie_ds.testing.faulty_storage import FaultyStorage
from hoodie_ds.testing.sweep import CRASHES, ERRORS, sweep, sweep_pairs
from hoodie_ds.timeline.archive import lsm_writer
from hoodie_ds.timeline.archive.archive import archive_of
from hoodie_ds.timeline.archive.lsm_snapshot import HISTORY, VERSION, newest_snapshot
from hoodie_ds.timeline.archive.lsm_writer import LsmEntry, entry_of, merge_and_clean, put_entries
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.archived import entries, rows_of
from tests.faults.schedules import Actor, Phase, explore, schedules
from tests.golden.golden_tables import unzip_table
from tests.tiers import AT_NIGHT
from tests.unit.timeline.archive.test_lsm_timeline import BODY, C, T, put_file, put_manifest


def entry(number: int, action: Action = Action.COMMIT) -> LsmEntry:
    time, end = f"202501010000{number:05d}", f"202501010100{number:05d}"
    instant = Instant(time, action, State.COMPLETED, layout=2, completion_time=end)
    return LsmEntry(instant, b"what it did", b"what it was to do")


def archive(storage: Storage, numbers: Iterable[int], files_per_level: int = 2) -> None:
    merge_and_clean(storage, put_entries(storage, list(map(entry, numbers))), files_per_level)


def as_hudi_reads(storage: MemoryStorage) -> list[str]:
    """Times of all rows: by the version where there is one, and else by the newest manifest."""
    return [row["instantTime"] for row in rows_of(storage)]


def times(numbers: Iterable[int]) -> list[str]:
    return [entry(number).instant.time for number in numbers]


@pytest.mark.parametrize("name", ["v9_cow_archived", "v9_upgraded"])
def test_entries_are_written_as_by_hudi(name: str, tmp_path: Path) -> None:
    folder = unzip_table(name, tmp_path) / HISTORY
    for path in folder.glob("*.parquet"):
        theirs, ours = pq.ParquetFile(path), MemoryStorage()
        rows = theirs.read().to_pylist()
        put_entries(ours, entries(rows))
        [put] = newest_snapshot(ours).files
        low, high = (end(row["instantTime"] for row in rows) for end in (min, max))
        assert put.name == f"{low}_{high}_0.parquet"
        file = pq.ParquetFile(io.BytesIO(ours.read(put.path)))
        assert file.read().to_pylist() == sorted(rows, key=lambda row: str(row["instantTime"]))
        assert file.metadata.metadata == theirs.metadata.metadata
        assert columns_of(file) == columns_of(theirs)


def columns_of(file: pq.ParquetFile) -> list[tuple[object, ...]]:
    """What Parquet says of each column; definition levels tell whether it is required."""
    group = file.metadata.row_group(0)
    columns = zip(file.schema, (group.column(at) for at in range(group.num_columns)), strict=True)
    return [
        (
            of_file.name,
            of_file.physical_type,
            str(of_file.logical_type),
            of_file.max_definition_level,
            of_group.compression,
        )
        for of_file, of_group in columns
    ]


def test_what_is_called_what_and_stays_is_as_in_hudis_folder(tmp_path: Path) -> None:
    """That of a table that was archived four times, two files of a level becoming one."""
    theirs = LocalStorage(str(unzip_table("v9_cow_archived", tmp_path)))
    found = {status.path.rpartition("/")[2] for status in theirs.list(HISTORY)}
    first, third, fourth = (
        pq.read_table(io.BytesIO(theirs.read(f"{HISTORY}/{name}"))).to_pylist()
        for name in sorted(
            name for name in found if name.endswith(("8010_1.parquet", "_0.parquet"))
        )
    )
    ours = MemoryStorage()
    for rows in (first[:1], first[1:], third, fourth):
        merge_and_clean(ours, put_entries(ours, entries(rows)), 2)
    assert {status.path.rpartition("/")[2] for status in ours.list(HISTORY)} == found
    for name in (name for name in found if name.endswith(".parquet")):
        their_rows, our_rows = (
            pq.read_table(io.BytesIO(storage.read(f"{HISTORY}/{name}"))).to_pylist()
            for storage in (theirs, ours)
        )
        assert our_rows == their_rows


def steps(*contents: tuple[Action, State, bytes]) -> dict[Instant, bytes]:
    return {Instant(T[1], action, state, layout=2): said for action, state, said in contents}


_COMMIT, _REPLACE = Action.COMMIT, Action.REPLACE_COMMIT


@pytest.mark.parametrize(
    ("completed", "begun", "requested", "inflight", "plan"),
    [
        (Action.DELTA_COMMIT, Action.DELTA_COMMIT, b"", b"profile", b""),
        (_COMMIT, Action.COMPACTION, b"plan", b"", b"plan"),
        (Action.DELTA_COMMIT, Action.LOG_COMPACTION, b"plan", b"", b"plan"),
        (_REPLACE, Action.CLUSTERING, b"plan", b"", b"plan"),
        (_REPLACE, _REPLACE, b"", b"profile", b"profile"),
        (Action.CLEAN, Action.CLEAN, b"plan", b"", b"plan"),
        (Action.ROLLBACK, Action.ROLLBACK, b"plan", b"", b""),
    ],
)
def test_what_the_archive_says_of_actions(
    completed: Action, begun: Action, requested: bytes, inflight: bytes, plan: bytes
) -> None:
    """As Hudi's `createLSMTimelineInstant` has it."""
    done = Instant(T[1], completed, State.COMPLETED, layout=2, completion_time=C[1])
    files = steps((begun, State.REQUESTED, requested), (begun, State.INFLIGHT, inflight))
    assert entry_of(done, {done: b"result", **files}) == LsmEntry(done, b"result", plan)


def test_an_instant_of_which_little_is_left() -> None:
    done = Instant(T[1], _COMMIT, State.COMPLETED, layout=2)
    storage = MemoryStorage()
    put_entries(storage, [entry_of(done, {})])
    [row] = rows_of(storage)
    assert (row["completionTime"], row["metadata"], row["plan"]) == (T[1], None, None)
    replaced = Instant(T[1], _REPLACE, State.COMPLETED, layout=2)
    left = steps((_REPLACE, State.INFLIGHT, b"profile"))
    assert entry_of(replaced, left) == LsmEntry(replaced, b"", b"profile")


def test_archived_instants_are_not_put_again() -> None:
    storage = MemoryStorage()
    put_entries(storage, [entry(1), entry(2)])
    before = storage.files
    assert put_entries(storage, [entry(2), entry(1)]) == frozenset()
    assert storage.files == before
    put_entries(storage, [entry(3), entry(2), entry(2, Action.CLEAN)])
    assert as_hudi_reads(storage) == times([1, 2, 2, 3])
    assert put_entries(storage, []) == frozenset()


def test_the_version_names_what_was_put() -> None:
    """Also where an archiver was killed before it put the version: instants leave after that."""
    storage = MemoryStorage()
    put_entries(storage, [entry(1)])
    assert storage.read(VERSION) == b"1"
    storage.replace(VERSION, b"0")
    put_entries(storage, [entry(1)])
    assert storage.read(VERSION) == b"1"


def test_of_what_others_archived_twice_one_stays() -> None:
    """Apache Hudi archives instants again under another name where it was killed in between."""
    storage = MemoryStorage()
    names = [
        put_file(storage, f"{T[3]}_{T[2]}_0.parquet", 3, 1, 2),
        put_file(storage, f"{T[2]}_{T[4]}_0.parquet", 2, 4),
    ]
    put_manifest(storage, 1, *names)
    merge_and_clean(storage, frozenset(), 2)
    [file] = newest_snapshot(storage).files
    rows = pq.read_table(io.BytesIO(storage.read(file.path)))
    assert rows["instantTime"].to_pylist() == [T[2], T[4], T[3], T[1]]
    assert rows["version"].to_pylist() == [1] * 4  # which those files lacked
    assert rows["metadata"].to_pylist() == [BODY] * 4
    assert (file.bounds, file.level) == ((T[1], T[4]), 1)


def test_small_files_become_one_of_the_next_level() -> None:
    """Ten by ten: 111 instants, one at a time, are in a file of each of three levels."""
    storage = MemoryStorage()
    for number in range(111):
        archive(storage, [number], files_per_level=10)
    files = newest_snapshot(storage).files
    assert [file.level for file in files] == [2, 1, 0]
    assert [file.bounds for file in files] == [
        tuple(times([0, 99])),
        tuple(times([100, 109])),
        tuple(times([110, 110])),
    ]
    assert as_hudi_reads(storage) == times(range(111))
    names = {path.rpartition("/")[2] for path in storage.files}
    assert sorted(n for n in names if n.startswith("manifest")) == [
        f"manifest_{number}"
        for number in (121, 122, 123)  # 111, 11 and 1 files were listed
    ]
    # The last ten files of level 0 are in the manifest before they were merged.
    assert sum(name.endswith("_0.parquet") for name in names) == 11


def test_files_are_merged_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Hudi: a file that is large by itself stays, and breaks what could be merged."""
    storage = MemoryStorage()
    for number in range(5):
        put_entries(storage, [entry(number)])
    sizes = {file.size for file in newest_snapshot(storage).files}
    monkeypatch.setattr(lsm_writer, "_MERGED_BYTES", 2 * max(sizes) + 1)
    merge_and_clean(storage, frozenset(), 5)
    assert [f.bounds for f in newest_snapshot(storage).files if f.level == 1] == [
        tuple(times([0, 2]))
    ]
    monkeypatch.setattr(lsm_writer, "_MERGED_BYTES", 1)
    merge_and_clean(storage, frozenset(), 2)
    assert [file.level for file in newest_snapshot(storage).files] == [0, 0, 1]
    assert as_hudi_reads(storage) == times([3, 4, 0, 1, 2])


def test_one_file_of_a_level_is_not_merged_by_itself() -> None:
    storage = MemoryStorage()
    archive(storage, [1], files_per_level=1)
    assert [file.level for file in newest_snapshot(storage).files] == [0]


def test_a_name_that_is_taken_is_passed_over() -> None:
    """By a file that nobody has listed: it may be cut off, and its archiver may delete it."""
    storage = MemoryStorage()
    [low, high] = times([1, 2])
    storage.put_if_absent(f"{HISTORY}/{low}_{high}_0.parquet", b"PAR1")
    put_entries(storage, [entry(1), entry(2)])
    [file] = newest_snapshot(storage).files
    assert file.name == f"{int(low) - 1}_{high}_0.parquet"
    assert as_hudi_reads(storage) == [low, high]


def test_what_no_manifest_lists_is_deleted_once_none_can() -> None:
    storage = MemoryStorage()
    [low, high] = times([1, 2])
    waste = f"{HISTORY}/{low}_{high}_0.parquet"
    storage.put_if_absent(waste, b"PAR1")
    other = f"{HISTORY}/notes.txt"
    storage.put_if_absent(other, b"")
    archive(storage, [3], files_per_level=9)
    assert waste not in storage.files
    assert other in storage.files
    storage.put_if_absent(waste, b"PAR1")  # its archiver may list it in the next manifest
    archive(storage, [3], files_per_level=9)
    assert waste in storage.files


def test_a_manifest_that_was_cut_off_is_passed_over_and_deleted() -> None:
    storage = MemoryStorage()
    put_entries(storage, [entry(1)])
    torn = f"{HISTORY}/manifest_2"
    storage.put_if_absent(torn, b"{")
    merge_and_clean(storage, frozenset(), 9)
    assert torn in storage.files  # perhaps its archiver is at it
    archive(storage, [2], files_per_level=9)
    assert torn not in storage.files
    assert as_hudi_reads(storage) == times([1, 2])


def test_a_file_that_is_gone_is_named() -> None:
    storage = MemoryStorage()
    for number in (1, 2):
        put_entries(storage, [entry(number)])
    gone = newest_snapshot(storage).files[0].path
    storage.delete(gone)
    with pytest.raises(CorruptFileError, match=f"{gone} is missing"):
        merge_and_clean(storage, frozenset(), 2)


# Processes that die, and several at once.


def begun() -> MemoryStorage:
    """Instants 1 to 3 are archived; the next file makes four, which become one of level 2."""
    storage = MemoryStorage()
    for number in (1, 2, 3):
        archive(storage, [number])
    return storage


def check_archived(storage: MemoryStorage, whole: bool) -> None:
    """What was archived is there once; what is being archived is there once or not yet."""
    found = sorted(as_hudi_reads(storage))
    expected = [times([1, 2, 3, 4, 5])] if whole else [times([1, 2, 3]), times([1, 2, 3, 4, 5])]
    assert found in expected


@pytest.mark.parametrize("effects", [CRASHES, ERRORS], ids=["crashes", "errors"])
def test_whatever_ends_an_archiver_the_next_one_goes_on(effects: frozenset[Any]) -> None:
    def check(storage: MemoryStorage, raised: BaseException | None) -> None:
        check_archived(storage, whole=raised is None)
        archive(storage, [4, 5])
        check_archived(storage, whole=True)
        archive(storage, [6])
        assert sorted(as_hudi_reads(storage)) == times(range(1, 7))

    assert sweep(begun(), lambda storage: archive(storage, [4, 5]), check, effects, 3) > 16


def test_the_next_archiver_may_end_anywhere_too() -> None:
    def check(storage: MemoryStorage, raised: BaseException | None) -> None:
        check_archived(storage, whole=raised is None)
        archive(storage, [4, 5])
        check_archived(storage, whole=True)

    def work(storage: FaultyStorage) -> None:
        archive(storage, [4, 5])

    assert sweep_pairs(begun(), work, work, check, every=11) > 40


def test_stopped_anywhere_while_others_go_far_ahead() -> None:
    """The manifest that it is about to put may have come, and gone again."""
    alone = FaultyStorage(begun())
    archive(alone, [4, 5])
    for at in range(1, len(alone.recorder.operations) + 1, 2):
        storage = begun()

        def others(operation: Operation, at: int = at, storage: MemoryStorage = storage) -> None:
            if operation.number == at:
                for number in range(6, 12):
                    archive(storage, [number])

        archive(FaultyStorage(storage, before_each=others), [4, 5])
        assert sorted(as_hudi_reads(storage)) == times(range(1, 12))


PHASES = (
    Phase("look"),
    Phase("put", Kind.PUT, (f"{HISTORY}/*_0.parquet",)),
    Phase("list", Kind.PUT, (f"{HISTORY}/manifest_*",)),
    Phase("point", Kind.REPLACE, (VERSION,)),
    Phase("merge", Kind.PUT, (f"{HISTORY}/*_1.parquet",)),
    Phase("clean", Kind.DELETE, (f"{HISTORY}/*",)),
)
CLEANING = (*PHASES[:3], Phase("look again", Kind.LIST, (HISTORY,)), PHASES[3], PHASES[5])


def archiver(
    name: str, numbers: Sequence[int], phases: Sequence[Phase] = PHASES, files_per_level: int = 2
) -> Actor:
    def work(storage: FaultyStorage, _: object) -> None:
        archive(storage, numbers, files_per_level)

    return Actor(name, work, phases)


def test_an_archiver_deletes_no_file_that_another_one_lists_afterwards() -> None:
    def check(storage: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        assert list(raised) == [None, None]
        assert sorted(as_hudi_reads(storage)) == times(range(1, 6))

    actors = archiver("A", [4], CLEANING, 9), archiver("B", [5], PHASES[:3], 9)
    assert explore(begun, actors, check, schedules(*actors)) == 84


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=AT_NIGHT)])
def test_two_archivers_at_once_lose_nothing(every: int) -> None:
    def check(storage: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        assert list(raised) == [None, None]
        assert sorted(as_hudi_reads(storage)) == times(range(1, 8))
        archive(storage, [8])
        assert sorted(as_hudi_reads(storage)) == times(range(1, 9))

    actors = archiver("A", [4, 5, 6]), archiver("B", [4, 6, 7])
    orders = list(schedules(*actors))[::every]
    assert explore(begun, actors, check, orders) == len(orders) == -(-924 // every)


def test_the_newest_write_is_looked_for_where_it_may_be() -> None:
    storage = MemoryStorage()
    for number in (3, 2, 1):
        archive(storage, [number], files_per_level=10)
    read: list[str] = []

    def note(operation: Operation) -> None:
        read.append(operation.path.rpartition("/")[2])

    found = archive_of(FaultyStorage(storage, before_each=note), 2, "").newest_write()
    assert found == entry(3).instant.time
    assert sum(name.endswith(".parquet") for name in read) < 3
