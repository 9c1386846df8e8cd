"""Changes the version of a table: prepares, decides, carries out.

The properties say where the timeline is, so the table has the old version until they are replaced,
and the new one from then on. Before that all files of the timeline are put where the new layout has
them; after it the old ones are deleted. So readers find the whole table wherever the change is
interrupted. A decision of the log keeps others from writing meanwhile: a writer that has not
decided yet is refused until the properties are replaced (`apply_pending`), and then because they
have changed (`check_unchanged`). Calling it again resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from hoodie_ds.config.properties.keys import METADATA_PARTITIONS
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.log import Log
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.metadata_partitions import make_again
from hoodie_ds.services.results import counted
from hoodie_ds.services.upgrade.archive import put_archive
from hoodie_ds.services.upgrade.preparation import (
    check_ready,
    check_savepoints,
    logged_groups,
    prepare,
    remade_partitions,
)
from hoodie_ds.services.upgrade.properties import (
    VERSIONS,
    is_ordered_anew,
    keeps_metadata,
    translated,
)
from hoodie_ds.services.upgrade.timeline_files import Source, converted, files_of, put_converted
from hoodie_ds.table.metadata_table import METADATA_KEYS, change_version_of_metadata
from hoodie_ds.table.table import (
    Table,
    check_unchanged,
    is_left_empty,
    open_table,
    update_properties,
)
from hoodie_ds.table.table_schema import check_version_may_change
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import CONVERTED, LAYOUTS, PROPERTIES_BACKUP, SUMMARIES, V1
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.transaction.decision_log import Decision, Outcome, newest_decision
from hoodie_ds.transaction.exclusive_commit import Exclusion, excluding

_BEFORE_ALL: Final = "0" * 17


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A change of a table's version, done or planned; false if it had that version already.

    Parameters
    ----------
    before, after : int
        Table versions.
    changed : mapping of str to str or None
        Properties that are set, by key; None for a removed one.
    files : int
        Number of files of the timeline that are converted.
    compacted : int
        Number of file groups that would be compacted before.
    """

    before: int
    after: int
    changed: Mapping[str, str | None]
    files: int = 0
    compacted: int = 0

    def __bool__(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        if not self:
            return f"version {self.after}, nothing to do"
        compacted = f"{counted(self.compacted, 'file group')} compacted"
        past = "commits of before can be neither rolled back nor restored"
        also = [compacted] * bool(self.compacted) + [past] * bool(self.files)
        return "; ".join([
            f"version {self.before} to {self.after}, {len(self.changed)} properties and "
            f"{self.files} files of the timeline",
            *also,
        ])  # fmt: skip


def change_version(context: ServiceContext, to: int, *, dry: bool = False) -> VersionChange:
    """Change the version of a table, or resume that.

    Raises `TimelineError` if something must be finished first, and `UnsupportedTableError` if this
    release cannot convert the table.
    """
    table = open_to_change(context)
    if not dry:
        table = _put_back(context, table, to)
    logged = 0
    if _begun(table) is None and not is_left_empty(table.storage, table.layout):
        timeline = table.load_timeline()  # to refuse before anything is compacted
        logged = sum(1 for _ in logged_groups(table, timeline)) if dry else 0
        check_version_may_change(table, timeline)
        check_savepoints(table, timeline, to)
    if is_ordered_anew(table.properties, to):
        Log(table.storage.root).warning(
            "in version %d rows are ordered by %s, as Hudi's upgrade has it: a row replaces "
            "none with a higher value any more, and rows in log files of earlier moments are read "
            "so too. Take options of another merge mode or payload class out of the writers, and "
            "let readers of changes come to the end of the table before",
            to,
            ", ".join(table.properties.ordering_fields),
        )
    if dry:
        return replace(_planned(context, table, to), compacted=logged)
    remade = remade_partitions(table, to, context.options.metadata_enable)
    begun = _begun(table)
    if begun not in (None, to):
        raise TimelineError(
            f"{table.storage.root}: a change of the table to version {begun} is under way, which "
            "must be finished first"
        )
    if begun is None and table.properties.version != to:
        table = prepare(context, table, to)
        check_ready(table, table.load_timeline(), to)
    done = _changed(context, table, to)
    if remade:
        make_again(context, remade)
    if done:
        Log(table.storage.root).info("%s", done)
    return done


def open_to_change(context: ServiceContext) -> Table:
    """Return the table; one whose metadata table cannot be kept is refused as for any service."""
    return context.open_table(to_be_dropped=True)


def _begun(table: Table) -> int | None:
    """Return the version that the table is being changed to; None if it is not."""
    newest = newest_decision(table.storage)
    version = newest.table_version if newest else None
    return None if version == table.properties.version else version


def _planned(context: ServiceContext, table: Table, to: int) -> VersionChange:
    enabled = context.options.metadata_enable
    gone = () if keeps_metadata(table.properties, to, enabled) else METADATA_KEYS
    found = translated(table.properties.without(gone), to)
    if remade := remade_partitions(table, to, enabled):
        found = found.with_changes({METADATA_PARTITIONS: ",".join(sorted(remade))})
    before, after = table.properties.raw, found.raw
    changed = {
        key: after.get(key) for key in sorted({k for k, _ in before.items() ^ after.items()})
    }
    moves = found.layout_version != table.layout
    files = len(files_of(table.storage, table.layout)) if moves else 0
    return VersionChange(table.properties.version, to, changed, files)


def _changed(context: ServiceContext, table: Table, to: int) -> VersionChange:
    """Decide and carry out under the lock; a change to another version is finished first."""
    pending = context.action(table, Action.COMMIT, "UPGRADE")
    with excluding(pending, context.clock, context.pauses) as exclusion:
        table = open_table(table.storage)
        while _begun(table) is None and table.properties.version != to:
            exclusion.pending = replace(pending, table=table, plan=str(to).encode())
            if _decide(exclusion, table, to):
                break
        done = _planned(context, table, to)
        if done:
            _carry_out(context, table, to)
        else:  # another process did it, and may have been killed before it had deleted all
            _delete_left(table)
        return done


def _decide(exclusion: Exclusion, table: Table, to: int) -> bool:
    timeline = exclusion.apply_pending(table.load_timeline())
    refuse_restore(table.storage.root, timeline)
    check_unchanged(table)
    check_ready(table, timeline, to)
    at = timeline.latest_time or _BEFORE_ALL
    instant = Instant(at, Action.COMMIT, State.INFLIGHT, layout=table.layout)
    return exclusion.append(Outcome.CHANGE_VERSION, instant)


def _carry_out(context: ServiceContext, table: Table, to: int) -> None:
    now_ms, storage = context.clock.now_ms(), table.storage
    newest = newest_decision(storage)
    check = partial(_check_not_overtaken, table, newest, to)
    check()
    found = translated(table.properties, to)
    moves = found.layout_version != table.layout
    if moves:
        _put_timeline(table, found, now_ms, check)
        timeline = table.load_timeline()
        check()
        storage.replace(CONVERTED, (timeline.latest_time or _BEFORE_ALL).encode())
        storage.delete(SUMMARIES)
    check()
    if table.properties.metadata_partitions:
        change_version_of_metadata(table, to, now_ms)
    changed = _with_raw(table, found, now_ms)
    if is_left_empty(storage, changed.layout):  # the properties were put late
        _ = _with_raw(changed, table.properties, now_ms) if moves else _put_back(context, changed)
        raise _overtaken(table)
    _delete_left(changed)


def _with_raw(table: Table, found: TableProperties, now_ms: int) -> Table:
    changes = dict(found.raw.items() - table.properties.raw.items())
    removals = table.properties.raw.keys() - found.raw.keys()
    return update_properties(table, changes, removals, now_ms)


def _check_not_overtaken(table: Table, decision: Decision | None, to: int) -> None:
    """Refuse to continue if others have: the table may have its former version again.

    No process decides anything before the properties are those of the other version. So a newer
    decision shows that they were.
    """
    check_unchanged(table)
    newest = newest_decision(table.storage)
    if newest is None or newest != decision or newest.table_version != to:
        raise _overtaken(table)


def _overtaken(table: Table) -> TimelineError:
    return TimelineError(
        f"{table.storage.root}: this process was stopped while it changed the table's version, and "
        "others have changed the table since; look at the version that it has, then run it again"
    )


def _put_back(context: ServiceContext, table: Table, to: int = 0) -> Table:
    """Restore the properties that the timeline belongs to, if newer ones were put late."""
    if not is_left_empty(table.storage, table.layout):
        return table
    (layout,) = LAYOUTS.keys() - {table.layout}
    version = VERSIONS[0] if layout == V1.version else max(to, VERSIONS[1])
    Log(table.storage.root).warning("its timeline is that of version %d", version)
    return _with_raw(table, translated(table.properties, version), context.clock.now_ms())


def _put_timeline(
    table: Table, found: TableProperties, now_ms: int, check: Callable[[], None]
) -> None:
    """Put all completed instants, and no others, where the other layout has them.

    The active ones are listed first: what an archiver removes meanwhile is noticed afterwards.
    """
    storage, files, layout = table.storage, _of_completed(table), found.layout_version
    targets = converted(table, files, layout, now_ms)
    strangers = [f.status.path for f in files_of(storage, layout) if f.status.path not in targets]
    check()  # else they may be files of the table that others have changed
    storage.delete_many(strangers)  # of an earlier attempt, or of a late writer
    try:
        put_archive(table, found)
        put_converted(table, targets, layout, check)
        left = {file.status.path for file in files_of(storage, table.layout)}
        if not left.issuperset(file.status.path for file in files):
            raise NotFoundError("files of its timeline are gone")
    except NotFoundError as error:
        check()
        raise TimelineError(
            f"{storage.root}: the timeline has changed while it was put into layout {layout} "
            f"({error}); run it again"
        ) from error


def _of_completed(table: Table) -> list[Source]:
    timeline = table.load_timeline()
    pending = {instant.time for instant in timeline.pending}  # their writers are refused
    return [f for f in files_of(table.storage, table.layout) if f.instant.time not in pending]


def _delete_left(table: Table) -> None:
    """Delete the files of the timeline in the layout that the table no longer has."""
    for layout in LAYOUTS.keys() - {table.layout}:
        left = [file.status.path for file in files_of(table.storage, layout)]
        if left:
            check_unchanged(table)  # else they are files of the table that others have changed
            table.storage.delete_many(left)
    table.storage.delete(PROPERTIES_BACKUP)
