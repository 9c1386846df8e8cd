"""A real Hive metastore on loopback: the service's classes are among PySpark's own jars."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pyspark

START_SECONDS: Final = 120.0
_OPENED: Final = ("java.lang", "java.net", "java.util", "java.util.concurrent")
_SITE: Final = """<configuration>
{}
</configuration>
"""


@contextmanager
def running_metastore(folder: Path) -> Iterator[str]:
    """Run a metastore with a database of its own, and yield its address.

    Parameters
    ----------
    folder : Path
        An existing folder for its database, warehouse and log; a service that runs on the same
        folder again finds what the last one knew.
    """
    port = free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.async.log.enabled": "false",  # it would need a class that Spark has no jar of
    }
    lines = (
        f"<property><name>{key}</name><value>{text}</value></property>"
        for key, text in settings.items()
    )
    (folder / "hive-site.xml").write_text(_SITE.format("\n".join(lines)))
    jars = Path(pyspark.__file__).parent / "jars"
    home = os.environ.get("JAVA_HOME")
    command = [
        f"{home}/bin/java" if home else str(shutil.which("java")),
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED),
        "-Xmx512m",
        f"-Dderby.stream.error.file={folder}/derby.log",
        "-cp",
        f"{folder}:{jars}/*",
        "org.apache.hadoop.hive.metastore.HiveMetaStore",
        "-p",
        str(port),
    ]
    with (folder / "metastore.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_for(port, process, START_SECONDS)
            yield f"thrift://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a process listens on a port.

    Raises
    ------
    RuntimeError
        If the process ends, or does not listen in time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with {process.returncode}")
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the service did not listen on port {port} in {seconds:.0f} s")
