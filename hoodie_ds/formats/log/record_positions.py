"""Where the records of a log block are in the slice's base file, as the block's header may say.

Hudi writes the positions of a block's records, in their order, as a portable Roaring64 bitmap in
base 64, next to the instant of the base file that they are of (table versions 8 and 9).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from hoodie_ds.columns.arrow_columns import Mask, Numbers, ranks
from hoodie_ds.formats.log.log_block import HeaderKey

NOWHERE: Final[Mapping[int, str]] = MappingProxyType({})
"""What a header says of unknown positions."""

_WITHOUT_RUNS: Final = 12346
_WITH_RUNS: Final = 12347
_ALWAYS_OFFSETS: Final = 4
"""Containers from which on a bitmap with runs has their offsets."""
_LARGEST_LIST: Final = 4096
_BITMAP_BYTES: Final = 8192
_HEAD: Final = struct.Struct("<QII")
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")


def positions_base(header: Mapping[int, str]) -> str | None:
    """Return the instant of the base file of which a block has positions; None without them."""
    if HeaderKey.RECORD_POSITIONS not in header:
        return None
    return header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)


def record_positions(header: Mapping[int, str], num_records: int) -> Numbers | None:
    """Return the position of each record, ascending; None if the header does not say so."""
    try:
        data = base64.b64decode(header[HeaderKey.RECORD_POSITIONS], validate=True)
        return _decoded(data, num_records)
    except (KeyError, ValueError, struct.error):
        return None


def located(base_instant: str, positions: Numbers) -> Mapping[int, str]:
    """Return what a block's header says of its records' positions, ascending, in a base file.

    A negative position is unknown, and then so are all, as if one came twice.
    """
    if not len(positions) or positions[0] < 0 or (np.diff(positions) == 0).any():
        return NOWHERE
    return {
        HeaderKey.RECORD_POSITIONS: base64.b64encode(_encoded(positions)).decode(),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base_instant,
    }


def _encoded(positions: Numbers) -> bytes:
    """The bitmap of ascending numbers below 2**32, without runs."""
    firsts, starts = np.unique(positions >> 16, return_index=True)
    parts = np.split((positions & 0xFFFF).astype("<u2"), starts[1:])
    contents = [_members(part) for part in parts]
    sizes = np.array([len(part) - 1 for part in parts])
    begin = 2 * _U32.size + 8 * len(parts)
    ends = begin + np.cumsum([len(content) for content in contents])
    return b"".join(
        [
            _HEAD.pack(1, 0, _WITHOUT_RUNS),
            _U32.pack(len(parts)),
            np.stack([firsts, sizes], axis=1).astype("<u2").tobytes(),
            np.append(begin, ends[:-1]).astype("<u4").tobytes(),
            *contents,
        ]
    )


def _members(low: Numbers) -> bytes:
    """A container of the lower halves of numbers."""
    if len(low) <= _LARGEST_LIST:
        return low.tobytes()
    bits = np.zeros(8 * _BITMAP_BYTES, np.bool_)
    bits[low] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _decoded(data: bytes, count: int) -> Numbers:
    """The members of a bitmap of so many numbers below 2**32; nothing larger is allocated."""
    bitmaps, high, cookie = _HEAD.unpack_from(data)
    if bitmaps != 1 or high:
        raise ValueError(f"{bitmaps} bitmaps, the first from {high}")
    at, has_runs = _HEAD.size, cookie & 0xFFFF == _WITH_RUNS
    if has_runs:
        containers = (cookie >> 16) + 1
        are_runs = _bits(data, at, -(-containers // 8))[:containers]
        at += -(-containers // 8)
    elif cookie == _WITHOUT_RUNS:
        (containers,) = _U32.unpack_from(data, at)
        at += _U32.size
        are_runs = np.broadcast_to(np.False_, containers)
    else:
        raise ValueError(f"cookie {cookie}")
    heads = _numbers(data, at, 2 * containers).reshape(-1, 2)
    at += 4 * containers
    if not has_runs or containers >= _ALWAYS_OFFSETS:
        at += 4 * containers
    sizes = heads[:, 1] + 1
    if sizes.sum() != count:
        raise ValueError(f"{sizes.sum()} positions of {count} records")
    found = [np.zeros(0, np.int64)]
    firsts = (heads[:, 0] << 16).tolist()
    for first, size, is_runs in zip(firsts, sizes.tolist(), are_runs, strict=True):
        low, at = _container(data, at, size, is_runs)
        found.append(first + low)
    positions = np.concatenate(found)
    if at != len(data) or not (np.diff(positions) > 0).all():
        raise ValueError("it is longer than its parts, or they are out of order")
    return positions


def _container(data: bytes, at: int, size: int, is_runs: bool) -> tuple[Numbers, int]:
    """The members of a container, and where it ends."""
    if is_runs:
        (count,) = _U16.unpack_from(data, at)
        runs = _numbers(data, at + _U16.size, 2 * count).reshape(-1, 2)
        starts, lengths = runs[:, 0], runs[:, 1] + 1
        if lengths.sum() != size or (starts + lengths).max() > 1 << 16:
            raise ValueError(f"runs of {lengths.sum()} numbers, not {size}")
        return np.repeat(starts, lengths) + ranks(lengths), at + _U16.size + 4 * count
    if size <= _LARGEST_LIST:
        return _numbers(data, at, size), at + 2 * size
    members = np.flatnonzero(_bits(data, at, _BITMAP_BYTES))
    if len(members) != size:
        raise ValueError(f"{len(members)} numbers, not {size}")
    return members, at + _BITMAP_BYTES


def _numbers(data: bytes, at: int, count: int) -> Numbers:
    return np.frombuffer(data, "<u2", count, at).astype(np.int64)


def _bits(data: bytes, at: int, count: int) -> Mask:
    return np.unpackbits(np.frombuffer(data, np.uint8, count, at), bitorder="little").view(np.bool_)
