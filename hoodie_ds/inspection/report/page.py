"""A page about a table, in one HTML file that loads nothing else.

The page holds the facts as JSON, by columns, so that 10,000 commits and file groups are some
hundred KB; a script in it draws them. Strings of the table are data there, never HTML.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.resources import files
from itertools import accumulate
from typing import Any, Final, TypeVar

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.inspection.files import PartitionRow, TableFiles, table_files
from hoodie_ds.inspection.instants import CommitRow, InstantRow, commit_rows, instant_rows
from hoodie_ds.inspection.listing import plain
from hoodie_ds.inspection.overview import table_overview
from hoodie_ds.inspection.pending_instants import pending_rows
from hoodie_ds.inspection.verify import Verification
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.timeline import Timeline

_RowT = TypeVar("_RowT")

_PARTITIONS: Final = 500
_FINDINGS: Final = 1_000
_PLACE: Final = "/*FACTS*/"
_WRITES: Final = frozenset(
    {Action.COMMIT.value, Action.DELTA_COMMIT.value, Action.REPLACE_COMMIT.value}
)
_SERVICES: Final = {
    "COMPACT": Action.COMPACTION.value,
    "LOG_COMPACT": Action.LOG_COMPACTION.value,
    "CLUSTER": Action.CLUSTERING.value,
}
"""Operations of commits by table services, and the actions of the same while pending."""


def report_html(
    table: Table, timeline: Timeline, verification: Verification | None, made_ms: int
) -> str:
    """Return a page about a table in HTML, made at a time in milliseconds since 1970.

    Its content security policy forbids to load anything. It reads the whole archive.
    """
    page = (files(__package__) / "page.html").read_text(encoding="utf-8")
    # No string of the table can end the script that holds it.
    text = json.dumps(_facts(table, timeline, verification, made_ms), separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    before, _, after = page.partition(_PLACE)
    return f"{before}{safe}{after}"


def _facts(
    table: Table, timeline: Timeline, verification: Verification | None, made_ms: int
) -> dict[str, Any]:
    damage: list[str] = []
    try:
        found = table_files(table, timeline)
    except CorruptFileError as error:  # the page is to show it
        found = TableFiles((), {})
        damage.append(f"its files are not shown: {error}")
    instants = _readable("instants", instant_rows(table, timeline), damage)[::-1]
    commits = _readable("commits", commit_rows(table, timeline), damage)[::-1]
    plans = _readable("plans", pending_rows(table, timeline), damage)
    done = _by_service(instants, commits)
    rows = sum(row.inserted - row.deleted for row in commits)
    if verification is not None:
        shown = verification.findings[:_FINDINGS]
        verification = replace(verification, findings=shown)
        rows = verification.rows
    overview = plain(table_overview(table, timeline, found))
    overview["remarks"] = [*damage, *overview["remarks"]]
    largest = sorted(found.partitions, key=_size, reverse=True)[:_PARTITIONS]
    return {
        "made": made_ms,
        "overview": {name: overview[name] for name in overview if name != "properties"},
        "rows": rows,
        "timeline": _timeline(done),
        "commits": _commits(commits, instants, rows),
        "groups": _groups(found),
        "partitions": [plain(row) for row in largest],
        "num_partitions": len(found.partitions),
        "services": _services(done),
        "plans": [plain(row) for row in plans],
        "verification": plain(verification),
    }


def _readable(what: str, rows: Iterable[_RowT], damage: list[str]) -> list[_RowT]:
    """Return the rows before the first that cannot be read; `damage` gets the reason."""
    found: list[_RowT] = []
    try:
        found.extend(rows)
    except CorruptFileError as error:
        damage.append(f"its {what} are not all shown: {error}")
    return found


def _size(row: PartitionRow) -> int:
    return row.base_bytes + row.log_bytes


def _timeline(rows: Sequence[InstantRow]) -> dict[str, Any]:
    actions, states = _numbered(row.action for row in rows), _numbered(row.state for row in rows)
    return {
        "time": [_epoch_ms(row.time) for row in rows],
        "action": [actions[row.action] for row in rows],
        "state": [states[row.state] for row in rows],
        "duration": [row.duration_ms for row in rows],
        "archived": [int(row.archived) for row in rows],
        "actions": [*actions],
        "states": [*states],
    }


def _commits(
    rows: Sequence[CommitRow], instants: Iterable[InstantRow], total: int
) -> dict[str, Any]:
    took = {(row.time, row.action): row.duration_ms for row in instants}
    operations = _numbered(row.operation for row in rows)
    queries = _numbered(row.query for row in rows)
    growth = [*accumulate(row.inserted - row.deleted for row in rows)]
    # Rows from before the first known commit, or replaced since.
    others = total - growth[-1] if growth else 0
    return {
        "time": [_epoch_ms(row.time) for row in rows],
        "operation": [operations[row.operation] for row in rows],
        "operations": [*operations],
        "inserted": [row.inserted for row in rows],
        "updated": [row.updated for row in rows],
        "deleted": [row.deleted for row in rows],
        "total": [max(count + others, 0) for count in growth],
        "written": [*accumulate(row.bytes for row in rows)],
        "rows_in": [row.rows_in for row in rows],
        "query": [queries[row.query] for row in rows],
        "queries": [*queries],
        "batch": [row.batch for row in rows],
        "duration": [took.get((row.time, row.action)) for row in rows],
    }


def _groups(found: TableFiles) -> dict[str, list[int]]:
    return {
        "base": [group.base_bytes for group in found.groups],
        "log": [group.log_bytes for group in found.groups],
    }


def _by_service(instants: Iterable[InstantRow], commits: Iterable[CommitRow]) -> list[InstantRow]:
    """Return instants, with completed compactions and clusterings named as such."""
    services = {row.time: _SERVICES.get(row.operation) for row in commits}
    return [
        replace(row, action=services.get(row.time) or row.action) if row.action in _WRITES else row
        for row in instants
    ]


def _services(rows: Sequence[InstantRow]) -> list[dict[str, Any]]:
    """Return the instants other than writes by action: how many, and how long they took."""
    by_action: dict[str, list[InstantRow]] = {}
    for row in rows:
        if row.action not in _WRITES:
            by_action.setdefault(row.action, []).append(row)
    services = []
    for action, mine in sorted(by_action.items()):
        done = [row for row in mine if row.state == State.COMPLETED.value]
        took = [row.duration_ms for row in done if row.duration_ms is not None]
        services.append(
            {
                "action": action,
                "done": len(done),
                "pending": len(mine) - len(done),
                "last": _epoch_ms(done[-1].time) if done else None,
                "median": round(statistics.median(took)) if took else None,
            }
        )
    return services


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _epoch_ms(time: str) -> int | None:
    """Return an instant time as milliseconds; None if it is invalid, as a table's first may be."""
    try:
        found = datetime.strptime(f"{padded(time)}000", "%Y%m%d%H%M%S%f")
    except ValueError:
        return None
    return round(found.replace(tzinfo=timezone.utc).timestamp() * 1000)
