"""A table at a glance: properties, sizes, and remarks on what its owner should look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.html_table import html_table
from hoodie_ds.config.enums import TableType
from hoodie_ds.config.properties.table_properties import expression_indexes, is_kept
from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.hints import exactly, lost_partition
from hoodie_ds.inspection.damaged_instants import empty_instants
from hoodie_ds.inspection.files import PartitionRow, TableFiles, table_files
from hoodie_ds.inspection.listing import plain
from hoodie_ds.inspection.pending_instants import LOST, pending_rows
from hoodie_ds.services.compaction.planner import holding_back
from hoodie_ds.table.metadata_table import command_to_drop, not_kept
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import column_history, declared_schema
from hoodie_ds.timeline.timeline import Timeline

_LOG_RATIO: Final = 1.0
_OLDER_RATIO: Final = 10


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name and Arrow type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TableOverview:
    """A table at a glance.

    Parameters
    ----------
    path : str
        Base path.
    name, table_type : str
        From its properties.
    version : int
        Table version.
    record_keys, partition_fields, ordering_fields : tuple of str
        Fields of its properties.
    merge_mode : str
        Which row of a key wins.
    index : str
        Index that it records; empty if none.
    num_buckets : int or None
        Buckets of a partition, if it records them.
    columns : tuple of Column
        The user's columns; none in a table without a commit.
    commits : int
        Completed writes of the active timeline.
    latest : str
        The newest of them; empty if there is none.
    pending : int
        Instants that have not completed.
    savepoints : tuple of str
        Their times.
    num_partitions : int
        Partitions with files.
    files : PartitionRow
        Sums over all of them.
    remarks : tuple of str
        What its owner should look at; empty if there is nothing.
    properties : mapping of str to str
        All of its properties.
    """

    path: str
    name: str
    table_type: str
    version: int
    record_keys: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    merge_mode: str
    index: str
    num_buckets: int | None
    columns: tuple[Column, ...]
    commits: int
    latest: str
    pending: int
    savepoints: tuple[str, ...]
    num_partitions: int
    files: PartitionRow
    remarks: tuple[str, ...]
    properties: Mapping[str, str]

    def _repr_html_(self) -> str:
        values = plain(self) | {"columns": [f"{one.name} {one.type}" for one in self.columns]}
        values |= values.pop("files") | {"partition": None}  # of all partitions
        rows = [
            {"what": name, "value": one} for name, one in values.items() if one not in (None, [])
        ]
        return html_table(self.path, rows, len(rows))


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """Return the columns of a schema."""
    return tuple(Column(field.name, str(field.type)) for field in schema)


def table_overview(
    table: Table, timeline: Timeline, files: TableFiles | None = None
) -> TableOverview:
    """Return a table at a glance, by one listing of its files unless they are given.

    Files and columns that a damaged commit hides are left out, with a remark that says why.
    """
    properties, hidden = table.properties, dict[str, list[str]]()
    try:
        files = files or table_files(table, timeline)
    except CorruptFileError as error:
        files = TableFiles((), {})
        hidden[str(error)] = ["files"]
    schema = None
    try:
        schema = declared_schema(table, timeline)
    except CorruptFileError as error:
        hidden.setdefault(str(error), []).append("columns")
    unread = [f"its {' and '.join(what)} are not shown: {why}" for why, what in hidden.items()]
    newest = next(timeline.commits_backwards(), None)
    return TableOverview(
        table.storage.root,
        properties.name,
        properties.table_type.value,
        properties.version,
        properties.record_key_fields,
        properties.partition_fields,
        properties.ordering_fields,
        properties.merge_mode.value,
        properties.index_type.value if properties.index_type else "",
        properties.num_buckets,
        columns_of(schema or pa.schema([])),
        sum(1 for _ in timeline.commits_backwards()),
        newest.time if newest else "",
        len(timeline.pending),
        tuple(instant.time for instant in timeline.savepoints),
        len(files.partitions),
        files.total,
        (*unread, *_remarks(table, timeline, files)),
        properties.raw,
    )


def _remarks(table: Table, timeline: Timeline, files: TableFiles) -> Iterator[str]:
    total = files.total
    for path in sorted(set(files.lost) - {""}):
        delete = table.command("delete-partition", *exactly(path))
        yield f"all files of partition {path!r} are gone: {lost_partition(delete)}"
    for one in empty_instants(table):
        yield f"{one.where}: {one.message}; {one.remedy}"
    try:
        for row in pending_rows(table, timeline):
            state = row.state if row.state == LOST else "pending"
            yield f"{row.service} {row.time} is {state}: {row.remedy}"
    except CorruptFileError as error:
        yield str(error)
    try:
        with suppress(CorruptFileError):  # the remark about the columns names it
            column_history(table, timeline)
    except UnsupportedTableError as error:
        yield str(error)
    yield from _metadata_remarks(table)
    is_mor = table.properties.table_type is TableType.MERGE_ON_READ
    if is_mor and (total.log_ratio or 0) > _LOG_RATIO:
        merges = f"{table.command('compact')} merges them"
        for write in holding_back(table, timeline):
            merges = f"they can be compacted once {write.action.value} {write.time} has ended"
        yield f"its log files are larger than its base files: {merges}"
    if total.older_bytes > _OLDER_RATIO * (total.base_bytes + total.log_bytes) > 0:
        deletes = f"{table.command('clean')} deletes them"
        yield f"its older files take over 10 times the room of its rows: {deletes}"


def _metadata_remarks(table: Table) -> Iterator[str]:
    try:
        lost = [*not_kept(table)]
    except CorruptFileError as error:
        yield str(error)
        return
    if lost:
        drop = command_to_drop(table, lost)
        yield f"writes cannot keep {', '.join(lost)} of its metadata table: {drop} drops that alone"
        if expressions := expression_indexes(table.properties):
            yield f"writes drop {', '.join(sorted(expressions))} by default"
    elif table.properties.metadata_partitions and not is_kept(table.properties):
        yield "it has a metadata table: writes need hoodie.metadata.enable=false, which drops it"
