import json
import os
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from hoodie_ds.errors import AlreadyExistsError, NotFoundError, OptionError, StorageError
from hoodie_ds.storage import fsspec_storage
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.fsspec_storage import FsspecStorage
from hoodie_ds.storage.local import LocalStorage


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "file://localhost", "FILE://"])
def test_local_places(tmp_path: Path, prefix: str) -> None:
    storage = open_storage(f"{prefix}{tmp_path}/table/")
    assert storage == LocalStorage(os.path.realpath(tmp_path / "table"))


def test_a_relative_place_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("table").root == os.path.realpath(tmp_path / "table")


def test_a_link_to_the_table_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    storage = open_storage(str(tmp_path / "link"))
    storage.put_if_absent("f", b"x")
    assert (tmp_path / "real" / "f").read_bytes() == b"x"


def test_a_file_url_with_a_host_is_refused() -> None:
    with pytest.raises(OptionError, match="no host"):
        open_storage("file://server/share")


def test_a_file_system_without_atomic_put_is_refused_for_writing() -> None:
    with pytest.raises(OptionError) as caught:
        open_storage("ftp://host/t")
    assert "ftp://" in str(caught.value)
    assert caught.value.key == "hoodie.py.storage.allow.non.atomic.put"
    assert open_storage("ftp://host/t", for_write=False).root == "ftp://host/t"
    assert open_storage("ftp://host/t", allow_non_atomic=True).root == "ftp://host/t"


@pytest.mark.parametrize("for_write", [False, True])
def test_an_unknown_scheme_is_refused(for_write: bool) -> None:
    with pytest.raises(OptionError, match=r"'path' = 'quantum://...' .* or s3://, gs://, abfss://"):
        open_storage("quantum://host/t", for_write=for_write)


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("s3://bucket/t", r"no file system for s3://: .* pip install '\.\[s3\]'"),
        ("webhdfs://host/t", "no file system for webhdfs://: install what it takes"),
    ],
)
def test_a_missing_package_is_named(
    place: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(scheme: str) -> type:
        raise ImportError("install what it takes")

    monkeypatch.setattr(fsspec, "get_filesystem_class", absent)
    with pytest.raises(StorageError, match=remedy):
        open_storage(place, for_write=False)
    if place.startswith("webhdfs:"):  # no release of its package would make it safe for writing
        with pytest.raises(OptionError, match="writing to webhdfs:// is refused"):
            open_storage(place)
        with pytest.raises(StorageError, match=remedy):
            open_storage(place, allow_non_atomic=True)


def test_without_atomic_put_a_taken_name_is_still_seen(tmp_path: Path) -> None:
    storage = FsspecStorage(f"memory://{tmp_path}", atomic_put=False)
    storage.put_if_absent("f", b"x")
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("f", b"y")
    assert storage.read("f") == b"x"


class _Failing(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Raises whatever the test put into `error`."""

    protocol = "failing"
    error: Exception = OSError("unset")

    def cat_file(self, path: str, *args: object, **kwargs: object) -> bytes:
        raise self.error

    def pipe_file(self, path: str, value: bytes, *args: object, **kwargs: object) -> None:
        raise self.error


@pytest.fixture
def failing() -> FsspecStorage:
    fsspec.register_implementation("failing", _Failing, clobber=True)
    options = {"key": "hush", "deep": '{"password": "whisper"}', "anon": "false"}
    return FsspecStorage("failing://bucket/t", options, atomic_put=True)


class _LibraryError(Exception):
    """Some library's own error, outside Python's tree of operating system errors."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("hush"), NotFoundError),
        (_LibraryError("denied to hush with whisper"), StorageError),
        (TimeoutError("after hush"), StorageError),
    ],
)
def test_foreign_errors_become_typed_without_secrets(
    failing: FsspecStorage, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception]
) -> None:
    monkeypatch.setattr(_Failing, "error", error)
    with pytest.raises(kind) as caught:
        failing.read("f")
    for secret in ("hush", "whisper"):
        assert secret not in str(caught.value)
        assert secret not in repr(failing)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "'f'" in str(caught.value)


def test_secrets_within_json_are_secrets_too(
    failing: FsspecStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = replace(
        failing, options={"deep": '{"tokens": ["murmur", ["mumble"]], "pin": 12345678, "tries": 3}'}
    )
    monkeypatch.setattr(_Failing, "error", _LibraryError("3 times murmur, mumble or 12345678"))
    with pytest.raises(StorageError, match=r"3 times \*\*\*, \*\*\* or \*\*\*") as caught:
        storage.read("f")
    assert caught.value.__cause__ is None


def test_foreign_errors_without_secrets_are_chained(
    failing: FsspecStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Failing, "error", _LibraryError("no route"))
    with pytest.raises(StorageError, match="no route") as caught:
        failing.read("f")
    assert isinstance(caught.value.__cause__, _LibraryError)


def test_a_failed_condition_of_older_s3_libraries_means_taken(
    failing: FsspecStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "At least one of the pre-conditions you specified did not hold"
    monkeypatch.setattr(_Failing, "error", OSError(22, answer))
    with pytest.raises(AlreadyExistsError):
        failing.put_if_absent("f", b"x")


class _Echoing(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Its files hold the arguments that it was given."""

    protocol = "echoing"

    def cat_file(self, path: str, *args: object, **kwargs: object) -> bytes:
        return json.dumps(self.storage_options).encode()


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("{hush", "{hush"),  # a password may begin like JSON
        ('{"region": ["north"]}', {"region": ["north"]}),
        ("True", True),
        ("1", "1"),
    ],
)
def test_options_are_parsed_for_the_library(text: str, argument: object) -> None:
    fsspec.register_implementation("echoing", _Echoing, clobber=True)
    given = json.loads(FsspecStorage("echoing://bucket/t", {"password": text}).read("f"))
    assert given["password"] == argument


@pytest.mark.parametrize("said", ["got an unexpected keyword argument 'other'", "odd"])
def test_a_type_error_that_names_no_option_stays(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object) -> None:
        raise TypeError(said)

    monkeypatch.setattr(fsspec_storage, "_opened", refusing)
    with pytest.raises(StorageError, match=said) as caught:
        open_storage("s3://no-option-of-ours/t", {"use_ssl": "true"}).read("f")
    assert not isinstance(caught.value, OptionError)
