"""A file that a commit names and that is gone is seen, and named; cleaned ones are not missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import LogFile
from hoodie_ds.table.live_files import check_listed, check_nothing_is_missing, newest_commit_of
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from tests.tables import TRIPS, TYPE, TYPES, found, trips
from tests.unit.table.test_fs_view import T, Timeline, base, log, table

__all__ = ["table"]  # a fixture


def missing(timeline: Timeline, *present: str) -> None:
    check_nothing_is_missing(timeline.storage, timeline.view().timeline, present)


@pytest.mark.parametrize("kind", TYPES)
def test_any_file_of_the_newest_slices_may_be_lost(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind})
    table.upsert(trips(*((f"k{i}", "xy"[i % 2], 1, 1.0) for i in range(8))))
    table.upsert(trips(("k0", "x", 2, 2.0), ("k1", "y", 2, 2.0)))
    expected, read = found(table), 0
    for path in [*tmp_path.rglob("*.parquet"), *tmp_path.rglob(".*.log.*")]:
        if ".hoodie" in path.parts:
            continue
        moved = path.rename(tmp_path.parent / "lost")
        older = kind == "COPY_ON_WRITE" and any(
            other.name.split("_")[0] == path.name.split("_")[0]
            and other.parent == path.parent
            and other.name.split("_")[2] > path.name.split("_")[2]
            for other in path.parent.glob("*.parquet")
        )
        if older:
            assert found(table) == expected
        else:
            with pytest.raises(
                CorruptFileError, match=path.name + r" is missing.*[0-9]{17}\..*commit names"
            ):
                found(table)
            read += 1
        moved.rename(path)
    assert read >= 2


def test_a_lost_partition_is_seen(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    (tmp_path / "y").rename(tmp_path.parent / "gone")
    with pytest.raises(CorruptFileError, match=r"/y/.* is missing"):
        table.read()
    off = {"hoodie.py.read.verify.checksums": "false"}
    assert HoodieTable(str(tmp_path), off).read().num_rows == 1


def test_what_was_replaced_is_not_missed(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    table.delete_partitions(["y"])
    for path in (tmp_path / "y").iterdir():
        path.unlink()
    assert [row[0] for row in found(table)] == ["a"]


def test_a_writer_asks_the_newest_commits_where_nothing_sums_up_the_others(
    table: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.table.live_files._AT_ONCE", 2)

    def listed(*present: str) -> None:
        check_listed(table.storage, table.view().timeline, present)

    table.commit(1, base(1, "old"), base(1, "g"), base(1, "h"))
    table.commit(2, action=Action.REPLACE_COMMIT, replaced=["h"])
    table.commit(3, base(3, "g")).commit(4, base(4, "g"), base(4, "h"))
    listed(base(4, "g"))  # of the oldest commit nothing is known
    for gone in (base(4, "g"), base(5, "g")):
        with pytest.raises(CorruptFileError, match=gone):
            listed(base(3, "g"))
        table.commit(5, base(5, "g")) if gone == base(4, "g") else None
    listed(base(5, "g"))  # it goes on with what it knows
    with pytest.raises(CorruptFileError, match=base(1, "old")):
        missing(table, base(5, "g"))  # a reader asks all of them


def test_cleaned_slices_are_not_missed(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, log(1, 1)).commit(3, base(3)).commit(4, log(3, 1))
    missing(table, base(3), log(3, 1))
    with pytest.raises(CorruptFileError, match=r"log.1_0-1-1 is missing, which .hoodie/20250104"):
        missing(table, base(3))
    with pytest.raises(CorruptFileError, match=r"20250103000000000.parquet is missing"):
        missing(table, log(3, 1), base(1), log(1, 1))


def test_a_slice_of_logs_alone_may_miss_one(table: Timeline) -> None:
    table.commit(1, log(1, 1)).commit(2, log(1, 2))
    missing(table, log(1, 1), log(1, 2))
    with pytest.raises(CorruptFileError, match=r"log.1_0-1-1 is missing"):
        missing(table, log(1, 2))


def test_logs_on_a_pending_compaction_belong_to_the_slice_before(table: Timeline) -> None:
    table.commit(1, base(1)).pending(2, Action.COMPACTION).commit(3, log(2, 1))
    missing(table, base(1), log(2, 1))
    with pytest.raises(CorruptFileError, match=r"20250101000000000.parquet is missing"):
        missing(table, log(2, 1))


def test_replaced_groups_and_writes_without_a_file_are_passed_over(table: Timeline) -> None:
    table.commit(1, base(1), "").commit(2, base(2, "h"), action=Action.REPLACE_COMMIT, replaced="g")
    missing(table, base(2, "h"))


def test_what_was_rolled_back_or_archived_meanwhile_is_not_asked_for(
    table: Timeline,
) -> None:
    table.commit(1, base(1)).commit(2, base(2), base(2, group="h"))
    missing(table, base(2), base(2, group="h"))
    table.storage.delete(instant_path(Instant(T[2], Action.COMMIT, State.COMPLETED)))
    missing(table, base(1))  # as another engine does that rolls a commit back
    with pytest.raises(CorruptFileError, match=base(1)):
        missing(table, base(2))
    table.commit(3, base(3, group="k")).commit(4, base(4, group="h"))
    missing(table, base(1), base(3, group="k"), base(4, group="h"))
    table.storage.delete(instant_path(Instant(T[1], Action.COMMIT, State.COMPLETED)))
    missing(table, base(3, group="k"), base(4, group="h"))  # as an archiver does


def test_a_file_group_whose_replacement_was_archived_may_begin_anew(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, action=Action.REPLACE_COMMIT, replaced=["g"])
    missing(table)
    table.commit(3, base(3)).commit(4, base(4, group="h")).commit(5, base(5, group="h"))
    missing(table, base(5, group="h"))
    for time, action in ((1, Action.COMMIT), (2, Action.REPLACE_COMMIT)):
        table.storage.delete(instant_path(Instant(T[time], action, State.COMPLETED)))
    with pytest.raises(CorruptFileError, match=base(3)):
        missing(table, base(5, group="h"))


def test_an_older_timeline_is_asked_for_its_own_files(table: Timeline) -> None:
    table.commit(1, base(1))
    before = table.view().timeline
    table.commit(2, base(2))
    missing(table, base(2))
    with pytest.raises(CorruptFileError, match=base(1)):
        check_nothing_is_missing(table.storage, before, [base(2)])


def test_a_commit_that_was_rolled_back_meanwhile_is_not_called_damaged(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, base(2))
    before = table.view().timeline
    check_nothing_is_missing(table.storage, before, [base(2)])
    table.storage.delete(instant_path(Instant(T[2], Action.COMMIT, State.COMPLETED)))
    with pytest.raises(TimelineError, match=rf"{T[2]}.* was rolled back meanwhile; read again"):
        check_nothing_is_missing(table.storage, before, [base(1)])


def test_what_is_known_of_archived_commits_does_not_grow(table: Timeline) -> None:
    for time in range(1, 6):
        table.commit(time, base(time, group=f"g{time}"))
        missing(table, *(base(t, group=f"g{t}") for t in range(1, time + 1)))
        if time > 1:
            gone = Instant(T[time - 1], Action.COMMIT, State.COMPLETED)
            table.storage.delete(instant_path(gone))
    missing(table, base(5, group="g5"))


def test_a_late_file_of_an_older_slice_is_not_asked_for(table: Timeline) -> None:
    table.commit(1, base(1)).commit(3, base(3))
    missing(table, base(3))
    table.commit(2, log(1, 1), action=Action.DELTA_COMMIT)
    missing(table, base(3))
    with pytest.raises(CorruptFileError, match=base(3)):
        missing(table, base(1), log(1, 1))


def test_of_a_slice_the_files_of_archived_commits_are_not_asked_for(table: Timeline) -> None:
    table.commit(1, base(1)).commit(2, log(1, 1)).commit(3, log(1, 2))
    missing(table, base(1), log(1, 1), log(1, 2))
    table.storage.delete(instant_path(Instant(T[1], Action.COMMIT, State.COMPLETED)))
    missing(table, log(1, 1), log(1, 2))  # whose base file was lost since
    with pytest.raises(CorruptFileError, match=log(1, 1)):
        missing(table, log(1, 2))


def test_the_newest_commit_of_a_log_file_is_known_of_old_slices_too(table: Timeline) -> None:
    """A commit that is taken in late names a file again."""
    table.commit(1, base(1)).commit(2, log(1, 1)).commit(3, log(1, 1)).commit(4, base(4))
    table.commit(5, log(4, 1)).commit(6, log(4, 1))
    timeline = table.view().timeline
    check_nothing_is_missing(table.storage, timeline, [base(4), log(4, 1)])
    for path, time in ((log(1, 1), 3), (log(4, 1), 6)):
        name = LogFileName.parse(path.rpartition("/")[2])
        assert name is not None
        file = LogFile(path.rpartition("/")[0], name, path.rpartition("/")[2], 1)
        commit = newest_commit_of(table.storage, timeline, file)
        assert commit == file_changes(
            table.storage, Instant(T[time], Action.COMMIT, State.COMPLETED)
        )


def test_a_commit_that_completes_late_does_not_stand_for_the_newest(table: Timeline) -> None:
    """Of several writers the one that began first may end last."""
    table.commit(1, base(1)).commit(3, log(1, 1)).commit(4, log(1, 2))
    missing(table, base(1), log(1, 1), log(1, 2))
    table.commit(2, log(1, 1))
    with pytest.raises(CorruptFileError, match=rf"log.1_0-1-1 is missing, which .hoodie/{T[3]}"):
        missing(table, base(1), log(1, 2))
