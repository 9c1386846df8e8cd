"""Damage to the bytes of committed files: seen, or without effect on the rows, never believed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError
from tests.tables import TRIPS, TYPE, TYPES, trips
from tests.tally import tally
from tests.tiers import by_day

STEP = 5
AT_LEAST = {"COPY_ON_WRITE": 1_500, "MERGE_ON_READ": 2_100}


def small_table(path: Path, kind: str) -> HoodieTable:
    """A table of a few rows, with updates and deletes, and no more files than it takes."""
    table = HoodieTable(str(path), {**TRIPS, TYPE: kind})
    table.upsert(trips(*((f"k{i}", "x", 1, float(i)) for i in range(6))))
    table.upsert(trips(("k1", "x", 2, 10.0), ("k7", "x", 2, 7.0)))
    table.delete(pa.table({"id": ["k2"], "city": ["x"]}))
    return table


def rows(path: Path) -> list[dict[str, object]]:
    read = HoodieTable(str(path)).read(columns=["id", "city", "ts", "fare"])
    return sorted(read.to_pylist(), key=lambda row: str(row["id"]))


def committed(path: Path) -> list[Path]:
    """Data files and completed instants, those that the latest rows depend on among them."""
    data = [*path.rglob("*.parquet"), *path.rglob(".*.log.*")]
    return sorted([*data, *(path / ".hoodie").glob("*commit")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", by_day(TYPES, {TYPES[1]}))
def test_a_flipped_or_cut_byte_is_seen(tmp_path: Path, kind: str) -> None:
    whole = tmp_path / "whole"
    small_table(whole, kind)
    expected = rows(whole)
    damaged = tmp_path / "damaged"
    shutil.copytree(whole, damaged)
    tried, read = 0, 0
    for file in committed(damaged):
        content = file.read_bytes()
        before, seen = tried, 0
        for number, at in enumerate(range(0, len(content), STEP)):
            flipped = bytes([content[at] ^ (1 << at % 8)])
            file.write_bytes(content[:at] + (flipped + content[at + 1 :] if number % 2 else b""))
            tried += 1
            try:
                found = rows(damaged)
            except HoodieError:
                seen += 1
            else:
                assert found == expected, (file.name, at, number)
        file.write_bytes(content)
        if file.parent.name == "x":
            # A data file is read, and all damage to it seen, or its rows have been replaced.
            assert seen in (0, tried - before), file.name
            read += seen > 0
    assert rows(damaged) == expected
    tally("byte positions", tried)
    assert tried >= AT_LEAST[kind]
    assert read >= len({path.name.split("_")[0] for path in damaged.rglob("*.parquet")})


@pytest.mark.parametrize("kind", TYPES)
def test_damage_is_named_with_both_checksums(tmp_path: Path, kind: str) -> None:
    small_table(tmp_path, kind)
    newest = max(tmp_path.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(bytes(content))
    digests = r".* xxh64 is [0-9a-f]{16}, and [0-9a-f]{16} when it was written"
    with pytest.raises(CorruptFileError, match=re.escape(newest.name) + digests):
        rows(tmp_path)


def test_verification_is_an_option(tmp_path: Path) -> None:
    """The first byte after the magic number is part of no value that is read here."""
    small_table(tmp_path, "COPY_ON_WRITE")
    off = {"hoodie.py.read.verify.checksums": "false"}
    for path in tmp_path.rglob("*.parquet"):
        content = bytearray(path.read_bytes())
        content[0] ^= 1
        path.write_bytes(bytes(content))
    with pytest.raises(CorruptFileError, match="xxh64"):
        rows(tmp_path)
    unchecked = HoodieTable(str(tmp_path), off).read(columns=["id"])
    assert unchecked.num_rows == 6
