"""The files that a metadata table lists, compared with those of the folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.errors import HoodieError
from hoodie_ds.inspection.committed_files import CommittedFiles
from hoodie_ds.inspection.findings import Finding, Kind
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.stored import FILES_PARTITION, MetadataTable
from hoodie_ds.metadata_table.trust import lacking
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.paths import METADATA_TABLE, commit_path

_REMEDY: Final = (
    f"set {FileOptions.metadata_enable.key}=false in what reads the table, and let Hudi on the JVM "
    "build its metadata table again"
)


def recorded_findings(
    pinned: PinnedTable, committed: CommittedFiles, files: Iterable[FileStatus]
) -> list[Finding]:
    """Return where the metadata table says something else than timeline and folders.

    Engines that list files by it would miss rows, or fail. Nothing is said of a table that has
    changed since it was listed.
    """
    metadata = MetadataTable.open(pinned.table, pinned.timeline)
    if metadata is None or FILES_PARTITION not in metadata.partitions:
        return []
    try:
        found = list(_differences(metadata, committed, {file.path: file.size for file in files}))
    except HoodieError as error:
        found = [_finding(METADATA_TABLE, str(error))]
    is_same = found and pinned.table.load_timeline() == pinned.timeline
    return found if is_same else []


def _differences(
    metadata: MetadataTable, committed: CommittedFiles, sizes: dict[str, int]
) -> Iterator[Finding]:
    for instant in lacking(metadata):
        yield _finding(commit_path(instant), "the metadata table lacks the instant")
    listing = MetadataListing(metadata)
    recorded = {file.path: file.size for file in listing.files(listing.partitions())}
    for path in sizes.keys() - recorded.keys():
        if path in committed.named or path in committed.stats:
            yield _finding(path, "the metadata table lacks the file")
    going = _being_cleaned(metadata)
    for path, known in recorded.items():
        size = sizes.get(path)
        if size is None:
            if path not in going:
                yield _finding(path, "the metadata table lists the file, and it is not there")
        elif size < known or (size != known and not _may_grow(path)):
            message = f"it has {size:,} bytes, and the metadata table says {known:,}"
            yield _finding(path, message)


def _being_cleaned(metadata: MetadataTable) -> set[str]:
    """Paths of files that a pending clean deletes, and the metadata table lists until its end."""
    cleans = (one for one in metadata.data.pending if one.action is Action.CLEAN)
    return {path for one in cleans for path in file_changes(metadata.storage, one).deleted}


def _may_grow(path: str) -> bool:
    """Whether a file may be longer by what was written to it and never committed."""
    return LogFileName.parse(path.rpartition("/")[2]) is not None


def _finding(where: str, message: str) -> Finding:
    return Finding(Kind.METADATA_TABLE, where, message, _REMEDY)
