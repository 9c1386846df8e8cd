"""How far a micro-batch travels through the package: files entered, calls between files.

    .venv/bin/python benchmarks/trip.py

Third upsert of two rows into a merge-on-read table with the bucket index, through `HoodieTable`
with a storage in memory. A Python call counts if it goes from one file of the package into another.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pyarrow as pa
from results import emit

import hoodie_ds
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds

_PACKAGE = str(Path(hoodie_ds.__file__).parent)
_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}


def trip(calls: int = 3) -> tuple[set[str], Counter[tuple[str, str]]]:
    """Return the files that the last upsert enters, and its calls from file to file."""
    clock = SimClock()
    storage = MemoryStorage(clock=clock)
    table = hoodie_ds.HoodieTable(
        "memory://trips", _OPTIONS, storage=storage, clock=clock, ids=SimIds()
    )
    for ts in range(calls - 1):
        table.upsert(_rows(ts))
        clock.advance(1000)
    entered: set[str] = set()
    moves: Counter[tuple[str, str]] = Counter()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        here = frame.f_code.co_filename
        entered.add(here)
        back = frame.f_back
        there = "" if back is None else back.f_code.co_filename
        if there != here and there.startswith(_PACKAGE):
            moves[there, here] += 1

    sys.setprofile(profile)
    try:
        table.upsert(_rows(calls))
    finally:
        sys.setprofile(None)
    return entered, moves


def _rows(ts: int) -> pa.Table:
    return pa.table({"id": ["a", "b"], "ts": [ts, ts], "fare": [1.0, 2.0]})


def main() -> None:
    """Count, and name what is travelled most."""
    entered, moves = trip()
    emit("trip of a micro-batch, files entered", len(entered), goal=80)
    emit("trip of a micro-batch, calls between files", moves.total(), goal=700)
    shown = int(sys.argv[1]) if sys.argv[1:] else 0
    for files, times in moves.most_common(shown):
        there, here = (Path(file).relative_to(_PACKAGE) for file in files)
        print(f"{times:6}  {there} -> {here}")


if __name__ == "__main__":
    main()
