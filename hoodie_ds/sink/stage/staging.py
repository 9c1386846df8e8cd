"""Rows staged by tasks, for the commit or for later in the same task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import xxhash

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.handles.data_file import HashingOutput
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.checksums import open_checked
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.paths import staged_path

_REMEDY: Final = "run the batch again"


def stage(
    context: WriteContext,
    group: FileGroupId,
    rows: pa.Table,
    sequence: int,
    are_inserts: bool = False,
) -> StagedRows:
    """Write rows where only the commit reads them.

    `sequence` numbers the files of this task. `are_inserts` says that the rows are combined
    already, and their keys new.
    """
    # File ids repeat across partitions; a digest, as partition paths may hold any character.
    partition = xxhash.xxh3_64_hexdigest(group.partition_path.encode())
    kind = "inserts" if are_inserts else "rows"
    name = f"{partition}_{group.file_id}_{context.write_token}_{kind}_{sequence}"
    path = staged_path(context.instant_time, name)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with context.storage.open_output(path) as file, HashingOutput(file) as output:
        with pa.ipc.new_file(output, rows.schema, options=options) as writer:
            writer.write_table(rows)
        checksum = output.checksum
    return StagedRows(group, path, context.task_partition, sequence, are_inserts, checksum)


def rows_of(plan: WritePlan, parts: Sequence[StagedRows | pa.Table]) -> Iterator[pa.Table]:
    """Yield all rows of some parts, piece by piece, unchanged."""
    for part in parts:
        yield from read_part(plan.table.storage, part, None)


def read_part(
    storage: Storage, part: StagedRows | pa.Table, wanted: set[str] | None
) -> Iterator[pa.Table]:
    """Yield the rows of a part, piece by piece; all columns if `wanted` is None."""
    if isinstance(part, pa.Table):
        yield part.select([n for n in part.column_names if wanted is None or n in wanted])
        return
    with open_checked(storage, part.path, part.checksum, _REMEDY) as source:
        with _reading(part):
            file = pa.ipc.open_file(source)
            if wanted is not None:
                fields = [n for n, name in enumerate(file.schema.names) if name in wanted]
                options = pa.ipc.IpcReadOptions(included_fields=fields)
                file = pa.ipc.open_file(source, options=options)
        every = range(file.num_record_batches)
        for number in every if part.batches is None else part.batches:
            with _reading(part):
                rows = pa.Table.from_batches([file.get_batch(number)])
            yield rows


@contextmanager
def _reading(part: StagedRows) -> Iterator[None]:
    """Name the file that cannot be read although its checksum matched."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(
            f"{part.path} cannot be read as it was written ({str(error)[:200]})",
            _REMEDY,
        ) from error
