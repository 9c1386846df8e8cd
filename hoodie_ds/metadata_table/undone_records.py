"""Records of an index of rows that undo what writes did to it that are rolled back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import chain, islice

from hoodie_ds.metadata_table.keys_of_rows import KeysOfRows, OfRows
from hoodie_ds.metadata_table.payload import Record, without_deletes
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.trust import may_be_listed
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant, State

Records = dict[str, Record | None]
"""Records by their keys; None of deleted ones."""
Meaning = Callable[[Record], object]
"""Returns what a record says that counts."""


def undone_records(
    table: Table,
    metadata: MetadataTable,
    partition: str,
    undoing: Instant,
    times: Collection[str],
    of_rows: OfRows,
    meaning: Meaning,
    hashed: Callable[[str], str] | None = None,
) -> Records:
    """Return the records of a partition that undo what the instants of some times did to it.

    Those that the last write has moved get what the partition says without that write. Where
    something came after it, and after a restore, the whole partition is compared with the rows.
    """
    later = metadata.without_pending(times)
    if undoing.action is Action.RESTORE:
        return differing_records(table, metadata, later, partition, of_rows, meaning, hashed)
    (time,) = times
    if metadata.timeline.commit_at(time) is None and not may_be_listed(metadata, time):
        return {}
    if not _is_newest(metadata, partition, time):
        return differing_records(table, metadata, later, partition, of_rows, meaning, hashed)
    dead = table.instant(time, Action.COMMIT, State.INFLIGHT)
    earlier = replace(later, data=replace(later.data, pending=(*later.data.pending, dead)))
    slices = metadata.slices(partition)
    moved = {key for slice_ in slices for key, _ in later.logged(slice_, times=times)}
    stored = earlier.by_key(partition, moved)
    return {key: stored.get(key) for key in moved}


def differing_records(
    table: Table,
    metadata: MetadataTable,
    later: MetadataTable,
    partition: str,
    of_rows: OfRows,
    meaning: Meaning,
    hashed: Callable[[str], str] | None = None,
) -> Records:
    """Return the records in which a partition differs from the rows of the table.

    The partition is as it will be `later`, without them. Its file groups are compared one by one.
    """
    rows = KeysOfRows.of(of_rows(table, metadata.data), hashed)
    # The index of a new partition of the table has no file group yet.
    groups = len(later.slices(partition)) or 1
    records: Records = {}
    for number, found in enumerate(islice(chain(later.records(partition), [{}]), groups)):
        here = rows.of_group(number, groups)
        there = dict(zip(*(column.to_pylist() for column in here.columns), strict=True))
        stored = {key: meaning(one) for key, one in found.items() if without_deletes(one)}
        for key in stored.keys() - there.keys():
            records.setdefault(key, None)
        for key, at in there.items():
            if key not in stored or stored[key] != meaning(rows.records[at]):
                records[key] = rows.records[at]
    return records


def _is_newest(metadata: MetadataTable, partition: str, time: str) -> bool:
    """Whether an instant was the last to change a partition, and no compaction has included it."""
    storage, slices = metadata.view.storage, metadata.slices(partition)
    groups = {slice_.group for slice_ in slices}
    there = {log.path for slice_ in slices for log in slice_.logs}
    for instant in metadata.timeline.commits_backwards():
        added = file_changes(storage, instant).added.items()
        named = {p for p, one in added if FileGroupId(one.partition_path, one.file_id) in groups}
        if named:
            return instant.time == time and named <= there
    return False
