"""Which file groups a table service is to rewrite, as its plan says.

A service reads what its plan names. Rows that are committed to those file groups after it was
planned are not among that, and are gone once it completes; but those in log files that are named
after a compaction lie on top of what it makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.clustering_plan import clustered_groups
from hoodie_ds.timeline.bodies.compaction_plan import compacted_groups
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline

_PLANS_KEPT: Final = 64


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
    if instant.action in REPLACING:
        with suppress(NotFoundError):  # then it was rolled back
            return _groups(clustered_groups(storage.read(path), path))
    elif instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        try:
            return _groups(compacted_groups(storage.read(path), path))
        except NotFoundError as error:
            raise CorruptFileError(
                f"{path} is missing: the compaction was rolled back or archived since the "
                "timeline was loaded, or the file was lost; run the batch again"
            ) from error
    return frozenset()


def compacting(storage: Storage, timeline: Timeline) -> Mapping[FileGroupId, str]:
    """Return the file groups in plans of pending compactions, each with the plan's instant time.

    In table version 6 the log files that follow a plan are named after it (Hudi tech spec,
    "compaction"): so the compaction's base file begins the slice that they are of. And nothing
    else may begin a slice of such a file group meanwhile.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        Says which compactions are pending.

    Raises
    ------
    CorruptFileError
        A plan is missing, or cannot be read.
    """
    return {
        group: instant.time
        for instant in timeline.pending_compactions
        for group in _planned_once(storage, instant.at(State.REQUESTED))
    }


def clustering(storage: Storage, timeline: Timeline) -> Mapping[FileGroupId, str]:
    """Return the file groups in plans of pending clusterings, each with the plan's instant time.

    Once a clustering completes they are replaced by others, which have the rows of before alone:
    nobody may write to them meanwhile.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        Says which clusterings are pending.

    Raises
    ------
    CorruptFileError
        A plan cannot be read.
    """
    return {
        group: instant.time
        for instant in timeline.pending
        if instant.action in REPLACING
        for group in _planned_once(storage, instant.at(State.REQUESTED))
    }


@lru_cache(maxsize=_PLANS_KEPT)
def _planned_once(storage: Storage, instant: Instant) -> frozenset[FileGroupId]:
    """As `planned_groups`; a plan never changes."""
    return planned_groups(storage, instant)


def _groups(named: frozenset[tuple[str, str]]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(path, file_id) for path, file_id in named)
