"""The small examples of streams; a second run of each finds nothing new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hoodie_ds
from examples import cdc_debezium, kafka_to_table, table_to_table
from hoodie_ds import HoodieTable

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def rows(table: HoodieTable, *columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.read(columns).to_pylist())


def test_a_table_follows_another(spark: Any, tmp_path: Path) -> None:
    paid = table_to_table.main(spark, tmp_path)
    assert rows(paid, "id", "city", "cents") == [
        ("a", "oslo", 950), ("b", "rome", 1225), ("c", "rome", 700),
    ]  # fmt: skip
    assert len(paid.timeline.commits) == 2
    table_to_table.follow(spark, tmp_path / "trips", tmp_path / "paid")
    assert len(HoodieTable(tmp_path / "paid").timeline.commits) == 2


def test_a_table_follows_a_database(spark: Any, tmp_path: Path) -> None:
    """The deleted row is gone, and an event that comes again does not undo a later one."""
    customers = cdc_debezium.main(spark, tmp_path)
    assert rows(customers, "id", "name", "email", "lsn") == [(1, "Ada", "ada@c", 12)]
    commits = len(customers.timeline.commits)
    cdc_debezium.follow(spark, tmp_path / "events", tmp_path / "customers")
    assert len(HoodieTable(tmp_path / "customers").timeline.commits) == commits == 2


def test_a_table_follows_a_topic(spark: Any, tmp_path: Path) -> None:
    """Kafka's source, which ``test_kafka.py`` has, is a folder of its messages here."""
    hoodie_ds.register(spark)
    topic = tmp_path / "topic"
    topic.mkdir()
    messages = spark.readStream.schema("value STRING, offset LONG").json(str(topic))
    sent = [["{'id': 'a', 'fare': 9.5}", "none"], ["{'id': 'a', 'fare': 8.5}", "{'id': 'b'}"], []]
    offset = 0
    for number, values in enumerate(sent):
        lines = [
            {"value": text.replace("'", '"'), "offset": offset + n} for n, text in enumerate(values)
        ]
        (topic / f"{number}.json").write_text("\n".join(map(json.dumps, lines)))
        offset += len(values)
        rides = kafka_to_table.follow(messages, tmp_path / "rides")
    assert rows(rides, "id", "fare", "offset") == [("a", 8.5, 2), ("b", None, 3)]
    assert len(rides.timeline.commits) == 2
