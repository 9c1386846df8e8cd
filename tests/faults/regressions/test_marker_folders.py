"""The folder in which Hudi looks for the markers of an instant, and what else lay there."""

from __future__ import annotations

import re

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.testing import (
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    SimulatedCrash,
)
from hoodie_ds.timeline.paths import OURS, TEMP, moved_path
from tests.faults.scenarios import MOR, ONE, TWO
from tests.tables import TRIPS

_PUTS = frozenset({Kind.PUT, Kind.WRITE, Kind.REPLACE})
_ONCE = {
    "hoodie.datasource.write.streaming.checkpoint.identifier": "w",
    "hoodie.datasource.write.batch.identifier": "1",
}


def _table(storage: object, **options: str) -> HoodieTable:
    return HoodieTable("memory://markers", {**TRIPS, **MOR, **options}, storage=storage)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["6", "9"])
def test_hudi_found_no_markers_among_our_files(version: str) -> None:
    storage = FaultyStorage(MemoryStorage("memory://markers"))
    table = _table(storage, **{"hoodie.write.table.version": version})
    table.upsert(ONE)
    table.savepoint()
    table.upsert(TWO)
    table.compact()
    table.upsert(TWO)
    table.rollback()
    table.restore(table.timeline.savepoints[0].time)
    table.overwrite(ONE)
    put = {one.path for one in storage.recorder.operations if one.kind in _PUTS}
    among = {path for path in put if re.match(rf"{re.escape(TEMP)}/\d", path)}
    assert among
    assert [path for path in among if ".marker." not in path] == []
    # Hudi knows no appended log files where each is an instant's own, and refuses such a rollback.
    assert any(".log." in path and path.endswith(".APPEND") for path in among) is (version == "6")


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(
    "phase", ["*/claim", "*.inflight", "*/manifest_1.json", "*.locks/decisions/*"]
)
def test_a_dead_write_of_an_earlier_release(version: str, phase: str) -> None:
    """Whose claim and manifest lie among the markers, and are moved away from them."""
    storage = MemoryStorage("memory://markers")
    options = {"hoodie.write.table.version": version}
    _table(storage, **options).upsert(ONE)
    faulty = FaultyStorage(storage, [Fault(Effect.CRASH_AFTER, kinds=_PUTS, path=phase)])
    with pytest.raises(SimulatedCrash):
        _table(faulty, **options).upsert(TWO, _ONCE)
    for path in [path for path in storage.files if path.startswith(f"{OURS}/2")]:
        storage.put_if_absent(f"{TEMP}{path[len(OURS) :]}", storage.read(path))
        storage.delete(path)
    storage.put_if_absent(f"{TEMP}/views/query_7", b"")
    result = _table(storage, **options).upsert(TWO, _ONCE)
    assert result.already_committed is (phase in ("*/manifest_1.json", "*.locks/decisions/*"))
    assert sorted(_table(storage).read(["id"])["id"].to_pylist()) == ["a", "b", "c", "d"]
    _table(storage, **options).upsert(TWO)  # until then a claim alone may be of a living process
    assert [path for path in storage.files if path.startswith(f"{TEMP}/")] == [
        f"{OURS}/views/query_7"
    ]


def test_a_file_that_two_processes_move() -> None:
    storage = MemoryStorage("memory://markers")
    path = f"{TEMP}/20260101000000000/claim"
    now = moved_path(path)
    assert now == f"{OURS}/20260101000000000/claim"
    table = _table(storage)
    table.upsert(ONE)
    storage.put_if_absent(path, b"me")
    storage.put_if_absent(now, b"me")
    table.upsert(TWO)
    assert path not in storage.files

    class Late(MemoryStorage):
        def read(self, path: str) -> bytes:
            if path == moved:
                self.delete(path)
            return super().read(path)

    moved = f"{TEMP}/20260101000000001/claim"
    late = Late(storage.root, storage.files)
    late.put_if_absent(moved, b"me")
    _table(late).upsert(TWO)
    assert moved not in late.files


@pytest.mark.parametrize(
    "path",
    [
        f"{TEMP}/20260101000000000/MARKERS.type",
        f"{TEMP}/20260101000000000/MARKERS0",
        f"{TEMP}/20260101000000000/claim.marker.CREATE",
        f"{TEMP}/20260101000000000/staged/x.parquet.marker.CREATE",
        f"{OURS}/20260101000000000/claim",
    ],
)
def test_files_of_hudi_are_not_moved(path: str) -> None:
    assert moved_path(path) is None
