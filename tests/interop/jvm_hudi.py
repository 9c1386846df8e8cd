"""Client of Apache Hudi on the JVM, the oracle of the interop tests.

One subprocess with its own Python (PySpark 3.5 cannot share an environment with PySpark 4)
keeps one Spark session; starting it costs 15 to 20 s, a call 1 to 4 s. The client hands tables
over as parquet files and raises `JvmHudiError` with the Java message where Hudi refuses.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.store_server import StoreServer

PROJECT = Path(__file__).resolve().parents[2]
BUNDLE = "org/apache/hudi/hudi-spark3.5-bundle_2.12/1.2.0/hudi-spark3.5-bundle_2.12-1.2.0.jar"
START_SECONDS = 180.0
CALL_SECONDS = 300.0

TABLE_VERSION = "hoodie.write.table.version"


class JvmHudiError(Exception):
    """Hudi on the JVM refused a request, or its process is gone."""


class JvmHudiMissingError(Exception):
    """A part of the oracle is not installed; the message says which and what installs it."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the parts of the oracle are.

    Parameters
    ----------
    python : Path
        Interpreter of the environment with ``pyspark==3.5.8``.
    bundle : Path
        The Hudi bundle's jar.
    java_home : Path
        A Java 17.
    """

    python: Path
    bundle: Path
    java_home: Path


def find_installation(environ: Mapping[str, str]) -> Installation:
    """Find the oracle; ``HOODIE_JVM_PYTHON`` and ``HOODIE_JVM_BUNDLE`` override the places.

    Raises
    ------
    JvmHudiMissingError
        If the environment, the bundle or a Java 17 is missing.
    """
    python = Path(environ.get("HOODIE_JVM_PYTHON", PROJECT / ".venv-jvm/bin/python"))
    bundles = [
        Path(environ.get("HOODIE_JVM_BUNDLE", PROJECT / ".work/m2" / BUNDLE)),
        Path.home() / ".m2/repository" / BUNDLE,
    ]
    bundle = next((path for path in bundles if path.is_file()), None)
    if not python.is_file():
        raise JvmHudiMissingError(
            f"no Python with pyspark 3.5 at {python}: run .ci/setup test --jvm"
        )
    if bundle is None:
        raise JvmHudiMissingError(f"no Hudi bundle at {bundles[0]}: run .ci/setup test --jvm")
    return Installation(python, bundle, find_java_17(environ))


def find_java_17(environ: Mapping[str, str]) -> Path:
    """Find a Java 17 by ``JAVA_HOME``, on the PATH or under ``/usr/lib/jvm``.

    Raises
    ------
    JvmHudiMissingError
        If none of them is a Java 17 (Spark 3.5 does not run on a newer one).
    """
    on_path = shutil.which("java", path=environ.get("PATH"))
    homes = [Path(environ["JAVA_HOME"])] if "JAVA_HOME" in environ else []
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    homes += sorted(Path("/usr/lib/jvm").glob("*17*"))
    for home in homes:
        if java_major(home) == 17:
            return home
    raise JvmHudiMissingError("no Java 17 found (JAVA_HOME, PATH, /usr/lib/jvm): install one")


def java_major(home: Path) -> int | None:
    """Major version of the Java at ``home``; None where there is none."""
    java = home / "bin/java"
    if not java.is_file():
        return None
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', shown)
    return int(found.group(1)) if found else None


class JvmHudi:
    """One running oracle; a context manager that ends its process.

    Parameters
    ----------
    installation : Installation
        From `find_installation`.
    folder : Path
        An existing scratch folder of this client's own; ``worker.log`` in it is the JVM's log.
    environ : Mapping[str, str]
        Environment for the subprocess.
    settings : mapping of str to str, optional
        Further settings of its Spark session.
    """

    def __init__(
        self,
        installation: Installation,
        folder: Path,
        environ: Mapping[str, str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._bundle = str(installation.bundle)
        self._folder = folder
        self._numbers = itertools.count()
        self._log = (folder / "worker.log").open("wb")
        home = str(installation.java_home)
        python = str(installation.python)
        worker = Path(__file__).with_name("jvm_worker.py")
        self._process = subprocess.Popen(
            [
                python,
                str(worker),
                self._bundle,
                str(folder),
                json.dumps(settings or {}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=folder,
            env={**_without_spark(environ), "JAVA_HOME": home, "PYSPARK_PYTHON": python},
            text=True,
            encoding="utf-8",
        )
        try:
            self.spark_version = str(self._answer(START_SECONDS)["ready"])
        except JvmHudiError:
            self.close()
            raise

    def __enter__(self) -> JvmHudi:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def write(
        self,
        path: str | Path,
        rows: pa.Table,
        options: Mapping[str, str],
        mode: str = "append",
    ) -> None:
        """Write an Arrow table; `keeping` is added to the options where they do not say.

        Raises
        ------
        JvmHudiError
            With the head of the Java error.
        """
        data = self._scratch("in").with_suffix(".parquet")
        pq.write_table(rows, data)
        self._call(
            "write",
            path=str(path),
            data=str(data),
            options={**keeping(path), **options},
            mode=mode,
        )
        data.unlink()

    def delete(self, path: str | Path, keys: pa.Table, options: Mapping[str, str]) -> None:
        """Delete by key: ``keys`` holds the key, partition and ordering columns."""
        self.write(path, keys, {**options, "hoodie.datasource.write.operation": "delete"})

    def read(self, path: str | Path, options: Mapping[str, str] | None = None) -> pa.Table:
        """Snapshot of a table, the five meta columns included; row order is Spark's."""
        out = self._scratch("out")
        self._call("read", path=str(path), options=dict(options or {}), out=str(out))
        return _take(out)

    def sql(self, text: str) -> pa.Table:
        """Run one Spark SQL statement; a table without columns where it yields none."""
        out = self._scratch("out")
        reply = self._call("sql", text=text, out=str(out))
        return _take(out) if "data" in reply else pa.table({})

    def call(
        self,
        procedure: str,
        path: str | Path,
        options: Mapping[str, str] | None = None,
        **more: str,
    ) -> None:
        """Call a procedure on the table at a path, which keeps its version.

        Parameters
        ----------
        procedure : str
            Its name.
        path : str or Path
            Base path of the table.
        options : mapping of str to str, optional
            Options of the procedure's writer, where it takes such.
        **more : str
            Its other arguments.
        """
        given, kept = {**more, "path": str(path)}, keeping(path)
        if options is not None:
            pairs = {**options, **kept}.items()
            given["options"] = ",".join(f"{key}={text}" for key, text in pairs)
        arguments = ", ".join(f"{key} => '{text}'" for key, text in given.items())
        for key, text in kept.items():
            self.sql(f"set {key}={text}")
        try:
            self.sql(f"call {procedure}({arguments})")
        finally:
            for key in kept:
                self.sql(f"reset {key}")

    def roll_back(self, path: str | Path, time: str) -> bool:
        """Roll a completed write back as Hudi's write client does; whether it did."""
        options = keeping(path)
        return bool(self._call("roll_back", path=str(path), time=time, options=options)["done"])

    def properties(self, path: str | Path) -> dict[str, str]:
        """Table properties as Hudi on the JVM loads them, checksum validated."""
        return dict(self._call("properties", path=str(path))["properties"])

    def option_names(self) -> set[str]:
        """Names of the options that Hudi declares, earlier names among them."""
        return set(self._call("option_names", jar=self._bundle)["names"])

    def num_buckets(self, expressions: str, default: int, paths: Sequence[str]) -> list[int]:
        """Buckets of each partition path by the rules of a partition-level bucket index.

        Hudi remembers a default with each text of rules: use one default for one text.
        """
        arguments = {"expressions": expressions, "default": default, "paths": list(paths)}
        return list(self._call("num_buckets", **arguments)["counts"])

    def read_hfile(
        self, path: Path, keys: Sequence[str]
    ) -> tuple[list[tuple[bytes, bytes]], list[bool]]:
        """Entries that Hudi's reader finds in an HFile, and whether it finds keys, which ascend."""
        reply = self._call("read_hfile", path=str(path), keys=list(keys))
        entries = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in reply["entries"]]
        return entries, list(reply["found"])

    def write_hfile(self, path: Path, entries: Sequence[tuple[bytes, bytes]], **more: Any) -> None:
        """Write an HFile as Hudi does; the other arguments are those of the worker."""
        texts = [(key.decode(), value.hex()) for key, value in entries]
        self._call("write_hfile", path=str(path), entries=texts, **more)

    def lock_file(self, text: str) -> tuple[list[Any], str]:
        """What Hudi reads in a lock file of an object store, and how it writes the same."""
        reply = self._call("lock_file", text=text)
        return list(reply["values"]), str(reply["text"])

    def storage_lock(
        self,
        server: StoreServer,
        folder: object,
        owner: str,
        takes: bool,
        options: Mapping[str, str] | None = None,
    ) -> bool:
        """Take or release the lock of the table in a folder; whether it was taken.

        The options are those of the first call for an owner.
        """
        given: dict[str, Any] = {"url": server.http_url(folder), "store": type(server).__name__}
        given |= {"owner": owner, "takes": takes, "options": dict(options or {})}
        return bool(self._call("storage_lock", **given)["taken"])

    def kill(self) -> None:
        """End the JVM at once, as a machine does that fails; it answers no call any more."""
        pid = self._process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process: politely, then by force."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _scratch(self, stem: str) -> Path:
        return self._folder / f"{stem}-{next(self._numbers)}"

    def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        if self._process.poll() is not None or self._process.stdin is None:
            raise JvmHudiError(f"the JVM's process has ended, see {self._log.name}")
        request = json.dumps({"operation": operation, **arguments})
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        return self._answer(CALL_SECONDS)

    def _answer(self, seconds: float) -> dict[str, Any]:
        # One reply is outstanding at most, so a readable pipe holds the start of that line.
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._process.kill()
            what = "ended" if ready else f"did not answer in {seconds:.0f} s"
            raise JvmHudiError(f"the JVM's process {what}, see {self._log.name}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise JvmHudiError(reply["error"])
        return reply


def keeping(path: str | Path) -> dict[str, str]:
    """Options that keep a table as it is: its version, or 6 of a new one; no metadata table."""
    properties = Path(path) / ".hoodie/hoodie.properties"
    text = properties.read_text() if properties.is_file() else ""
    version = re.search(r"^hoodie\.table\.version=(\d+)$", text, re.MULTILINE)
    return {
        TABLE_VERSION: version.group(1) if version else "6",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "false",
    }


def _take(folder: Path) -> pa.Table:
    """Read the parquet files that Spark left in a folder, and remove it."""
    rows = pq.read_table(folder)
    shutil.rmtree(folder)
    return rows


def _without_spark(environ: Mapping[str, str]) -> dict[str, str]:
    """Drop what would point the subprocess at our own Spark or Python packages."""
    ours = {"SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"}
    return {key: value for key, value in environ.items() if key not in ours}


def start(folder: Path, environ: Mapping[str, str] = os.environ) -> JvmHudi:
    """Find and start the oracle with ``folder`` as its scratch folder."""
    return JvmHudi(find_installation(environ), folder, environ)
