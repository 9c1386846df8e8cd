"""From a real Kafka broker into a table: every offset once, whatever is killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.properties.java_properties import parse_properties
from tests.spark.applications import PATIENCE, Application
from tests.spark.kafka_broker import JARS, PROJECT, Broker, source_jars
from tests.tally import tally
from tests.tiers import by_day

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(JARS.glob("*.jar")), reason=f"no Kafka in {JARS}: run .ci/setup test --jvm"
    ),
]

TOPIC = "events"
PARTITIONS = 3
AT_ONCE = 400
KILLS = {"append": ["data file in the middle"], "keyed": ["data file whole", "manifest put"]}
"""Points of a batch at which the driver dies, one after the other."""
EXAMPLE = PROJECT / "conf/kafka.properties"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    folder = tmp_path / "kafka"
    folder.mkdir()
    running = Broker(folder)
    try:
        running.start()
        yield running
    finally:
        running.kill()


def sent(broker: Broker, first: int, last: int) -> None:
    """Send messages with these numbers, round the partitions; of some keys again and again."""
    numbers = range(first, last)
    broker.send(TOPIC, ((n % PARTITIONS, f"k{n % 50}".encode(), f"v{n}".encode()) for n in numbers))


def check(table: HoodieTable, messages: int) -> None:
    """Whether each offset of each partition is there once, with its own message."""
    rows = table.read(columns=["topic", "partition", "offset", "key", "value"]).to_pylist()
    found = Counter((row["topic"], row["partition"], row["offset"]) for row in rows)
    expected = {(TOPIC, n % PARTITIONS, n // PARTITIONS) for n in range(messages)}
    assert set(found) == expected
    assert set(found.values()) == {1}
    for row in rows:
        number = row["offset"] * PARTITIONS + row["partition"]
        assert (row["key"], row["value"]) == (f"k{number % 50}", f"v{number}")


@pytest.mark.parametrize("kind", by_day(["append", "keyed"], ["append"]))
def test_every_offset_is_in_the_table_once(tmp_path: Path, broker: Broker, kind: str) -> None:
    path = tmp_path / "table"
    # Without keys nothing but that a batch counts once keeps a message from coming twice.
    given = {"hoodie.table.name": TOPIC}
    if kind == "keyed":
        given = parse_properties(EXAMPLE.read_bytes(), str(EXAMPLE))
    settings = {"kafka.bootstrap.servers": broker.address, "subscribe": TOPIC,
                "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(AT_ONCE)}  # fmt: skip
    job = Application(
        tmp_path / "job",
        "stream_job",
        {
            "options": {**given, "path": str(path)},
            "kafka": settings,
            "conf": {"spark.jars": source_jars()},
        },
    )
    broker.create_topic(TOPIC, PARTITIONS)
    sent(broker, 0, 2400)
    try:
        for number, point in enumerate(KILLS[kind]):
            job.run_until_killed(point, after=2 + number)
        # The broker dies while the stream goes on.
        before = len(HoodieTable(path).timeline.commits)
        job.start()
        wait_for_commits(HoodieTable(path), before + 1)
        broker.kill()
        time.sleep(2)
        broker.start()
        job.ends()
        check(HoodieTable(path), 2400)
        if kind == "keyed":  # what comes later, and nothing twice
            sent(broker, 2400, 3000)
            job.run()
            check(HoodieTable(path), 3000)
    finally:
        job.end()
    tally("Kafka offsets", 2400)


def wait_for_commits(table: HoodieTable, number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(table.timeline.commits) < number:
        assert time.monotonic() < deadline
        time.sleep(0.05)
