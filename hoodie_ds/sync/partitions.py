"""Partitions of a sync: their values by path, and those that commits changed since a sync."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.enums import PartitionExtractor
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import CatalogError
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline

_DAY: Final = 3
_HOUR: Final = 4


def chosen_extractor(
    given: PartitionExtractor | None, fields: Collection[str], properties: TableProperties
) -> PartitionExtractor:
    """Return the given extractor, else the one that ``HoodieSyncConfig`` infers."""
    if given is not None:
        return given
    if not fields:
        return PartitionExtractor.NONE
    if len(fields) > 1:
        return PartitionExtractor.MULTI_PART
    if properties.hive_style:
        return PartitionExtractor.HIVE_STYLE
    return PartitionExtractor.SINGLE_PART


def partition_values(
    extractor: PartitionExtractor, path: str, fields: Collection[str]
) -> tuple[str, ...]:
    """Return the values of the partition columns of a partition path."""
    values = _EXTRACT[extractor](path)
    if len(values) != len(fields):
        raise CatalogError(
            f"partition {path!r} has {len(values)} values by {extractor.value} and the catalog "
            f"{len(fields)} partition columns ({', '.join(fields)}); give another class in "
            f"{CatalogOptions.extractor.key}"
        )
    return values


def _dated(path: str, count: int) -> tuple[str, ...]:
    parts = [part.rpartition("=")[2] for part in path.split("/")]
    return ("-".join(parts),) if len(parts) == count else ()


_EXTRACT: Final[Mapping[PartitionExtractor, Callable[[str], tuple[str, ...]]]] = {
    PartitionExtractor.MULTI_PART: lambda path: tuple(
        part.partition("=")[2] if "=" in part else part for part in path.split("/")
    ),
    PartitionExtractor.HIVE_STYLE: lambda path: (path.partition("=")[2],) if "=" in path else (),
    PartitionExtractor.SINGLE_PART: lambda path: (path,),
    PartitionExtractor.SLASHED_DAY: lambda path: _dated(path, _DAY),
    PartitionExtractor.SLASHED_HOUR: lambda path: _dated(path, _HOUR),
    PartitionExtractor.NONE: lambda _: (),
}


@dataclass(frozen=True, slots=True)
class Touched:
    """Partitions that a sync compares."""

    present: tuple[str, ...]  # paths of partitions that were written to
    gone: tuple[str, ...] = ()  # paths of partitions whose file groups were all deleted
    all_of_them: bool = False


def all_partitions(table: Table, timeline: Timeline) -> Touched:
    """Return all partitions that have live file groups, by one listing of the table."""
    view = FileSystemView(table.storage, timeline, verify=False)
    found = {slice_.group.partition_path for slice_ in view.slices_among(view.data_files())}
    return Touched(tuple(sorted(found)), all_of_them=True)


def touched_partitions(table: Table, timeline: Timeline, commits: Collection[Instant]) -> Touched:
    """Return the partitions in which some commits wrote or replaced file groups."""
    touched: set[str] = set()
    replaced: set[str] = set()
    for instant in commits:
        changes = file_changes(table.storage, instant)
        if not changes.is_rewrite:
            touched |= changes.partitions
            replaced.update(changes.replaced)
    view = FileSystemView(table.storage, timeline, verify=False)
    gone = {path for path in replaced if not view.latest_slices(path)}
    return Touched(tuple(sorted(touched - gone)), tuple(sorted(gone)))


def commits_since(
    timeline: Timeline, last: str, completed: str, pending: Collection[str]
) -> Iterator[Instant]:
    """Yield the writes that completed after a sync, the newest first."""
    oldest = min((last, *pending))
    for instant in timeline.commits_backwards():
        ended_later = bool(completed) and instant.completion_time > completed
        if instant.time > last or ended_later or instant.time in pending:
            yield instant
        elif timeline.layout == 1 and instant.time < oldest:
            return
