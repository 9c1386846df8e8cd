"""A Spark cluster of two hosts.

Speculation asks for it, which starts no second attempt on a task's host. One host may die.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Cluster:
    """A master, whose address is `url`, and workers."""

    url: str
    started: list[subprocess.Popen[bytes]]

    def kill_worker(self) -> None:
        """Kill a worker with its executors."""
        os.killpg(self.started[-1].pid, signal.SIGKILL)


@contextmanager
def two_hosts(folder: Path) -> Iterator[Cluster]:
    """Start a master, and workers of one core under two of this machine's addresses."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"spark://127.0.0.1:{port}"
    place = ["--work-dir", str(folder), "--cores", "1", "--memory", "1g", url]
    commands = [
        [f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"],
        *(
            [f"{DEPLOY}.worker.Worker", "--host", host, "--webui-port", "0", *place]
            for host in ("127.0.0.2", "127.0.0.3")
        ),
    ]
    started = [_start(command, folder / f"{i}.log") for i, command in enumerate(commands)]
    try:
        yield Cluster(url, started)
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=60)


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(SPARK / "bin" / "spark-class"), *command],
            env={**os.environ, "SPARK_HOME": str(SPARK)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
