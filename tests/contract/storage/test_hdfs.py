"""What only HDFS can do wrong: lost answers, files under construction, refused users and names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.hdfs_storage import HdfsStorage
from hoodie_ds.storage.retrying import RetryingStorage
from tests.hdfs_server import HdfsServer
from tests.tables import TRIPS, found, trips

pytestmark = pytest.mark.slow


@pytest.fixture
def storage(hdfs: HdfsServer, tmp_path: Path) -> RetryingStorage:
    found = open_storage(hdfs.url(tmp_path), hdfs.options)
    assert isinstance(found, RetryingStorage)
    return found


def all_names(storage: RetryingStorage, hdfs: HdfsServer, folder: str) -> list[str]:
    """The names in a folder, those that no listing of ours shows too."""
    from hdfs_native import Client

    path = storage.root.removeprefix(f"hdfs://{hdfs.endpoint}")
    listed = Client(f"hdfs://{hdfs.direct}").list_status(f"{path}/{folder}")
    return sorted(status.path.rpartition("/")[2] for status in listed)


@pytest.mark.parametrize("call", ["create", "rename2"])
def test_a_put_whose_answer_is_lost_is_found_out(
    storage: RetryingStorage, hdfs: HdfsServer, call: str
) -> None:
    folder = f"lost-{call}-1"
    with pytest.raises(UnavailableError):
        storage.inner.put_if_absent(f"{folder}/by one try", b"x")
    storage.put_if_absent(f"lost-{call}-2/again", b"mine")
    assert storage.read(f"lost-{call}-2/again") == b"mine"
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent(f"lost-{call}-2/again", b"mine")  # no try of this call was lost
    listed = {status.path for status in storage.list("", recursive=True)}
    assert listed == {f"lost-{call}-2/again"} | (
        {f"{folder}/by one try"} if call == "rename2" else set()
    )
    # the deletion of an unfinished file may be lost with the same connection
    names = all_names(storage, hdfs, folder) + all_names(storage, hdfs, f"lost-{call}-2")
    assert all(name.endswith((".tmp", "again", "by one try")) for name in names)


def test_what_is_deleted_without_an_answer_is_deleted_again(storage: RetryingStorage) -> None:
    storage.put_if_absent("lost-delete-2/f", b"x")
    storage.delete("lost-delete-2/f")
    assert storage.list("lost-delete-2") == []


def test_an_output_shows_no_content_before_it_is_complete(
    storage: RetryingStorage, hdfs: HdfsServer
) -> None:
    block = b"x" * (1 << 20)
    with storage.open_output("p/data") as file:
        for _ in range(8):
            file.write(block)
        assert all_names(storage, hdfs, "p") == ["data"]
        assert storage.read("p/data") == b""
        with pytest.raises(AlreadyExistsError):
            storage.put_if_absent("p/data", b"")
    assert storage.read("p/data") == 8 * block


def test_an_output_that_another_process_deletes_never_comes(storage: RetryingStorage) -> None:
    def write() -> None:
        with storage.open_output("p/data") as file:
            file.write(b"rows")
            storage.delete("p/data")

    with pytest.raises(NotFoundError):
        write()
    assert storage.list("p") == []


def test_a_file_under_construction_of_a_killed_process_is_deleted(storage: RetryingStorage) -> None:
    code = (
        "import os, sys\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "with open_storage(sys.argv[1]).open_output('p/data') as file:\n"
        "    file.write(b'x' * 5_000_000)\n"
        "    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, storage.root], check=False).returncode == 9
    assert [status.path for status in storage.list("p")] == ["p/data"]
    storage.delete("p/data")
    storage.put_if_absent("p/data", b"anew")
    assert storage.read("p/data") == b"anew"


def test_the_child_of_a_fork_is_refused_rather_than_stuck(storage: RetryingStorage) -> None:
    storage.put_if_absent("f", b"")
    code = (
        "import os, sys\n"
        "from hoodie_ds.errors import StorageError\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "storage = open_storage(sys.argv[1])\n"
        "storage.read('f')\n"
        "child = os.fork()\n"
        "if child:\n"
        "    sys.exit(os.waitpid(child, 0)[1] and 1)\n"
        "try:\n"
        "    storage.read('f')\n"
        "except StorageError as error:\n"
        "    os.write(2, str(error).encode())\n"
        "    os._exit(1)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, storage.root], capture_output=True, text=True, timeout=60
    )
    assert child.returncode == 1
    assert "forked from one that uses it" in child.stderr


def test_a_user_without_permission_is_named(storage: RetryingStorage) -> None:
    storage.put_if_absent("f", b"x")
    code = (
        "import sys\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "open_storage(sys.argv[1]).put_if_absent('g', b'')\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, storage.root],
        env={**os.environ, "HADOOP_USER_NAME": "someone"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 1
    last = child.stderr.splitlines()[-1]
    assert last.startswith(f"{AccessDeniedError.__module__}.AccessDeniedError")
    assert "user=someone, access=WRITE" in last
    assert "HADOOP_USER_NAME" in last
    assert "\tat " not in last


def test_a_nameservice_is_found_by_the_files_of_hadoop_or_by_options(
    storage: RetryingStorage, hdfs: HdfsServer, tmp_path: Path
) -> None:
    storage.put_if_absent("f", b"x")
    settings = {
        "fs.defaultFS": "hdfs://ns",
        "dfs.nameservices": "ns",
        "dfs.ha.namenodes.ns": "away,here",
        "dfs.namenode.rpc-address.ns.away": "127.0.0.1:1",
        "dfs.namenode.rpc-address.ns.here": hdfs.endpoint,
    }
    path = storage.root.removeprefix(f"hdfs://{hdfs.endpoint}")
    assert open_storage(f"hdfs://ns{path}", settings).read("f") == b"x"
    lines = "".join(
        f"<property><name>{name}</name><value>{text}</value></property>"
        for name, text in settings.items()
    )
    (tmp_path / "core-site.xml").write_text(f"<configuration>{lines}</configuration>")
    code = (
        "import sys\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "for place in sys.argv[1:]:\n"
        "    open_storage(place).replace('f', place.encode())\n"
    )
    places = [f"hdfs://ns{path}", f"hdfs://{path}"]
    environment = {**os.environ, "HADOOP_CONF_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code, *places], env=environment, check=True, timeout=120)
    assert storage.read("f") == places[1].encode()


def test_a_place_that_nobody_knows_is_refused_with_what_to_do() -> None:
    with pytest.raises(StorageError, match=r"hdfs://nobody/t.*HADOOP_CONF_DIR"):
        HdfsStorage("hdfs://nobody/t").read("f")
    with pytest.raises(UnavailableError, match="Connection refused"):
        HdfsStorage("hdfs://127.0.0.1:1/t", {"dfs.client.failover.max.attempts": "0"}).read("f")


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table(storage: RetryingStorage, hdfs: HdfsServer, version: str) -> None:
    options = {**TRIPS, **hdfs.table_options, "hoodie.write.table.version": version}
    table = HoodieTable(storage.root, options)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 2.0)))
    table.upsert(trips(("a", "x", 2, 3.0)))
    assert found(table) == [("a", "x", 2, 3.0), ("b", "y", 1, 2.0)]
    assert isinstance(table.read(), pa.Table)
    files = [status.path for status in storage.list("", recursive=True)]
    assert [path for path in files if "probe" in path or path.endswith(".tmp")] == []
