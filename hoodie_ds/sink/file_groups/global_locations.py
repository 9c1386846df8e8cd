"""Where the rows of a batch go in a table whose record keys are unique in all of its partitions.

As in Hudi's global indexes, a key's newest row is merged into what is stored before anything moves:
a row that arrives too late moves nothing, and what was merged decides about the partition. A record
that moves is deleted where it was and inserted where it belongs, in one commit. Everything else
goes, unchanged, to the file group that holds its key, whose writer merges it as ever.

Invariant: all rows of a key are here, and each key has one location in the end, unless inserts that
look nothing up have stored it several times.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.arrow_columns import Numbers, as_numpy, one_chunk
from hoodie_ds.environment import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.meta_columns import IS_DELETED, RECORD_KEY
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.sink.file_groups.keyed_writer import KeyedWriter
from hoodie_ds.sink.hidden_columns import TaskOwnership
from hoodie_ds.sink.locate.key_locations import KeyLocations
from hoodie_ds.sink.locate.routers import Target
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.records import partitions_of, split
from hoodie_ds.sink.stage.incoming import POSITION, Incoming
from hoodie_ds.sink.stage.key_partitions import by_key_partitions
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId


class GlobalLocations:
    """Places the rows of a batch.

    Parameters
    ----------
    plan : WritePlan
        The write.
    parts : sequence of StagedRows and pyarrow.Table
        All rows of some keys, in order of arrival: user columns and ``_hoodie_record_key``.
    stored : KeyLocations
        Where keys are stored.
    """

    def __init__(
        self, plan: WritePlan, parts: Sequence[StagedRows | pa.Table], stored: KeyLocations
    ) -> None:
        self._plan = plan
        self._incoming = Incoming(plan, parts)
        self._stored = stored
        self._numbers: dict[str, int] = {}
        self._homes = self._numbered(s.group.partition_path for s in self._stored.slices)

    def located(self) -> Iterator[tuple[Target, pa.Table]]:
        """Yield all rows parted by target, those of one key in order, in pieces.

        Rows for new file groups are one for each key, and merged. Of a key that inserts stored
        several times each copy is a record of its own, as in Hudi: rows go to each, and each moves
        by itself.
        """
        records = self._incoming.records(_partition_columns(self._plan))
        combined = self._plan.merger.combine(records)
        found = self._stored.find(one_chunk(combined.rows.column(RECORD_KEY)))
        placed = [(yield from self._place(records, combined, found.first))]
        for nth in range(1, found.most):
            which, stored = found.nth(nth)
            placed.append((yield from self._place(records, combined.take(which), stored)))
        at, codes = map(np.concatenate, zip(*placed, strict=True))
        order = np.argsort(at, kind="stable")
        pieces = self._incoming.parted(at[order], codes[order], self._plan.budget.chunk_bytes)
        yield from self._targeted((code, self._marked(rows)) for code, rows in pieces)

    def _place(
        self, records: RecordSet, combined: RecordSet, stored: Numbers
    ) -> Generator[tuple[Target, pa.Table], None, tuple[Numbers, Numbers]]:
        """Place the rows of some keys, each of which is in one slice or in none.

        Yields what is made here; returns positions of rows that go on as they are, and the numbers
        of their targets.
        """
        plan = self._plan
        keys = one_chunk(combined.rows.column(RECORD_KEY))
        merged = self._merged(combined, keys, stored)
        at = as_numpy(pc.index_in(one_chunk(merged.column(RECORD_KEY)), value_set=keys))
        paths = self._partitions(merged)
        moves = (stored[at] >= 0) & (paths != self._homes_of(stored[at]))
        inserted = moves | (stored[at] < 0)
        yield from self._tombstones(records.rows, keys.take(pa.array(at[moves])), stored[at[moves]])
        rows_at, codes = self._staying(records, keys, stored, at[moves])
        new, new_codes = merged.filter(pa.array(inserted)), len(self._homes) + paths[inserted]
        if plan.merger.needs_complete_rows:
            whole = self._marked(new.select([*plan.schema.names, RECORD_KEY]))
            yield from self._targeted(split(whole, new_codes))
            return rows_at, codes
        new_at = new.column(POSITION).to_numpy()
        return np.append(rows_at, new_at), np.append(codes, new_codes)

    def _merged(self, combined: RecordSet, keys: pa.Array, stored: Numbers) -> pa.Table:
        """What becomes of records that are new, or that say another partition than the stored."""
        plan = self._plan
        elsewhere = np.zeros(combined.num_rows, dtype=np.bool_)
        if plan.moves_records and plan.operation.merges:
            paths = self._partitions(combined.rows)
            elsewhere = (stored >= 0) & ~combined.deleted & (paths != self._homes_of(stored))
        merge = plan.merger.over(combined.take(np.flatnonzero((stored < 0) | elsewhere)))
        reader = plan.slice_reader(self._stored.view)
        for number in np.unique(stored[elsewhere]).tolist():
            wanted = keys.filter(pa.array(elsewhere & (stored == number)))
            for rows in reader.read(self._stored.slices[number], _compared_columns(plan)):
                met = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=wanted))
                merge.keep(RecordSet.of_rows(met, plan.ordering_fields))
        return merge.new_rows()

    def _staying(
        self, records: RecordSet, keys: pa.Array, stored: Numbers, moved: Numbers
    ) -> tuple[Numbers, Numbers]:
        """The positions of rows whose key stays in its slice, and the slices."""
        stays = stored >= 0
        stays[moved] = False
        at = pc.index_in(
            one_chunk(records.rows.column(RECORD_KEY)), value_set=keys.filter(pa.array(stays))
        )
        rows_at = np.flatnonzero(as_numpy(pc.is_valid(at)))
        return rows_at, stored[stays][as_numpy(at.drop_null())]

    def _tombstones(
        self, rows: pa.Table, keys: pa.Array, numbers: Numbers
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Deletes of records where they are moved from; without ordering values none outranks them.

        Hudi deletes there in the same way.
        """
        schema = self._marked(self._plan.schema.empty_table()).schema
        columns = {field.name: pa.nulls(len(keys), field.type) for field in schema}
        columns[IS_DELETED] = pa.array(np.ones(len(keys), dtype=np.bool_))
        deletes = pa.table(columns, schema=schema).append_column(
            rows.schema.field(RECORD_KEY), keys
        )
        return self._targeted(split(deletes, numbers))

    def _marked(self, rows: pa.Table) -> pa.Table:
        """Rows with a mark of deletes, so that all rows of a file group have the same columns."""
        if IS_DELETED in rows.column_names or not self._plan.operation.merges:
            return rows
        unmarked = pa.array(np.zeros(rows.num_rows, dtype=np.bool_))
        return rows.add_column(len(self._plan.schema), IS_DELETED, unmarked)

    def _targeted(
        self, pieces: Iterator[tuple[int, pa.Table]]
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Targets for numbers: the slices come first, then new groups in each partition."""
        slices, paths = self._stored.slices, list(self._numbers)
        for number, rows in pieces:
            if number < len(slices):
                yield Target(slices[number].group, slices[number]), rows
            else:
                yield Target(FileGroupId(paths[number - len(slices)], ""), None), rows

    def _partitions(self, rows: pa.Table) -> Numbers:
        """A number for the partition path of each row."""
        paths = partitions_of(self._plan, rows)
        numbers: Numbers = self._numbered(paths.dictionary.to_pylist())[as_numpy(paths.indices)]
        return numbers

    def _numbered(self, paths: Iterable[str]) -> Numbers:
        known = self._numbers
        numbers = [known.setdefault(path, len(known)) for path in paths]
        return np.array(numbers, dtype=np.int64)

    def _homes_of(self, stored: Numbers) -> Numbers:
        """The partition of each slice; -1 for no slice."""
        return np.append(self._homes, -1)[stored]


def write_located(
    plan: WritePlan,
    context: WriteContext,
    parts: Sequence[StagedRows] | Sequence[pa.Table],
    clock: Clock,
    metrics: WriteMetrics,
    is_alone: bool,
) -> tuple[list[WriteStatus], list[StagedRows]]:
    """Place rows and write them.

    Parameters
    ----------
    plan : WritePlan
        The write.
    context : WriteContext
        Task and instant.
    parts : sequence of StagedRows or pyarrow.Table
        All rows of their keys, in order of arrival: set aside, or in memory if they are few.
    clock, metrics
        As for a `GlobalWriter`.
    is_alone : bool
        Whether nobody else writes to the same file groups in this batch; updates of base files are
        staged otherwise.
    """
    # What merging made for new file groups must not be merged a second time.
    writer = KeyedWriter(plan, context, clock, metrics, replace(plan, rows_are_merged=True))
    stored = KeyLocations(plan)
    staged = [part for part in parts if isinstance(part, StagedRows)]
    few = by_key_partitions(staged, plan.budget.locating_bytes) if staged else [parts]
    try:
        for some in few:
            for target, rows in GlobalLocations(plan, some, stored).located():
                writer.take([(target, rows)], rows.nbytes)
        return writer.close(TaskOwnership(groups=is_alone, keys=True))
    except BaseException as error:
        writer.discard(error)
        raise


def _partition_columns(plan: WritePlan) -> set[str]:
    fields = plan.table.properties.partition_fields
    return {*fields, *(path.partition(".")[0] for path in fields)}


def _compared_columns(plan: WritePlan) -> list[str]:
    """Columns of stored rows that merging needs."""
    names = plan.stored_schema.names
    if plan.merger.needs_complete_rows:
        return list(names)
    fields = {path.partition(".")[0] for path in plan.ordering_fields}
    wanted = {RECORD_KEY, *fields, *plan.ordering_fields}
    return [name for name in names if name in wanted]
