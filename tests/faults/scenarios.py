"""What the sweep kills: small streams, each with something of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tests.faults.stream import Step
from tests.tables import BUCKETS, KEY, TRIPS, TYPE, TYPES, VERSION, trips

MOVES = "hoodie.record.index.update.partition.path"
COW, MOR = ({TYPE: kind} for kind in TYPES)
VERSIONS = ("6", "9")
"""Table versions with a timeline layout each."""
VERSION_9 = {VERSION: "9"}
CHANGE_DATA = {"hoodie.table.cdc.enabled": "true"}
SPAN = {"hoodie.streaming.batches.per.commit": "2"}
# Filters for a few keys: those of the default size take longer than all else.
BLOOM = {BUCKETS: "", "hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "100"}
STATE = {"hoodie.index.type": "FLINK_STATE", "index.global.enabled": "false"}
RECORDS = {
    **BLOOM,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
# Files that are full after a few rows.
SMALL = {"hoodie.copyonwrite.record.size.estimate": "20000000"}

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "x", 1, 1.0))
TWO = trips(("a", "x", 2, 2.0), ("d", "x", 2, 2.0))
ELSEWHERE = trips(("a", "y", 2, 2.0), ("e", "y", 2, 2.0))
BOTH = trips(("a", "x", 3, 3.0), ("b", "x", 3, 3.0), ("a", "y", 3, 3.0), ("f", "y", 3, 3.0))
NONE = ONE.slice(0, 0)
TIPS = TWO.append_column("tip", pa.array([0.5, 0.25]))
MANY = trips(*((f"k{i}", f"c{i % 2}", 4, float(i)) for i in range(24)))


@dataclass(frozen=True)
class Scenario:
    """A table, made by the steps before, and the steps that are killed."""

    before: tuple[Step, ...]
    steps: tuple[Step, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    dead: Step | None = None
    """A batch whose driver died before the commit."""

    @property
    def opts(self) -> dict[str, str]:
        return {k: v for k, v in {**TRIPS, **self.options}.items() if v}

    @property
    def keyed(self) -> bool:
        return KEY in self.opts

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns of which there is one row."""
        return ("id",) if self.options.get(MOVES) == "true" else ("city", "id")


def _of_both(name: str, scenario: Scenario) -> dict[str, Scenario]:
    return {
        f"{name}, {short}": Scenario(
            scenario.before, scenario.steps, {**kind, **scenario.options}, scenario.dead
        )
        for short, kind in (("cow", COW), ("mor", MOR))
    }


BEGUN = (Step(ONE),)
SCENARIOS = {
    **_of_both("first batch", Scenario((), (Step(ONE),))),
    **_of_both("upsert", Scenario(BEGUN, (Step(TWO),))),
    **_of_both("upsert, three tasks", Scenario(BEGUN, (Step(BOTH, tasks=3),))),
    **_of_both("first insert into a new partition", Scenario(BEGUN, (Step(ELSEWHERE),))),
    **_of_both("delete", Scenario(BEGUN, (Step(TWO, "delete"), Step(TWO)))),
    **_of_both(
        "delete by a filter",
        Scenario((Step(ONE), Step(BOTH)), (Step(TWO, "delete", least_fare=2.0), Step(TWO)), BLOOM),
    ),
    **_of_both(
        "update by a filter",
        Scenario((Step(ONE), Step(BOTH)), (Step(TWO, least_fare=2.0), Step(TWO, least_fare=5.0))),
    ),
    **_of_both("merge", Scenario(BEGUN, (Step(TWO, merged=True), Step(BOTH, merged=True)))),
    **_of_both("schema add", Scenario(BEGUN, (Step(TIPS),))),
    **_of_both(
        "empty batch",
        Scenario(BEGUN, (Step(NONE), Step(TWO)), {"hoodie.allow.empty.commit": "true"}),
    ),
    **_of_both(
        "several flushes",
        Scenario(BEGUN, (Step(MANY.slice(0, 12), batched=4),), {"write.task.max.size": "0.0005"}),
    ),
    **_of_both("rollback", Scenario(BEGUN, (Step(BOTH),), dead=Step(BOTH, tasks=2))),
    **_of_both("two partitions, two buckets", Scenario((Step(BOTH),), (Step(BOTH), Step(MANY)))),
    **_of_both("insert overwrite", Scenario(BEGUN, (Step(TWO, "insert_overwrite"), Step(BOTH)))),
    **_of_both("bloom, small files", Scenario(BEGUN, (Step(MANY, tasks=2),), {**BLOOM, **SMALL})),
    **_of_both(
        "state",
        Scenario(BEGUN, (Step(BOTH, tasks=2),), {**BLOOM, **STATE}),
    ),
    **_of_both("record index", Scenario((), (Step(ONE), Step(TWO, tasks=2)), RECORDS)),
    "change data, cow": Scenario(
        BEGUN, (Step(TWO, "delete"), Step(BOTH, tasks=2)), {**COW, **CHANGE_DATA}
    ),
    "change data, mor": Scenario(BEGUN, (Step(TWO),), {**MOR, **BLOOM, **CHANGE_DATA}),
    **_of_both("two batches in an instant", Scenario(BEGUN, (Step(TWO), Step(BOTH)), SPAN)),
    "table create": Scenario((), (Step(NONE), Step(ONE))),
    "changes without keys": Scenario(
        (Step(ONE, "insert"), Step(TWO, "insert")),
        (
            Step(TWO, least_fare=2.0),
            Step(BOTH, merged=True),
            Step(TWO, "delete", least_fare=4.0),
        ),
        {**MOR, KEY: "", BUCKETS: ""},
    ),
    "append without keys": Scenario(
        (Step(ONE, "insert"),), (Step(TWO, "insert", tasks=2),), {KEY: "", BUCKETS: ""}
    ),
    **_of_both(
        "merge, three tasks",
        Scenario(BEGUN, (Step(TWO, tasks=3, merged=True), Step(BOTH, tasks=3, merged=True))),
    ),
}
