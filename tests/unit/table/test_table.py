from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    CorruptFileError,
    NotFoundError,
    OptionError,
    TableNotFoundError,
    UnsupportedTableError,
)
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.metadata_table import drop_metadata_table
from hoodie_ds.table.table import (
    Table,
    check_unchanged,
    create_table,
    find_table,
    open_table,
    update_properties,
)
from hoodie_ds.testing import MemoryStorage

_FILE, _BACKUP = ".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup"
_NOW = 1_767_225_600_000
_PARTITIONS = "hoodie.table.metadata.partitions"


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path / "table"))
    # The memory file system is one for the whole process: each test has a folder of its own.
    return open_storage(f"memory://{tmp_path}")


def _properties(name: str = "trips") -> TableProperties:
    options = WriteOptions(base_path="/t", table_name=name, record_key_fields=("uuid",))
    return TableProperties.create(options)


def test_a_table_that_was_created_is_opened(storage: Storage) -> None:
    created = create_table(storage, _properties(), _NOW)
    assert open_table(storage).properties.raw == {
        **created.properties.raw,
        "hoodie.table.checksum": open_table(storage).properties.raw["hoodie.table.checksum"],
    }
    assert find_table(storage) == open_table(storage)


def test_in_an_absent_folder_a_table_may_be_created(storage: Storage) -> None:
    assert find_table(storage) is None
    with pytest.raises(TableNotFoundError, match="check the path"):
        open_table(storage)


def test_in_an_empty_folder_a_table_may_be_created(tmp_path: Path) -> None:
    (tmp_path / ".hoodie" / ".temp").mkdir(parents=True)
    (tmp_path / ".hoodie" / ".1-0.tmp").write_bytes(b"half a file")
    assert find_table(open_storage(str(tmp_path))) is None


@pytest.mark.parametrize("path", ["readme.txt", "p/part-0.parquet"])
def test_a_folder_of_other_files_is_no_place_for_a_table(storage: Storage, path: str) -> None:
    storage.put_if_absent(path, b"x")
    with pytest.raises(OptionError, match="not empty") as caught:
        find_table(storage)
    assert caught.value.key == "path"


@pytest.mark.parametrize("opening", [find_table, open_table])
def test_instants_without_properties_are_damage(storage: Storage, opening: object) -> None:
    storage.put_if_absent(".hoodie/20250101000000000.commit", b"{}")
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties is lost or empty"):
        opening(storage)  # type: ignore[operator]


@pytest.mark.parametrize("damage", [None, b"", b"hoodie.table.name=trips\n", b"\xff\xfe"])
def test_the_backup_stands_in_for_missing_or_damaged_properties(
    storage: Storage, damage: bytes | None
) -> None:
    storage.put_if_absent(_BACKUP, _properties().format(_NOW))
    if damage is not None:
        storage.put_if_absent(_FILE, damage)
    assert open_table(storage).properties.name == "trips"


@pytest.mark.parametrize("damage", [b"", b"hoodie.table.name=trips\n"])
@pytest.mark.parametrize("backup", [None, b"", b"hoodie.table.name=trips\n"])
def test_damage_without_a_whole_backup_is_an_error_that_names_the_file(
    storage: Storage, damage: bytes, backup: bytes | None
) -> None:
    storage.put_if_absent(_FILE, damage)
    if backup is not None:
        storage.put_if_absent(_BACKUP, backup)
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties.*restore.* from a copy"):
        open_table(storage)


class _EndingUpdate:
    """Another engine's update, which ends while a reader looks for the backup."""

    root = "r"

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {_BACKUP: b""}

    def read(self, path: str) -> bytes:
        if path == _BACKUP:
            self._files = {_FILE: _properties().format(_NOW)}
        if path not in self._files:
            raise NotFoundError(path)
        return self._files[path]


def test_an_update_that_ends_meanwhile_hides_no_table() -> None:
    assert open_table(_EndingUpdate()).properties.name == "trips"  # type: ignore[arg-type]


def test_the_loser_of_a_creation_opens_the_winners_table(storage: Storage) -> None:
    create_table(storage, _properties("winner"), _NOW)
    assert create_table(storage, _properties("loser"), _NOW).properties.name == "winner"


def _with_metadata_table(storage: Storage) -> Table:
    properties = _properties().with_changes({_PARTITIONS: "files", f"{_PARTITIONS}.inflight": "a"})
    table = create_table(storage, properties, _NOW)
    storage.put_if_absent(".hoodie/metadata/files/x", b"x")
    return table


def test_properties_are_changed_and_the_others_kept(storage: Storage) -> None:
    table = create_table(storage, _properties(), _NOW)
    changed = update_properties(table, {"a.key": "1"}, ["hoodie.archivelog.folder"], _NOW)
    found = open_table(storage).properties.raw
    kept = {k: v for k, v in table.properties.raw.items() if k != "hoodie.archivelog.folder"}
    assert {k: v for k, v in found.items() if k != "hoodie.table.checksum"} == {
        **kept,
        "a.key": "1",
    }
    assert changed.properties.raw["a.key"] == "1"
    assert [s.path for s in storage.list(".hoodie")] == [_FILE]


def test_the_metadata_table_goes_after_its_property(storage: Storage) -> None:
    dropped = drop_metadata_table(_with_metadata_table(storage), _NOW)
    assert dropped.properties.metadata_partitions == ()
    raw = open_table(storage).properties.raw
    assert not [key for key in raw if key.startswith(_PARTITIONS)]
    assert [s.path for s in storage.list(".hoodie", recursive=True)] == [_FILE]


class _KilledError(BaseException):
    pass


class _Recording:
    """Passes on so many writes, then dies; readers look at the storage behind it."""

    def __init__(self, inner: Storage, writes: int) -> None:
        self._inner, self._left = inner, writes

    def __getattr__(self, name: str) -> object:
        if name in ("replace", "delete", "put_if_absent"):
            if self._left == 0:
                raise _KilledError
            self._left -= 1
        return getattr(self._inner, name)


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("writes", range(4))
def test_a_drop_killed_anywhere_leaves_a_table_that_can_be_trusted(
    storage: Storage, writes: int, damaged: bool
) -> None:
    _with_metadata_table(storage)
    if damaged:
        storage.replace(_BACKUP, storage.read(_FILE))
        storage.replace(_FILE, b"")
    table = open_table(storage)
    dying = Table(_Recording(storage, writes), table.properties)  # type: ignore[arg-type]
    with pytest.raises(_KilledError):
        drop_metadata_table(dying, _NOW)
    left = open_table(storage)
    has_files = bool(storage.list(".hoodie/metadata", recursive=True))
    assert has_files or left.properties.metadata_partitions == ()
    assert drop_metadata_table(left, _NOW).properties.metadata_partitions == ()
    assert open_table(storage).properties.metadata_partitions == ()


def test_what_cannot_be_written_any_more_is_refused_while_a_batch_is_written() -> None:
    storage = MemoryStorage()
    table = create_table(storage, _properties(), 0)
    update_properties(table, {"hoodie.table.base.file.format": "ORC"}, (), 1)
    with pytest.raises(UnsupportedTableError, match=r"nothing was committed.*file format ORC"):
        check_unchanged(table)
