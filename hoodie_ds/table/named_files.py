"""Files that commits name and that storage does not have.

Slices are made of the files that a listing shows. Of a file that was lost it shows nothing, so a
reader that went by it alone would return fewer rows, or older ones, and not know it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline, read_commit


@dataclass(slots=True)
class _Named:
    """Files of one file group: by path, when their slice begins, and the commit that names them."""

    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    newest_base: str = ""


def check_nothing_is_missing(storage: Storage, timeline: Timeline, found: Collection[str]) -> None:
    """Compare the files that make up the newest slices, as the commits tell, with a listing.

    Files of older slices may have been cleaned, those of replaced file groups too; commits that
    have been archived are not asked.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is read; loaded before the listing.
    found : collection of str
        Paths of the data files that storage has.

    Raises
    ------
    CorruptFileError
        A file is missing; names it and the commit that wrote it.
    """
    for named in _named_by_group(storage, timeline).values():
        for path, (start, commit) in named.files.items():
            if start >= named.newest_base and path not in found:
                raise CorruptFileError(
                    f"{storage.root}/{path} is missing, which {commit} names; restore it from a "
                    "copy before going on, or roll back that commit and those after it"
                )


def _named_by_group(storage: Storage, timeline: Timeline) -> dict[FileGroupId, _Named]:
    groups: dict[FileGroupId, _Named] = {}
    replaced: set[FileGroupId] = set()
    for instant in timeline.commits:
        commit = read_commit(storage, instant)
        for partition, ids in commit.replaced.items():
            replaced |= {FileGroupId(partition, file_id) for file_id in ids}
        for stat in commit.stats:
            name = stat.path.rpartition("/")[2]
            base, log = BaseFileName.parse(name), LogFileName.parse(name)
            file = base or log
            if file is None:  # Hudi leaves the path out where it wrote nothing
                continue
            named = groups.setdefault(FileGroupId(stat.partition_path, file.file_id), _Named())
            start = padded(log.base_instant if log else instant.time)
            named.files[stat.path] = (start, commit_path(instant))
            if base is not None:
                named.newest_base = max(named.newest_base, start)
    return {group: named for group, named in groups.items() if group not in replaced}
