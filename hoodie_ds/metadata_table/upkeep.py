"""The services of a metadata table: it is compacted, and then cleaned and archived.

Whoever comes next continues them. A clean or an archiving that a process was killed before follows
the next compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from hoodie_ds.errors import HoodieError
from hoodie_ds.log import Log
from hoodie_ds.metadata_table.compaction import compact_if_due, delta_commits, put_once
from hoodie_ds.metadata_table.stored import EXTENSION, MetadataTable, latest_compaction
from hoodie_ds.table.file_slice import BaseFile, LogFile
from hoodie_ds.table.fs_view import data_file
from hoodie_ds.table.metadata_table import FIRST_SECOND
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.active_files import active_files, contents, delete_active
from hoodie_ds.timeline.archive.archive import archive_of
from hoodie_ds.timeline.archive.lsm_timeline import ended
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan, read_plan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following, padded
from hoodie_ds.timeline.loading import archive_folder
from hoodie_ds.timeline.paths import HOODIE, METADATA_TABLE, V1, instant_path

_VERSIONS: Final = 3
"""Versions of each file group that stay: more than 20 delta commits, which Hudi retains."""
_POLICY: Final = "KEEP_LATEST_FILE_VERSIONS"
_SUFFIX: Final = "002"
_FEWEST: Final = 20
_MOST: Final = 30
"""Commits that stay, and of which there may be before the oldest are archived."""


def look_after(table: Table, begun: str = "") -> None:
    """Compact, clean and archive the metadata table of a table, if that is due.

    `begun` is as for `compact_if_due`. The metadata table is right without that, so an error is
    logged, and the next instant of the table tries again.
    """
    try:
        metadata = MetadataTable.open(table, table.load_timeline())
        most = delta_commits(table.properties)
        if metadata is None or not compact_if_due(metadata, most, begun):
            return
        for service in (partial(_clean, begun=begun), _archive):
            changed = MetadataTable.open(table, metadata.data)
            assert changed is not None
            service(changed)
    except HoodieError as error:
        Log(table.storage.root).warning("%s is not compacted: %s", METADATA_TABLE, error)


def finish_pending(table: Table) -> bool:
    """Finish the compaction and the cleans that are pending, which name files of all partitions.

    Returns whether it could: a compaction waits for older instants of the table.
    """
    metadata = MetadataTable.open(table, table.load_timeline())
    if metadata is None:
        return True
    if metadata.timeline.pending_compactions and not compact_if_due(metadata):
        return False
    _finish_cleans(metadata)
    return True


def _finish_cleans(metadata: MetadataTable) -> None:
    for instant in metadata.timeline.pending:
        if instant.action is Action.CLEAN:
            _delete_planned(metadata, instant)


def _clean(metadata: MetadataTable, begun: str) -> None:
    """Delete superseded versions, and what is left of earlier plans, also of other engines."""
    _finish_cleans(metadata)
    planned = _planned(metadata, begun)
    if planned is not None:
        _delete_planned(metadata, planned)


def _planned(metadata: MetadataTable, begun: str) -> Instant | None:
    """Put a plan right after the newest compaction: in layout 1 with another suffix, as Hudi.

    None if the table may have an instant of that time, now or later; the next compaction is soon.
    """
    storage, newest = metadata.view.storage, latest_compaction(metadata.timeline)
    files = {one: tuple(_superseded(metadata, one)) for one in metadata.partitions}
    named = {partition: names for partition, names in files.items() if names}
    is_first = metadata.timeline.layout == V1.version
    time = newest[:17] + _SUFFIX if is_first else following(following(newest[:17]))
    if not named or metadata.timeline.at(time) or (begun and padded(begun) <= time):
        return None
    instant = Instant(time, Action.CLEAN, State.REQUESTED, layout=metadata.timeline.layout)
    plan = CleanerPlan(_POLICY, None, newest, named)
    put_once(storage, instant_path(instant), plan.to_bytes(storage.root))
    return instant


def _delete_planned(metadata: MetadataTable, instant: Instant) -> None:
    storage, plan = metadata.view.storage, read_plan(metadata.view.storage, instant)
    put_once(storage, instant_path(instant.at(State.INFLIGHT)), b"")
    storage.delete_many(plan.paths)
    end = "" if instant.layout == V1.version else following(instant.time[:17])
    put_once(storage, instant_path(instant.completed(end)), plan.done(instant.time, 0))


def _superseded(metadata: MetadataTable, partition: str) -> Iterator[str]:
    """Names of files of all but the newest versions of the file groups of a partition."""
    view = metadata.view
    listed = (data_file(partition, status, EXTENSION) for status in view.files_of(partition))
    files = [file for file in listed if file is not None]
    starts: dict[str, list[str]] = {}
    for file in files:
        if isinstance(file, BaseFile) and view.is_committed(file.name.instant_time):
            starts.setdefault(file.name.file_id, []).append(padded(file.name.instant_time))
    kept = {file_id: sorted(times)[-_VERSIONS:][0] for file_id, times in starts.items()}
    for file in files:
        start = _start(metadata, file)
        if start is not None and start < kept.get(file.name.file_id, ""):
            yield file.path.rpartition("/")[2]


def _start(metadata: MetadataTable, file: BaseFile | LogFile) -> str | None:
    """A time that is less than that of the next version; None if that is not known."""
    view = metadata.view
    if isinstance(file, BaseFile):
        return padded(file.name.instant_time)
    if view.timeline.layout == V1.version:
        return padded(file.name.base_instant)
    return ended(view.storage, view.timeline, file.name.base_instant)


def _archive(metadata: MetadataTable) -> None:
    instants = _oldest(metadata)
    if not instants:
        return
    storage, layout = metadata.view.storage, metadata.timeline.layout
    archive = archive_of(storage, layout, archive_folder(storage).removeprefix(f"{HOODIE}/"))
    files = active_files(storage, layout, instants)
    settled = archive.put([contents(storage, files[i.time], utc=True) for i in instants])
    delete_active(storage, (files[instant.time] for instant in instants))
    archive.tidy(settled)


def _oldest(metadata: MetadataTable) -> list[Instant]:
    """The instants to archive, if there are too many: the newest compaction includes them.

    None that may be of an instant on the table's active timeline is among them, as in Hudi: by
    those it is known whether the metadata table has caught up. The first delta commit of a
    partition whose process was killed does not count.
    """
    timeline = metadata.timeline
    commits = timeline.commits
    if len(commits) <= _MOST:
        return []
    begun = (instant.time for one in (timeline, metadata.data) for instant in one.pending)
    pending = (time for time in begun if not time.startswith(FIRST_SECOND))
    stay = (commits[-_FEWEST].time, latest_compaction(timeline), metadata.data.start, *pending)
    end = min(map(padded, stay))
    return [instant for instant in timeline.completed if padded(instant.time) < end]
