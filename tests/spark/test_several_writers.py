"""Two streams and a batch writer on one table in two applications, one of them killed (F17)."""

from __future__ import annotations

import os
from pathlib import Path
from time import sleep

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.spark import fail_points
from tests.spark.applications import PATIENCE, Application
from tests.spark.streams import TABLES
from tests.tiers import by_day

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BATCHES = 4
WRITERS = {"a": ("c0", "c1"), "b": ("c1", "c2"), "batches": ("c2", "c0")}
"""Partitions by writer: each pair has one in common, with the same keys."""

Rows = dict[tuple[str, int], tuple[int, str]]
"""Ordering value and payload by partition and key."""

SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.storage.validity.timeout.secs": "15",
    "hoodie.table.services.enabled": "false",  # commits are counted here
}


def write_sources(folder: Path) -> Rows:
    """Write what each writer brings; return the rows that are to be there in the end."""
    rows: Rows = {}
    for place, (name, cities) in enumerate(WRITERS.items()):
        (folder / name).mkdir()
        for number in range(BATCHES):
            # No two batches have an ordering value in common, so their order does not matter.
            ts = len(WRITERS) * ((number * 7 + place * 3) % 11) + place
            keys = [(city, i) for city in cities for i in range(10 * number, 10 * number + 60)]
            table = pa.table(
                {
                    "id": [i for _, i in keys],
                    "city": [city for city, _ in keys],
                    "ts": [ts] * len(keys),
                    "v": [f"{name} {number}"] * len(keys),
                    "filler": ["x"] * len(keys),
                }
            )
            file = folder / name / f"{number}.parquet"
            pq.write_table(table, file)
            os.utime(file, (1_700_000_000 + number,) * 2)
            for key in keys:
                if key not in rows or rows[key][0] < ts:
                    rows[key] = (ts, f"{name} {number}")
    return rows


@pytest.mark.parametrize(
    ("kind", "point"),
    by_day(
        [("mor bloom", "turn taken"), ("cow", "data file in the middle")],
        {("mor bloom", "turn taken")},
    ),
)
def test_two_streams_and_a_batch_writer(tmp_path: Path, kind: str, point: str) -> None:
    """The first application dies, with the lock or without; a stream of the second is overtaken.

    That one stands still before a commit until the first one has done all of its own, which
    change the same keys; the batch writer goes on beside.
    """
    expected = write_sources(tmp_path)
    options = {"path": str(tmp_path / "table"), "hoodie.table.name": "events", **TABLES[kind]}
    first, second = (
        Application(tmp_path / name, "writers_job", {"options": {**options, **SHARED}, **sources})
        for name, sources in (
            ("first", {"stream": str(tmp_path / "a")}),
            ("second", {"stream": str(tmp_path / "b"), "batches": str(tmp_path / "batches")}),
        )
    )
    try:
        held = fail_points.Armed("before commit", "wait", after=1, seconds=PATIENCE)
        held.put(second.points)
        second.start()
        while not fail_points.struck(second.points) and second.started[0].poll() is None:
            sleep(0.1)
        first.run_until_killed(point, after=1)
        first.run()
        (second.folder / "go").touch()
        refused = int(second.ends().split()[-1])
        assert refused >= 1, "a commit that was overtaken was not refused"
    finally:
        first.end()
        second.end()
    assert_all_is_there(options, expected)


def assert_all_is_there(options: dict[str, str], expected: Rows) -> None:
    at_once = {"hoodie.client.heartbeat.interval_in_ms": "1"}
    table = HoodieTable(options["path"], {**options, **SHARED, **at_once})
    assert len(table.timeline.commits) == 3 * BATCHES
    # What the dead one left is undone by whoever begins a batch when its heart has stopped.
    table.insert(table.read().select(["id", "city", "ts", "v", "filler"]).slice(0, 0))
    assert not table.timeline.pending
    rows = table.read()
    found = {(r["city"], r["id"]): (r["ts"], r["v"]) for r in rows.to_pylist()}
    assert found == expected
    assert len(found) == rows.num_rows
    assert_same_rows(read_with_hudi_rs(options["path"]), rows)
