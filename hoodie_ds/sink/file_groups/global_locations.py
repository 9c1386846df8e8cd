"""Where the rows of a batch go in a table whose record keys are unique in all of its partitions.

As in Hudi's global indexes, a key's newest row is merged into the stored record before anything
moves: a late row moves nothing, and the merged row decides the partition. A record that moves is
deleted in the old partition and inserted in the new one, in one commit. All other rows go,
unchanged, to the file group that holds their key, whose writer merges them as usual.

Invariant: all rows of a key are here, and each key ends up in one location, or in as many as
inserts without lookup have stored it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy, one_chunk
from hoodie_ds.columns.meta_columns import IS_DELETED, RECORD_KEY
from hoodie_ds.environment import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.sink.file_groups.kept_values import kept_values
from hoodie_ds.sink.file_groups.keyed_writer import KeyedWriter
from hoodie_ds.sink.hidden_columns import TaskOwnership
from hoodie_ds.sink.locate.key_locations import KeyLocations
from hoodie_ds.sink.locate.routers import Target
from hoodie_ds.sink.messages import StagedRows, WriteMetrics
from hoodie_ds.sink.records import partitions_of, split
from hoodie_ds.sink.stage.incoming_rows import POSITION, Incoming
from hoodie_ds.sink.stage.key_partitions import by_key_partitions
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId


@dataclass(frozen=True)
class _Place:
    """One location for each of some keys."""

    combined: RecordSet  # the incoming record of each key
    which: Numbers  # numbers of the keys among all keys of the batch
    stored: Numbers  # their slices; -1 for a key that is not stored

    @cached_property
    def keys(self) -> pa.Array:
        """The record keys (string)."""
        return one_chunk(self.combined.rows.column(RECORD_KEY))


class GlobalLocations:
    """Locates all rows of some keys, in order of arrival."""

    def __init__(
        self, plan: WritePlan, parts: Sequence[StagedRows | pa.Table], stored: KeyLocations
    ) -> None:
        assert isinstance(plan.index, LookupIndex), plan.index
        self._plan = plan
        self._moves_records = plan.index.moves_records and plan.operation.merges
        self._incoming = Incoming(plan, parts)
        self._stored = stored
        self._numbers: dict[str, int] = {}
        self._homes = self._numbered(())
        self.moved: pa.Table | None = None
        """The values that moving records keep, once their rows come."""

    def located(self) -> Iterator[tuple[Target, pa.Table]]:
        """Yield all rows split by target, those of one key in order, in pieces.

        Rows for new file groups are merged, one for each key. Each copy of a key that inserts
        stored several times is a record of its own, as in Hudi: rows go to each, and each moves by
        itself. Copies that move to one partition are one record from then on, as readers of log
        files do not distinguish two records of one key.
        """
        records = self._incoming.records(_partition_columns(self._plan))
        combined = self._plan.merger.combine(records)
        found = self._stored.find(one_chunk(combined.rows.column(RECORD_KEY)))
        self._homes = self._numbered(s.group.partition_path for s in self._stored.slices)
        copies = [found.nth(number) for number in range(1, found.most)]
        places = [_Place(combined, np.arange(combined.num_rows), found.first)]
        places += [_Place(combined.take(which), which, stored) for which, stored in copies]
        settled = _pairs(found.keys, self._homes_of(found.slices))
        placed, kept, complete = [], [], []
        for place, merged in zip(places, self._merged(places), strict=True):
            at = as_numpy(pc.index_in(one_chunk(merged.column(RECORD_KEY)), value_set=place.keys))
            paths = self._partitions(merged)
            moves = (place.stored[at] >= 0) & (paths != self._homes_of(place.stored[at]))
            pairs = _pairs(place.which[at], paths)
            inserted = (place.stored[at] < 0) | (moves & ~np.isin(pairs, settled))
            settled = np.append(settled, pairs[inserted])
            yield from self._tombstones(records.rows, place, at[moves])
            kept.append(self._kept(place, at[moves]))
            rows_at, codes = self._staying(records, place, at[moves])
            new, new_codes = merged.filter(pa.array(inserted)), len(self._homes) + paths[inserted]
            if self._plan.merger.needs_complete_rows:
                whole = new.select([*self._plan.schema.names, RECORD_KEY])
                complete.append(split(self._marked(whole), new_codes))
            else:
                rows_at = np.append(rows_at, new.column(POSITION).to_numpy())
                codes = np.append(codes, new_codes)
            order = np.argsort(rows_at, kind="stable")
            placed.append((rows_at[order], codes[order]))
        self.moved = pa.concat_tables(kept)
        yield from self._targeted(chain.from_iterable(complete))
        pieces = self._incoming.parted(placed, self._plan.budget.chunk_bytes)
        yield from self._targeted((code, self._marked(rows)) for code, rows in pieces)

    def _kept(self, place: _Place, moved: Numbers) -> pa.Table:
        """The values that moving records keep of columns that the batch lacks."""
        stored, found = place.stored[moved], [kept_values(self._plan, None, place.keys)]
        for number in np.unique(stored).tolist() if self._plan.kept else ():
            keys = place.keys.take(pa.array(moved[stored == number]))
            found.append(kept_values(self._plan, self._stored.slices[number], keys))
        return pa.concat_tables(found)

    def _merged(self, places: Sequence[_Place]) -> list[pa.Table]:
        """The merged rows of records that are new, or whose partition is not the stored one."""
        plan = self._plan
        merges, wanted = [], []
        for place in places:
            elsewhere = np.zeros(place.combined.num_rows, dtype=np.bool_)
            if self._moves_records:
                paths = self._partitions(place.combined.rows)
                elsewhere = paths != self._homes_of(place.stored)
                elsewhere &= (place.stored >= 0) & ~place.combined.deleted
            chosen = np.flatnonzero((place.stored < 0) | elsewhere)
            merges.append(plan.merger.over(place.combined.take(chosen)))
            wanted.append(np.where(elsewhere, place.stored, -1))
        reader = plan.slice_reader(self._stored.view)
        for number in np.unique(np.concatenate(wanted)).tolist():
            if number < 0:
                continue
            asked = [
                (merge, place.keys.filter(pa.array(slices == number)))
                for merge, place, slices in zip(merges, places, wanted, strict=True)
            ]
            for rows in reader.read(self._stored.slices[number], _compared_columns(plan)):
                for merge, keys in asked:
                    met = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=keys))
                    merge.keep(RecordSet.of_rows(met, plan.ordering_fields))
        return [merge.new_rows() for merge in merges]

    def _staying(
        self, records: RecordSet, place: _Place, moved: Numbers
    ) -> tuple[Numbers, Numbers]:
        """The positions of rows whose key stays in its slice, and the slices."""
        stays = place.stored >= 0
        stays[moved] = False
        at = pc.index_in(
            one_chunk(records.rows.column(RECORD_KEY)), value_set=place.keys.filter(pa.array(stays))
        )
        rows_at = np.flatnonzero(as_numpy(pc.is_valid(at)))
        return rows_at, place.stored[stays][as_numpy(at.drop_null())]

    def _tombstones(
        self, rows: pa.Table, place: _Place, moved: Numbers
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Deletes of moved records in their old slices; without ordering values they always win.

        Hudi deletes them in the same way.
        """
        schema = self._marked(self._plan.schema.empty_table()).schema
        columns = {field.name: pa.nulls(len(moved), field.type) for field in schema}
        columns[IS_DELETED] = pa.array(np.ones(len(moved), dtype=np.bool_))
        deletes = pa.table(columns, schema=schema).append_column(
            rows.schema.field(RECORD_KEY), place.keys.take(pa.array(moved))
        )
        return self._targeted(split(deletes, place.stored[moved]))

    def _marked(self, rows: pa.Table) -> pa.Table:
        """Rows with a mark of deletes, so that all rows of a file group have the same columns."""
        if IS_DELETED in rows.column_names or not self._plan.operation.merges:
            return rows
        unmarked = pa.array(np.zeros(rows.num_rows, dtype=np.bool_))
        return rows.add_column(len(self._plan.schema), IS_DELETED, unmarked)

    def _targeted(
        self, pieces: Iterator[tuple[int, pa.Table]]
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Targets for numbers: first the slices, then new groups in each partition."""
        slices, paths = self._stored.slices, list(self._numbers)
        for number, rows in pieces:
            if number < len(slices):
                yield Target(slices[number].group, slices[number]), rows
            else:
                yield Target(FileGroupId(paths[number - len(slices)], ""), None), rows

    def _partitions(self, rows: pa.Table) -> Numbers:
        """The number of each row's partition path."""
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
    owns: TaskOwnership,
) -> tuple[list[WriteStatus], list[StagedRows]]:
    """Locate all rows of their keys, in order of arrival, and write them.

    Unless the task `owns` file groups, others may write to them in this batch, and updates of base
    files are staged. `WriteConflictError` if a key is stored in a file group of another task.
    """
    # Rows that were merged for new file groups must not be merged a second time.
    writer = KeyedWriter(plan, context, clock, metrics, replace(plan, rows_are_merged=True))
    stored = KeyLocations(plan, context.task_partition, owns.num_tasks)
    staged = [part for part in parts if isinstance(part, StagedRows)]
    few = by_key_partitions(staged, plan.budget.locating_bytes) if staged else [parts]
    try:
        for some in few:
            locations = GlobalLocations(plan, some, stored)
            for target, rows in locations.located():
                writer.take([(target, rows)], rows.nbytes, locations.moved)
        return writer.close(owns)
    except BaseException as error:
        writer.discard(error)
        raise


def _pairs(keys: Numbers, paths: Numbers) -> Numbers:
    """One number for a key and a partition; a negative one without a partition."""
    return np.where(paths < 0, -1, keys << 32 | paths)


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
