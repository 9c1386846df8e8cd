"""One file slice to rows: the base file with its log files merged in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask, Numbers, without_columns
from hoodie_ds.columns.meta_columns import COMMIT_TIME, META_FIELDS, RECORD_KEY
from hoodie_ds.config.enums import MergeMode, TableType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.filters.predicate import In
from hoodie_ds.filters.pruning import may_match
from hoodie_ds.formats.log.log_block import BlockType, LogBlock
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader, MadeColumn
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.record.deletes import DeleteMarker
from hoodie_ds.record.merge.hook_merger import AnyMerge, AnyMerger, merger_of
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.record.merge.partial_merger import PartialMerge, PartialMerger
from hoodie_ds.slices.base_rows import BaseRows
from hoodie_ds.slices.keyed_records import KeyedRecords
from hoodie_ds.slices.late_columns import Places, rows_at
from hoodie_ds.slices.located_records import outcome_by_positions
from hoodie_ds.slices.log_reader import HELD_BYTES, BlockRecords, ColumnsOf, LogReader, OpenLogs
from hoodie_ds.slices.merge_outcomes import BlockId, MergeOutcome, Positions, merge_outcomes
from hoodie_ds.table.block_order import BlockPlace
from hoodie_ds.table.checksums import open_footer
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import naming_remedies
from hoodie_ds.table.schema_on_read import ALL_AS_NOW, ColumnHistory
from hoodie_ds.table.table_schema import virtual_keys

_HELD_RECORDS: Final = 1 << 20
"""Records of log files that are held before those of one key are combined."""

WHOLE: Final = (0, 1)
"""The only part of a slice."""

KEY_FIELD: Final = next(field for field in META_FIELDS if field.name == RECORD_KEY)


@dataclass(slots=True)
class MergeCounts:
    """What was merged into a slice's base file, once all of its rows are read.

    Blocks of the log files that count and records in them, with deletes; records that are left when
    those of each key are combined; rows of the base file that were replaced, and deleted.
    """

    log_blocks: int = 0
    log_records: int = 0
    merged_records: int = 0
    updates: int = 0
    deletes: int = 0


class SomeKeys(Protocol):
    """The record keys that a reader needs."""

    def among(self, records: RecordSet) -> RecordSet:
        """Return the records that have one of the keys."""
        ...


class RowPruner(Protocol):
    """Rules out rows that a reader does not need; see `hoodie_ds.reader.pruner`."""

    @property
    def keys(self) -> SomeKeys | None:
        """The record keys of all rows that are needed, if they are known."""
        ...

    def row_groups(
        self, reader: BaseFileReader, partition_path: str, numbers: Sequence[int], is_merged: bool
    ) -> Sequence[int]:
        """Return those of the row groups of a base file that may have rows that are needed."""
        ...


class Changes(Protocol):
    """Receives what log files change in a base file: rows as they are read, with record keys."""

    def removed(self, rows: pa.Table) -> None:
        """Take rows of the base file that are replaced or deleted; all of them come first."""
        ...

    def added(self, rows: pa.Table) -> None:
        """Take new rows, and those that replace others."""
        ...


@dataclass(frozen=True)
class FileSliceReader:
    """Reads slices of one table as of one timeline.

    `schema` has all columns of the table, meta columns first, which may be missing where files are
    without them; `virtual_keys` then makes record keys. `delete_marker` is a column and its value
    that makes a row of a log file a delete.

    Rows of other commits than `only_commits` in a base file, or in Parquet blocks, do not even
    compete with theirs, as in Hudi's incremental queries. Records of `held_bytes` of a slice's log
    files are held in memory. Of larger ones only compared columns are held, unless merging needs
    complete rows.

    A reader that `remembers` keeps the outcome of each merge for later queries of this process.
    `history` says under which names files have the columns.
    """

    view: FileSystemView
    schema: pa.Schema
    merger: AnyMerger
    ordering_fields: tuple[str, ...]
    delete_marker: DeleteMarker | None
    virtual_keys: MadeColumn | None = None
    only_commits: tuple[str, ...] | None = None
    held_bytes: int = HELD_BYTES
    remembers: bool = False
    history: ColumnHistory = ALL_AS_NOW

    @classmethod
    def of(
        cls,
        view: FileSystemView,
        properties: TableProperties,
        schema: pa.Schema,
        merge_hook: str | Callable[..., object] | None = None,
        remembers: bool = False,
        history: ColumnHistory = ALL_AS_NOW,
    ) -> FileSliceReader:
        """Return the reader of a table with these properties; see `merger_of` for the hook."""
        merges = properties.table_type is TableType.MERGE_ON_READ
        by_event_time = properties.merge_mode is MergeMode.EVENT_TIME_ORDERING
        return cls(
            view,
            schema,
            merger_of(properties, merge_hook) if merges else Merger(properties.merge_mode),
            properties.ordering_fields if by_event_time else (),
            properties.delete_marker,
            virtual_keys(properties, schema),
            remembers=remembers,
            history=history,
        )

    def read(
        self,
        slice_: FileSlice,
        columns: Sequence[str],
        counts: MergeCounts | None = None,
        keep_dictionaries: bool = False,
        changes: Changes | None = None,
        pruner: RowPruner | None = None,
        part: tuple[int, int] = WHOLE,
        lacking: list[pa.Array] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of a slice with these columns, piece by piece.

        As in Hudi's own readers, the records of the log files are combined first, and their outcome
        is merged over the base file. `counts` is filled in, and `lacking` gets the record keys of
        rows that are left out as `PartialMerge.complete_rows` says.

        `keep_dictionaries` is for string columns of the base file, see `BaseFileReader`. Rows that
        `pruner` rules out may come nevertheless. `part` is a number and a count of parts of a base
        file without log files; the reader of the first part compares the file's checksum. Without
        columns rows are only counted: of such a file its footer is read, and no checksum compared.
        """
        is_alone = counts is None and changes is None and lacking is None
        counts = counts or MergeCounts()
        with naming_remedies(self.view.storage, self.view.timeline):
            logs = self.open_logs(slice_)
            keeps = self.remembers and is_alone and self.outcome_key(slice_, logs) is not None
            if keeps and (pruner is None or pruner.keys is None):
                yield from self._remembered(slice_, logs, columns, keep_dictionaries, pruner)
                return
            # Which rows lack columns must not depend on the requested columns.
            whole = columns if lacking is None else self.schema.names
            fetched = whole if logs.are_partial else columns
            is_late = self._is_late(slice_, logs)
            places = Places() if is_late else None
            logged = self.logged(slice_, logs, () if is_late else fetched, counts, pruner, places)
            if logged is None:
                if not columns and slice_.base is not None:
                    slice_ = replace(slice_, base=replace(slice_.base, checksum=None))
                with self._base(slice_, keep_dictionaries, pruner, part) as base:
                    yield from base.pieces(columns)
                return
            assert part == WHOLE, slice_
            merge = logged[0].over(logged[1])
            with self._base(slice_, keep_dictionaries, pruner) as base:
                keys = logged[1].rows.column(RECORD_KEY)
                for rows, keep in self._merged(base, merge, keys, fetched):
                    if changes is not None:
                        changes.removed(rows.filter(pa.array(~keep)))
                    yield rows.filter(pa.array(keep)).select(columns)
            for new in self._added(slice_, logs, columns, merge, places, lacking):
                if changes is not None:
                    changes.added(new)
                yield new.select(columns)
            counts.updates, counts.deletes = merge.num_updates, merge.num_deletes

    def _remembered(
        self,
        slice_: FileSlice,
        logs: OpenLogs,
        columns: Sequence[str],
        keep_dictionaries: bool,
        pruner: RowPruner | None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of a slice by the outcome of its merge, which is found if it is not known.

        What `pruner` rules out by statistics is left out once it is known which rows it hides.
        """
        known = self.outcome(slice_, logs, columns, pruner)
        if known is not None and not columns:
            yield without_columns(known[0].num_live)
            return
        pruned = None if known is None else pruner
        with self._base(slice_, keep_dictionaries, pruned, is_merged=False) as base:
            outcome, logged = known or self.outcome_by_keys(slice_, logs, columns, base, pruner)
            if not columns:
                yield without_columns(outcome.num_live)
                return
            shown = base if known is not None else self._pruned(base, slice_, pruner, False)
            yield from shown.staying(columns, outcome.staying())
        yield from logged

    def _added(
        self,
        slice_: FileSlice,
        logs: OpenLogs,
        columns: Sequence[str],
        merge: AnyMerge,
        places: Places | None,
        lacking: list[pa.Array] | None,
    ) -> Iterator[pa.Table]:
        """The rows that come from log files, once those of the base file are merged.

        `places` are those of records with compared columns only.
        """
        if lacking is not None and isinstance(merge, PartialMerge):
            return iter([merge.complete_rows(lacking)])
        rows = merge.new_rows()
        if places is None:
            return iter([rows])
        return self.rows_at(slice_, logs, places.of(rows), columns)

    def rows_at(
        self,
        slice_: FileSlice,
        logs: OpenLogs,
        places: Positions,
        columns: Sequence[str],
        pruner: RowPruner | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows at some places of log files, without blocks that `pruner` rules out."""
        if not columns:
            return iter([without_columns(sum(map(len, places.values())))])
        schema = pa.schema(map(self.schema.field, columns))
        reader = LogReader(
            self.view, schema, (), None, held_bytes=self.held_bytes, history=self.history
        )
        skipped = set[BlockId]()
        columns_of = self._columns_of(slice_, columns, (), pruner, skipped)
        return rows_at(reader.records(logs, places, columns_of), places, skipped)

    def _columns_of(
        self,
        slice_: FileSlice,
        columns: Sequence[str],
        others: Sequence[str],
        pruner: RowPruner | None,
        ruled_out: set[BlockId],
    ) -> ColumnsOf | None:
        """Which columns to read of each block: `others` of those that `pruner` rules out.

        These are added to `ruled_out`.
        """
        if pruner is None:
            return None

        def columns_of(place: BlockPlace, block: LogBlock) -> Sequence[str]:
            if self._may_match(place, block, pruner, slice_.group.partition_path):
                return columns
            ruled_out.add((place.log.path, place.number))
            return others

        return columns_of

    def _may_match(
        self, place: BlockPlace, block: LogBlock, pruner: RowPruner, partition_path: str
    ) -> bool:
        """Whether a block may have rows that are needed, by the statistics of its Parquet file.

        Others hide rows nevertheless, whatever they are.
        """
        if place.block_type is not BlockType.PARQUET_DATA:
            return True
        reader = BaseFileReader(
            pa.BufferReader(pa.py_buffer(block.content)),
            self._keyed,
            place.log.path,
            trusted=self.view.vouches_for(place.time, place.log.path),
            made=self.virtual_keys,
            renaming=self.history.renaming(place.time),
        )
        numbers = range(reader.num_row_groups)
        return bool(pruner.row_groups(reader, partition_path, numbers, is_merged=False))

    def outcome_key(self, slice_: FileSlice, logs: OpenLogs) -> Hashable | None:
        """Return what the outcome of a slice's merge depends on; None if it is not kept.

        Rows of commits that do not count are no rows of the slice, and mergers of complete rows
        make rows that are in no file.
        """
        is_plain = isinstance(self.merger, Merger) and not logs.are_partial
        if not is_plain or self.only_commits is not None or not logs.places:
            return None
        types = tuple((field.name, str(field.type)) for field in self.compared)
        rule = self.merger, self.ordering_fields, self.delete_marker, types, self.history.version
        return slice_.base, logs.places, rule

    def outcome(
        self,
        slice_: FileSlice,
        logs: OpenLogs,
        columns: Sequence[str] = (),
        pruner: RowPruner | None = None,
    ) -> tuple[MergeOutcome, Iterator[pa.Table]] | None:
        """Return the outcome of a slice's merge, and its rows from log files, if that is cheap.

        It is if it is known, or log blocks say which rows of the base file they replace: that
        depends on the files alone, so all processes agree. Rows that `pruner` rules out may lack.
        """
        key, base = self.outcome_key(slice_, logs), slice_.base
        if key is None or not isinstance(self.merger, Merger):
            return None
        outcomes = merge_outcomes(self.view.storage)
        known = outcomes.get(key)
        if known is not None:
            return known, self.rows_at(slice_, logs, known.records, columns, pruner)
        if base is None or any(p.positions_base != base.name.instant_time for p in logs.places):
            return None
        compared = pa.schema([f for f in self.compared if f.name != RECORD_KEY])
        is_late, places = self._is_late(slice_, logs), Places()
        fewest = compared.names or self.schema.names[:1]
        names = {*fewest, *(() if is_late else columns)}
        schema = pa.schema([field for field in self.schema if field.name in names])
        reader = replace(self._log_reader(()), schema=schema, virtual_keys=None)
        columns_of = self._columns_of(slice_, schema.names, fewest, pruner, places.hidden)
        blocks = reader.records(logs, columns_of=None if is_late else columns_of)
        with self.view.storage.open_input(base.path) as source:
            renaming = self.history.renaming(base.name.instant_time)
            stored = BaseFileReader(
                source, self.schema, base.path, trusted=base.trusted, renaming=renaming
            )
            found = outcome_by_positions(
                blocks, places, self.merger, self.ordering_fields, compared, stored
            )
        if found is None:
            return None
        outcomes.put(key, found[0])
        if is_late:
            return found[0], self.rows_at(slice_, logs, found[0].records, columns, pruner)
        return found[0], iter([places.shown(found[1]).select(columns)])

    def outcome_by_keys(
        self,
        slice_: FileSlice,
        logs: OpenLogs,
        columns: Sequence[str],
        base: BaseRows,
        pruner: RowPruner | None = None,
    ) -> tuple[MergeOutcome, Iterator[pa.Table]]:
        """Return what `outcome` does, by the record keys of the base file; it is remembered."""
        places, is_late = Places(), self._is_late(slice_, logs)
        fetched = () if is_late else columns
        logged = self.logged(slice_, logs, fetched, MergeCounts(), pruner, places)
        assert logged is not None, slice_
        stays, rows = self.keyed(logged[1]).over(base)
        outcome = MergeOutcome.of(stays, places.of(rows))
        merge_outcomes(self.view.storage).put(self.outcome_key(slice_, logs), outcome)
        if is_late:
            return outcome, self.rows_at(slice_, logs, outcome.records, columns, pruner)
        return outcome, iter([places.shown(rows).select(columns)])

    def keyed(self, records: RecordSet) -> KeyedRecords:
        """Return records of log files, one of each key, which are merged into a base file."""
        assert isinstance(self.merger, Merger)
        return KeyedRecords(records, self.merger, self.ordering_fields, self.compared)

    def logged(
        self,
        slice_: FileSlice,
        logs: OpenLogs,
        columns: Sequence[str],
        counts: MergeCounts,
        pruner: RowPruner | None = None,
        places: Places | None = None,
    ) -> tuple[AnyMerger, RecordSet] | None:
        """Return the newest record of each key in the log files, with their merger, if any.

        They have `columns`, and `places` marks them; then blocks that `pruner` rules out are
        hidden, and their records have compared columns only.
        """
        parts: list[RecordSet] = []
        held, limit = 0, _HELD_RECORDS
        columns_of = None
        if places is not None and columns:
            names, fewest = self.needed(columns), self.needed(())
            columns_of = self._columns_of(slice_, names, fewest, pruner, places.hidden)
        for block in self._log_reader(columns).records(logs, columns_of=columns_of):
            part = block.records if places is None else places.marked(block)
            counts.log_blocks += 1
            counts.log_records += part.num_rows
            keys = None if pruner is None else pruner.keys
            parts.append(part if keys is None else keys.among(part))
            held += parts[-1].num_rows
            if held > limit and self._folds(parts):
                parts = [self.merger.combine(RecordSet.concat(parts))]
                held = parts[0].num_rows
                limit = max(limit, 2 * held)
        if not parts:
            return None
        records, merger = RecordSet.concat(parts), self.merger
        if records.lacking is not None:
            merger = self._partial_merger(slice_)
        combined = merger.combine(records)
        counts.merged_records = combined.num_rows
        return merger, combined

    def positions(self, slice_: FileSlice, keys: pa.ChunkedArray) -> Numbers:
        """Return where keys are in a slice's base file; see `BaseRows.positions`."""
        base = None if slice_.base is None else replace(slice_.base, checksum=None)
        with self._base(replace(slice_, base=base), keep_dictionaries=False, pruner=None) as rows:
            return rows.positions(keys)

    def open_logs(self, slice_: FileSlice) -> OpenLogs:
        """Return the blocks of a slice's log files that count."""
        return self._log_reader(()).open(slice_.logs)

    def blocks(self, logs: OpenLogs, columns: Sequence[str] = ()) -> Iterator[BlockRecords]:
        """Yield the records of opened log files, block by block, with the compared columns."""
        return self._log_reader(columns).records(logs)

    def _log_reader(self, columns: Sequence[str]) -> LogReader:
        return LogReader(
            self.view,
            pa.schema(map(self._keyed.field, self.needed(columns))),
            self.ordering_fields,
            self.delete_marker,
            self.virtual_keys,
            self.held_bytes,
            self.only_commits,
            self.history,
        )

    def _is_late(self, slice_: FileSlice, logs: OpenLogs) -> bool:
        """Whether there may be no room for other columns of the records than compared ones."""
        is_plain = isinstance(self.merger, Merger) and not logs.are_partial
        return is_plain and sum(log.size for log in slice_.logs) > self.held_bytes

    def stored(self, rows: pa.Table, is_complete: bool) -> RecordSet:
        """Rows of a base file as records, complete ones or the compared columns."""
        compared = rows if is_complete else conform(rows, self.compared)
        return RecordSet.of_rows(compared, self.ordering_fields)

    def _folds(self, parts: Sequence[RecordSet]) -> bool:
        """Whether the first records may be combined before the others are known.

        A delete among them may have hidden what came before it, which combining forgets.
        """
        if not isinstance(self.merger, Merger):
            return False
        return not any(part.deleted.any() or part.lacking is not None for part in parts)

    def _partial_merger(self, slice_: FileSlice) -> PartialMerger:
        if isinstance(self.merger, Merger):
            return PartialMerger(self.merger)
        raise UnsupportedTableError(
            f"{slice_.logs[0].path} or another log file of file group {slice_.group} has rows with "
            "some of the columns only, and the merge rule needs all of them; compact the "
            "table with the engine that wrote it"
        )

    def needed(self, columns: Sequence[str]) -> list[str]:
        """Columns to read in order to return some: they, and those that are compared."""
        needed = {*columns, *self.compared.names}
        return [name for name in self._keyed.names if name in needed]

    @cached_property
    def compared(self) -> pa.Schema:
        """Columns (pyarrow.Schema) that decide which rows stay."""
        names = self.schema.names
        if self.merger.needs_complete_rows:
            return self._keyed
        fields = {p if p in names else p.partition(".")[0] for p in self.ordering_fields}
        return pa.schema([f for f in self._keyed if f.name in fields or f.name == RECORD_KEY])

    @cached_property
    def _keyed(self) -> pa.Schema:
        """All columns, and the record key of a table whose readers do not see it."""
        lacks_key = self.virtual_keys is not None and RECORD_KEY not in self.schema.names
        return self.schema.append(KEY_FIELD) if lacks_key else self.schema

    def _merged(
        self, base: BaseRows, merge: AnyMerge, keys: pa.ChunkedArray, columns: Sequence[str]
    ) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield stored rows piece by piece, and which stay; those merged in have `keys`.

        Compared columns are read before the others, in large pieces: each one that is merged into
        needs a hash table of all new keys.
        """

        def stays(rows: pa.Table) -> Mask:
            return merge.keep(self.stored(rows, isinstance(merge, PartialMerge)))

        if self.merger.needs_complete_rows or isinstance(merge, PartialMerge):
            yield from base.merged(columns, self.needed(columns), keys, stays)
            return
        ahead = base.stays(self.compared.names, keys, stays)
        if not columns:
            yield from ((without_columns(len(keep)), keep) for keep in ahead)
            return
        keep = np.zeros(0, dtype=np.bool_)
        for rows in base.pieces(columns):
            while len(keep) < rows.num_rows:
                keep = np.concatenate([keep, next(ahead)])
            yield rows, keep[: rows.num_rows]
            keep = keep[rows.num_rows :]

    def _may_count(self, reader: BaseFileReader, row_group: int) -> bool:
        """Whether a row group of a base file may have rows of commits that count."""
        times = In((COMMIT_TIME,), pa.array(self.only_commits, pa.string()))
        written = reader.bounds(row_group, self.schema.field(COMMIT_TIME))
        return may_match(times, {COMMIT_TIME: written}.get)

    @contextmanager
    def _base(
        self,
        slice_: FileSlice,
        keep_dictionaries: bool,
        pruner: RowPruner | None,
        part: tuple[int, int] = WHOLE,
        is_merged: bool | None = None,
    ) -> Iterator[BaseRows]:
        """The base file; `is_merged` says whether other rows may come in place of its own."""
        base, is_merged = slice_.base, bool(slice_.logs) if is_merged is None else is_merged
        if base is None:
            yield BaseRows(None, None, None)
            return
        number, parts = part
        if number:
            base = replace(base, checksum=None)
        with open_footer(self.view.storage, base) as (source, check):
            reader = BaseFileReader(
                source,
                self._keyed,
                base.path,
                keep_dictionaries,
                base.trusted,
                self.virtual_keys,
                self.history.renaming(base.name.instant_time),
            )
            count = reader.num_row_groups
            numbers: Sequence[int] = [n for n in range(count) if n * parts // count == number]
            if self.only_commits is not None:
                numbers = [n for n in numbers if self._may_count(reader, n)]
            all_rows = BaseRows(reader, numbers, self.only_commits)
            rows = self._pruned(all_rows, slice_, pruner, is_merged)
            if rows.row_groups or parts > 1:  # the readers of other parts compare nothing
                check()
            yield rows

    def _pruned(
        self, base: BaseRows, slice_: FileSlice, pruner: RowPruner | None, is_merged: bool
    ) -> BaseRows:
        """The rows of a base file without row groups that `pruner` rules out."""
        if pruner is None or base.reader is None or base.row_groups is None:
            return base
        partition = slice_.group.partition_path
        numbers = pruner.row_groups(base.reader, partition, base.row_groups, is_merged)
        return replace(base, row_groups=numbers)
