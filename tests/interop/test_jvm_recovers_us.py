"""Writes of ours that died, which Apache Hudi on the JVM takes off the table, and cleans up."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, SimulatedCrash
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_metadata_table import THEIRS, agree
from tests.rows import assert_same_rows
from tests.tables import TYPE
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

_TABLE = {
    "hoodie.table.name": "dead_writes",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
}
TABLES = {
    f"{kind} {version}": {**_TABLE, TYPE: kind, TABLE_VERSION: version}
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for version in ("6", "8", "9")
}
_ARCHIVES = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
_PUT = frozenset({Kind.PUT, Kind.WRITE})
_AFTER, _BEFORE = Effect.CRASH_AFTER, Effect.CRASH_BEFORE
PHASES = {
    "claimed": (_AFTER, "*/claim"),
    "open": (_AFTER, "*.inflight"),
    "a file announced": (_AFTER, "*.marker.*"),
    "a file written": (_AFTER, "?/*_*"),
    "a manifest": (_AFTER, "*/manifest_1.json"),
    "decided": (_AFTER, "*/decisions/*"),
    "before completion": (_BEFORE, "*commit"),
    "completed": (_AFTER, "*commit"),
}


def _rows(ts: int, *ids: str) -> pa.Table:
    city = [name[0] for name in ids]
    return pa.table({"id": [*ids], "city": city, "ts": pa.array([ts] * len(ids), pa.int64())})


def _once(number: int) -> dict[str, str]:
    return {
        "hoodie.datasource.write.streaming.checkpoint.identifier": "q",
        "hoodie.datasource.write.batch.identifier": str(number),
    }


def _die(path: Path, options: dict[str, str], phase: str, rows: pa.Table) -> None:
    """Write rows into a stored file group and a new one, and die beside a put."""
    effect, put = PHASES[phase]
    fault = Fault(effect, kinds=_PUT, path=put)
    storage = FaultyStorage(LocalStorage(str(path)), [fault])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(path), options, storage=storage).upsert(rows)


def _data_files(path: Path) -> set[str]:
    found = (p for p in path.rglob("*") if p.is_file() and p.suffix != ".crc")
    return {str(p) for p in found if ".hoodie" not in p.parts and ".hoodie_" not in p.name}


ENDS = {"a log file put": "files/*", "inflight": "*.inflight"}
OFTEN = {
    **_ARCHIVES,
    **THEIRS,
    "hoodie.metadata.keep.min.commits": "2",
    "hoodie.metadata.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


@pytest.mark.parametrize(
    ("name", "end"), by_day(product(TABLES, ENDS), {("COPY_ON_WRITE 9", "a log file put")})
)
def test_hudi_takes_our_dead_writes_off_its_metadata_table(
    name: str, end: str, jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    """Log files that it left there would count once its timeline has been archived past them."""
    path, options = tmp_path / "t", TABLES[name]
    theirs = {**options, **OFTEN}
    jvm_hudi.write(path, _rows(1, "a1", "b1"), theirs)
    ours = HoodieTable(str(path), options)
    ours.upsert(_rows(2, "a1"))
    fault = Fault(_AFTER, kinds=_PUT, path=f".hoodie/metadata/{ENDS[end]}")
    dying = FaultyStorage(LocalStorage(str(path)), [fault])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(path), options, storage=dying).upsert(_rows(3, "a1", "z9"))
    (dead,) = ours.timeline.pending
    for number in range(4, 13):
        jvm_hudi.write(path, _rows(number, "b1"), theirs)
    metadata = path / ".hoodie" / "metadata" / ".hoodie"
    assert min(file.name[:17] for file in metadata.rglob("*.deltacommit")) > dead.time
    agree(jvm_hudi, path, name[-1])
    ours.upsert(_rows(20, "a1"))
    agree(jvm_hudi, path, name[-1])
    assert {row["id"]: row["ts"] for row in ours.read().to_pylist()} == {"a1": 20, "b1": 12}


SOME = {"COPY_ON_WRITE 6", "MERGE_ON_READ 9"}


@pytest.mark.parametrize("name", by_day(TABLES, SOME))
def test_hudi_takes_our_dead_writes_off_the_table(
    name: str, jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    path, options = tmp_path / "t", TABLES[name]
    ours = HoodieTable(str(path), options)
    ours.upsert(_rows(1, "a1", "a2", "b1"))
    wanted = {"a1": 1, "a2": 1, "b1": 1}
    for number, phase in enumerate(PHASES, start=2):
        before, rows, once = _data_files(path), _rows(10 * number, "a1", "z9"), _once(number)
        _die(path, {**options, **once}, phase, rows)
        left = _data_files(path) - before
        jvm_hudi.write(path, _rows(number, "b1"), options)
        wanted["b1"] = number
        brought = {"a1": 10 * number, "z9": 10 * number}
        if phase == "completed":
            wanted |= brought
        else:
            # Of log files that other blocks may share, version 6 hides the blocks.
            stays = {file for file in left if ".log." in file and name.endswith("6")}
            assert not (left - stays) & _data_files(path), phase
        assert {row["id"]: row["ts"] for row in ours.read().to_pylist()} == wanted, phase
        assert not ours.timeline.pending
        ours.upsert(rows, once)  # as a query does that is restarted
        wanted |= brought
        assert {row["id"]: row["ts"] for row in ours.read().to_pylist()} == wanted, phase
    newest = ours.timeline.commits[-1].time
    for number in range(20, 27):  # past all that would tell of the dead
        jvm_hudi.write(path, _rows(number, "b1"), {**options, **_ARCHIVES})
    wanted["b1"] = 26
    assert ours.timeline.commits[0].time > newest
    found = ours.read()
    assert {row["id"]: row["ts"] for row in found.to_pylist()} == wanted
    assert_same_rows(jvm_hudi.read(path), found)
    assert_same_rows(read_with_hudi_rs(path), found)
    ours.upsert(_rows(200, "a1"))
    assert {row["id"]: row["ts"] for row in ours.read().to_pylist()} == {**wanted, "a1": 200}
    assert not [p for p in (path / ".hoodie/.temp").rglob("*") if p.is_file()]
