"""The rows of a query as a dataset of Arrow, which DuckDB and others ask for columns and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hoodie_ds.errors import OptionError
from hoodie_ds.reader.query import Query
from hoodie_ds.reader.scanner import Scanner

_OF_FILES: Final = frozenset(
    {"filter", "get_fragments", "join", "join_asof", "partition_expression", "replace_schema"}
    | {"sort_by", "take"}
)
"""What other datasets have beside rows; Arrow would look for it in an object of its own."""


class QueryDataset(ds.Dataset):  # type: ignore[misc]
    """The rows of a query, each time as the table was when the query was opened."""

    def __init__(self, query: Query) -> None:
        self._query: Final = query

    def __reduce__(self) -> tuple[type[QueryDataset], tuple[Query]]:
        """Go to other processes, as of Ray or Dask."""
        return QueryDataset, (self._query,)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        """Return an attribute; there is none of those that need Arrow's own files."""
        if name in _OF_FILES:
            why = "the dataset of a Hudi table has no such method; read it with to_table() first"
            raise AttributeError(f"{name!r}: {why}", name=name, obj=self)
        return super().__getattribute__(name)

    @property
    def schema(self) -> pa.Schema:
        """The columns that can be asked for."""
        return self._query.schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_hints: object,
    ) -> Scanner:
        """Return what reads some columns of the rows for which a filter is true.

        Arrow's other parameters, as `batch_size`, are hints that change no rows.
        """
        if isinstance(columns, dict):
            raise OptionError("columns", columns, "give names; compute other columns afterwards")
        return Scanner(self._query, columns, filter)
