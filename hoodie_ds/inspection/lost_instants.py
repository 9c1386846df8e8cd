"""What an operator is told of instants that were completed and whose completed files are gone."""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.inspection.promises import Finding, Kind
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.transaction.decision_log import Decision
from hoodie_ds.transaction.lost_instants import lost_error, lost_instants


def lost_findings(table: Table) -> Iterator[Finding]:
    """Yield the instants of `lost_by_time`, or why the decision log cannot say."""
    try:
        yield from lost_by_time(table).values()
    except CorruptFileError as error:
        yield Finding.of(Kind.DAMAGED_INSTANT, table.storage.root, error)


def lost_by_time(table: Table) -> dict[str, Finding]:
    """Return the instants that the timeline has as pending, though they were completed.

    Parameters
    ----------
    table : Table
        The table.

    Raises
    ------
    CorruptFileError
        The decision log is damaged.
    """
    return {
        decision.instant.time: Finding.of(
            Kind.DAMAGED_INSTANT, instant_path(decision.completed), lost_error(table, decision)
        )
        for decision in lost_instants(table)
    }


def vanished_finding(decision: Decision) -> Finding:
    """Return what is wrong with a completed write of which the timeline has nothing."""
    action, time = decision.instant.action.value, decision.instant.time
    return Finding(
        Kind.DAMAGED_INSTANT,
        instant_path(decision.completed),
        f"{action} {time} was completed, as the decision log says, and all its files on the "
        "timeline are gone, so its rows are left out",
        "restore them from a copy",
    )
