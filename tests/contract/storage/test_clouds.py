"""What only Google Cloud Storage and Azure can do wrong: lost answers, throttling, cut listings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OptionError,
    UnavailableError,
)
from hoodie_ds.storage import object_storage, streams
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.object_storage import ObjectStorage
from hoodie_ds.storage.retrying import RetryingStorage
from tests.cloud_servers import KEY, TOKEN, AzureServer
from tests.store_server import StoreServer
from tests.tables import TRIPS, found, trips

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("server", ["gcs", "azurite"], indirect=True),
]

PART = 5 << 20


@pytest.fixture
def storage(server: StoreServer, tmp_path: Path) -> RetryingStorage:
    found = open_storage(server.url(tmp_path), server.options)
    assert isinstance(found, RetryingStorage)
    return found


def once(storage: RetryingStorage) -> ObjectStorage:
    """The same storage without retries."""
    assert isinstance(storage.inner, ObjectStorage)
    return storage.inner


@pytest.mark.parametrize("fault", ["lost", "dropped"])
def test_a_put_whose_answer_is_lost_is_found_out(storage: RetryingStorage, fault: str) -> None:
    path = f"{fault}-1/by one try"
    with pytest.raises(UnavailableError):
        once(storage).put_if_absent(path, b"x")
    with pytest.raises(AlreadyExistsError):
        once(storage).put_if_absent(path, b"x")
    storage.put_if_absent(f"{fault}-2/again", b"mine")
    assert storage.read(f"{fault}-2/again") == b"mine"
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent(f"{fault}-2/again", b"mine")  # no try of this call was lost


@pytest.mark.parametrize("fault", ["busy", "slow", "cut"])
def test_what_fails_for_a_while_is_done(storage: RetryingStorage, fault: str) -> None:
    folder = f"{fault}-2"
    storage.put_if_absent(f"{folder}/f", b"0123456789")
    storage.replace(f"{folder}/f", b"9876543210")
    assert storage.read(f"{folder}/f") == b"9876543210"
    with storage.open_input(f"{folder}/f") as file:
        file.seek(4)
        assert file.read() == b"543210"
    storage.put_if_absent(f"{folder}/g", b"")
    assert [status.path for status in storage.list(folder)] == [f"{folder}/f", f"{folder}/g"]
    storage.delete_many([f"{folder}/g", f"{folder}/not there"])
    assert [status.path for status in storage.list("", recursive=True)] == [f"{folder}/f"]
    storage.delete(folder)
    assert storage.list(folder) == []


@pytest.mark.parametrize("fault", ["busy", "slow", "lost", "dropped"])
def test_a_large_file_each_of_whose_parts_fails_once_is_there(
    storage: RetryingStorage, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PART_BYTES", PART)
    monkeypatch.setattr(object_storage, "PART_BYTES", PART)
    content = os.urandom(2 * PART + 7)
    with storage.open_output(f"{fault}-1/f") as file:
        file.write(content)
    assert storage.read(f"{fault}-1/f") == content


def test_a_large_file_is_not_there_before_its_end(
    storage: RetryingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PART_BYTES", PART)
    monkeypatch.setattr(object_storage, "PART_BYTES", PART)

    def interrupted() -> None:
        with storage.open_output("f") as file:
            file.write(bytes(3 * PART))
            assert storage.list("") == []
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert storage.list("") == []


def test_the_library_below_does_not_retry(storage: RetryingStorage) -> None:
    for call in (once(storage).read, once(storage).open_input, once(storage).list):
        with pytest.raises(UnavailableError):
            call(f"busy-1-{call.__name__}")


def test_a_listing_is_whole_or_none(storage: RetryingStorage, server: StoreServer) -> None:
    if isinstance(server, AzureServer):
        pytest.skip("Azurite's pages cannot be made smaller than 5,000 files")
    paths = [f"paged/busy-1/{number}" for number in range(5)]
    for path in paths:
        storage.put_if_absent(path, b"")
    for recursive in (False, True):
        listed = storage.list("paged/busy-1", recursive)
        assert [status.path for status in listed] == paths
    storage.delete("paged")
    assert storage.list("paged", recursive=True) == []


def test_what_is_denied_is_not_tried_again_and_secrets_are_in_no_message(
    storage: RetryingStorage,
) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: storage.read("denied"),
        lambda: storage.list("denied"),
        lambda: storage.put_if_absent("denied", b""),
        lambda: storage.delete("denied"),
        lambda: storage.delete_many(["denied"]),
    ]
    for call in calls:
        with pytest.raises(AccessDeniedError) as caught:
            call()
        link: BaseException | None = caught.value
        while link is not None:
            assert not [secret for secret in (KEY, TOKEN) if secret in str(link) + repr(link)]
            link = link.__cause__
    assert KEY not in repr(storage)
    assert TOKEN not in repr(storage)


def test_credentials_that_expire_are_reported_at_once_and_new_ones_are_used(
    storage: RetryingStorage,
) -> None:
    with pytest.raises(AccessDeniedError):
        storage.put_if_absent("expired-1/f", b"x")
    storage.put_if_absent("expired-1/f", b"x")
    with pytest.raises(AccessDeniedError):
        storage.read("expired-1/f")
    assert storage.read("expired-1/f") == b"x"


def test_credentials_and_endpoint_may_come_from_the_environment(
    storage: RetryingStorage, server: StoreServer
) -> None:
    code = (
        "import sys\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "open_storage(sys.argv[1]).put_if_absent('f', b'from outside')\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, storage.root],
        env={**os.environ, **server.environment},
        check=True,
    )
    assert storage.read("f") == b"from outside"


def test_a_bucket_that_is_missing_is_named(storage: RetryingStorage, server: StoreServer) -> None:
    place = storage.root.replace("tables", "no-such-bucket", 1)
    with pytest.raises(NotFoundError, match="no-such-bucket"):
        open_storage(place, server.options).put_if_absent("f", b"")


def test_the_child_of_a_fork_is_refused_rather_than_stuck(
    storage: RetryingStorage, server: StoreServer
) -> None:
    storage.put_if_absent("f", b"")
    code = (
        "import os, sys\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "storage = open_storage(sys.argv[1])\n"
        "storage.read('f')\n"
        "child = os.fork()\n"
        "if child:\n"
        "    sys.exit(os.waitpid(child, 0)[1] and 1)\n"
        "storage.read('f')\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, storage.root],
        env={**os.environ, **server.environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == 1
    assert "forked from one that uses it" in child.stderr.splitlines()[-1]


def test_a_server_that_ignores_the_condition_is_refused_at_creation(
    storage: RetryingStorage, server: StoreServer
) -> None:
    if isinstance(server, AzureServer):
        pytest.skip("the condition is part of what Azure's requests sign")
    place = f"{storage.root}/lax"
    with pytest.raises(OptionError, match="x-goog-if-generation-match") as caught:
        HoodieTable(place, {**TRIPS, **server.table_options}).upsert(trips(("a", "x", 1, 1.0)))
    assert caught.value.key == "hoodie.py.storage.allow.non.atomic.put"
    assert storage.list("lax", recursive=True) == []


def test_a_table_is_created_where_the_condition_is_obeyed(
    storage: RetryingStorage, server: StoreServer
) -> None:
    table = HoodieTable(storage.root, {**TRIPS, **server.table_options})
    table.upsert(trips(("a", "x", 1, 1.0)))
    assert found(table) == [("a", "x", 1, 1.0)]
    files = storage.list("", recursive=True)
    assert [status.path for status in files if "probe" in status.path] == []
    with pytest.raises(OptionError, match="knows no such option"):
        open_storage(storage.root, {**server.options, "no_such_option": "x"}).read("f")
