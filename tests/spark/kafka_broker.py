"""A real Apache Kafka broker on loopback, in KRaft mode; a test may kill and start it again."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.hive_metastore import free_port, wait_for

PROJECT: Final = Path(__file__).parents[2]
JARS: Final = PROJECT / ".work/kafka"
"""Where ``.ci/setup test --jvm`` puts the jars."""

_CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"
_SECONDS: Final = 120.0
_SETTINGS: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class Broker:
    """A broker with a folder and a port of its own, which it keeps over restarts.

    Parameters
    ----------
    folder : Path
        An existing folder for its logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        settings = _SETTINGS.format(port=self._port, controller=free_port(), logs=folder / "topics")
        (folder / "server.properties").write_text(settings)
        (folder / "log4j.properties").write_text("log4j.rootLogger=WARN, A\n"
            "log4j.appender.A=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.A.layout=org.apache.log4j.SimpleLayout\n")  # fmt: skip
        done = self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c")
        assert done.wait(_SECONDS) == 0, (folder / "broker.log").read_text()[-2000:]

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = self._java("kafka.Kafka")
        wait_for(self._port, self._process, _SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        admin = AdminClient({"bootstrap.servers": self.address})
        for done in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            done.result(_SECONDS)

    def send(self, topic: str, messages: Iterable[tuple[int, bytes, bytes]]) -> None:
        """Append messages, each a partition, a key and a value, and wait until they are stored."""
        producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})
        for partition, key, value in messages:
            producer.produce(topic, value, key, partition)
        assert producer.flush(_SECONDS) == 0

    def _java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else str(shutil.which("java"))
        log4j = f"-Dlog4j.configuration=file:{self._folder}/log4j.properties"
        with (self._folder / "broker.log").open("ab") as log:
            return subprocess.Popen(
                [java, "-Xmx384m", log4j, "-cp", f"{JARS}/*", main, *arguments,
                 str(self._folder / "server.properties")],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )  # fmt: skip


def source_jars() -> str:
    """Return the jars of Spark's Kafka source that Spark has not itself, for ``spark.jars``."""
    wanted = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    return ",".join(str(p) for p in sorted(JARS.glob("*.jar")) if p.name.startswith(wanted))
