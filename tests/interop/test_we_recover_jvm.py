"""Writes of Apache Hudi on the JVM that are killed, and what our next write makes of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi, JvmHudiError, find_installation
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

_TABLE = {
    "hoodie.table.name": "killed_writes",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
}
MARKERS = "hoodie.write.markers.type"
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": "2000",
    "hoodie.client.heartbeat.tolerable.misses": "2",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
}
_EXPIRED_AFTER_S = 7
PARTITIONS = 24


def _rows(ts: int, count: int) -> pa.Table:
    parts = [f"p{number:02}" for number in range(count)]
    return pa.table({"id": [f"k{p}" for p in parts], "part": parts, "ts": pa.array([ts] * count)})


def _files(path: Path, pattern: str) -> set[Path]:
    return {found for found in path.rglob(pattern) if found.suffix != ".crc"}


def _data_files(path: Path) -> set[Path]:
    found = _files(path, "p??/*")
    return {p for p in found if ".hoodie" not in p.parts and ".hoodie_" not in p.name}


def _some_markers(path: Path) -> Iterable[Path]:
    temporary = path / ".hoodie/.temp"
    return _files(temporary, "MARKERS*") | _files(temporary, "*.marker.*")


PHASES: dict[str, Callable[[Path, set[Path]], object]] = {
    "requested": lambda path, before: _files(path / ".hoodie", "*.requested") - before,
    "marked": lambda path, _: _some_markers(path),
    "a file written": lambda path, before: any(
        found.stat().st_size for found in _data_files(path) - before
    ),
    "most files written": lambda path, before: (
        len(_data_files(path) - before) > PARTITIONS * 3 // 4
    ),
}
"""How far a write has come, at a path that had some files before."""
VARIANTS = [
    (*variant, phase, is_shared)
    for variant, (phase, is_shared) in zip(
        product(TYPES, ("6", "8", "9"), ("DIRECT", "TIMELINE_SERVER_BASED")),
        cycle(
            [
                ("most files written", True),
                ("a file written", False),
                ("marked", False),
                ("most files written", False),
                ("requested", False),
                ("a file written", True),
                ("most files written", False),
            ]
        ),
        strict=False,
    )
]


def _kill_a_write(
    hudi: JvmHudi, path: Path, options: dict[str, str], rows: pa.Table, phase: str
) -> None:
    """Kill the JVM as soon as its write has come to a phase."""
    before, has_come = _data_files(path) | _files(path / ".hoodie", "*"), PHASES[phase]
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(hudi.write, path, rows, options)
        while not written.done() and not has_come(path, before):
            time.sleep(0.002)
        hudi.kill()
        assert isinstance(written.exception(), JvmHudiError), "it had been written by then"


@pytest.mark.parametrize(
    ("kind", "version", "markers", "phase", "is_shared"),
    by_day(VARIANTS, [VARIANTS[3], VARIANTS[10]]),
)
def test_killed_writes_of_hudi_are_undone(
    kind: str,
    version: str,
    markers: str,
    phase: str,
    is_shared: bool,
    jvm_hudi: JvmHudi,
    tmp_path: Path,
) -> None:
    path, more = tmp_path / "t", SHARED if is_shared else {}
    options = {**_TABLE, TYPE: kind, TABLE_VERSION: version, **more}
    ours = HoodieTable(str(path), options)
    ours.upsert(_rows(1, 6))
    jvm_hudi.write(path, _rows(2, 10), options)
    (tmp_path / "jvm").mkdir()
    with JvmHudi(find_installation(os.environ), tmp_path / "jvm", os.environ) as hudi:
        dying = {**options, MARKERS: markers}
        _kill_a_write(hudi, path, dying, _rows(3, PARTITIONS), phase)
    (dead,) = ours.timeline.pending
    assert {row["ts"] for row in ours.read().to_pylist()} == {2}
    if is_shared:
        time.sleep(_EXPIRED_AFTER_S)
    ours.upsert(_rows(4, 2))
    expected = {f"kp{number:02}": 4 if number < 2 else 2 for number in range(10)}
    found = ours.read()
    assert {row["id"]: row["ts"] for row in found.to_pylist()} == expected
    assert not ours.timeline.pending
    assert not ours.inspect.verify().findings  # no file of the dead write among them
    assert not _files(path / ".hoodie/.temp", f"{dead.time}/*")
    assert_same_rows(jvm_hudi.read(path), found)
    assert_same_rows(read_with_hudi_rs(path), found)
    jvm_hudi.write(path, _rows(5, 3), options)
    expected |= {f"kp{number:02}": 5 for number in range(3)}
    assert {row["id"]: row["ts"] for row in ours.read().to_pylist()} == expected
