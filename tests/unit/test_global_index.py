"""Tables with a global index: a key is stored once in the whole table, and moves as Hudi's do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds.hoodie_table import HoodieTable
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_column import TASK_COLUMN
from hoodie_ds.sink.task_writer import write_task
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, coordinator, trips

INDEX = "hoodie.index.type"
MODE = "hoodie.record.merge.mode"
LOOKUP = {k: v for k, v in TRIPS.items() if k != BUCKETS}
MARK = "_hoodie_is_deleted"

Row = tuple[str, str, int, float, bool]
"""id, city, ts, fare, whether it is a delete."""


@pytest.fixture(autouse=True)
def no_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tables.TRIPS", LOOKUP)


@dataclass
class Model:
    """What a table holds: of each key the row and the partition that it is in."""

    by_event_time: bool
    moves: bool
    remembers_deletes: bool

    def __post_init__(self) -> None:
        self.rows: dict[str, tuple[Row, str]] = {}

    def apply(self, rows: list[Row]) -> None:
        """Fold the rows of a batch by key, then merge what is left into what is stored."""
        newest: dict[str, Row] = {}
        for row in rows:
            if row[0] not in newest or self._wins(row, newest[row[0]]):
                newest[row[0]] = row
        for key, row in newest.items():
            old, place = self.rows.get(key, (None, row[1]))
            if old is None and row[4]:
                continue
            if old is None or self._wins(row, old):
                gone = row[4] and not self.remembers_deletes
                self.rows[key] = (row, row[1] if self.moves and not row[4] else place)
                if gone:
                    del self.rows[key]

    def _wins(self, new: Row, old: Row) -> bool:
        return not self.by_event_time or new[2] >= old[2]

    def live(self) -> list[tuple[str, str, int, float, str]]:
        return sorted((*row[:4], place) for row, place in self.rows.values() if not row[4])


def write(
    path: Path, rows: list[Row], opts: dict[str, str], tasks: int, shuffled: bool, marked: bool
) -> list[Row]:
    """Write rows by several tasks; returns them in the order in which they count."""
    writer = coordinator(path, **{k.replace(".", "__"): v for k, v in opts.items()})
    numbers = [
        sum(map(ord, row[0])) % tasks if shuffled else n % tasks for n, row in enumerate(rows)
    ]
    parts = [[row for row, at in zip(rows, numbers, strict=True) if at == n] for n in range(tasks)]
    tables = [arrow(part, marked) for part in parts]
    batch = writer.begin(tables[0].schema)
    messages: list[TaskCommitMessage] = []
    for number, table in enumerate(tables):
        if shuffled:
            column = pa.array(np.full(table.num_rows, number, np.int32))
            table = table.append_column(TASK_COLUMN, column)
        chunks = table.to_batches(16)
        messages.append(write_task(batch, TaskId(number, 1, number), None, chunks, tasks == 1))
    writer.commit(messages)
    return [row for part in parts for row in part]


def arrow(rows: list[Row], marked: bool) -> pa.Table:
    table = trips(*(row[:4] for row in rows))
    marks = pa.array([row[4] for row in rows], pa.bool_())
    return table.append_column(MARK, marks) if marked else table


def stored(path: Path) -> list[tuple[str, str, int, float, str]]:
    columns = ["id", "city", "ts", "fare", "_hoodie_partition_path"]
    rows = HoodieTable(str(path)).read(columns=columns).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("index", "moves", "tasks", "shuffled", "memory", "marked", "by_event_time"),
    [
        ("GLOBAL_BLOOM", True, 1, False, "1g", True, True),
        ("GLOBAL_BLOOM", True, 3, False, "1g", False, True),
        ("GLOBAL_BLOOM", True, 3, True, "4k", True, True),
        ("GLOBAL_BLOOM", False, 1, False, "4k", True, True),
        ("GLOBAL_BLOOM", False, 3, True, "1g", False, False),
        ("GLOBAL_SIMPLE", True, 3, False, "4k", True, True),
        ("GLOBAL_SIMPLE", True, 3, True, "1g", False, False),
        ("GLOBAL_SIMPLE", False, 3, False, "1g", True, False),
        ("FLINK_STATE", True, 1, False, "4k", False, True),
        ("FLINK_STATE", True, 3, True, "1g", True, False),
    ],
)
def test_random_batches_give_the_model(
    tmp_path: Path,
    kind: str,
    index: str,
    moves: bool,
    tasks: int,
    shuffled: bool,
    memory: str,
    marked: bool,
    by_event_time: bool,
) -> None:
    draw = random.Random(11)
    mode = "EVENT_TIME_ORDERING" if by_event_time else "COMMIT_TIME_ORDERING"
    opts = {TYPE: kind, INDEX: index, MODE: mode, "write.task.max.size": memory}
    if not moves:
        opts["hoodie.bloom.index.update.partition.path"] = "false"
        opts["hoodie.simple.index.update.partition.path"] = "false"
    # Log files remember a delete where the record was; only there does a later row find it.
    model = Model(by_event_time, moves, not moves and kind == "MERGE_ON_READ")
    for number in range(7):
        deletes = not marked and number in (3, 5)
        rows: list[Row] = [
            (
                f"k{draw.randrange(25)}",
                f"c{draw.randrange(3)}",
                1 + draw.randrange(3 + 2 * number),
                100.0 * number + n,
                deletes or (marked and draw.random() < 0.2),
            )
            for n in range(10 if deletes else 45)
        ]
        more = {"hoodie.datasource.write.operation": "delete"} if deletes else {}
        model.apply(write(tmp_path, rows, {**opts, **more}, tasks, shuffled, marked))
        assert stored(tmp_path) == model.live()
        assert_same_rows(read_with_hudi_rs(tmp_path), HoodieTable(str(tmp_path)).read())
