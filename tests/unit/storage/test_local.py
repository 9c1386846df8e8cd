import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OutOfSpaceError,
    PathEscapeError,
    StorageError,
)
from hoodie_ds.storage.local import LocalStorage
from tests.faults.power_loss import Disk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path)) / "table"


def _write(storage: LocalStorage, path: str) -> None:
    with storage.open_output(path) as file:
        file.write(b"x")


def _fail(code: int) -> Callable[..., None]:
    def call(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, OutOfSpaceError),
        (errno.EDQUOT, OutOfSpaceError),
        (errno.EACCES, AccessDeniedError),
        (errno.EROFS, AccessDeniedError),
        (errno.EIO, StorageError),
    ],
)
def test_a_failing_disk_is_a_typed_error_and_leaves_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[StorageError]
) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("old", b"old")
    monkeypatch.setattr(os, "fsync", _fail(code))
    calls: list[Callable[[], None]] = [
        lambda: storage.put_if_absent("new", b"x"),
        lambda: storage.replace("old", b"x"),
        lambda: _write(storage, "new"),
    ]
    for call in calls:
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
        assert str(root) in str(caught.value)
    assert os.listdir(root) == ["old"]
    assert storage.read("old") == b"old"


def test_an_error_of_the_disk_while_rows_are_written_is_typed(root: Path) -> None:
    storage = LocalStorage(str(root))

    def write() -> None:
        with storage.open_output("f"):
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OutOfSpaceError, match="'f'"):
        write()
    assert os.listdir(root) == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "link", _fail(code))
    with pytest.raises(StorageError, match="hard links"):
        LocalStorage(str(root)).put_if_absent("f", b"x")
    assert os.listdir(root) == []


