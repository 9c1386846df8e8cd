"""Which slice of a file group is seen: by commits and what they name, not by listing alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path

T = [f"2025010{day}000000000" for day in range(10)]


def base(time: int, group: str = "g", token: str = "0-1-1", partition: str = "p") -> str:
    return f"{partition}/{group}_{token}_{T[time]}.parquet"


def log(time: int, version: int, group: str = "g", token: str = "0-1-1") -> str:
    return f"p/.{group}_{T[time]}.log.{version}_{token}"


class Timeline:
    """Puts files and instants; an instant's number is its day."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def files(self, *paths: str) -> Timeline:
        for path in paths:
            self.storage.put_if_absent(path, b"x")
        return self

    def commit(
        self,
        time: int,
        *paths: str,
        action: Action = Action.COMMIT,
        replaced: Sequence[str] = (),
    ) -> Timeline:
        stats = tuple(self._stat(path) for path in paths)
        body = CommitMetadata(stats, replaced={"p": tuple(replaced)} if replaced else {})
        instant = Instant(T[time], action, State.COMPLETED)
        self.storage.put_if_absent(instant_path(instant), body.to_bytes(1))
        return self

    def pending(self, time: int, action: Action = Action.COMMIT) -> Timeline:
        instant = Instant(T[time], action, State.REQUESTED)
        self.storage.put_if_absent(instant_path(instant), b"")
        return self

    def see(self, partition: str = "p") -> list[FileSlice]:
        return self.view().latest_slices(partition)

    def view(self) -> FileSystemView:
        return FileSystemView(self.storage, load_timeline(self.storage, 1))

    def _stat(self, path: str) -> WriteStat:
        partition, _, name = path.rpartition("/")
        stat = WriteStat(name.lstrip(".").split("_")[0], path, partition)
        return replace(stat, log=LogWrite(1, 0, "", (name,))) if name.startswith(".") else stat


@pytest.fixture
def table(tmp_path: Path) -> Timeline:
    return Timeline(open_storage(f"memory://{tmp_path}"))


def shown(slices: list[FileSlice]) -> list[tuple[str | None, list[str]]]:
    return [(s.base.path if s.base else None, [found.path for found in s.logs]) for s in slices]


def test_the_newest_committed_base_file_is_seen(table: Timeline) -> None:
    table.files(base(1), base(2), base(3)).commit(1, base(1)).commit(2, base(2)).pending(3)
    assert shown(table.see()) == [(base(2), [])]


def test_a_file_that_its_commit_does_not_name_is_invisible(table: Timeline) -> None:
    """A late task of a batch that committed without it."""
    table.files(base(1), base(1, token="0-1-2"), base(2)).commit(1, base(1)).commit(2)
    assert shown(table.see()) == [(base(1), [])]


def test_a_file_of_an_archived_commit_is_seen(table: Timeline) -> None:
    table.files(base(1)).commit(2, base(2, group="other"))
    assert shown(table.see()) == [(base(1), [])]


def test_nothing_is_seen_before_the_first_commit(table: Timeline) -> None:
    table.files(base(1)).pending(1)
    assert table.see() == []
    assert [file.path for file in table.view().data_files()] == [base(1)]


def test_logs_belong_to_the_slice_that_they_are_named_after(table: Timeline) -> None:
    table.files(base(1), log(1, 1), base(3), log(3, 2), log(3, 10), log(3, 1))
    table.commit(1, base(1)).commit(2, log(1, 1), action=Action.DELTA_COMMIT).commit(3, base(3))
    assert shown(table.see()) == [(base(3), [log(3, 1), log(3, 2), log(3, 10)])]


def test_a_group_may_begin_with_a_log_file(table: Timeline) -> None:
    table.files(log(1, 1)).commit(1, log(1, 1), action=Action.DELTA_COMMIT)
    (found,) = table.see()
    assert (found.base, found.base_instant) == (None, T[1])


