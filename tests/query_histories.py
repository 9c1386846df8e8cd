"""Tables that are written, replaced, rewritten, cleaned, archived and undone, with a model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hoodie_ds import HoodieTable
from hoodie_ds.cli.target import FAILED
from hoodie_ds.errors import TimelineError
from tests.cli_runs import run
from tests.partial_updates import without_columns
from tests.tables import trips

Rows = dict[str, tuple[int, float]]
RETAINED = 3
"""Commits that a clean retains: queries that begin with the oldest of them get their answer."""

WRITES = {
    "upsert": 8,
    "delete": 2,
    "overwrite": 1,
    "overwrite_partition": 1,
    "delete_partitions": 1,
}
IN_LOGS = {"update_time": 3, "lose": 1}
"""Updates of some columns, which log files alone can hold; those that lose change nothing."""
SERVICES = {"compact": 2, "cluster": 1, "clean": 2, "archive": 2, "archive beyond": 3}
COMMANDS = {"savepoint": 2, "savepoint --delete": 1, "rollback": 1, "restore": 1, "cleanup": 1}
"""What an operator runs, in any order."""
OTHERS = {"savepoint is gone": 1}
"""What another engine does, whatever was archived after the savepoint's commit."""
KEPT = {
    "hoodie.clean.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": str(RETAINED + 1),
    "hoodie.keep.max.commits": "5",
}


@dataclass(frozen=True)
class Moment:
    """What a table held when an instant was its newest commit.

    `bound` is the time of the instant by which ranges count, and `number` the step it was made in.
    """

    time: str
    bound: str
    rows: Rows
    number: int


@dataclass
class History:
    """A table, the model of its rows, and what both were."""

    path: Path
    options: dict[str, str]
    chance: random.Random
    rows: Rows = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=lambda: [Moment("000", "000", {}, 0)])
    retained: str = "000"
    """Time of the oldest commit that every clean and archive until now had to leave."""
    done: Counter[str] = field(default_factory=Counter)
    keys: str = "abcdefgh"
    batch: int = 3
    """Keys of a write."""

    @property
    def table(self) -> HoodieTable:
        """The table, for somebody who has not seen it yet."""
        return HoodieTable(self.path, self.options)

    def step(self, number: int) -> None:
        """Do something to the table, and the same to the model."""
        kinds = {**WRITES, **SERVICES, **COMMANDS, **OTHERS} if number > 1 else {"upsert": 1}
        if self.rows and self.table.properties.table_type.value == "MERGE_ON_READ":
            kinds |= IN_LOGS
        (kind,) = self.chance.choices([*kinds], [*kinds.values()])
        if number > 1 and not self.table.timeline.commits:  # all have been taken back
            kind = "upsert"
        self.do(kind, number)
        assert content(self.table.read()) == self.rows, kind
        if kind in COMMANDS or kind in OTHERS:
            assert self.table.inspect.verify().damage == ()

    def do(self, kind: str, number: int) -> None:
        """Do something that is chosen."""
        if kind in WRITES:
            self.write(kind, number)
        elif kind in IN_LOGS:
            self.update(kind, number)
        elif kind in SERVICES:
            self.service(kind)
        elif kind in COMMANDS:
            self.command(kind)
        else:
            self.forget_savepoint()
        self.done[kind] += 1
        known = {moment.time for moment in self.moments}
        for new in self.table.timeline.commits:
            if new.time not in known and new.time > self.moments[-1].time:
                bound = new.time if self.table.properties.version == 6 else new.ended
                self.moments.append(Moment(new.time, bound, dict(self.rows), number))

    def write(self, kind: str, number: int) -> None:
        keys = self.chance.sample(self.keys, self.batch)
        rows = trips(*((key, "xy"[ord(key) % 2], number, float(number)) for key in keys))
        new = {key: (number, float(number)) for key in keys}
        if kind == "delete":
            self.table.delete(rows.select(["id", "city"]))
            self.drop(lambda key: key in keys)
        elif kind == "delete_partitions":
            self.table.delete_partitions("x")
            self.drop(lambda key: ord(key) % 2 == 0)
        elif kind == "overwrite":
            self.table.overwrite(rows)
            self.rows = new
        elif kind == "overwrite_partition":
            self.table.overwrite(rows, partitions_only=True)
            touched = {ord(key) % 2 for key in keys}
            self.drop(lambda key: ord(key) % 2 in touched)
            self.rows |= new
        else:
            self.table.upsert(rows)
            self.rows |= new

    def update(self, kind: str, number: int) -> None:
        """Update the column that orders, by rows that lack the others."""
        keys = self.chance.sample(sorted(self.rows), min(self.batch, len(self.rows)))
        ts = number if kind == "update_time" else 0
        with without_columns("id", "city", "fare"):
            self.table.upsert(trips(*((key, "xy"[ord(key) % 2], ts, None) for key in keys)))
        if ts:
            self.rows |= {key: (ts, self.rows[key][1]) for key in keys}

    def drop(self, is_gone: Callable[[str], bool]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if not is_gone(key)}

    def service(self, kind: str) -> None:
        commits = [instant.time for instant in self.table.timeline.commits]
        if kind == "compact" and self.table.properties.table_type.value == "MERGE_ON_READ":
            self.table.compact()
        elif kind == "cluster" and "hoodie.index.type" in self.options:
            self.table.cluster({"hoodie.clustering.plan.strategy.small.file.limit": "1MB"})
        elif kind == "clean" and self.table.clean(KEPT):
            self.retained = max(self.retained, commits[-RETAINED:][0])
        elif kind == "archive":
            self.archive()
        elif kind == "archive beyond":
            with suppress(TimelineError):  # a clean took its files
                self.table.savepoint(self.chance.choice(commits[:2]))
            self.archive({"hoodie.archive.beyond.savepoint": "true"})

    def archive(self, options: Mapping[str, str] = MappingProxyType({})) -> None:
        archived = {instant.time for instant in self.table.archive({**KEPT, **options})}
        gone = [moment.time for moment in self.moments if moment.time in archived]
        if gone:
            left = [instant.time for instant in self.table.timeline.commits]
            self.done["hole"] += left[0] < gone[-1]
            self.retained = max(self.retained, min(time for time in left if time > gone[-1]))

    def command(self, name: str) -> None:
        """Run a command, which may be refused."""
        given = []
        if name == "savepoint --delete":
            given = [self.chance.choice(self.savepoints() or ["000"])]
        elif name == "savepoint":
            given = [self.chance.choice(self.moments).time]
        elif name == "restore":
            given = [self.chance.choice(self.moments[-4:]).time]
        options = chain.from_iterable(("--conf", f"{key}={value}") for key, value in KEPT.items())
        ended = run(*name.split(), self.path, *given, "--yes", *options)
        if ended.code:
            assert ended.code == FAILED, ended
            self.done[f"{name} refused"] += 1
        elif name == "rollback":
            self.moments.pop()
        elif name == "restore":
            self.moments = [moment for moment in self.moments if moment.time <= given[0]]
        self.rows = dict(self.moments[-1].rows)

    def forget_savepoint(self) -> None:
        """Delete a savepoint's files alone."""
        for time in self.savepoints()[:1]:
            for file in (self.path / ".hoodie").rglob(f"{time}*.savepoint*"):
                file.unlink()

    def savepoints(self) -> list[str]:
        return [savepoint.time for savepoint in self.table.timeline.savepoints]


def content(rows: Any) -> Rows:
    if not rows:  # of a table without commits there are no columns either
        return {}
    found = rows.select(["id", "ts", "fare"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["ts"], row["fare"]) for row in found}
