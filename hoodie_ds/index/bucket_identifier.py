"""Bucket index: from a record key to its bucket number, and from a bucket to its file id.

The invariant: for every key the bucket is the one that Hudi's own writers and bucket-pruning
readers compute, because they do not find a row in another bucket (RFC-29). Keys are parsed as
since Hudi 1.0: without a ``,`` or a ``:`` a key is one value; otherwise a field begins after the
last ``,`` before a ``:``, so values may hold both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.columns.java_hash import (
    Bytes,
    Offsets,
    TextBuffer,
    UInts,
    list_hashes,
    slice_hashes,
    string_hashes,
)
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.errors import OptionError

BucketIds = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]

_PLACEHOLDERS = {"__null__": None, "__empty__": ""}
_BUCKETS_MAX = 10**8
# Positions are 64-bit: blocks keep the intermediate arrays in a core's cache.
_BLOCK_ROWS = 1 << 16


def bucket_ids(
    record_keys: pa.Array | pa.ChunkedArray,
    num_buckets: int | Counts,
    hash_fields: tuple[str, ...],
    record_key_fields: tuple[str, ...],
) -> BucketIds:
    """Return the bucket (int32) of each record key, as Hudi's ``BucketIdentifier`` computes it.

    `num_buckets` is the number in every partition, or in the partition of each row. Without
    `hash_fields` all fields are hashed, in the key's own order. `record_key_fields` are those that
    the key generator puts into the key, in order; keys of another shape are parsed one by one.
    """
    chunks = record_keys.chunks if isinstance(record_keys, pa.ChunkedArray) else [record_keys]
    parts = [
        _key_hashes(keys.slice(begin, _BLOCK_ROWS), hash_fields, record_key_fields)
        for keys in (chunk.cast(pa.large_string()) for chunk in chunks)
        for begin in range(0, len(keys), _BLOCK_ROWS)
    ]
    return _in_buckets(np.concatenate([np.empty(0, np.uint32), *parts]), num_buckets)


def bucket_prefix(bucket: int) -> str:
    """First eight characters of the file ids of a bucket."""
    assert 0 <= bucket < _BUCKETS_MAX, bucket
    return f"{bucket:08d}"


def file_id(bucket: int, generation: int = 0) -> str:
    """Return the file id of a bucket, the same for every writer, attempt and query.

    Generation 0 is the fixed id of Hudi's non-blocking concurrency control; a later generation
    names the group that replaces an earlier one.
    """
    assert 0 <= generation < 10**12, generation
    return f"{bucket_prefix(bucket)}-0000-0000-0000-{generation:012d}-0"


def unused_file_id(bucket: int, taken: Collection[str]) -> str:
    """Return the file id of a bucket's next generation.

    `taken` are the file ids of its partition that are in use, or hidden because they were replaced:
    a new group under such an id would be hidden too.
    """
    return next(name for name in (file_id(bucket, n) for n in count()) if name not in taken)


def _in_buckets(hashes: UInts, num_buckets: int | Counts) -> BucketIds:
    counts = np.asarray(num_buckets, np.int64)
    for count_ in (counts.min(initial=1), counts.max(initial=1)):
        if not 1 <= count_ <= _BUCKETS_MAX:
            raise OptionError(IndexOptions.num_buckets.key, count_, "use 1 to 100000000")
    return ((hashes & np.uint32(0x7FFFFFFF)) % counts.astype(np.uint32)).astype(np.int32)


def _key_hashes(
    keys: pa.LargeStringArray,
    hash_fields: tuple[str, ...],
    key_fields: tuple[str, ...],
) -> UInts:
    """List hash of each key's values: whole keys, regular keys, then the odd ones by row."""
    text = TextBuffer.of(keys)
    commas, colons = _Marks.of(text, ","), _Marks.of(text, ":")
    whole = (commas.count == 0) | (colons.count == 0)
    starts, ends = text.bounds[:-1], text.bounds[1:]
    if whole.all():
        return list_hashes([slice_hashes(text.data, starts, ends)])
    hashes = np.empty(len(keys), np.uint32)
    hashes[whole] = list_hashes([slice_hashes(text.data, starts[whole], ends[whole])])
    todo = ~whole
    hashed = [i for i, f in enumerate(key_fields) if f in hash_fields or not any(hash_fields)]
    if hashed:
        rows, starts, ends = _regular_values(text, commas, colons, key_fields, todo)
        hashes[rows] = _values_hashes(text.data, starts[:, hashed], ends[:, hashed])
        todo[rows] = False
    odd = np.flatnonzero(todo)
    if len(odd):
        hashes[odd] = _odd_hashes(pc.take(keys, pa.array(odd)), hash_fields)
    return hashes


