"""The changes that a commit made to a file group, as rows of a CDC query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import COMMIT_TIME, RECORD_KEY, without_meta_columns
from hoodie_ds.errors import NotFoundError, SchemaError, TimelineError
from hoodie_ds.formats.log.cdc_block import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    KEY,
    OP,
    TS_MS,
    UPDATE,
    decode_cdc_block,
)
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.formats.renaming import Renaming
from hoodie_ds.formats.schema_conversion import conform_column, of_file
from hoodie_ds.reader.commit_range import moment
from hoodie_ds.reader.json_strings import json_objects
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scan_plan import ScanTask
from hoodie_ds.reader.time_travel import before
from hoodie_ds.table.checksums import check_change_file
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.live_files import naming_remedies
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant

CHANGES: Final = pa.schema([(name, pa.string()) for name in (OP, TS_MS, BEFORE, AFTER)])
"""Columns of a CDC query."""

_NONE: Final = "null"
"""Hudi's value of an image that a commit has logged as missing; others are null."""


@dataclass(frozen=True, slots=True)
class ChangeTask(ScanTask):
    """What a commit did to a file group.

    `slice` is the file group after the commit, or before one that deleted it (`is_gone`); `logged`
    has paths and sizes of the files in which the commit logged the changes.
    """

    instant: Instant
    before: FileSlice | None = None
    logged: tuple[tuple[str, int], ...] = ()
    is_gone: bool = False

    @property
    def is_base_only(self) -> bool:
        """False: changes are no rows of a base file."""
        return False

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return self.slice.size + (0 if self.before is None else self.before.size)


def past(pinned: PinnedTable, instant: Instant, included: bool) -> PinnedTable:
    """Return a table as it was before a commit, or with it, in the columns that it has now."""
    end, own = moment(instant), instant.time

    def is_earlier(other: Instant) -> bool:
        if other.time == own:
            return included
        return moment(other) < end

    return replace(pinned, timeline=before(pinned.timeline, own, is_earlier))


