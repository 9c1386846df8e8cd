"""What a storage promises that replaces a file only while it has a known version."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import pytest

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    UnavailableError,
)
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import ReplacesVersions, Version
from hoodie_ds.storage.retrying import RetryingStorage
from tests.contract.storage.conftest import places
from tests.store_server import StoreServer

_WITHOUT = ("local", "subfolder", "hdfs in memory", "hdfs")
in_versions = pytest.mark.parametrize("storage", places(*_WITHOUT), indirect=True)


@in_versions
def test_a_file_is_replaced_while_it_has_the_version_that_was_read(
    storage: ReplacesVersions,
) -> None:
    storage.put_if_absent("a/f", b"one")
    content, first = storage.read_version("a/f")
    assert content == b"one"
    second = storage.replace_version("a/f", b"two", first)
    with pytest.raises(AlreadyExistsError, match=r"\ba/f'"):
        storage.replace_version("a/f", b"late", first)
    assert storage.read_version("a/f") == (b"two", second)
    third = storage.replace_version("a/f", b"three", second)
    storage.replace("a/f", b"four")
    with pytest.raises(AlreadyExistsError):
        storage.replace_version("a/f", b"late", third)
    assert storage.read("a/f") == b"four"


@in_versions
def test_a_deleted_file_is_not_replaced(storage: ReplacesVersions) -> None:
    with pytest.raises(NotFoundError):
        storage.read_version("f")
    storage.put_if_absent("f", b"one")
    version = storage.read_version("f")[1]
    storage.delete("f")
    with pytest.raises((AlreadyExistsError, NotFoundError)):
        storage.replace_version("f", b"two", version)
    storage.put_if_absent("f", b"three")
    with pytest.raises(AlreadyExistsError):
        storage.replace_version("f", b"two", version)
    assert storage.read("f") == b"three"


@in_versions
def test_of_threads_that_replace_one_version_one_wins(
    storage: ReplacesVersions, request: pytest.FixtureRequest
) -> None:
    if "versitygw" in request.node.name:
        pytest.skip("versitygw compares the tag and stores the object in two steps")
    storage.put_if_absent("f", b"")
    for turn in range(20):
        version, won = storage.read_version("f")[1], list[bytes]()
        start = threading.Barrier(4)

        def put(data: bytes, start: threading.Barrier = start, version: Version = version) -> None:
            start.wait()
            try:
                storage.replace_version("f", data, version)
                won.append(data)  # noqa: B023 - the threads end within the turn
            except AlreadyExistsError:
                pass

        contents = [bytes([turn, number]) * 500 for number in range(4)]
        threads = [threading.Thread(target=put, args=(content,)) for content in contents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [storage.read("f")]


SERVERS = ["s3", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gcs", "azurite"))]
"""Those that make faults on demand."""


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_the_library_below_replaces_once(server: StoreServer, tmp_path: Path) -> None:
    storage = open_storage(server.url(tmp_path), server.options)
    assert isinstance(storage, RetryingStorage)
    storage.put_if_absent("f", b"one")
    version = storage.read_version("f")[1]
    below = cast(ReplacesVersions, storage.inner)
    for call in (
        lambda: below.read_version("busy-1"),
        lambda: below.replace_version("busy-1", b"two", version),
    ):
        with pytest.raises(UnavailableError):
            call()
    with pytest.raises(AccessDeniedError):
        below.replace_version("denied", b"two", version)
