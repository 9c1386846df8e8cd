"""What a metadata table says, compared with timeline, folders and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.properties.table_properties import (
    BLOOM_FILTERS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    is_kept,
)
from hoodie_ds.errors import HoodieError
from hoodie_ds.hints import command
from hoodie_ds.inspection.committed_files import CommittedFiles, committed_files
from hoodie_ds.inspection.findings import Finding, Kind
from hoodie_ds.inspection.recorded_entries import (
    Divergence,
    filter_divergences,
    index_divergences,
    statistics_divergences,
)
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.metadata_table.stored import FILES_PARTITION, MetadataTable
from hoodie_ds.metadata_table.trust import lacking
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_name import CdcFileName, LogFileName
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.metadata_table import not_kept
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.paths import METADATA_TABLE, commit_path

_INDEXES: Final = (RECORD_INDEX, SECONDARY_INDEX)
_STATISTICS: Final = (COLUMN_STATS, PARTITION_STATS)
_NOT_KEPT: Final = (
    f"set {FileOptions.metadata_enable.key}=false in what reads the table, and let Hudi on the JVM "
    "build its metadata table again"
)


def recorded_findings(
    pinned: PinnedTable, committed: CommittedFiles, files: Iterable[FileStatus]
) -> list[Finding]:
    """Return where the metadata table says something else than timeline and folders.

    Engines that list files by it, or skip some by its statistics, would miss rows, or fail.
    """
    remedy = _NOT_KEPT
    if is_kept(pinned.table.properties):
        remedy = f"{command('metadata', 'check', pinned.table.storage.root, '--repair')} mends it"
    return [
        Finding(Kind.METADATA_TABLE, one.where, one.message, remedy)
        for one in divergences(pinned, committed, files)
    ]


def divergences(
    pinned: PinnedTable, committed: CommittedFiles, files: Iterable[FileStatus]
) -> list[Divergence]:
    """Return what is wrong in the metadata table, none of a table that has changed meanwhile."""
    metadata = MetadataTable.open(pinned.table, pinned.timeline)
    if metadata is None or FILES_PARTITION not in metadata.partitions:
        return []
    sizes, found = {file.path: file.size for file in files}, list[Divergence]()
    live = [path for path in committed.named if path in sizes and not _is_change_data(path)]
    unknown = set(not_kept(pinned.table))
    indexes = [n for n in metadata.partitions if n.startswith(_INDEXES) and n not in unknown]
    for partitions, differences in (
        ((FILES_PARTITION,), partial(_differences, metadata, committed, sizes)),
        ((BLOOM_FILTERS,), partial(filter_divergences, pinned.table, metadata, live)),
        (_STATISTICS, partial(statistics_divergences, pinned.table, metadata, live)),
        *(((name,), partial(index_divergences, pinned.table, metadata, name)) for name in indexes),
    ):
        there = [name for name in partitions if name in metadata.partitions]
        try:
            found += differences() if there else ()
        except HoodieError as error:
            folder = f"{METADATA_TABLE}/{there[0]}"
            found += [Divergence(name, folder, str(error)) for name in there]
    return found if found and pinned.table.load_timeline() == pinned.timeline else []


def diverging_partitions(pinned: PinnedTable) -> tuple[str, ...]:
    """Return the partitions of the metadata table in which something is wrong."""
    files = FileSystemView(pinned.table.storage, pinned.timeline, pinned.verify).data_files()
    found = divergences(pinned, committed_files(pinned), files)
    return tuple(sorted({one.partition for one in found}))


def _differences(
    metadata: MetadataTable, committed: CommittedFiles, sizes: Mapping[str, int]
) -> Iterator[Divergence]:
    for instant in lacking(metadata):
        yield _of_files(commit_path(instant), "the metadata table lacks the instant")
    listing = MetadataListing(metadata)
    recorded = {file.path: file.size for file in listing.files(listing.partitions())}
    for path in sizes.keys() - recorded.keys():
        if path in committed.named or path in committed.stats:
            yield _of_files(path, "the metadata table lacks the file")
    going = _being_cleaned(metadata)
    for path, known in recorded.items():
        size = sizes.get(path)
        if size is None:
            if path not in going:
                yield _of_files(path, "the metadata table lists the file, and it is not there")
        elif size < known or (size != known and not _may_grow(path)):
            message = f"it has {size:,} bytes, and the metadata table says {known:,}"
            yield _of_files(path, message)


def _being_cleaned(metadata: MetadataTable) -> set[str]:
    """Paths of files that a pending clean deletes, and the metadata table lists until its end."""
    cleans = (one for one in metadata.data.pending if one.action is Action.CLEAN)
    return {path for one in cleans for path in file_changes(metadata.storage, one).deleted}


def _may_grow(path: str) -> bool:
    """Whether a file may be longer by what was written to it and never committed."""
    return LogFileName.parse(path.rpartition("/")[2]) is not None


def _is_change_data(path: str) -> bool:
    return CdcFileName.parse(path.rpartition("/")[2]) is not None


def _of_files(where: str, message: str) -> Divergence:
    return Divergence(FILES_PARTITION, where, message)
