"""Preparation and checks before a table's version is changed, by Hudi's rules.

Hudi's ``UpgradeDowngrade`` rolls back failed writes and compacts before its handlers run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hoodie_ds.config.enums import TableType
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.errors import TimelineError, UnsupportedTableError
from hoodie_ds.metadata_table.column_index import has_types
from hoodie_ds.metadata_table.creation import MADE, with_dependents
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.services.cleaning import finish_cleans
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.upgrade.properties import VERSIONS, is_ordered_anew, keeps_metadata
from hoodie_ds.slices.uncommitted_logs import is_uncommitted
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.index_definitions import undefine_indexes
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.secondary_index import FIRST_VERSION, secondary_indexes
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import check_version_may_change
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.paths import V1
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.lock import held
from hoodie_ds.transaction.other_engines import (
    drop_metadata_partitions,
    switch_metadata_table_off,
)
from hoodie_ds.transaction.recovery import recover, recover_lazily


def prepare(context: ServiceContext, table: Table, to: int) -> Table:
    """Roll back dead writes, carry out pending plans, and compact all, as Hudi does.

    Log files have other names in the other layout. Hudi compacts, and keeps the plans of other
    services; here they are carried out, so that none is pending under a name that the other layout
    does not know. Drops a metadata table that is not kept, and indexes that an earlier version
    does not know. Raises `UnsupportedTableError` for plans of an unknown kind, and `OptionError`
    if there are log files and the table's own merge rule is not given.
    """
    concurrency = context.options.concurrency
    timeout_ms = concurrency.heartbeat_timeout_ms
    enabled = context.options.metadata_enable
    there = table.properties.metadata_partitions
    if there and enabled is False:
        table = switch_metadata_table_off(table, context.clock, timeout_ms)
    elif there and not keeps_metadata(table.properties, to, enabled):
        table = drop_metadata_partitions(table, there, context.clock, timeout_ms)
    elif to < table.properties.version and (lost := set(_unknown_before(table))):
        table = drop_metadata_partitions(table, lost, context.clock, timeout_ms)
        undefine_indexes(table, lost)
    if concurrency.is_shared:
        owner = context.ids.unique()
        lock = partial(held, table.storage, concurrency, owner, context.clock, context.pauses)
        recover_lazily(table, context.clock, timeout_ms, lock)
    else:
        recover(table, context.clock, heartbeat_timeout_ms=timeout_ms)
    finish_cleans(table, context.clock)
    clusterer = Clusterer(context)
    for instant, plan in clusterer.planned(table.load_timeline()):
        clusterer.carry_out(instant, plan)
    timeline = table.load_timeline()
    # Without log files no merge rule is needed, which may be one of the JVM's.
    if timeline.pending_compactions or any(logged_groups(table, timeline)):
        while Compactor(context).compact(False, False):
            pass
    return table


def remade_partitions(table: Table, to: int, enabled: bool | None) -> tuple[str, ...]:
    """Return the partitions of a metadata table that are dropped and made again for a version.

    Hudi drops those that version 6 does not know.
    """
    properties = table.properties
    is_left = to == properties.version or keeps_metadata(properties, to, enabled)
    if is_left or enabled is False:
        return ()
    unknown = [PARTITION_STATS, *[RECORD_INDEX] * (record_index(table) == "partition")]
    there = properties.metadata_partitions
    return tuple(n for n in MADE if n in there and not (to == VERSIONS[0] and n in unknown))


def _unknown_before(table: Table) -> Iterator[str]:
    """Yield the partitions of a metadata table that an earlier version would read otherwise."""
    if has_types(table):
        yield from with_dependents([COLUMN_STATS], table.properties.metadata_partitions)
    yield from (one.partition for one in secondary_indexes(table) if one.version != FIRST_VERSION)


def check_ready(table: Table, timeline: Timeline, to: int) -> None:
    """Refuse a table that cannot be changed to a version as it is.

    Raises `TimelineError` if something is pending or log files are left, and
    `UnsupportedTableError` if the other version would read the table differently.
    """
    root = table.storage.root
    begun = [i for i in timeline.savepoints if i.state is not State.COMPLETED]
    unfinished = [*timeline.pending, *begun]
    if unfinished:
        raise TimelineError(
            f"{root}: {', '.join(map(str, unfinished))}: finish or roll back what is pending "
            "(clean, compact, cluster, rollback, delete_savepoint; what this release does not know "
            "with the engine that began it), then change the table's version"
        )
    if any(logged_groups(table, timeline)):
        raise TimelineError(
            f"{root}: log files are left that no compaction has taken in; stop the writers "
            "and set no compaction strategy that leaves file groups out, then run it again"
        )
    check_version_may_change(table, timeline)
    check_savepoints(table, timeline, to)
    _check_old_logs(table, timeline, to)


def check_savepoints(table: Table, timeline: Timeline, to: int) -> None:
    """Refuse a table whose savepoints another version would read differently."""
    if timeline.savepoints and is_ordered_anew(table.properties, to):
        raise UnsupportedTableError(
            f"table {table.properties.name!r} has savepoints, and Hudi's rules order its rows by "
            f"{', '.join(table.properties.ordering_fields)} in version {to}, those of savepoints "
            "too; delete the savepoints first (delete_savepoint)"
        )
    if timeline.savepoints and _leaves_logs(table, to):
        raise UnsupportedTableError(
            f"table {table.properties.name!r} is merge-on-read and has savepoints, whose log files "
            f"version {to} takes for slices of their own, so that their rows would differ; "
            "delete the savepoints first (delete_savepoint)"
        )


def _leaves_logs(table: Table, to: int) -> bool:
    """Whether a change of the version leaves log files that have other names in the new one."""
    is_merged = table.properties.table_type is TableType.MERGE_ON_READ
    return is_merged and to == VERSIONS[0] and table.layout != V1.version


def _check_old_logs(table: Table, timeline: Timeline, to: int) -> None:
    """Refuse if Hudi on the JVM would merge log files again that a compaction has merged.

    In version 6 it decides by the modification times of the timeline's files, which an object store
    does not let anybody set.
    """
    if not _leaves_logs(table, to) or not isinstance(table.storage, RetryingStorage):
        return
    files = FileSystemView(table.storage, timeline, verify=False).data_files()
    names = (status.path.rpartition("/")[2] for status in files)
    if any(LogFileName.parse(name) for name in names):
        raise UnsupportedTableError(
            f"{table.storage.root}: log files are left that a compaction has merged; in version "
            f"{to} Hudi on the JVM would merge them once more, as nobody can set times of files of "
            "this storage; delete them first (HoodieTable.clean with hoodie.clean.policy = "
            "KEEP_LATEST_FILE_VERSIONS and hoodie.clean.fileversions.retained = 1), then run it "
            "again"
        )


def logged_groups(table: Table, timeline: Timeline) -> Iterator[FileGroupId]:
    """Yield the file groups with log files, except those of rolled back writes only.

    No compaction merges those. Their blocks stay hidden in either layout.
    """
    if table.properties.table_type is not TableType.MERGE_ON_READ:
        return
    view = FileSystemView(table.storage, timeline, verify=False)
    for found in view.slices_among(view.data_files()):
        if not all(is_uncommitted(view, log) for log in found.logs):
            yield found.group
