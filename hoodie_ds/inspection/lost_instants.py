"""Instants that were completed, by the decision log, and whose completed files are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.inspection.promises import Finding, Kind
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollbacks import target_of
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Decision, Outcome, logged_decisions
from hoodie_ds.transaction.manifest import newest_manifest

_TEXT: Final = (
    "the instant was completed, and the file that says so is gone, so its rows are hidden and the "
    "next write rolls it back"
)
_REMEDY: Final = "restore the file from a copy before anybody writes"


def lost_instants(table: Table) -> Iterator[Finding]:
    """Yield the instants of `lost_by_time`, or why the decision log cannot say."""
    try:
        yield from lost_by_time(table).values()
    except CorruptFileError as error:
        yield Finding.of(Kind.DAMAGED_INSTANT, table.storage.root, error)


def lost_by_time(table: Table) -> dict[str, Finding]:
    """Return the instants that the timeline has as pending, though they were completed.

    Their rows are hidden, and the next writer takes them for those of a write that failed. A
    decision is applied before the next one is made, so of the newest alone the completed file may
    not be there yet, and then whoever writes next puts it from the manifest.

    Parameters
    ----------
    table : Table
        The table.

    Raises
    ------
    CorruptFileError
        The decision log is damaged.
    """
    decisions = logged_decisions(table.storage)
    last = {one.instant.time: one for one in decisions if _is_about_it(one)}
    timeline = table.load_timeline()  # not before the decisions, which are applied by now
    if not last or any(i.action is Action.RESTORE for i in timeline.pending):
        return {}
    found = {}
    undone = _undone(table, timeline)
    for time, decision in last.items():
        if decision.outcome is not Outcome.COMPLETE or not timeline.is_pending(time):
            continue
        if time in undone or (decision is decisions[-1] and _has_manifest(table, decision)):
            continue
        path = instant_path(decision.completed)
        found[time] = Finding(Kind.DAMAGED_INSTANT, path, _TEXT, _REMEDY)
    return found


def _is_about_it(decision: Decision) -> bool:
    """Whether a decision is about the instant of its time, and not about what stands on it."""
    of_table = decision.outcome is Outcome.CHANGE_VERSION
    return not of_table and decision.instant.action is not Action.SAVEPOINT


def _undone(table: Table, timeline: Timeline) -> set[str | None]:
    """Times of the instants that pending rollbacks are about."""
    try:
        rollbacks = (i for i in timeline.pending if i.action is Action.ROLLBACK)
        return {target_of(table.storage, one) for one in rollbacks}
    except CorruptFileError:  # told as a damaged instant
        return set()


def _has_manifest(table: Table, decision: Decision) -> bool:
    try:
        return newest_manifest(table.storage, decision.instant) is not None
    except CorruptFileError:
        return False
