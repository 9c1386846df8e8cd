"""Looking keys up in the state index as the table grows: with the filter in front, and without.

    .venv/bin/python benchmarks/state_lookup.py

Keys of all file groups are in memory, as after the first batches of a stream. The side without the
filter searches every file group for every key that it has not found yet. The first look-up in a
state fills the filter.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from results import emit

from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import LookupContext
from hoodie_ds.index.stored_keys import KeySource, SliceKeys
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.timeline import Timeline

KEYS_IN_GROUP = 3_000
SIDES = {"with the filter": 10, "without": 1 << 40}


def keys(first: int, count: int) -> pa.Array:
    """Different keys that are as long as UUIDs."""
    numbers = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return pa.array([f"{number:032x}" for number in numbers.tolist()])


def never(_: FileSlice) -> SliceKeys:
    """Keys of slices with log files, which there are none of."""
    raise AssertionError("no slice has log files")


def look_up(slices: list[FileSlice], stored: list[SliceKeys], asked: pa.Array) -> list[float]:
    """Seconds of a look-up by a state that has just been filled, and of the one after it."""
    storage, cache = MemoryStorage(), KeyCache(1 << 34)
    for slice_, held in zip(slices, stored, strict=True):
        cache.put(KeySource(storage.root, slice_, ""), held)
    context = LookupContext(storage, Timeline(), never, memory_bytes=0)
    lookup = FileLookup(context, cache, use_bloom=False)
    taken = []
    for _ in range(2):
        started = time.perf_counter()
        lookup.find(slices, asked)
        taken.append(time.perf_counter() - started)
    return taken


def main() -> None:
    """Take turns, several rounds; round 0 is the warm-up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    for groups, share in product(chosen.groups, (0.0, 0.9)):
        slices = [FileSlice(FileGroupId("", str(n)), "1", None, ()) for n in range(groups)]
        stored = [SliceKeys.of(keys(n * KEYS_IN_GROUP, KEYS_IN_GROUP)) for n in range(groups)]
        total = groups * KEYS_IN_GROUP
        num_old = int(share * chosen.rows)
        old = keys(0, total).take(pa.array(np.arange(num_old) * 7 % total))
        asked = pa.concat_arrays([old, keys(total, chosen.rows - num_old)])
        for number, (side, costs) in product(range(chosen.rounds + 1), SIDES.items()):
            with patch("hoodie_ds.index.front_filter._ASKED_FOR", costs):
                taken = look_up(slices, stored, asked)
            for when, seconds in zip(("first", "next"), taken, strict=True) if number else ():
                work = f"{groups:,} groups, {share:.0%} stored, {side}, {when}"
                emit(f"look-up of {chosen.rows:,} keys, {work}", seconds, round=number)


if __name__ == "__main__":
    main()
