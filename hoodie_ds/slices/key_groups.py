"""Which row groups of a base file may have some record keys, by its statistics and bloom filter.

These may let a key pass that is in no row, and never rule out one that is in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.parquet.bloom_filter import BloomFilter, share_of_others

_KEY: Final = pa.field(RECORD_KEY, pa.string())
_ROWS_PER_TEST: Final = 16
"""To read and compare so many keys of a base file takes as long as to test one by its filter."""
_KEY_BYTES: Final = 8
"""To parse so many bytes of a filter takes as long as to read and compare one key."""
_MOST_MISTAKES: Final = 0.5
"""Keys that a filter may be expected to let pass: for one of them a row group is read."""
_FIRST_TESTED: Final = 64
_GROWTH: Final = 8
"""Keys that are tested first, and of how many times as many each later test is: most log files have
some keys of their base file, so that the first test ends it."""


def row_groups_with(
    reader: BaseFileReader, keys: pa.ChunkedArray, numbers: Iterable[int]
) -> Set[int]:
    """Return those of some row groups of a base file that may have one of some record keys."""
    given, wanted = frozenset(numbers), one_chunk(keys)
    if wanted.null_count:
        return given
    inside = frozenset(number for number in given if _may_have(reader, wanted, number))
    bloom = _filter(reader, len(wanted), inside)
    if bloom is None:
        return inside
    found, tested, count = frozenset[int](), 0, _FIRST_TESTED
    order = np.random.default_rng(0).permutation(len(wanted))  # those of one batch may be together
    while found != inside and tested < len(wanted):
        some = wanted.take(pa.array(order[tested : tested + count]))
        held = some.filter(pa.array(bloom.may_contain(some)))
        found |= {number for number in inside - found if _may_have(reader, held, number)}
        tested, count = tested + count, count * _GROWTH
    return found


def _may_have(reader: BaseFileReader, keys: pa.Array, number: int) -> bool:
    """Whether a row group may have one of some record keys, by the footer's ranges."""
    if not len(keys):
        return False
    known = reader.bounds(number, _KEY)
    if known is None or known.low is None or known.high is None:
        return (known is None or known.values) and bool(reader.in_key_range(keys).any())
    inside = pc.and_(pc.greater_equal(keys, known.low), pc.less_equal(keys, known.high))
    return bool(pc.any(inside).as_py())


def _filter(reader: BaseFileReader, num_keys: int, numbers: Set[int]) -> BloomFilter | None:
    """The bloom filter of a base file, if it may save reading keys and costs less than that."""
    num_rows, stored = sum(map(reader.rows_in, numbers)), reader.stored_bloom_filter()
    if stored is None or num_rows < max(_ROWS_PER_TEST * num_keys, len(stored[1]) // _KEY_BYTES):
        return None
    if num_keys * share_of_others(*stored, reader.num_rows) > _MOST_MISTAKES:
        return None
    with suppress(CorruptFileError):  # the rows are there, and `verify` reports the filter
        return reader.bloom_filter()
    return None
