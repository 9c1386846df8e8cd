"""Writes a base file of new or copied rows, without merging."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.handles.context import WriteContext, WriteStatus, new_group
from hoodie_ds.handles.data_file import ensure_partition_metafile, open_data_file
from hoodie_ds.handles.stamp import fill_file_name, fill_meta_columns
from hoodie_ds.table.checksums import open_base_file
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.paths import in_partition


class CreateHandle:
    """A base file that grows until it is closed (Hudi's ``HoodieCreateHandle``).

    `dictionaries` are string columns that `keep` gets as dictionary arrays.
    """

    def __init__(
        self, context: WriteContext, group: FileGroupId, dictionaries: Collection[str] = ()
    ) -> None:
        self._context = context
        self._group = group
        self._name = str(BaseFileName(group.file_id, context.write_token, context.instant_time))
        self._path = in_partition(group.partition_path, self._name)
        self._prev_commit = "null"
        self._num_copied = 0
        self._keys: list[pa.Array] = []
        ensure_partition_metafile(context, group.partition_path)
        self._opened = open_data_file(context, self._path, "CREATE")
        self._output = self._opened.__enter__()
        self._ranges = context.new_ranges()
        self._writer = BaseFileWriter(
            self._output.file,
            context.schema,
            context.avro_schema,
            context.codec,
            context.row_group_bytes,
            dictionaries,
            bloom=context.bloom,
            has_keys=context.has_keys,
            ranges=self._ranges,
        )

    @property
    def bytes_written(self) -> int:
        """Bytes in the file so far; rows of the open row group are not in it yet."""
        return self._output.size

    @property
    def pending_bytes(self) -> int:
        """Arrow bytes of the rows in the open row group."""
        return self._writer.pending_bytes

    def flush(self) -> None:
        """Close the open row group, to free its memory."""
        self._writer.flush()

    def write(self, rows: pa.Table) -> None:
        """Add rows (user columns, and ``_hoodie_record_key`` in a table with keys)."""
        if self._context.new_keys is not None:
            self._keys += rows.column(RECORD_KEY).chunks
        self._writer.write(
            fill_meta_columns(self._context, rows, self._group.partition_path, self._name)
        )

    def keep(self, rows: pa.Table) -> None:
        """Add stored rows of the context's ``kept_columns`` unchanged."""
        self._num_copied += rows.num_rows
        self._writer.write(fill_file_name(self._context, rows, self._name))

    def copy(self, base: BaseFile) -> None:
        """Make the file the next version of a base file by copying all of its rows."""
        schema, renaming = self._context.schema, self._context.history.renaming
        with open_base_file(self._context.storage, base) as source:
            stored = BaseFileReader(
                source,
                schema,
                base.path,
                trusted=base.trusted,
                renaming=renaming(base.name.instant_time),
            )
            for rows in stored.pieces(self._context.kept_columns):
                self.keep(rows)
        self._prev_commit = base.name.instant_time

    def close(self) -> WriteStatus:
        """Finish the file and make it durable."""
        self._writer.flush()
        self._output.begin_footer()
        num_rows = self._writer.close()
        self._opened.__exit__(None, None, None)
        stat = WriteStat(
            file_id=self._group.file_id,
            path=self._path,
            partition_path=self._group.partition_path,
            prev_commit=self._prev_commit,
            num_writes=num_rows,
            num_inserts=num_rows - self._num_copied,
            total_write_bytes=self._output.size,
            file_size_bytes=self._output.size,
        )
        if self._context.new_keys is not None and not self._num_copied:
            self._context.new_keys.add(self._path, self._group, self._keys)
        ranges = {} if self._ranges is None else self._ranges.found
        return WriteStatus(stat, self._output.checksum, (), self._output.footer, ranges)

    def discard(self, cause: BaseException) -> None:
        """Abandon the file; nothing of it stays."""
        self._opened.__exit__(type(cause), cause, cause.__traceback__)


def create_files(
    context: WriteContext,
    partition_path: str,
    pieces: Iterable[pa.Table],
    file_bytes: int,
    add: Callable[[CreateHandle, pa.Table], None] = CreateHandle.write,
) -> list[WriteStatus]:
    """Begin as many file groups as the rows need, each up to a size on storage."""
    statuses: list[WriteStatus] = []
    handle: CreateHandle | None = None
    try:
        for rows in (part for piece in pieces for part in _cut(piece, file_bytes)):
            if handle is None:
                handle = CreateHandle(context, new_group(context, partition_path, len(statuses)))
            add(handle, rows)
            if handle.pending_bytes >= file_bytes:
                handle.flush()  # its size on storage is known only afterwards
            if handle.bytes_written >= file_bytes:
                statuses.append(handle.close())
                handle = None
    except BaseException as error:
        if handle is not None:
            handle.discard(error)
        raise
    return statuses if handle is None else [*statuses, handle.close()]


def _cut(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """Cut rows into parts of about so many Arrow bytes; yields nothing for no rows."""
    step = max(1, rows.num_rows * size // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)
