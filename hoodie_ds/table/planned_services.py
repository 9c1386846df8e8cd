"""Which file groups a table service is to rewrite, by its plan.

A service reads what its plan names. Rows that are committed to those file groups later are lost
once it completes, unless they are in log files that are named after a compaction, on top of its
base file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeVar

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.hints import COPY, plan_given_up
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.clustering_plan import clustered_groups
from hoodie_ds.timeline.bodies.compaction_plan import compacted_groups
from hoodie_ds.timeline.commands import changing
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State
from hoodie_ds.timeline.paths import HOODIE, instant_path
from hoodie_ds.timeline.timeline import Timeline

T = TypeVar("T")
_PLANS_KEPT: Final = 64


def plan_of(storage: Storage, pending: Instant, parse: Callable[[bytes, str], T]) -> T:
    """Read the plan of a pending service; raises `NotFoundError` if it is gone.

    A `CorruptFileError` of a damaged plan names the command that gives it up, unless rows were
    written on top of it.
    """
    path = instant_path(pending.at(State.REQUESTED))
    data = storage.read(path)
    try:
        if not data and pending.action is not Action.REPLACE_COMMIT:  # which may have no plan
            raise CorruptFileError(f"{path} is empty")
        return parse(data, path)
    except CorruptFileError as error:
        undo = plan_given_up(changing(storage, "rollback", pending.time))
        raise error.with_remedy(undo if built_on(storage, pending) is None else COPY) from error


def built_on(storage: Storage, pending: Instant) -> str | None:
    """Return the path of a log file that is named after a pending plan; None without one.

    Its rows are on top of what the plan will write, so the plan cannot be given up.
    """
    for status in storage.list("", recursive=True):
        log = LogFileName.parse(status.path.rpartition("/")[2])
        is_data = not status.path.startswith(f"{HOODIE}/")
        if log is not None and log.base_instant == pending.time and is_data:
            return status.path
    return None


def planned_groups(storage: Storage, instant: Instant) -> frozenset[FileGroupId]:
    """Return the file groups that the plan of a pending instant names.

    Empty for an instant without such a plan, such as an overwrite. Raises `CorruptFileError` if the
    plan of a compaction is missing.
    """
    if instant.action in REPLACING:
        with suppress(NotFoundError):  # then it was rolled back
            return _groups(plan_of(storage, instant, clustered_groups))
    elif instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        try:
            return _groups(plan_of(storage, instant, compacted_groups))
        except NotFoundError as error:
            path = instant_path(instant.at(State.REQUESTED))
            raise CorruptFileError(
                f"{path} is missing: the compaction was rolled back or archived since the "
                "timeline was loaded, or the file was lost",
                "run the batch again",
            ) from error
    return frozenset()


def plan_error(storage: Storage, pending: Instant) -> CorruptFileError | None:
    """Return what is wrong with the plan of a pending instant; None if it can be read."""
    try:
        planned_groups(storage, pending)
    except CorruptFileError as error:
        return error
    return None


def compacting(storage: Storage, timeline: Timeline) -> Mapping[FileGroupId, str]:
    """Return the file groups in plans of pending compactions, each with the plan's instant time.

    In table version 6 the log files that follow a plan are named after it (Hudi tech spec,
    "compaction"), so the compaction's base file begins their slice. Nothing else may begin a slice
    of such a file group meanwhile.
    """
    return {
        group: instant.time
        for instant in timeline.pending_compactions
        for group in _planned_once(storage, instant.at(State.REQUESTED))
    }


def clustering(storage: Storage, timeline: Timeline) -> Mapping[FileGroupId, str]:
    """Return the file groups in plans of pending clusterings, each with the plan's instant time.

    No writer may write to them: a clustering that completes replaces them by others, which have the
    rows of its plan only.
    """
    return {
        group: instant.time
        for instant in timeline.pending
        if instant.action in REPLACING
        for group in _planned_once(storage, instant.at(State.REQUESTED))
    }


@lru_cache(maxsize=_PLANS_KEPT)
def _planned_once(storage: Storage, instant: Instant) -> frozenset[FileGroupId]:
    """`planned_groups`, cached; a plan never changes."""
    return planned_groups(storage, instant)


def _groups(named: frozenset[tuple[str, str]]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(path, file_id) for path, file_id in named)
