"""Functions that the executors of plans share: the write context, and deletion of unused files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.config.enums import LogBlockFormat
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import written_by
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import (
    avro_schema,
    column_history,
    planned_columns,
    table_schema,
    virtual_keys,
)
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant_status import counts
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.temporary_files import delete_temporary

_ROW_GROUP_SHARE: Final = 8
"""Part of a task's memory that one row group may take, as in writes."""


def rewrite_context(
    context: ServiceContext, table: Table, timeline: Timeline, time: str, number: int
) -> WriteContext:
    """Return what the handles share that write one part of a plan; each try has its own.

    New file groups are named after the number of the part.
    """
    options, properties = context.options, table.properties
    timeline = planned_columns(table, timeline, time)
    columns = table_schema(table, timeline)
    assert columns is not None, time  # the slices were committed with one
    schema = with_meta_columns(columns)
    return WriteContext(
        storage=table.storage,
        instant_time=time,
        task_partition=number,
        batch_attempt=context.ids.unique(),  # a part may be rewritten more than once
        task_attempt=str(number),
        schema=schema,
        avro_schema=avro_schema(table, timeline, schema),
        codec=options.parquet_codec.value,
        row_group_bytes=min(
            options.parquet_block_bytes, options.task_max_bytes // _ROW_GROUP_SHARE
        ),
        log_block_bytes=options.log_block_max_bytes,
        log_block_format=LogBlockFormat.PARQUET,
        has_keys=bool(properties.record_key_fields) and properties.populate_meta_fields,
        virtual_keys=virtual_keys(properties, schema),
        logging=properties.supplemental_logging,
        history=column_history(table, timeline),
    )


def take_back_if_late(table: Table, time: str, paths: Iterable[str]) -> None:
    """Delete files written after the instant of a plan had ended: nothing else would find them.

    Files that the commit names stay.
    """
    storage = table.storage
    timeline = table.load_timeline()
    ended = timeline.commit_at(time)
    # The commit of an archived one is not read, so its files are not known here.
    archived = ended is None and counts(storage, timeline, time)
    if timeline.is_pending(time) or archived:
        return
    named = frozenset[str]() if ended is None else file_changes(storage, ended).named
    for path in sorted(set(paths) - named):
        storage.delete(path)
    delete_temporary(storage, time)


def delete_uncounted(
    storage: Storage, time: str, found: Iterable[str], counted: Iterable[str]
) -> None:
    """Delete base files of a plan that are not to be committed, and their change data.

    Engines that list folders would read them too. Another engine may keep its markers where they
    are not found.
    """
    for path in sorted(set(found) - set(counted)):
        if written_by(path.rpartition("/")[2]) == time:
            storage.delete(path)
