"""Which file groups a table service of another engine is to rewrite, as its plan says.

A service reads what its plan names. Rows that are committed to those file groups after it was
planned are not among that, and are gone once it completes.
"""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.compaction_plan import compacted_groups
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.replace_plan import clustered_groups


def planned_groups(storage: Storage, instant: Instant) -> frozenset[FileGroupId]:
    """Return the file groups that a pending instant is to rewrite by a plan.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    instant : Instant
        A pending instant.

    Returns
    -------
    frozenset of FileGroupId
        Empty for what has no such plan, an overwrite for instance.

    Raises
    ------
    CorruptFileError
        There is no plan of a compaction, or it cannot be read.
    """
    path = instant_path(instant.at(State.REQUESTED))
    if instant.action is Action.REPLACE_COMMIT:
        with suppress(NotFoundError):  # then it was rolled back
            return _groups(clustered_groups(storage.read(path), path))
    elif instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        try:
            return _groups(compacted_groups(storage.read(path), path))
        except NotFoundError as error:
            raise CorruptFileError(f"{path} is missing") from error
    return frozenset()


def _groups(named: frozenset[tuple[str, str]]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(path, file_id) for path, file_id in named)
