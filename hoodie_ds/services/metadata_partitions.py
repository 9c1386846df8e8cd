"""Making and dropping partitions of a table's metadata table by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.properties.agreement import check_same
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.errors import OptionError, WriteConflictError
from hoodie_ds.index.choice import choose_index
from hoodie_ds.metadata_table.column_index import check_named
from hoodie_ds.metadata_table.creation import MADE, wanted_partitions, with_dependents
from hoodie_ds.metadata_table.stored import FILES_PARTITION
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.table.index_definitions import undefine_indexes
from hoodie_ds.table.table import Table, check_unchanged, open_table
from hoodie_ds.table.table_schema import numbered_columns
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.transaction.exclusive_commit import excluding
from hoodie_ds.transaction.other_engines import (
    at_work,
    drop_metadata_partitions,
    note_delta_commits,
    switch_metadata_table_on,
)


@dataclass(frozen=True, slots=True, repr=False)
class MetadataChange:
    """Partitions of a metadata table that were made and dropped; false if there were none.

    Parameters
    ----------
    made, dropped : tuple of str
        Their names.
    dry : bool
        Whether nothing was changed.
    """

    made: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    dry: bool = False

    def __bool__(self) -> bool:
        return bool(self.made or self.dropped)

    def __repr__(self) -> str:
        return f"<MetadataChange: {self}>"

    def __str__(self) -> str:
        would = "would be " if self.dry else ""
        done = ((self.dropped, "dropped"), (self.made, "made"))
        parts = [f"{', '.join(names)} {would}{verb}" for names, verb in done if names]
        return f"metadata table: {'; '.join(parts) or 'nothing to do'}"


def create_metadata(context: ServiceContext, *, dry: bool = False) -> MetadataChange:
    """Make the partitions that the options ask for, and the list of files, where they are missing.

    Raises `WriteConflictError` while something is at work on the table.
    """
    options = context.options
    if options.metadata_enable is False:
        raise OptionError(
            FileOptions.metadata_enable.key, False, "leave it out to make a metadata table"
        )
    table = context.open_table()
    wanted = wanted_partitions(table.properties, options)
    if RECORD_INDEX in wanted:  # by which index keys are unique
        choose_index(table.properties, options, table, table.load_timeline())
    missing = tuple(n for n in wanted if n not in table.properties.metadata_partitions)
    if dry or not missing:
        return MetadataChange(made=missing, dry=dry)
    with _alone(context, table):
        _check_rests(table)
        table = note_delta_commits(table, context.clock, options.metadata.delta_commits)
        changed = switch_metadata_table_on(table, context.clock, wanted, options)
    return MetadataChange(made=_there(changed, missing))


@contextmanager
def _alone(context: ServiceContext, table: Table) -> Iterator[None]:
    """Exclude others while the metadata table is changed, and apply the newest decision before."""
    pending = context.action(table, Action.COMMIT, "METADATA")
    with excluding(pending, context.clock, context.pauses) as exclusion:
        timeline = exclusion.apply_pending(table.load_timeline())
        refuse_restore(table.storage.root, timeline)
        check_unchanged(table)
        yield


def _check_rests(table: Table) -> None:
    """Refuse a table that is being written to: nothing can be listed meanwhile."""
    if writer := at_work(table, table.load_timeline()):
        raise WriteConflictError(
            f"{table.storage.root}: {writer} is pending, so nothing can be listed for the metadata "
            "table; run this again once it has ended. If its writer is dead, the next write ends "
            f"it, as does {table.command('rollback', writer.time)}"
        )


def _there(table: Table, names: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in table.properties.metadata_partitions)


def remake_metadata(
    context: ServiceContext, names: Collection[str], *, dry: bool = False
) -> MetadataChange:
    """Drop partitions that are wrong, and make them again; with the list of files all others too.

    After a call that was killed in between they are missing. Secondary indexes are dropped only,
    if they are wrong themselves: by their definitions Hudi makes them again.
    """
    table = context.open_table()
    dropped = _dropped_with(table, names) if names else ()
    if FILES_PARTITION not in names:
        dropped = tuple(name for name in dropped if name in names or name in MADE)
    if dry or not dropped:
        return MetadataChange(tuple(n for n in dropped if n in MADE), dropped, dry)
    with _alone(context, table):
        _check_rests(table)
        check_named(table, numbered_columns(table, table.load_timeline()), dropped)
        timeout_ms = context.options.concurrency.heartbeat_timeout_ms
        without = drop_metadata_partitions(table, dropped, context.clock, timeout_ms)
        made = _as_before(context, without, dropped)
    return MetadataChange(_there(made, dropped), dropped)


def make_again(context: ServiceContext, names: Collection[str]) -> None:
    """Make partitions that a table has had before.

    Raises `WriteConflictError` while something is at work on the table.
    """
    table = context.open_table()
    with _alone(context, table):
        _check_rests(table)
        _as_before(context, table, names)


def _as_before(context: ServiceContext, table: Table, names: Collection[str]) -> Table:
    """Make partitions that a table has had, of the columns that they had."""
    of_metadata = replace(context.options.metadata, columns=None)
    options = replace(context.options, metadata=of_metadata)
    return switch_metadata_table_on(table, context.clock, names, options)


def drop_metadata(
    context: ServiceContext, names: Collection[str] | None, *, dry: bool = False
) -> MetadataChange:
    """Drop partitions, all by default; those that Hudi has only beside them go too.

    Raises `WriteConflictError` if another engine may be at work with the metadata table.
    """
    table = open_table(context.storage)
    table.properties.check_writable()
    check_same(context.options, table.properties)
    dropped = _dropped_with(table, names)
    if dropped and not dry:
        with _alone(context, table):
            timeout_ms = context.options.concurrency.heartbeat_timeout_ms
            undefine_indexes(
                drop_metadata_partitions(table, dropped, context.clock, timeout_ms), dropped
            )
    return MetadataChange(dropped=dropped, dry=dry)


def _dropped_with(table: Table, names: Collection[str] | None) -> tuple[str, ...]:
    there = table.properties.metadata_partitions
    if names is None or FILES_PARTITION in names:
        return there
    if strange := [name for name in names if name not in there]:
        raise OptionError(
            "partitions",
            ", ".join(strange),
            f"the metadata table has {', '.join(there) or 'no partitions'}",
        )
    return tuple(with_dependents(names, there))
