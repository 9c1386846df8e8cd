"""`TableMerge`: the clauses of a merge, as users add them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

import pyarrow as pa

from hoodie_ds.api.arrow_input import Rows, arrow_rows
from hoodie_ds.errors import SchemaError
from hoodie_ds.filters.given import Filter
from hoodie_ds.formats.avro.schema import normalise_schema
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.merged_rows import MergeCounts, count_merged, merge_of, merged_rows
from hoodie_ds.sink.messages import WriteResult
from hoodie_ds.sink.numbered_rows import NumberedRows
from hoodie_ds.sink.row_change import NewValue
from hoodie_ds.sink.row_merge import Effect, GivenClause, GivenMerge, Matching, On

T = TypeVar("T")

Executes: TypeAlias = Callable[
    [tuple[GivenClause, ...], Mapping[str, str] | None, bool], WriteResult
]
"""Merges by clauses, with further options; if the last is true, it counts the rows alone."""

Begins: TypeAlias = Callable[[Mapping[str, str] | None], Coordinator]
"""Returns what begins a write with further options."""

Writes: TypeAlias = Callable[[Coordinator, Batch, Iterable[pa.RecordBatch]], WriteResult]
"""Writes the rows of a batch and commits it."""


class TableMerge:
    """A merge of a source into a table, made by `HoodieTable.merge` or `merge`.

    Clauses are tried in the order in which they are added: of those for a row, the first whose
    condition is true takes it. A row that no clause takes stays as it is, or is not inserted.

    Conditions (`where`) are filters in any of their forms, as for `HoodieTable.read`, over the row
    of the table and that of the source, whose columns have the names ``target.fare`` and
    ``source.fare``. A string may compare two of them: ``"source.ts > target.ts"``. What is unknown,
    as a comparison with null, is not true.

    New values (`set`) are as for `HoodieTable.update`: values, expressions of SQL or Arrow, or
    functions over an Arrow table of joined rows, with these names. The string ``"source.fare"`` is
    the source's column; `pyarrow.scalar` makes it a value. The record key and the partition of a
    row do not change.

    Examples
    --------
    >>> merge = table.merge(changes, on="uuid").when_matched_delete("source.op = D")
    >>> merge = merge.when_matched_update_all("source.ts > target.ts")
    >>> merge.when_not_matched_insert_all().execute()
    WriteResult(instant_time='...', inserted=1, updated=1, deleted=1, ...)
    """

    def __init__(self, executes: Executes) -> None:
        self._executes: Final = executes
        self._clauses: Final = list[GivenClause]()

    def when_matched_update(
        self, set: Mapping[str, NewValue], where: Filter | None = None
    ) -> TableMerge:
        """Update columns of rows that match a row of the source.

        A row whose ordering value would become lower stays, as in Hudi's MERGE INTO; so does one
        that has the new values already. Neither counts.

        Parameters
        ----------
        set : mapping of str to value, expression or function
            What each column becomes.
        where : Filter, optional
            Which of the rows to update.
        """
        return self._with(Matching.MATCHED, Effect.UPDATE, where, set)

    def when_matched_update_all(self, where: Filter | None = None) -> TableMerge:
        """Update all columns that the source has, of rows that match a row of the source.

        Parameters
        ----------
        where : Filter, optional
            Which of the rows to update.
        """
        return self._with(Matching.MATCHED, Effect.UPDATE, where)

    def when_matched_delete(self, where: Filter | None = None) -> TableMerge:
        """Delete rows that match a row of the source.

        Parameters
        ----------
        where : Filter, optional
            Which of the rows to delete.
        """
        return self._with(Matching.MATCHED, Effect.DELETE, where)

    def when_not_matched_insert(
        self, set: Mapping[str, NewValue], where: Filter | None = None
    ) -> TableMerge:
        """Insert rows of the source that match no row of the table.

        Parameters
        ----------
        set : mapping of str to value, expression or function
            The columns of the new row; others are null. Those of record key, partition and order
            must be there.
        where : Filter, optional
            Which of the rows to insert, by columns of the source.
        """
        return self._with(Matching.NOT_MATCHED, Effect.INSERT, where, set)

    def when_not_matched_insert_all(self, where: Filter | None = None) -> TableMerge:
        """Insert rows of the source that match no row of the table, with the table's columns.

        Parameters
        ----------
        where : Filter, optional
            Which of the rows to insert, by columns of the source.
        """
        return self._with(Matching.NOT_MATCHED, Effect.INSERT, where)

    def when_not_matched_by_source_update(
        self, set: Mapping[str, NewValue], where: Filter | None = None
    ) -> TableMerge:
        """Update columns of rows of the table that match no row of the source.

        Parameters
        ----------
        set : mapping of str to value, expression or function
            What each column becomes, by columns of the table.
        where : Filter, optional
            Which of the rows to update; files that it rules out are not opened.
        """
        return self._with(Matching.NOT_MATCHED_BY_SOURCE, Effect.UPDATE, where, set)

    def when_not_matched_by_source_delete(self, where: Filter | None = None) -> TableMerge:
        """Delete rows of the table that match no row of the source.

        Parameters
        ----------
        where : Filter, optional
            Which of the rows to delete; files that it rules out are not opened.
        """
        return self._with(Matching.NOT_MATCHED_BY_SOURCE, Effect.DELETE, where)

    def execute(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> WriteResult:
        """Merge, in one commit.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options of this write. A numbered merge is recognised by its clauses and source.
        dry : bool
            Whether to change nothing, and only count the rows.

        Returns
        -------
        WriteResult
            The commit, and how many rows it inserted, updated and deleted, in log files too.

        Raises
        ------
        OptionError
            There is no clause, or a condition, column or value does not fit.
        MergeCardinalityError
            Several rows of the source match one row that clauses may change, or insert one key.
        RecordKeyError
            A record key or partition would change, or a key be inserted that is stored already.
        WriteConflictError
            Another writer changed a partition that may have rows which match.
        HoodieError
            The merge was refused or failed; the table is as before.
        """
        return self._executes(tuple(self._clauses), options, dry)

    def _with(
        self,
        matching: Matching,
        effect: Effect,
        where: Filter | None,
        values: Mapping[str, NewValue] | None = None,
    ) -> TableMerge:
        self._clauses.append(GivenClause(matching, effect, where, values))
        return self


def merge_here(
    begins: Begins,
    writes: Writes,
    source: NumberedRows,
    on: On,
    clauses: tuple[GivenClause, ...],
    options: Mapping[str, str] | None,
    dry: bool,
) -> WriteResult:
    """Merge a source in this process, or count the rows alone."""
    coordinator = begins(options)
    change_of = partial(merge_of, GivenMerge(source, on, clauses))
    if dry:
        return count_merged(with_columns(coordinator.preview_change(change_of)))

    def merge() -> WriteResult:
        batch, counts = with_columns(coordinator.begin_change(change_of)), MergeCounts()
        return counts.of(writes(coordinator, batch, merged_rows(batch.plan, counts)))

    return retry_after_conflicts(coordinator.options, merge)


def source_rows(source: Rows, table: pa.Schema) -> NumberedRows:
    """Return the rows of a source in the types of tables, to be read several times."""
    reader = arrow_rows(source)
    schema = normalise_schema(reader.schema, table)
    pieces = (conform(pa.Table.from_batches([part]), schema) for part in reader)
    batches = (batch for piece in pieces for batch in piece.to_batches())
    if isinstance(source, pa.Table):  # it is in memory anyway
        return NumberedRows(schema, batches)
    return NumberedRows.spooled(schema, batches)


def with_columns(found: T | None) -> T:
    """Return what a merge or an alteration begins with; refuse a table without columns."""
    if found is None:
        raise SchemaError(
            "nothing was committed to the table yet, so that it has no columns; upsert its first "
            "rows"
        )
    return found
