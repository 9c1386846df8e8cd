"""What the contract suite does not show of storages of obstore: whole buckets, marks, deletions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    PathEscapeError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage import clouds, streams
from hoodie_ds.storage.object_storage import ObjectStorage
from hoodie_ds.storage.retrying import RetryingStorage

GONE = FileNotFoundError("it is not there")
FULL = GenericError("This operation is not permitted on a non-empty directory. (code: 409)")


class Store:
    """A store in memory that reports what it cannot delete, as those of the clouds do."""

    def __init__(self) -> None:
        self.inner = MemoryStore()
        self.marked = False
        self.refusals: dict[str, Exception] = {}
        self.asked: list[list[str]] = []
        self.ranges: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def list(self, prefix: str) -> Any:
        listed = self.inner.list(prefix).collect()
        marks = [{**one, "path": prefix} for one in listed[:1] if self.marked]
        return SimpleNamespace(collect=lambda: listed + marks)

    def get_range(self, key: str, *, start: int, end: int) -> Any:
        self.ranges.append((start, end))
        return self.inner.get_range(key, start=start, end=end)

    def delete(self, keys: Sequence[str]) -> None:
        self.asked.append(list(keys))
        there = {one["path"] for one in self.inner.list().collect()}
        for key in keys:
            if key in self.refusals or key not in there:
                raise self.refusals.get(key, GONE)
            self.inner.delete(key)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store()
    monkeypatch.setattr(clouds, "connect", lambda *_, **__: found)
    return found


@pytest.fixture
def storage(store: Store) -> ObjectStorage:
    return ObjectStorage("gs://bucket/t", {"one": f"{id(store)}"})  # no other's connection


def paths(storage: ObjectStorage) -> list[str]:
    return [status.path for status in storage.list("", recursive=True)]


def test_a_table_may_be_a_whole_bucket(store: Store) -> None:
    storage = ObjectStorage("gs://bucket", {"one": f"{id(store)}"})
    storage.put_if_absent("a/f", b"1")
    storage.put_if_absent("g", b"")
    assert paths(storage) == ["a/f", "g"]
    assert [status.path for status in storage.list("", folders=True)] == ["a"]
    storage.delete_many(["a/f", "g"])
    assert paths(storage) == []


def test_the_mark_of_a_folder_is_no_file_in_it(storage: ObjectStorage, store: Store) -> None:
    storage.put_if_absent("a/f", b"")
    store.marked = True
    assert [status.path for status in storage.list("a", recursive=True)] == ["a/f"]


@pytest.mark.parametrize("why", [GONE, FULL], ids=["gone", "a folder with folders in it"])
def test_what_is_not_there_keeps_no_other_file(
    storage: ObjectStorage, store: Store, why: Exception
) -> None:
    for name in ("a", "m", "z"):
        storage.put_if_absent(name, b"")
    store.refusals = {"t/k": why}
    storage.delete_many(["a", "k", "z"])
    assert paths(storage) == ["m"]
    assert store.asked == [["t/a", "t/k", "t/z"], ["t/a"], ["t/k"], ["t/z"]]
    storage.delete("k")
    assert store.asked[4:] == [["t/k"]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("busy (code: 503)", UnavailableError), ("strange", StorageError)],
)
def test_what_may_not_be_deleted_is_reported(
    storage: ObjectStorage, store: Store, text: str, kind: type[StorageError]
) -> None:
    storage.put_if_absent("a", b"")
    store.refusals = {"t/a": GenericError(text)}
    for call in (lambda: storage.delete("a"), lambda: storage.delete_many(["b", "a"])):
        with pytest.raises(StorageError, match="cannot delete 'a'") as caught:
            call()
        assert type(caught.value) is kind
    assert paths(storage) == ["a"]


def test_no_path_of_many_leaves_the_table(storage: ObjectStorage, store: Store) -> None:
    with pytest.raises(PathEscapeError):
        storage.delete_many(["a", "../b"])
    assert store.asked == []


MIB = 1 << 20


@pytest.mark.parametrize(
    ("read", "ranges"),
    [
        (lambda file: file.read(), [(0, 3 * MIB)]),
        (lambda file: (file.read(4), file.read(8)), [(0, MIB)]),
        (lambda file: file.read(2 * MIB), [(0, 2 * MIB)]),
        (lambda file: (file.seek(-5, 2), file.read(9)), [(3 * MIB - 5, 3 * MIB)]),
        (lambda file: (file.seek(4 * MIB), file.read(9), file.read()), []),
    ],
    ids=["all", "little by little", "much", "the end", "beyond it"],
)
def test_requests_of_an_input(
    storage: ObjectStorage,
    store: Store,
    read: Callable[[Any], object],
    ranges: list[tuple[int, int]],
) -> None:
    content = bytes(range(256)) * (3 * MIB // 256)
    storage.put_if_absent("f", content)
    with storage.open_input("f") as file:
        read(file)
    assert store.ranges == ranges


class Writer:
    """What obstore sends in parts; its last request may fail, and be heard all the same."""

    def __init__(self, store: Store, key: str, **_: object) -> None:
        self.store, self.key, self.parts = store, key, b""

    def write(self, part: bytes) -> None:
        if b"busy" in part:
            raise GenericError("busy (code: 503)")
        self.parts += part

    def close(self) -> None:
        if "lost" in self.key or "own" in self.key:
            self.store.put(self.key, self.parts if "lost" in self.key else b"theirs")
        if "denied" in self.key:
            raise GenericError("denied (code: 403)")
        if self.key.partition("/")[2] != "plain":
            raise GenericError("The block list is invalid (code: 400)")
        self.store.put(self.key, self.parts)


@pytest.fixture
def in_parts(storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> RetryingStorage:
    monkeypatch.setattr("obstore.open_writer", Writer)
    monkeypatch.setattr(streams, "PART_BYTES", 4)
    return RetryingStorage(storage, 0)


def send(storage: RetryingStorage, path: str, content: bytes = b"in parts") -> None:
    with storage.open_output(path) as file:
        file.write(content)


def test_an_output_without_retries_is_stored_at_its_end(storage: ObjectStorage) -> None:
    with storage.open_output("f") as file:
        file.write(b"whole")
        assert paths(storage) == []
    assert storage.read("f") == b"whole"
    with pytest.raises(AlreadyExistsError), storage.open_output("f") as file:
        file.write(b"others'")
    assert storage.read("f") == b"whole"


def test_a_large_file_is_sent_in_parts(in_parts: RetryingStorage) -> None:
    send(in_parts, "plain")
    assert in_parts.read("plain") == b"in parts"
    with pytest.raises(AlreadyExistsError):
        send(in_parts, "plain", b"others'")
    assert in_parts.read("plain") == b"in parts"


@pytest.mark.parametrize(
    ("path", "error"),
    [("not there", UnavailableError), ("own", AlreadyExistsError), ("denied", AccessDeniedError)],
)
def test_a_file_whose_last_request_failed_is_looked_for(
    in_parts: RetryingStorage, path: str, error: type[StorageError]
) -> None:
    patient = replace(in_parts, deadline_ms=10)
    send(patient, "lost")
    assert in_parts.read("lost") == b"in parts"
    with pytest.raises(error) as caught:
        send(patient, path)
    assert type(caught.value) is error


def test_no_part_is_sent_twice(in_parts: RetryingStorage) -> None:
    with pytest.raises(StorageError, match="busy") as caught:
        send(in_parts, "plain", b"busy and more")
    assert type(caught.value) is StorageError