@dataclass(frozen=True, slots=True)
class _Marks:
    """The positions of a separator in a string buffer.

    ``at`` holds them ascending, ``first[i]`` the number of them before row ``i``, and ``count[i]``
    the number within row ``i``.
    """

    at: Offsets
    first: Offsets
    count: Offsets

    @classmethod
    def of(cls, text: TextBuffer, separator: str) -> _Marks:
        at = np.flatnonzero(text.data == ord(separator))
        first = np.searchsorted(at, text.bounds)
        return cls(at, first[:-1], np.diff(first))

    def nth(self, rows: Offsets, n: int) -> Offsets:
        """Position of the ``n``-th separator of each of the rows, from 0."""
        return self.at[self.first[rows] + n]


def _regular_values(
    text: TextBuffer, commas: _Marks, colons: _Marks, fields: tuple[str, ...], among: Mask
) -> tuple[Offsets, Offsets, Offsets]:
    """Rows of exactly the shape ``f1:v1,f2:v2``, and the bounds of their values by field."""
    last = len(fields) - 1
    rows = np.flatnonzero(among & (colons.count == last + 1) & (commas.count == last))
    starts = np.empty((len(rows), len(fields)), np.int64)
    ends = np.empty((len(rows), len(fields)), np.int64)
    right = np.ones(len(rows), np.bool_)
    name = text.bounds[rows]
    for i, field in enumerate(fields):
        colon = colons.nth(rows, i)
        # A name is all that stands before its colon, so a comma in a value's place cannot pass.
        right &= _is_literal(text.data, name, colon, field.encode())
        starts[:, i] = colon + 1
        ends[:, i] = text.bounds[rows + 1] if i == last else commas.nth(rows, i)
        name = ends[:, i] + 1
    return rows[right], starts[right], ends[right]


def _values_hashes(data: Bytes, starts: Offsets, ends: Offsets) -> UInts:
    """List hash of each row of slices; a placeholder of null or empty hashes as 0."""
    flat_starts, flat_ends = starts.ravel(), ends.ravel()
    hashes = slice_hashes(data, flat_starts, flat_ends)
    for literal in _PLACEHOLDERS:
        hashes[_is_literal(data, flat_starts, flat_ends, literal.encode())] = 0
    return list_hashes(list(hashes.reshape(starts.shape).T))


def _is_literal(data: Bytes, starts: Offsets, ends: Offsets, literal: bytes) -> Mask:
    """Which slices hold exactly the given bytes."""
    same: Mask = (ends - starts) == len(literal)
    if literal and same.any():
        # All windows of the literal's length, overlapping: a view, nothing is copied.
        count = len(data) - len(literal) + 1
        windows = np.ndarray(count, f"S{len(literal)}", np.ascontiguousarray(data), 0, (1,))
        same[same] = windows[starts[same]] == literal
    return same


def _odd_hashes(keys: pa.Array, hash_fields: tuple[str, ...]) -> UInts:
    """List hash of keys of unusual shape, row by row: the rare fallback."""
    lists = pa.array(
        [_hashed_values(key, hash_fields) for key in keys.to_pylist()], pa.list_(pa.string())
    )
    elements = string_hashes(lists.flatten())
    lengths = pc.list_value_length(lists).to_numpy()
    ends = np.cumsum(lengths)
    hashes = np.ones(len(lists), np.uint32)
    for i in range(int(lengths.max(initial=0))):
        has = lengths > i
        hashes[has] = hashes[has] * np.uint32(31) + elements[(ends - lengths)[has] + i]
    return hashes


def _hashed_values(key: str, hash_fields: tuple[str, ...]) -> list[str | None]:
    """The values of one key that are hashed."""
    values: list[str | None] = []
    begin = 0
    while begin < len(key):
        colon = key.find(":", begin)
        field = key[begin:colon]
        following = key.find(":", colon + 1)
        while following > 0 and key.rfind(",", colon, following) < 0:
            following = key.find(":", following + 1)
        # No later colon has a comma before it: the rest of the key is the last value.
        end = key.rfind(",", colon, following) if following > 0 else len(key)
        if not any(hash_fields) or field in hash_fields:
            values.append(_PLACEHOLDERS.get(key[colon + 1 : end], key[colon + 1 : end]))
        begin = end + 1
    return values or [key]