def _fail_for_folders(code: int) -> Callable[[int], None]:
    sync = os.fsync

    def call(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        sync(descriptor)

    return call


def test_a_disk_that_cannot_sync_folders_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", _fail_for_folders(errno.EINVAL))
    storage = LocalStorage(str(root))
    storage.put_if_absent("a/f", b"x")
    _write(storage, "a/g")
    storage.delete("a/f")
    assert os.listdir(root / "a") == ["g"]


def test_a_name_that_could_not_be_synced_is_not_reported_as_put(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("old", b"")
    monkeypatch.setattr(os, "fsync", _fail_for_folders(errno.EIO))
    with pytest.raises(StorageError, match="'new'"):
        storage.put_if_absent("new", b"x")


def test_content_is_synced_before_its_name_and_its_folder_after(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("a/first", b"")
    steps: list[str] = []
    sync, link = os.fsync, os.link

    def traced_sync(descriptor: int) -> None:
        steps.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(root)))
        sync(descriptor)

    def traced_link(source: str, target: str) -> None:
        steps.append("link")
        link(source, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not show the files behind descriptors")
    monkeypatch.setattr(os, "fsync", traced_sync)
    monkeypatch.setattr(os, "link", traced_link)
    storage.put_if_absent("a/second", b"x")
    assert steps == [f"/a/.{os.getpid()}-0.tmp", "link", "/a"]
    steps.clear()
    storage.put_if_absent("b/c/third", b"x")
    assert steps == ["", "/b", f"/b/c/.{os.getpid()}-0.tmp", "link", "/b/c"]
    steps.clear()
    storage.replace("a/second", b"y")
    assert steps == [f"/a/.{os.getpid()}-0.tmp", "/a"]
    steps.clear()
    _write(storage, "a/data")
    assert steps == ["/a/data", "/a"]
    steps.clear()
    storage.delete("a/data")
    assert steps == ["/a"]


def test_leftovers_of_a_killed_process_are_hidden_and_harmless(root: Path) -> None:
    root.mkdir()
    left = root / f".{os.getpid()}-0.tmp"
    left.write_bytes(b"half")
    storage = LocalStorage(str(root))
    storage.put_if_absent("f", b"whole")
    assert [status.path for status in storage.list("")] == ["f"]
    assert left.read_bytes() == b"half"


def test_names_as_long_as_the_disk_allows(root: Path) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("n" * 255, b"x")
    assert storage.read("n" * 255) == b"x"
    with pytest.raises(StorageError):
        storage.put_if_absent("n" * 256, b"x")


def test_a_name_that_another_process_takes_after_the_look_is_not_overwritten(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("f", b"theirs")
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("f", b"ours")
    assert storage.read("f") == b"theirs"


def test_links_that_lead_outside_are_refused(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    storage = LocalStorage(str(root))
    storage.put_if_absent("f", b"x")
    (root / "door").symlink_to(outside)
    (root / "p").mkdir()
    (root / "p" / "window").symlink_to(outside / "secret")
    for call in (
        lambda: storage.read("door/secret"),
        lambda: storage.read("p/window"),
        lambda: storage.open_input("p/window"),
        lambda: storage.put_if_absent("door/new", b""),
        lambda: storage.replace("p/window", b""),
        lambda: _write(storage, "door/deeper/new"),
        lambda: storage.list("door"),
        lambda: storage.list(""),
        lambda: storage.list("p"),
        lambda: storage.delete("door/secret"),
    ):
        with pytest.raises(PathEscapeError):
            call()
    assert (outside / "secret").read_bytes() == b"secret"
    assert os.listdir(outside) == ["secret"]


def test_deleting_a_link_leaves_what_it_points_to(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"")
    storage = LocalStorage(str(root))
    storage.put_if_absent("p/f", b"x")
    (root / "door").symlink_to(outside)
    (root / "p" / "door").symlink_to(outside)
    storage.delete("door")
    storage.delete("p")
    assert os.listdir(root) == []
    assert os.listdir(outside) == ["kept"]


def test_links_within_the_table_are_followed(root: Path) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("a/f", b"x")
    (root / "b").symlink_to(root / "a")
    assert storage.read("b/f") == b"x"
    assert [status.path for status in storage.list("", recursive=True)] == ["a/f", "b/f"]


def test_a_parent_that_is_a_file_is_a_typed_error(root: Path) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("f", b"x")
    with pytest.raises(StorageError, match="f/below"):
        storage.put_if_absent("f/below", b"")


def test_a_folder_is_not_replaced_by_a_file(root: Path) -> None:
    storage = LocalStorage(str(root))
    storage.put_if_absent("a/f", b"x")
    with pytest.raises(StorageError, match="cannot replace 'a'"):
        storage.replace("a", b"y")
    assert os.listdir(root) == ["a"]
    assert storage.read("a/f") == b"x"


def test_a_folder_that_another_process_makes_meanwhile_is_durable_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir()
    with Disk(str(root)) as disk:
        mkdir = os.mkdir

        def other_is_faster(path: str) -> None:
            mkdir(path)
            mkdir(path)

        monkeypatch.setattr(os, "mkdir", other_is_faster)
        LocalStorage(str(root)).put_if_absent("p/f", b"x")
        monkeypatch.undo()
        disk.reached(1)
    assert {files.get("p/f") for moment, files in disk.states() if moment == 1} == {b"x"}


def test_a_parent_that_is_a_link_to_nothing_is_a_typed_error(root: Path) -> None:
    root.mkdir()
    (root / "p").symlink_to(root / "gone")
    with pytest.raises(NotFoundError, match=r"'p/f'.*parents are folders"):
        LocalStorage(str(root)).put_if_absent("p/f", b"x")
    assert os.listdir(root) == ["p"]


def test_a_file_deleted_during_a_listing_is_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(root))
    for name in ("a", "b", "c"):
        storage.put_if_absent(name, b"x")
    scandir = os.scandir

    @contextmanager
    def interrupted(folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with scandir(folder) as scan:
            entries = list(scan)
        storage.delete("b")
        yield iter(entries)

    monkeypatch.setattr(os, "scandir", interrupted)
    assert [status.path for status in storage.list("")] == ["a", "c"]


def test_replace_deletes_the_checksum_file_of_hadoop(root: Path) -> None:
    storage = LocalStorage(str(root))
    storage.replace("a/file", b"theirs")
    (root / "a/.file.crc").write_bytes(b"crc\0of theirs")
    (root / "a/.other.crc").write_bytes(b"crc\0of another")
    storage.replace("a/file", b"ours")
    assert {path.name for path in (root / "a").iterdir()} == {"file", ".other.crc"}
    assert storage.read("a/file") == b"ours"
