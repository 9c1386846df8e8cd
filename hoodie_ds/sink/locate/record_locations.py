"""Where the rows of a batch go in a table whose record keys are unique in all of its partitions.

As in Hudi's global indexes, a key's newest row is merged into what is stored before anything moves:
a row that arrives too late moves nothing, and what was merged decides about the partition. A record
that moves is deleted where it was and inserted where it belongs, in one commit. Everything else
goes, unchanged, to the file group that holds its key, whose writer merges it as ever.

Invariant: all rows of a key are here, and each key has one place in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.reader.file_slice_reader import FileSliceReader
from hoodie_ds.record.merge.rule import RecordSet
from hoodie_ds.record.meta_columns import IS_DELETED, RECORD_KEY
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.locate.key_locations import StoredPlaces
from hoodie_ds.sink.locate.routers import Target
from hoodie_ds.sink.memory_budget import MemoryBudget
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import partitions_of, split
from hoodie_ds.sink.stage.incoming import POSITION, Incoming
from hoodie_ds.table.file_slice import FileGroupId

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Placement:
    """Places the rows of a batch.

    Parameters
    ----------
    batch : Batch
        The batch.
    parts : sequence of StagedRows and pyarrow.Table
        All rows of some keys, in order of arrival: user columns and ``_hoodie_record_key``.
    stored : StoredPlaces
        Where keys are stored.
    """

    def __init__(
        self, batch: Batch, parts: Sequence[StagedRows | pa.Table], stored: StoredPlaces
    ) -> None:
        self._batch = batch
        self._incoming = Incoming(batch, parts)
        self._stored = stored
        self._numbers: dict[str, int] = {}
        self._homes = self._numbered(s.group.partition_path for s in self._stored.slices)

    def placed(self) -> Iterator[tuple[Target, pa.Table]]:
        """Yield all rows parted by target, those of one key in order, in pieces.

        Rows for new file groups are one for each key, and merged.
        """
        batch = self._batch
        records = self._incoming.records(_partition_columns(batch))
        combined = batch.merger.combine(records)
        keys = _one_chunk(combined.rows.column(RECORD_KEY))
        stored = self._stored.find(keys)
        merged = self._merged(combined, keys, stored)
        at = _numpy(pc.index_in(_one_chunk(merged.column(RECORD_KEY)), value_set=keys))
        paths = self._partitions(merged)
        moves = (stored[at] >= 0) & (paths != self._homes_of(stored[at]))
        inserted = moves | (stored[at] < 0)
        codes = self._codes(records, keys, stored, at[moves])
        yield from self._tombstones(records.rows, keys.take(pa.array(at[moves])), stored[at[moves]])
        new, new_paths = merged.filter(pa.array(inserted)), paths[inserted]
        if batch.merger.needs_whole_rows:
            whole = self._marked(new.select([*batch.schema.names, RECORD_KEY]))
            yield from self._targeted(split(whole, len(self._homes) + new_paths))
        else:
            codes[new.column(POSITION).to_numpy()] = len(self._homes) + new_paths
        pieces = self._incoming.parted(codes, MemoryBudget.of(batch.options).chunk_bytes)
        yield from self._targeted((code, self._marked(rows)) for code, rows in pieces)

    def _merged(self, combined: RecordSet, keys: pa.Array, stored: Numbers) -> pa.Table:
        """What becomes of records that are new, or that say another partition than the stored."""
        batch = self._batch
        elsewhere = np.zeros(combined.num_rows, dtype=np.bool_)
        if batch.moves_records and batch.operation.merges:
            paths = self._partitions(combined.rows)
            elsewhere = (stored >= 0) & ~combined.deleted & (paths != self._homes_of(stored))
        merge = batch.merger.over(combined.take(np.flatnonzero((stored < 0) | elsewhere)))
        reader = FileSliceReader(
            self._stored.view, batch.stored_schema, batch.stored_merger, batch.ordering_fields
        )
        for number in np.unique(stored[elsewhere]).tolist():
            wanted = keys.filter(pa.array(elsewhere & (stored == number)))
            for rows in reader.read(self._stored.slices[number], _compared_columns(batch)):
                met = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=wanted))
                merge.keep(RecordSet.of_rows(met, batch.ordering_fields))
        return merge.new_rows()

    def _codes(
        self, records: RecordSet, keys: pa.Array, stored: Numbers, moved: Numbers
    ) -> Numbers:
        """For each row the slice that holds its key; -1 if there is none or its record moves."""
        stays = stored >= 0
        stays[moved] = False
        at = pc.index_in(
            _one_chunk(records.rows.column(RECORD_KEY)), value_set=keys.filter(pa.array(stays))
        )
        codes = np.full(records.num_rows, -1, dtype=np.int64)
        codes[_numpy(pc.is_valid(at))] = stored[stays][_numpy(at.drop_null())]
        return codes

    def _tombstones(
        self, rows: pa.Table, keys: pa.Array, numbers: Numbers
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Deletes of records where they are moved from; without ordering values none outranks them.

        Hudi deletes there in the same way.
        """
        schema = self._marked(self._batch.schema.empty_table()).schema
        columns = {field.name: pa.nulls(len(keys), field.type) for field in schema}
        columns[IS_DELETED] = pa.array(np.ones(len(keys), dtype=np.bool_))
        deletes = pa.table(columns, schema=schema).append_column(
            rows.schema.field(RECORD_KEY), keys
        )
        return self._targeted(split(deletes, numbers))

    def _marked(self, rows: pa.Table) -> pa.Table:
        """Rows with a mark of deletes, so that all rows of a file group have the same columns."""
        if IS_DELETED in rows.column_names or not self._batch.operation.merges:
            return rows
        unmarked = pa.array(np.zeros(rows.num_rows, dtype=np.bool_))
        return rows.add_column(len(self._batch.schema), IS_DELETED, unmarked)

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
        paths = partitions_of(self._batch, rows)
        return self._numbered(paths.dictionary.to_pylist())[_numpy(paths.indices)]

    def _numbered(self, paths: Iterable[str]) -> Numbers:
        known = self._numbers
        numbers = [known.setdefault(path, len(known)) for path in paths]
        return np.array(numbers, dtype=np.int64)

    def _homes_of(self, stored: Numbers) -> Numbers:
        """The partition of each place; -1 of none."""
        return np.append(self._homes, -1)[stored]


def _partition_columns(batch: Batch) -> set[str]:
    fields = batch.table.properties.partition_fields
    return {*fields, *(path.partition(".")[0] for path in fields)}


def _compared_columns(batch: Batch) -> list[str]:
    """Columns of stored rows that merging needs."""
    names = batch.stored_schema.names
    if batch.merger.needs_whole_rows:
        return list(names)
    fields = {path.partition(".")[0] for path in batch.ordering_fields}
    wanted = {RECORD_KEY, *fields, *batch.ordering_fields}
    return [name for name in names if name in wanted]


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _numpy(values: pa.Array) -> npt.NDArray[np.int64]:
    result: npt.NDArray[np.int64] = values.to_numpy(zero_copy_only=False)
    return result
