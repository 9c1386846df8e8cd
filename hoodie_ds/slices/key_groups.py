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
from hoodie_ds.formats.parquet.bloom_filter import BloomFilter, FilterText
from hoodie_ds.table.file_name import bucket_of

_KEY: Final = pa.field(RECORD_KEY, pa.string())
_ROWS_PER_TEST: Final = 16
"""To read and compare so many keys of a base file takes as long as to test one by its filter."""
_KEY_BYTES: Final = 8
"""To parse so many bytes of a filter takes as long as to read and compare one key."""
_MOST_MISTAKES: Final = 0.5
"""Keys that a filter may be expected to let pass: for one of them a row group is read."""
_SAMPLE: Final = 16
"""Keys that are tested first: if one is there, as in most log files, the keys are read."""


def row_groups_with(
    reader: BaseFileReader, keys: pa.ChunkedArray, numbers: Iterable[int]
) -> Set[int]:
    """Return those of some row groups of a base file that may have one of some record keys."""
    given, wanted = frozenset(numbers), one_chunk(keys)
    if wanted.null_count:
        return given
    inside = frozenset(number for number in given if _may_have(reader, wanted, number))
    bloom = _filter(reader, wanted, inside)
    if bloom is None:
        return inside
    held = wanted.filter(pa.array(bloom.may_contain(wanted)))
    return frozenset(number for number in inside if _may_have(reader, held, number))


def _may_have(reader: BaseFileReader, keys: pa.Array, number: int) -> bool:
    """Whether a row group may have one of some record keys, by the footer's ranges."""
    if not len(keys):
        return False
    known = reader.bounds(number, _KEY)
    if known is None or known.low is None or known.high is None:
        return (known is None or known.values) and bool(reader.in_key_range(keys).any())
    inside = pc.and_(pc.greater_equal(keys, known.low), pc.less_equal(keys, known.high))
    return bool(pc.any(inside).as_py())


def _filter(reader: BaseFileReader, keys: pa.Array, numbers: Set[int]) -> BloomFilter | None:
    """The bloom filter of a base file, if it may save reading keys and costs less than that."""
    if bucket_of(reader.file_name) is None:
        return None  # other indexes log the keys that they have found in the base file
    num_rows, stored = sum(map(reader.rows_in, numbers)), reader.stored_bloom_filter()
    if stored is None:
        return None
    text = FilterText(*stored)
    if num_rows < max(_ROWS_PER_TEST * len(keys), len(text.text) // _KEY_BYTES):
        return None
    if len(keys) * text.share_of_others(reader.num_rows) > _MOST_MISTAKES:
        return None
    drawn = np.random.default_rng(0).choice(len(keys), min(len(keys), _SAMPLE), replace=False)
    if text.may_have_any(keys.take(pa.array(drawn))):
        return None
    with suppress(CorruptFileError):  # the rows are there, and `verify` reports the filter
        return reader.bloom_filter()
    return None
