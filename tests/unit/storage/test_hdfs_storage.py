"""What the contract suite does not show of HDFS: its errors, its clients, what is left behind."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from ctypes.util import find_library
from pathlib import Path
from threading import Thread
from typing import Any

import hdfs_native
import pytest

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OutOfSpaceError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage import connections, hdfs_storage
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.hdfs_storage import HdfsStorage
from hoodie_ds.storage.retrying import RetryingStorage
from tests.hdfs_in_memory import HdfsInMemory

_KEYTAB = {"kerberos_principal": "etl@EXAMPLE.ORG", "kerberos_keytab": "/no/such.keytab"}
_STACK = (
    r"\n\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem.startFile(FSNamesystem.java:1)"
)


def remote(name: str, message: str = "no") -> RuntimeError:
    """An exception of the NameNode as the client shows it."""
    return RuntimeError(f'RPCError("org.apache.hadoop.{name}", "{message}{_STACK}")')


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> HdfsInMemory:
    found = HdfsInMemory()
    monkeypatch.setattr(connections, "_open", {})
    monkeypatch.setattr(hdfs_storage, "connect", lambda place, options: found)
    return found


@pytest.fixture
def storage(client: HdfsInMemory, request: pytest.FixtureRequest) -> HdfsStorage:
    return HdfsStorage(f"hdfs://node/{request.node.name}/t")


def raising(error: BaseException) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (remote("security.AccessControlException"), AccessDeniedError, "HADOOP_USER_NAME"),
        (remote("hdfs.protocol.DSQuotaExceededException"), OutOfSpaceError, "no"),
        (remote("hdfs.protocol.QuotaByStorageTypeExceededException"), OutOfSpaceError, "no"),
        (remote("hdfs.server.namenode.SafeModeException"), UnavailableError, "no"),
        (remote("x.IOException", "could only be written to 0 of the 1"), UnavailableError, "0 of"),
        (remote("x.IOException", "odd"), StorageError, "IOException: odd"),
        (RuntimeError('FatalRPCError("a.AuthorizationException", "no")'), AccessDeniedError, "no"),
        (RuntimeError("NoSASLMechanism"), AccessDeniedError, "Kerberos"),
        (RuntimeError('BlocksNotFound("/t/f")'), UnavailableError, "/t/f"),
        (RuntimeError("..."), StorageError, r"\.\.\."),
        (OSError("Connection refused (os error 111)"), UnavailableError, "refused"),
        (FileNotFoundError("/t/f"), NotFoundError, "/t/f"),
        (NotImplementedError("TDE"), StorageError, "TDE"),
    ],
)
def test_what_errors_mean(
    storage: HdfsStorage,
    client: HdfsInMemory,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[StorageError],
    said: str,
) -> None:
    monkeypatch.setattr(client, "read", raising(error))
    with pytest.raises(StorageError, match=said) as caught:
        storage.read("f")
    assert type(caught.value) is kind
    assert "at org.apache" not in str(caught.value)


@pytest.mark.parametrize(("name", "remedy"), [("/t/a:b", True), ("/t/..", False)])
def test_only_a_name_with_a_colon_gets_the_remedy_for_colons(
    storage: HdfsStorage,
    client: HdfsInMemory,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    remedy: bool,
) -> None:
    error = remote("fs.InvalidPathException", f"Invalid path name {name}")
    monkeypatch.setattr(client, "read", raising(error))
    with pytest.raises(StorageError, match=f"Invalid path name {name}") as caught:
        storage.read("f")
    assert ("urlencode" in str(caught.value)) == remedy


def test_a_file_of_a_deleted_folder_does_not_end_a_listing(
    storage: HdfsStorage, client: HdfsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a/1", "b/2", "c"):
        storage.put_if_absent(path, b"")
    list_status = client.list_status

    def listed(path: str) -> Any:
        if path.endswith("/a"):
            client.delete(path, recursive=True)
        return list_status(path)

    monkeypatch.setattr(client, "list_status", listed)
    assert [status.path for status in storage.list("", recursive=True)] == ["b/2", "c"]


@pytest.mark.parametrize("call", ["rename", "create"])
def test_a_put_that_fails_leaves_nothing(
    storage: HdfsStorage, client: HdfsInMemory, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(client, call, raising(OSError("reset by peer")))
    with pytest.raises(UnavailableError, match="reset by peer"):
        storage.put_if_absent("p/f", b"x")
    assert client.files == {}


def test_what_a_killed_process_has_left_is_not_listed(
    storage: HdfsStorage, client: HdfsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "rename", raising(KeyboardInterrupt()))
    monkeypatch.setattr(client, "delete", raising(OSError("the process is gone")))
    with pytest.raises(KeyboardInterrupt):
        storage.put_if_absent("p/f", b"x")
    [left] = client.files
    assert left.endswith(".tmp")
    assert storage.list("", recursive=True) == []


def test_an_output_is_opened_again_but_not_written_again(
    storage: HdfsStorage, client: HdfsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    retrying = RetryingStorage(storage, 60_000)
    create, failures = client.create, [OSError("reset")]

    def created(path: str) -> Any:
        if failures:
            raise failures.pop()
        return create(path)

    monkeypatch.setattr(client, "create", created)
    with retrying.open_output("p/f") as file:
        file.write(b"row")
        assert file.tell() == 3
        assert file.writable()
    assert retrying.read("p/f") == b"row"
    writes: list[bytes] = []

    def fail() -> None:
        with retrying.open_output("p/g") as file:
            monkeypatch.setattr(type(create("/q")), "write", raising(OSError("reset")))
            writes.append(b"row")
            file.write(b"row")

    with pytest.raises(UnavailableError, match="reset"):
        fail()
    assert len(writes) == 1
    assert [status.path for status in retrying.list("p")] == ["p/f"]


def test_one_of_two_outputs_of_a_name_stays(storage: HdfsStorage) -> None:
    with storage.open_output("f") as file:
        file.write(b"first")
        with pytest.raises(AlreadyExistsError), storage.open_output("f"):
            pass
    assert storage.read("f") == b"first"


def test_with_what_a_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_native, "Client", lambda *given, **named: (*given, named))
    options = {"dfs.client.failover.max.attempts": "3"}
    assert hdfs_storage.connect("hdfs://ns", options) == ("hdfs://ns", options, {})
    made = hdfs_storage.connect("hdfs://ns", {**options, **_KEYTAB})
    assert made == ("hdfs://ns", options, _KEYTAB)
    unknown = RuntimeError('InvalidArgument("No NameNode hosts found")')
    monkeypatch.setattr(hdfs_native, "Client", raising(unknown))
    with pytest.raises(StorageError, match=r"hdfs://ns/t'.*No NameNode.* HADOOP_CONF_DIR"):
        HdfsStorage("hdfs://ns/t").read("f")
    monkeypatch.setattr(connections, "_users", {("hdfs_native", os.getpid() + 1)})
    with pytest.raises(StorageError, match="forked from one that uses it"):
        hdfs_storage.connect("hdfs://ns", options)


def test_the_base_path_is_as_hadoop_writes_it(client: HdfsInMemory) -> None:
    for number, place in enumerate(("hdfs://n:8020/a b/t/", "hdfs://ns/a b/t", "hdfs:///a b/t")):
        storage = open_storage(place)
        assert storage.root == place.rstrip("/")
        storage.replace("f", str(number).encode())
        assert client.files["/a b/t/f"][0] == str(number).encode()


def test_a_table_may_be_the_root(client: HdfsInMemory) -> None:
    storage = open_storage("hdfs://node/")
    storage.put_if_absent("f", b"1")
    storage.put_if_absent("p/g", b"2")
    assert set(client.files) == {"/f", "/p/g"}
    assert [one.path for one in storage.list("", recursive=True)] == ["f", "p/g"]
    assert [one.path for one in storage.list("", folders=True)] == ["p"]
    storage.delete("f")
    assert [one.path for one in storage.list("")] == []


def _numbered(number: int, wire: int, value: bytes) -> bytes:
    """A field of a message of protocol buffers."""
    return bytes([number << 3 | wire]) + value


def _sized(message: bytes) -> bytes:
    return bytes([len(message)]) + message


def _kerberos_asked() -> bytes:
    """A NameNode's answer to a client that begins: authenticate by Kerberos."""
    names = enumerate((b"KERBEROS", b"GSSAPI", b"nn", b"localhost"), 1)
    way = b"".join(_numbered(number, 2, _sized(name)) for number, name in names)
    asked = _numbered(2, 0, b"\1") + _numbered(4, 2, _sized(way))
    call = b"\xdf\xff\xff\xff\x0f"  # -33, as SASL has no call
    message = _sized(_numbered(1, 0, call) + _numbered(2, 0, b"\0")) + _sized(asked)
    return len(message).to_bytes(4, "big") + message


@pytest.mark.skipif(not find_library("gssapi_krb5"), reason="no library of Kerberos")
@pytest.mark.parametrize("keytab", [{}, _KEYTAB])
def test_a_user_without_a_ticket_hears_what_to_do(
    keytab: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    asks = "<name>hadoop.security.authentication</name><value>kerberos</value>"
    (tmp_path / "core-site.xml").write_text(
        f"<configuration><property>{asks}</property></configuration>"
    )
    with socket.create_server(("127.0.0.1", 0)) as node, ExitStack() as stack:

        def answer() -> None:
            client = stack.enter_context(node.accept()[0])
            client.sendall(_kerberos_asked())

        thread = Thread(target=answer, daemon=True)
        thread.start()
        place = f"hdfs://127.0.0.1:{node.getsockname()[1]}/t"
        with pytest.raises(AccessDeniedError, match=r"kinit.*KRB5CCNAME.*kerberos_keytab"):
            HdfsStorage(place, keytab).read("f")
        thread.join(10)