@dataclass(frozen=True, slots=True)
class ChangeExecutor:
    """Computes the changes of tasks; an `Executor`."""

    pinned: PinnedTable

    def read(self, task: ScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the changes of a task.

        Raises `TimelineError` if files have been cleaned that are needed.
        """
        assert isinstance(task, ChangeTask)
        try:
            for found in self._changes(task):
                yield found.select(list(columns))
        except NotFoundError as error:
            raise TimelineError(
                f"{self.pinned.table.storage.root}: the changes of {task.instant.time} are not "
                f"known any more: {error}; begin later, and let the cleaner retain more commits"
            ) from error

    def _changes(self, task: ChangeTask) -> Iterator[pa.Table]:
        time = task.instant.time
        if task.is_gone:
            for rows in self._rows(task.slice, task.instant, included=False):
                yield _table(pa.repeat(DELETE, rows.num_rows), time, _images(rows), None)
        elif task.logged:
            for path, size in task.logged:
                yield from self._logged(task, path, size)
        else:
            yield from self._compared(task)

    def _rows(self, slice_: FileSlice, instant: Instant, included: bool) -> Iterator[pa.Table]:
        pinned = past(self.pinned, instant, included) if slice_.logs else self.pinned
        yield from pinned.reader().read(slice_, self.pinned.schema.names)

    def _compared(self, task: ChangeTask) -> Iterator[pa.Table]:
        """Changes that are not logged, from the rows after and before."""
        time, empty = task.instant.time, self.pinned.schema.empty_table()
        keys, written = [], [empty]
        for rows in self._rows(task.slice, task.instant, included=True):
            keys.append(rows.column(RECORD_KEY))
            written.append(rows.filter(pc.equal(rows.column(COMMIT_TIME), time)))
        new, there = pa.concat_tables(written), _values(keys)
        needed = [empty]
        if task.before is not None:
            own, keys = _values([new.column(RECORD_KEY)]), []
            for rows in self._rows(task.before, task.instant, included=False):
                key = rows.column(RECORD_KEY)
                keys.append(key)
                counts = pc.or_(pc.is_in(key, own), pc.invert(pc.is_in(key, there)))
                needed.append(rows.filter(counts))
            was_there = pa.concat_arrays([own, _values(keys)])
            new = pa.concat_tables([new, *self._back(task, there, was_there)])
        old = pa.concat_tables(needed)
        was = _found(old, new.column(RECORD_KEY))
        ops = pc.if_else(was.column(RECORD_KEY).is_valid(), UPDATE, INSERT)
        yield _table(ops, time, _images(was), _images(new))
        gone = old.filter(pc.invert(pc.is_in(old.column(RECORD_KEY), there)))
        yield _table(pa.repeat(DELETE, gone.num_rows), time, _images(gone), None)

    def _back(self, task: ChangeTask, there: pa.Array, was_there: pa.Array) -> Iterator[pa.Table]:
        """Rows of earlier commits that a commit has brought back.

        An older row after a delete without an ordering value loses against the stored one, which
        the delete had hidden.
        """
        keys = there.filter(pc.invert(pc.is_in(there, was_there)))
        if len(keys):
            for rows in self._rows(task.slice, task.instant, included=True):
                yield rows.filter(pc.is_in(rows.column(RECORD_KEY), keys))

    def _logged(self, task: ChangeTask, path: str, size: int) -> Iterator[pa.Table]:
        """Changes that the commit has logged, with the images that it has not."""
        storage = self.pinned.table.storage
        known = file_changes(storage, task.instant).checksums.get(path)
        data = storage.read(path)
        with naming_remedies(storage, self.pinned.timeline):
            check_change_file(path, data, size, known if self.pinned.verify else None)
            for block in read_blocks(data, path):
                logged = decode_cdc_block(block, path)
                images = {}
                for name, slice_ in ((BEFORE, task.before), (AFTER, task.slice)):
                    if name in logged.column_names:
                        image = json_objects(self._image(logged, name, task), with_nulls=True)
                        images[name] = pc.fill_null(image, _NONE)
                    else:
                        images[name] = self._looked_up(task, slice_, logged.column(KEY))
                yield _table(logged.column(OP), task.instant.time, images[BEFORE], images[AFTER])

    def _image(self, logged: pa.Table, name: str, task: ChangeTask) -> pa.Array:
        """Logged rows as they are, or in the columns of now if those had other names then.

        (Hudi 1.2 looks for the names of now in them.)
        """
        column = logged.column(name)
        renaming = self.pinned.history.renaming(task.instant.time)
        if renaming is not None:
            image = Renaming({name: (name, renaming)}).renamed(logged.select([name])).column(0)
            columns = without_meta_columns(self.pinned.schema)
            try:
                column = conform_column(image, pa.struct(list(columns)), name)
            except SchemaError as error:
                raise of_file(error, f"change data of {task.instant.time}") from error
        return _whole(column)

    def _looked_up(
        self, task: ChangeTask, slice_: FileSlice | None, keys: pa.ChunkedArray
    ) -> pa.Array:
        """Images of the rows of some keys in a base file."""
        found = [self.pinned.schema.empty_table()]
        if slice_ is not None:
            wanted = _values([keys])
            found += [
                rows.filter(pc.is_in(rows.column(RECORD_KEY), wanted))
                for rows in self._rows(slice_, task.instant, included=True)
            ]
        return _images(_found(pa.concat_tables(found), keys))


def _table(
    ops: pa.Array | pa.ChunkedArray, time: str, old: pa.Array | None, new: pa.Array | None
) -> pa.Table:
    nulls = pa.nulls(len(ops), pa.string())
    images = [nulls if image is None else image for image in (old, new)]
    return pa.table([ops, pa.repeat(time, len(ops)), *images], schema=CHANGES)


def _found(rows: pa.Table, keys: pa.ChunkedArray) -> pa.Table:
    """The row of each key, all null where there is none."""
    return rows.take(pc.index_in(keys, _values([rows.column(RECORD_KEY)])))


def _values(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    chunks = [chunk.cast(pa.string()) for column in columns for chunk in column.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _images(rows: pa.Table) -> pa.Array:
    """JSON of rows of files; null for one without a key."""
    texts = json_objects(_whole(rows.to_struct_array()), with_nulls=False)
    is_there = _whole(rows.column(RECORD_KEY)).is_valid()
    return pc.if_else(is_there, texts, pa.scalar(None, pa.string()))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column
