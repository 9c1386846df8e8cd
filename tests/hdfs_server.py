"""HDFS for the suites, on loopback: a NameNode and a DataNode of Hadoop in one JVM.

A proxy before the NameNode makes faults. They go by names, so that tests need no second channel:
of ``lost-<call>-<n>`` in a path the first `n` such calls of the NameNode (``create``, ``rename2``,
``delete``) are carried out, and their connection closed without an answer. The cluster has no
Kerberos.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.hive_metastore import free_port
from tests.store_server import StoreServer

JARS: Final = Path(__file__).parents[1] / ".work/hadoop"
"""Where ``.ci/setup test --jvm`` puts the jars."""

_SECONDS: Final = 120.0
_OPENED: Final = ("java.lang", "java.net", "java.nio", "java.util")
_FAULT: Final = re.compile(rb"/lost-(\w+)-(\d+)/")


@dataclass(frozen=True)
class HdfsServer(StoreServer):
    """A cluster; its endpoint is the address of the NameNode, which the proxy passes on to."""

    direct: str

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    def url(self, folder: object) -> str:
        return f"hdfs://{self.endpoint}{folder}"

    @property
    def options(self) -> dict[str, str]:
        return {"dfs.client.failover.max.attempts": "0"}  # as our retries are enough

    @property
    def rust_options(self) -> None:
        return None


@contextmanager
def running_hdfs(folder: Path) -> Iterator[HdfsServer]:
    """Start a cluster with its files in a folder, and stop it at the end."""
    port = free_port()
    home = os.environ.get("JAVA_HOME")
    command = [
        f"{home}/bin/java" if home else str(shutil.which("java")),
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED),
        "-Xmx512m",
        f"-Dtest.build.data={folder}",
        "-cp",
        f"{JARS}/*",
        "org.apache.hadoop.test.MiniDFSClusterManager",
        *("-format", "-datanodes", "1", "-nnport", f"{port}"),
        *("-D", "dfs.replication=1"),
        *("-writeDetails", f"{folder}/ready"),
    ]
    with (folder / "hdfs.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + _SECONDS
        while not (folder / "ready").exists():
            assert process.poll() is None, (folder / "hdfs.log").read_text()[-2000:]
            assert time.monotonic() < until, "HDFS did not start"
            time.sleep(0.05)
        with _proxy(port) as endpoint:
            yield HdfsServer(endpoint, f"127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


@contextmanager
def _proxy(port: int) -> Iterator[str]:
    """Pass connections on to a port of loopback."""
    server = socket.create_server(("127.0.0.1", 0))
    seen: Counter[bytes] = Counter()

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=pass_on, args=(client,), daemon=True).start()

    def pass_on(client: socket.socket) -> None:
        is_lost = threading.Event()
        with client, socket.create_connection(("127.0.0.1", port)) as node, suppress(OSError):
            for end in (client, node):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=answer, args=(node, client, is_lost), daemon=True).start()
            while data := client.recv(1 << 20):
                fault = _FAULT.search(data)
                if fault is not None and bytes([len(fault[1])]) + fault[1] in data:
                    seen[fault[0]] += 1
                    if seen[fault[0]] <= int(fault[2]):
                        is_lost.set()
                node.sendall(data)

    def answer(node: socket.socket, client: socket.socket, is_lost: threading.Event) -> None:
        with suppress(OSError):
            while (data := node.recv(1 << 20)) and not is_lost.is_set():
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()