def test_logs_after_a_pending_compaction_lie_on_the_slice_before_it(table: Timeline) -> None:
    table.files(base(1), log(1, 1), log(3, 1))
    table.commit(1, base(1)).commit(2, log(1, 1), action=Action.DELTA_COMMIT)
    table.pending(3, Action.COMPACTION).commit(4, log(3, 1), action=Action.DELTA_COMMIT)
    assert shown(table.see()) == [(base(1), [log(1, 1), log(3, 1)])]


def test_a_replaced_group_is_gone(table: Timeline) -> None:
    table.files(base(1), base(2, group="new")).commit(1, base(1))
    table.commit(2, base(2, group="new"), action=Action.REPLACE_COMMIT, replaced=["g"])
    assert shown(table.see()) == [(base(2, group="new"), [])]


def test_groups_come_by_file_id_and_partitions_apart(table: Timeline) -> None:
    paths = [base(1, group="b"), base(1, group="a"), base(1, partition="q/r")]
    table.files(*paths, "p/.hoodie_partition_metadata", "p/_SUCCESS").commit(1, *paths)
    assert [found.group.file_id for found in table.see()] == ["a", "b"]
    assert sorted(file.path for file in table.view().data_files()) == sorted(paths)
    assert [str(found.group) for found in table.see("q/r")] == ["q/r/g"]


def test_two_base_files_of_one_slice_are_damage(table: Timeline) -> None:
    twin = base(1, token="0-1-2")
    table.files(base(1), twin).commit(1, base(1), twin)
    with pytest.raises(CorruptFileError, match="both the base file of p/g") as caught:
        table.see()
    assert base(1) in str(caught.value)
    assert twin in str(caught.value)


def test_logs_without_the_base_file_below_them_are_damage(table: Timeline) -> None:
    table.files(log(1, 1)).commit(1, base(1)).commit(2, log(1, 1), action=Action.DELTA_COMMIT)
    with pytest.raises(CorruptFileError, match=r"p/g_.*\.parquet.* is missing"):
        table.see()


def test_a_commit_names_its_log_files(table: Timeline) -> None:
    table.commit(2, log(1, 1), action=Action.DELTA_COMMIT)
    view = table.view()
    assert view.names(T[2], log(1, 1))
    assert not view.names(T[2], log(1, 2))
    assert view.names(T[1], log(1, 2))  # archived: nobody can say


def test_the_timeline_is_not_listed_with_the_data_files() -> None:
    """It may be longer than the table is large, unless that has very many folders."""
    for folders, expected in ((8, ["", "", *(f"p{n}" for n in range(8))]), (9, ["", ""])):
        paths = [base(1, partition=f"p{n}/q") for n in range(folders)]
        table = Timeline(MemoryStorage()).files(*paths, "loose.txt").commit(1, *paths)
        view, asked = table.view(), []

        class Listing:
            def list(self, path: str, recursive: bool = False, folders: bool = False) -> object:
                asked.append(path)  # noqa: B023
                return table.storage.list(path, recursive, folders=folders)  # noqa: B023

        found = FileSystemView(cast(Storage, Listing()), view.timeline).data_files()
        assert [status.path for status in found] == paths
        assert sorted(asked) == expected


def test_a_disk_lists_each_folder_however_many_there_are(tmp_path: Path) -> None:
    paths = [base(1, partition=f"p{n:02d}") for n in range(30)]
    table = Timeline(LocalStorage(str(tmp_path))).files(*paths, "x.parquet")
    assert [
        s.path for s in FileSystemView(table.storage, table.view().timeline).data_files()
    ] == paths


@pytest.mark.parametrize("suffix", ["orc", "hfile", "lance"])
def test_a_base_file_of_another_format_is_named(suffix: str) -> None:
    """Hudi may keep several formats in one table; passed over, its rows would be missing."""
    timeline = Timeline(MemoryStorage()).files(base(1), base(1).replace("parquet", suffix))
    timeline.commit(1, base(1))
    with pytest.raises(UnsupportedTableError, match=rf"{T[1]}.{suffix} is in the format"):
        timeline.see()
