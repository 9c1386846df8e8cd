"""What Arrow itself rules out: the way for expressions that are not taken apart.

Arrow leaves out fragments of a dataset whose partition expression contradicts a filter. So a
fragment whose partition expression states the bounds of some rows stands for these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from hoodie_ds.filters.bounds import Bounds, Known

_FORMAT: Final = ds.ParquetFileFormat()


def satisfiable(expression: pc.Expression, schema: pa.Schema, known: Known) -> bool:
    """Whether a row may match an expression, given what is known of its columns; opens nothing."""
    facts = [fact for field in schema for fact in _facts(field, known(field.name))]
    nowhere = LocalFileSystem()
    fragment = _FORMAT.make_fragment("", nowhere, reduce(and_, facts, pc.scalar(True)))
    dataset = ds.FileSystemDataset([fragment], schema, _FORMAT, nowhere)
    return any(dataset.get_fragments(expression))


def _facts(field: pa.Field, bounds: Bounds | None) -> Iterator[pc.Expression]:
    if bounds is None:
        return
    column = pc.field(field.name)
    if not bounds.values:
        yield column.is_null()
    elif pa.types.is_floating(field.type):
        return  # may be NaN, beyond all bounds and a null for `is_null(nan_is_null=True)`
    elif bounds.low is None or bounds.high is None:
        if not bounds.nulls:
            yield column.is_valid()
    else:
        low, high = (_scalar(end, field.type) for end in (bounds.low, bounds.high))
        # of one value Arrow draws more conclusions than of a range
        for fact in (column == low,) if low == high else (column >= low, column <= high):
            yield fact | column.is_null() if bounds.nulls else fact


def _scalar(end: object, kind: pa.DataType) -> pa.Scalar:
    """What `sortable` has made an end of."""
    if pa.types.is_temporal(kind):
        stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        return pa.array([end], stored).view(kind)[0]
    return pa.scalar(end, kind)
