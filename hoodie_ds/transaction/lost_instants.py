"""Lost instants: completed by the decision log, but their completed files are missing.

On the timeline such an instant is pending, like that of a failed write. Its rows would be hidden,
and recovery would delete its files. So readers and recovery refuse, and the error says what to do.
The log has only the last decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.replace_plan import is_pending_clustering
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_status import InstantStatus, status_of
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollbacks import is_undone
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Decision, Outcome, logged_decisions
from hoodie_ds.transaction.manifest import newest_manifest
from hoodie_ds.transaction.ownership import is_claimed
from hoodie_ds.transaction.rollback import UNDONE_ACTIONS
from hoodie_ds.transaction.temporary_files import is_of_earlier_release


def lost_instants(table: Table) -> Iterator[Decision]:
    """Yield the decisions that completed instants which are pending on the timeline.

    A decision is applied before the next one is made. So only the newest one's completed file may
    not be there yet, and the next writer puts it from the manifest.
    """
    storage = table.storage
    decisions = logged_decisions(storage)
    completing = _completions(decisions)
    if not completing:
        return
    # A manifest is deleted after its completed file is put, so the timeline is loaded last.
    newest = decisions[-1]
    former = is_of_earlier_release(storage, newest.instant.time)
    waiting = newest if former or newest_manifest(storage, newest.instant) else None
    timeline = table.load_timeline()
    if any(instant.action is Action.RESTORE for instant in timeline.pending):
        return
    for time, decision in completing.items():
        if decision is waiting or status_of(storage, timeline, time) is not InstantStatus.PENDING:
            continue
        if not is_undone(storage, timeline, time):  # else opened again by a late task
            yield decision


def vanished_instants(table: Table, timeline: Timeline) -> dict[str, Decision]:
    """Return by time the decisions that completed writes which are not on a timeline at all.

    There is no rollback of them either, unless another engine archived it. If their data files
    exist, they were not rolled back.
    """
    storage = table.storage
    return {
        time: one
        for time, one in _completions(logged_decisions(storage)).items()
        if one.instant.action in UNDONE_ACTIONS
        and not timeline.starts_after(time)
        and not timeline.at(time)
        and status_of(storage, timeline, time) is InstantStatus.UNKNOWN
        and not is_undone(storage, timeline, time)
    }


def refuse_lost(table: Table, times: Collection[str]) -> None:
    """Refuse if the completed file of one of some pending instants is lost.

    An instant with a claim is open: a writer may have opened it again after it was archived.
    """
    closed = [time for time in times if not is_claimed(table.storage, time)]
    lost = lost_instants(table) if closed else iter(())
    decision = next((one for one in lost if one.instant.time in closed), None)
    if decision is not None:
        raise lost_error(table, decision)


def lost_error(table: Table, decision: Decision) -> CorruptFileError:
    """Return the error of a lost instant, with its remedy."""
    instant, path = decision.instant, instant_path(decision.completed)
    gone = (
        f"{table.storage.root}/{path} is missing, although {instant.action.value} {instant.time} "
        "was completed"
    )
    service = _service(table.storage, instant)
    if service is not None:
        again = table.command(service)
        return CorruptFileError(
            gone, f"restore the file from a copy, or carry out its plan again with {again}"
        )
    return CorruptFileError(
        f"{gone}, so its rows would be left out and deleted",
        "restore the file from a copy, or give up its rows with "
        f"{table.command('rollback', instant.time)}",
    )


def _service(storage: Storage, pending: Instant) -> str | None:
    """The command that carries out a pending plan; None for a write."""
    if pending.action is Action.COMPACTION:
        return "compact"
    return "cluster" if is_pending_clustering(storage, pending) else None


def check_nothing_is_lost(table: Table, timeline: Timeline) -> None:
    """Refuse to read if rows of a completed write would be missing, or be there twice.

    A lost compaction hides nothing: the log files that it merged are read.
    """
    hiding = (*UNDONE_ACTIONS, Action.CLUSTERING)
    refuse_lost(table, [i.time for i in timeline.pending if i.action in hiding])


def _completions(decisions: Iterable[Decision]) -> dict[str, Decision]:
    """The decisions that completed instants, by time, unless later ones say otherwise."""
    last = {one.instant.time: one for one in decisions if _concerns_instant(one)}
    return {time: one for time, one in last.items() if one.outcome is Outcome.COMPLETE}


def _concerns_instant(decision: Decision) -> bool:
    """Whether a decision is about the instant itself, not about its savepoint or the table."""
    of_table = decision.outcome is Outcome.CHANGE_VERSION
    return not of_table and decision.instant.action is not Action.SAVEPOINT
