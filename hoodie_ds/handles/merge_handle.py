"""Rewrites a base file with new records merged in (copy-on-write)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie_ds.formats.base_file import BaseFileWriter, read_base_file
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.data_file import open_data_file
from hoodie_ds.handles.stamp import constant, stamp
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merger import Merger, RecordSet
from hoodie_ds.record.meta_columns import FILE_NAME
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile
from hoodie_ds.timeline.commit_metadata import WriteStat
from hoodie_ds.timeline.paths import in_partition


def merge_base_file(
    context: WriteContext,
    base: BaseFile,
    records: RecordSet,
    merger: Merger,
    ordering_fields: tuple[str, ...],
) -> WriteStatus | None:
    """Write the next version of a base file (Hudi's ``HoodieMergeHandle``).

    Rows that stay keep their ``_hoodie_commit_time`` and ``_hoodie_commit_seqno``.

    Parameters
    ----------
    context : WriteContext
        Task and instant.
    base : BaseFile
        The file group's latest base file.
    records : RecordSet
        New records, one per key: user columns and ``_hoodie_record_key``.
    merger : Merger
        Decides between stored row and new record.
    ordering_fields : tuple of str
        Paths of the ordering fields in a stored row.

    Returns
    -------
    WriteStatus or None
        None if no record changes the file; it then stays the latest version.
    """
    with context.storage.open_input(base.path) as source:
        stored = read_base_file(source, context.schema, None, name=base.path)
    old = RecordSet(
        stored,
        np.zeros(stored.num_rows, dtype=np.bool_),
        tuple(resolve(stored, path) for path in ordering_fields),
    )
    merge = merger.merge(old, records)
    if merge.changes_nothing:
        return None
    name = str(BaseFileName(base.name.file_id, context.write_token, context.instant_time))
    path = in_partition(base.partition_path, name)
    kept = stored if merge.keep_old.all() else stored.filter(pa.array(merge.keep_old))
    with open_data_file(context, path, "MERGE") as output:
        writer = BaseFileWriter(
            output.file,
            context.schema,
            context.avro_schema,
            context.codec,
            context.row_group_bytes,
        )
        at = kept.column_names.index(FILE_NAME)
        writer.write(kept.set_column(at, FILE_NAME, constant(name, kept.num_rows)))
        if merge.take_new.any():
            changed = records.rows.filter(pa.array(merge.take_new))
            writer.write(stamp(context, changed, base.partition_path, name))
        footer = writer.close()
    stat = WriteStat(
        file_id=base.name.file_id,
        path=path,
        partition_path=base.partition_path,
        prev_commit=base.name.instant_time,
        num_writes=footer.num_rows,
        num_inserts=merge.num_inserts,
        num_update_writes=merge.num_updates,
        num_deletes=merge.num_deletes,
        total_write_bytes=output.size,
        file_size_bytes=output.size,
    )
    return WriteStatus(stat, output.checksum)
