"""Conversion of a table's archive to the other timeline layout.

The old archive is left as it is: its files stay in Hudi's upgrade too. Instants that the new
archive has already are skipped, so an interrupted conversion is resumed, and a late one adds
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.services.upgrade.timeline_files import converted_body, ended_within, next_times
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.archived_timeline import (
    archived_instants,
    each_archive_file,
    put_archive_file,
)
from hoodie_ds.timeline.archive.entry import (
    PLANS,
    RESULTS,
    ArchivedEntry,
    entry_of,
    record_schema,
)
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.archive.lsm_timeline import ArchivedRow, whole_rows
from hoodie_ds.timeline.archive.lsm_writer import LsmEntry, merge_and_clean, put_entries
from hoodie_ds.timeline.bodies.commit_body import avro_of_json
from hoodie_ds.timeline.instant import REPLACING, WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import HOODIE, V1, V2

_AT_ONCE: Final = 200
"""Instants of one file of the archive: their contents are held in memory."""
_PER_BLOCK: Final = 10
_PLANNED_AS: Final = {
    Action.COMMIT: Action.COMPACTION,
    Action.DELTA_COMMIT: Action.LOG_COMPACTION,
    Action.CLEAN: Action.CLEAN,
}
"""The action under which the archive of layout 1 has the plan of an instant."""


def put_archive(table: Table, found: TableProperties) -> None:
    """Convert the archive of a table to the other layout; may be repeated.

    Raises `NotFoundError` if a concurrent archiver merged a file of it.
    """
    if table.layout == V1.version:
        _to_lsm(table)
    else:
        _to_log(table, f"{HOODIE}/{found.archive_folder}")


def _to_lsm(table: Table) -> None:
    storage = table.storage
    folder = f"{HOODIE}/{table.properties.archive_folder}"
    active = (i.time for i in load_timeline(storage, V1.version).instants)
    limits = next_times(chain(active, (i.time for i in archived_instants(storage, folder))))
    for path, found in each_archive_file(storage, folder):
        entries = _lsm_entries(found, path, limits)
        while some := list(islice(entries, _AT_ONCE)):
            put_entries(storage, some)
    merge_and_clean(storage, frozenset())


def _lsm_entries(
    archived: Iterable[ArchivedEntry], path: str, limits: Mapping[str, str]
) -> Iterator[LsmEntry]:
    """The completed instants of a file of the archive; the entries of each are consecutive.

    As in Hudi's upgrade the completion time is when the completed file was written, but before the
    next instant was begun: a table that was copied, or had layout 2 before, has files that were
    written later, and log files would end up on base files that contain them already.
    """
    plans: dict[str, bytes] = {}
    for entry in archived:
        instant = entry.instant
        if instant.state is State.COMPLETED:
            start = instant.time
            later = entry.transition > padded(start)
            end = ended_within(start, entry.transition, limits.get(start)) if later else ""
            done = Instant(start, instant.action, State.COMPLETED, 0, V2.version, end)
            yield LsmEntry(done, _result(entry, path), plans.pop(start, b""))
        elif instant.state is State.REQUESTED and instant.action in PLANS:
            plans = {instant.time: _container(entry, PLANS[instant.action])}


def _result(entry: ArchivedEntry, path: str) -> bytes:
    action = entry.instant.action
    if action not in WRITE_ACTIONS:
        return _container(entry, RESULTS.get(action, ""))
    if RESULTS[action] not in entry.content:
        return b""
    entry.commit(path)  # refuses a damaged one
    return avro_of_json(entry.content[RESULTS[action]], replaces=action in REPLACING)


def _container(entry: ArchivedEntry, field: str) -> bytes:
    record = entry.content.get(field)
    return b"" if record is None else write_record(record_schema(field), record)


def _to_log(table: Table, folder: str) -> None:
    storage = table.storage
    known = {(found.time, found.action) for found in archived_instants(storage, folder)}
    for file in newest_snapshot(storage).files:
        rows = (row for row in whole_rows(storage, file) if row.key not in known)
        while some := list(islice(rows, _AT_ONCE)):
            entries = [entry for row in some for entry in _log_entries(row, file.path)]
            put_archive_file(storage, folder, entries, _PER_BLOCK)
            known |= {row.key for row in some}


def _log_entries(row: ArchivedRow, path: str) -> Iterator[ArchivedEntry]:
    planned = _PLANNED_AS.get(row.action)
    if row.plan and planned is not None:
        yield entry_of(Instant(row.time, planned, State.REQUESTED), row.plan, b"", row.time)
    done = Instant(row.time, row.action, State.COMPLETED)
    body = converted_body(row.body, done, V1.version, path)
    yield entry_of(done, body, b"", row.ended)
