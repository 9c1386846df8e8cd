"""Two revisions of the package at the same work in one run: processor time, as ratios.

    .venv/bin/python benchmarks/compare.py REVISION [--rounds N] [--only WORK]

The baseline is `REVISION`, checked out in a temporary worktree; the other side is the tree that
this file is in. Each round runs both, one after the other, each in a process of its own, in turns
of who is first. Reported is the least processor time of the rounds, which other work on the machine
disturbs least; the ratio is that of the two.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from hoodie_ds import HoodieTable

GOAL: Final = 1.02
_ROOT: Final = Path(__file__).parents[1]
_ROWS: Final = 1_000_000
_BATCHES: Final = 150
_KEYED: Final = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "4",
}


def _rows(first: int, count: int, ts: int) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": pc.cast(pa.array(ids), pa.string()),
            "ts": np.full(count, ts),
            "fare": ids * 0.5,
            "city": pc.cast(pa.array(ids % 97), pa.string()),
        }
    )


def _table(folder: str, **options: str) -> HoodieTable:
    # Imported here: which revision it is hangs on the path of the process.
    from hoodie_ds import HoodieTable

    return HoodieTable(folder, {**_KEYED, **options})


_MOR: Final = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def _append(folder: str) -> float:
    from hoodie_ds import HoodieTable

    table = HoodieTable(folder, {"hoodie.table.name": "trips"})
    rows = [_rows(_ROWS * i, _ROWS, i) for i in range(3)]
    return _spent(lambda: [table.insert(part) for part in rows])


def _keyed_load(folder: str) -> float:
    table, rows = _table(folder), _rows(0, 2 * _ROWS, 0)
    return _spent(lambda: table.upsert(rows))


def _upserts(folder: str, **options: str) -> float:
    table = _table(folder, **options)
    table.upsert(_rows(0, _ROWS, 0))
    rows = [_rows(50_000 * i, 100_000, i) for i in range(1, 6)]
    return _spent(lambda: [table.upsert(part) for part in rows])


def _micro_batches(folder: str) -> float:
    """Begin, task and commit, and next to nothing of rows."""
    table, rows = _table(folder, **_MOR), [_rows(i, 2, i) for i in range(_BATCHES)]
    for part in rows[:10]:
        table.upsert(part)
    return _spent(lambda: [table.upsert(part) for part in rows[10:]])


def _scans(folder: str) -> float:
    table = _table(folder, **_MOR)
    table.upsert(_rows(0, 2 * _ROWS, 0))
    table.upsert(_rows(0, 100_000, 1))
    return _spent(lambda: [table.read() for _ in range(5)])


def _small_reads(folder: str) -> float:
    table = _table(folder)
    for i in range(20):
        table.upsert(_rows(0, 100, i))
    return _spent(lambda: [table.read(filter=pc.field("fare") > 20) for _ in range(100)])


_WORKS: Final[dict[str, Callable[[str], float]]] = {
    "append without keys": _append,
    "first keyed load": _keyed_load,
    "upserts, COW": _upserts,
    "upserts, MOR": lambda folder: _upserts(folder, **_MOR),
    "micro-batches of two rows, MOR": _micro_batches,
    "scans, MOR": _scans,
    "filtered reads of a small table": _small_reads,
}


def _spent(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _run(tree: Path, work: str) -> float:
    """Processor time of some work in seconds, by the package of a tree."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--work", work, "--folder", folder]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(tree)}
        )
    path, seconds = json.loads(done.stdout.splitlines()[-1])
    assert Path(path).is_relative_to(tree), f"{path} is not of {tree}"
    return float(seconds)


def _compare(base: Path, works: list[str], rounds: int) -> None:
    from results import emit

    for work in works:
        spent: dict[Path, list[float]] = {base: [], _ROOT: []}
        for number in range(rounds):
            for tree in (base, _ROOT) if number % 2 else (_ROOT, base):
                spent[tree].append(_run(tree, work))
        before, after = min(spent[base]), min(spent[_ROOT])
        emit(f"{work}, before", before)
        emit(work, after, against=f"{work}, before", goal=GOAL, ratio=round(after / before, 3))


def main() -> None:
    """Check the baseline out, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=_WORKS)
    parser.add_argument("--work", choices=_WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        import hoodie_ds

        print(json.dumps([hoodie_ds.__file__, _WORKS[args.work](f"{args.folder}/table")]))
        return
    if not args.revision:
        parser.error("name the revision that is the baseline")
    git = ["git", "-C", str(_ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        subprocess.run([*git, "add", "-q", "--detach", str(base), args.revision], check=True)
        try:
            _compare(base, [args.only] if args.only else list(_WORKS), args.rounds)
        finally:
            subprocess.run([*git, "remove", "--force", str(base)], check=True)


if __name__ == "__main__":
    main()
