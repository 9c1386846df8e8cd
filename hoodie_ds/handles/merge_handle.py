"""Rewrites a base file with new records merged in (copy-on-write)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.parquet.bloom_filter import BloomParams, KeptFilter
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.handles.change_log import open_change_log
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.data_file import open_data_file
from hoodie_ds.handles.stamp import fill_file_name, fill_meta_columns
from hoodie_ds.record.merge.hook_merger import AnyMerge, AnyMerger
from hoodie_ds.record.merge.merger import Merge, RecordSet
from hoodie_ds.table.checksums import open_base_file
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.paths import in_partition


def merge_base_file(
    context: WriteContext,
    base: BaseFile,
    records: RecordSet,
    merger: AnyMerger,
    ordering_fields: tuple[str, ...],
    whole: Callable[[pa.Table], Iterable[pa.Table]],
    inserts: Iterable[pa.Table] | None = None,
) -> WriteStatus | None:
    """Write the next version of a base file; None if no record changes it.

    This is Hudi's ``HoodieMergeHandle``. Unchanged rows keep their ``_hoodie_commit_time`` and
    ``_hoodie_commit_seqno``. `records` has one record per key with at least the columns that
    `merger` compares, and `whole` returns their complete rows (user columns and
    ``_hoodie_record_key``). `ordering_fields` are paths in a stored row. `inserts` are complete
    rows of keys that the file lacks.
    """
    with open_base_file(context.storage, base) as source:
        stored = BaseFileReader(
            source,
            context.schema,
            base.path,
            True,
            base.trusted,
            context.virtual_keys,
            context.history.renaming(base.name.instant_time),
        )
        compared = stored.read(_compared(context.schema, ordering_fields))
        merge = merger.over(records)
        if merger.needs_complete_rows:
            keep = _keep_piecewise(stored, merge)
        else:
            keep = merge.keep(RecordSet.of_rows(compared, ordering_fields))
        if merge.changes_nothing and inserts is None:
            return None
        old = _stored_rows(stored, compared, keep, context.kept_columns)
        merged = merge.new_rows()
        num_others = int(keep.sum()) + merged.num_rows
        keys = [merge.inserted_keys] if isinstance(merge, Merge) else []
        new = chain(whole(merged), _noting_keys(inserts or (), keys))
        kept = None
        if context.bloom and base.checksum and not merge.num_inserts and inserts is None:
            kept = stored.kept_filter(context.bloom)  # every key is in it
        written = _write(context, base, stored.dictionaries, kept or context.bloom, old, new)
    if context.new_keys is not None and isinstance(merge, Merge):  # a hook does not tell
        group = FileGroupId(base.partition_path, base.name.file_id)
        context.new_keys.add(written.stat.path, group, keys, merge.deleted_keys)
    counts = replace(
        written.stat,
        num_inserts=merge.num_inserts + written.stat.num_writes - num_others,
        num_update_writes=merge.num_updates,
        num_deletes=merge.num_deletes,
    )
    return replace(written, stat=counts)


def _noting_keys(pieces: Iterable[pa.Table], keys: list[pa.Array]) -> Iterator[pa.Table]:
    """Pass rows on, and add their record keys to a list."""
    for rows in pieces:
        keys += rows.column(RECORD_KEY).chunks
        yield rows


def _write(
    context: WriteContext,
    base: BaseFile,
    dictionaries: Collection[str],
    bloom: BloomParams | KeptFilter | None,
    old: Iterable[tuple[pa.Table, Mask]],
    new: Iterable[pa.Table],
) -> WriteStatus:
    """Write the next version of a base file from unchanged stored rows and new ones."""
    name = str(BaseFileName(base.name.file_id, context.write_token, context.instant_time))
    path = in_partition(base.partition_path, name)
    with (
        open_change_log(context, base.partition_path, base.name.file_id) as changes,
        open_data_file(context, path, "MERGE") as output,
    ):
        ranges = context.new_ranges()
        writer = BaseFileWriter(
            output.file,
            context.schema,
            context.avro_schema,
            context.codec,
            context.row_group_bytes,
            dictionaries,
            bloom,
            has_keys=context.has_keys,
            ranges=ranges,
        )
        for rows, keep in old:
            if changes is not None:
                changes.removed(rows.filter(pa.array(~keep)))
            rows = rows if keep.all() else rows.filter(pa.array(keep))
            writer.write(fill_file_name(context, rows, name))
        for rows in new:
            if changes is not None:
                changes.added(rows)
            writer.write(fill_meta_columns(context, rows, base.partition_path, name))
        writer.flush()
        output.begin_footer()
        num_rows = writer.close()
    stat = WriteStat(
        file_id=base.name.file_id,
        path=path,
        partition_path=base.partition_path,
        prev_commit=base.name.instant_time,
        num_writes=num_rows,
        total_write_bytes=output.size,
        file_size_bytes=output.size,
        change_files=() if changes is None else changes.stat,
    )
    checksums = () if changes is None else changes.checksums
    found = {} if ranges is None else ranges.found
    return WriteStatus(stat, output.checksum, checksums, output.footer, found)


def _keep_piecewise(stored: BaseFileReader, merge: AnyMerge) -> Mask:
    """Merge into complete stored rows, one piece in memory at a time."""
    pieces = (conform(rows, stored.schema) for rows in stored.pieces())
    none = np.zeros(0, dtype=np.bool_)
    return np.concatenate([none, *(merge.keep(RecordSet.of_rows(rows, ())) for rows in pieces)])


def _compared(schema: pa.Schema, ordering_fields: tuple[str, ...]) -> list[str]:
    """Columns that decide which rows stay; they are read first, and once."""
    ordering = {p if p in schema.names else p.partition(".")[0] for p in ordering_fields}
    return [name for name in schema.names if name == RECORD_KEY or name in ordering]


def _stored_rows(
    stored: BaseFileReader, compared: pa.Table, keep: Mask, columns: list[str]
) -> Iterator[tuple[pa.Table, Mask]]:
    """Stored rows in pieces, with the columns that are read already, and which rows stay."""
    others = [name for name in columns if name not in compared.column_names]
    start = 0
    for rows in stored.pieces(others):
        for name in compared.column_names:
            column = compared.column(name).slice(start, rows.num_rows)
            rows = rows.append_column(name, column)
        yield rows, keep[start : start + rows.num_rows]
        start += rows.num_rows
