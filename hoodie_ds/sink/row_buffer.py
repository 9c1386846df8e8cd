"""Rows that wait to be written, with their size."""

from __future__ import annotations

import pyarrow as pa


class RowBuffer:
    """Tables of one schema, in order of arrival."""

    def __init__(self) -> None:
        self._rows: list[pa.Table] = []
        self.nbytes = 0

    def add(self, rows: pa.Table) -> None:
        """Keep rows (user columns and ``_hoodie_record_key``)."""
        self._rows.append(rows)
        self.nbytes += rows.nbytes

    def take(self) -> list[pa.Table]:
        """Hand all rows over, as one table, or none."""
        rows = [pa.concat_tables(self._rows)] if self._rows else []
        self._rows.clear()
        self.nbytes = 0
        return rows
