"""A table as a LazyFrame of Polars, which reads the columns and rows that its query needs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hoodie_ds.api.hoodie_table import HoodieTable
from hoodie_ds.errors import HoodieError, OptionError
from hoodie_ds.extras import require
from hoodie_ds.filters.arrow import from_arrow
from hoodie_ds.filters.predicate import ALL, Opaque, Predicate
from hoodie_ds.inspection.arguments import Moment

if TYPE_CHECKING:
    import polars

_NO_CODE: Final = (NameError, SyntaxError, TypeError)
"""What ends the evaluation of a translation that is no code."""


def scan_hudi(
    source: str | os.PathLike[str] | HoodieTable,
    options: Mapping[str, str] | None = None,
    *,
    as_of: Moment | None = None,
) -> polars.LazyFrame:
    """Return a table, as it is now, as a LazyFrame of Polars.

    Polars says which columns its query needs, and which rows: only those columns are read, and
    partitions, files and row groups without such rows are not opened. Comparisons, ``is_in``,
    ``is_null`` and ``is_between`` of columns with values rule files out. Polars evaluates all of
    the filter itself.

    Parameters
    ----------
    source : str, path-like or HoodieTable
        The table, or its base path.
    options : mapping of str to str, optional
        Options of reads, for a base path.
    as_of : str, Instant, WriteResult or Savepoint, optional
        As for `HoodieTable.read`.

    Returns
    -------
    polars.LazyFrame

    Raises
    ------
    MissingPackageError
        Polars is not installed.
    TableNotFoundError
        There is no table.
    OptionError
        An option is refused.
    TimelineError
        See `HoodieTable.read`.

    Examples
    --------
    >>> trips = hoodie_ds.scan_hudi("/tmp/trips")
    >>> trips.filter(polars.col("fare") > 10).select("uuid", "fare").collect().rows()
    [('b', 12.0)]
    """
    require("scan_hudi", "pip install polars", "polars")
    import polars
    from polars.io.plugins import register_io_source

    if isinstance(source, HoodieTable) and options is not None:
        raise OptionError("options", [*options], "give them to the HoodieTable")
    table = source if isinstance(source, HoodieTable) else HoodieTable(source, options)
    dataset = table.to_pyarrow_dataset(as_of)
    kinds = polars.DataFrame(dataset.schema.empty_table()).schema
    return register_io_source(_Source(dataset), schema=kinds, is_pure=True)


@dataclass(frozen=True)
class _Source:
    """What Polars calls for rows."""

    dataset: ds.Dataset

    def __call__(
        self,
        columns: Sequence[str] | None,
        predicate: polars.Expr | None,
        n_rows: int | None,
        _batch_rows: int | None,
    ) -> Iterator[polars.DataFrame]:
        """Yield the rows that match, `n_rows` at most; the columns have those of the predicate."""
        import polars

        pushed = ALL if predicate is None else _implied(predicate, self.dataset.schema)
        scanner, left = self.dataset.scanner(columns, pushed), n_rows
        if n_rows is not None and predicate is None:
            batches = iter(scanner.head(n_rows).to_batches())  # reads no file ahead
        else:
            batches = scanner.to_batches()
        for batch in batches:
            rows = polars.DataFrame(batch)
            if predicate is not None:
                rows = rows.filter(predicate)
            if left is not None:
                rows = rows.head(left)
                left -= rows.height
            yield rows
            if left == 0:
                return


def _implied(predicate: polars.Expr, schema: pa.Schema) -> Predicate:
    """What holds of all rows that match an expression of Polars, as far as Arrow can tell.

    Polars translates it for datasets of Arrow, as code that it evaluates; that of older releases
    does not compile, or names what is not there. Of nulls and NaN Arrow says something else than
    Polars, so what is implied of an expression counts, and not the expression.
    """
    import polars

    asked = _Asked(schema)
    try:
        polars.scan_pyarrow_dataset(asked).filter(predicate).collect()
        found = ALL if asked.filter is None else from_arrow(asked.filter, schema)
    except (polars.exceptions.PolarsError, pa.ArrowException, HoodieError, *_NO_CODE):
        return ALL
    return found.implied or ALL if isinstance(found, Opaque) else ALL


class _Asked(ds.Dataset):  # type: ignore[misc]
    """A dataset without rows, which keeps the filter that it is asked for."""

    def __init__(self, schema: pa.Schema) -> None:
        self._columns = schema
        self.filter: pc.Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._columns

    def to_batches(
        self, filter: pc.Expression | None = None, **_others: object
    ) -> Iterator[pa.RecordBatch]:
        """Return nothing."""
        self.filter = filter
        return iter(())
