"""Positions of records in headers of log blocks: bitmaps of all kinds, and odd ones."""

from __future__ import annotations

import base64
import random
import struct

import numpy as np
import pytest

from hoodie_ds.formats.log.log_block import HeaderKey
from hoodie_ds.formats.log.record_positions import located as encoded
from hoodie_ds.formats.log.record_positions import positions_base, record_positions
from tests.positions import LISTED, bitmap, located

KINDS = {
    "one": [7],
    "largest": [0, 2**32 - 1],
    "list": list(range(0, 2 * LISTED, 2)),
    "bitmap": list(range(0, 2 * LISTED + 2, 2)),
    "whole container": list(range(1 << 16)),
    "runs across containers": list(range(65_000, 200_000)),
    "many containers": list(range(3, 400_000, 70_001)),
    "random": sorted(random.Random(35).sample(range(300_000), 30_000)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_positions_are_encoded_as_the_specification_says(kind: str) -> None:
    header = encoded("20261122051722086", np.array(KINDS[kind]))
    assert header == located("20261122051722086", bitmap(KINDS[kind]))


@pytest.mark.parametrize("positions", [[], [-1], [-1, 3], [2, 3, 3]])
def test_unknown_positions_are_left_out(positions: list[int]) -> None:
    assert not encoded("20261122051722086", np.array(positions, np.int64))


def read(data: bytes, count: int) -> list[int] | None:
    found = record_positions(located("1", data), count)
    return None if found is None else found.tolist()


@pytest.mark.parametrize("with_runs", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_positions_of_every_kind_of_bitmap(kind: str, with_runs: bool) -> None:
    positions = KINDS[kind]
    data = bitmap(positions, with_runs)
    assert read(data, len(positions)) == positions
    assert read(data, len(positions) - 1) is None
    assert read(data + b"\0", len(positions)) is None


@pytest.mark.parametrize("with_runs", [False, True])
def test_no_damaged_bitmap_is_read_as_other_than_positions(with_runs: bool) -> None:
    positions = [*range(5, 90), *range(70_000, 70_010), 2**17]
    data = bitmap(positions, with_runs)
    for size in range(len(data)):
        assert read(data[:size], len(positions)) is None
    for at in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            found = read(bytes(changed), len(positions))
            if found is not None:
                assert len(found) == len(positions)
                assert found == sorted(set(found))
                assert 0 <= found[0] <= found[-1] < 2**32


def test_a_forged_size_allocates_nothing() -> None:
    heads = b"".join(struct.pack("<HH", high, 0xFFFF) for high in range(1 << 16))
    runs = struct.pack("<HHH", 1, 0, 0xFFFF) * (1 << 16)
    forged = struct.pack("<QII", 1, 0, 12347 | 0xFFFF << 16) + b"\xff" * 8192
    assert read(forged + heads + b"\0" * (1 << 18) + runs, 5) is None
    head = struct.pack("<QIIBHH", 1, 0, 12347, 1, 0, 2)
    assert read(head + struct.pack("<7H", 3, *[0, 0xFFFF] * 3), 3) is None


def test_other_headers_have_no_positions() -> None:
    text = base64.b64encode(bitmap([7])).decode()
    whole = located("1", bitmap([7]))
    assert positions_base(whole) == "1"
    assert positions_base({HeaderKey.RECORD_POSITIONS: text}) is None
    assert positions_base({HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "1"}) is None
    for odd in ("", "no base 64", text[:-1], text[::-1]):
        assert record_positions({**whole, HeaderKey.RECORD_POSITIONS: odd}, 1) is None
    assert read(struct.pack("<Q", 2) + bitmap([7])[8:], 1) is None
    assert read(struct.pack("<QI", 1, 1) + bitmap([7])[12:], 1) is None
