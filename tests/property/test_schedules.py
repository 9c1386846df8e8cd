"""Random schedules of operations, however rows reach the tasks, against a dictionary."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.python_bucket import task_mapper
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.sink.write_plan import key_spec
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, found, trips

_names = count()
_stages = count(1)

INDEXES = ["BUCKET", "BLOOM", "SIMPLE", "FLINK_STATE"]
OPERATIONS = [
    "upsert",
    "upsert",
    "upsert",
    "insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
]
WAYS = ["alone", "dealt out", "shuffled"]
TASKS = 3

Key = tuple[int, int]
ROW = st.tuples(st.integers(0, 11), st.integers(0, 2), st.integers(0, 3))
STEP = st.tuples(
    st.sampled_from(OPERATIONS), st.sampled_from(WAYS), st.lists(ROW, min_size=1, max_size=14)
)


@dataclass
class Model:
    """The rows of a table by partition and key: ordering value and payload."""

    rows: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def apply(self, operation: str, batch: dict[Key, tuple[int, int]]) -> None:
        if operation == "upsert":
            self.rows |= batch  # each batch is later than all before
        elif operation == "insert":
            self.rows = {**batch, **self.rows}  # what is stored stays
        elif operation == "delete":
            self.rows = {k: v for k, v in self.rows.items() if k not in batch}
        else:
            cities = {city for city, _ in batch}
            everywhere = operation == "insert_overwrite_table"
            kept = {k: v for k, v in self.rows.items() if not everywhere and k[0] not in cities}
            self.rows = kept if operation == "delete_partition" else {**kept, **batch}

    def listed(self) -> list[tuple[str, str, int, float]]:
        return sorted(
            (f"k{key}", f"c{city}", ts, float(n)) for (city, key), (ts, n) in self.rows.items()
        )


def assigned(coordinator: Coordinator, operation: str, rows: pa.Table) -> pa.Table:
    """What `shuffle_by_file_group` adds to rows."""
    plan = coordinator.preview(rows.schema)
    assert plan.index is not None
    if isinstance(plan.index, LookupIndex) and operation in ("upsert", "insert", "delete"):
        return pa.concat_tables(FileIdAssigner(plan, TASKS).assign(rows))
    spec = key_spec(plan.table.properties, plan.options)
    return pa.Table.from_batches(
        task_mapper(plan.index.spread(TASKS), spec, TASKS)(rows.to_batches())
    )


def write(path: Path, opts: dict[str, str], operation: str, way: str, rows: pa.Table) -> None:
    given = {**opts, "path": str(path), "hoodie.datasource.write.operation": operation}
    coordinator = Coordinator.of(WriteOptions.parse(given))
    owners = np.zeros(rows.num_rows) if way == "alone" else np.arange(rows.num_rows) % TASKS
    if way == "shuffled":
        rows = assigned(coordinator, operation, rows)
        owners = rows.column(TASK_COLUMN).to_numpy()
    batch = coordinator.begin(rows.schema)
    stage = next(_stages)
    tasks = sorted({int(owner) for owner in owners})
    coordinator.commit(
        [
            write_task(
                batch,
                TaskId(task, stage, task),
                None,
                rows.filter(pa.array(owners == task)).to_batches(4),
                sole_writer=way == "alone",
            )
            for task in tasks
        ]
    )


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        pytest.param(index, TYPES[(n + m) % 2], marks=[pytest.mark.slow] * m)
        for n, index in enumerate(INDEXES)
        for m in range(2)
    ],
)
@settings(max_examples=10)
@given(version=st.sampled_from("689"), steps=st.lists(STEP, min_size=1, max_size=6))
def test_every_schedule_gives_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    index: str,
    version: str,
    steps: list[tuple[str, str, list[tuple[int, int, int]]]],
) -> None:
    path = tmp_path_factory.mktemp("schedule") / str(next(_names))
    opts = {k: v for k, v in TRIPS.items() if index == "BUCKET" or k != BUCKETS} | {
        TYPE: kind,
        VERSION: version,
        "hoodie.index.type": index,
        "index.global.enabled": "false",
        "hoodie.combine.before.insert": "true",
        "hoodie.datasource.insert.dup.policy": "drop",
        # Files that are full after a few rows: inserts fill some and begin others.
        "hoodie.copyonwrite.record.size.estimate": "20000000",
    }
    model = Model()
    began = False
    for number, (operation, way, drawn) in enumerate(steps):
        if not began and operation in ("delete", "delete_partition"):
            continue  # there is no table to delete from
        began = True
        # Equal ordering values leave the order of arrival to decide, which tasks do not keep.
        best: dict[Key, tuple[int, int]] = {}
        listed = []
        for position, (key, city, late) in enumerate(dict.fromkeys(drawn)):
            row = (10 * number + late, 100 * number + position)
            listed.append((f"k{key}", f"c{city}", row[0], float(row[1])))
            best[city, key] = max(row, best.get((city, key), row))
        write(path, opts, operation, way, trips(*listed))
        model.apply(operation, best)
        assert found(HoodieTable(str(path))) == model.listed(), (number, operation, way)
    if model.rows:
        assert_same_rows(read_with_hudi_rs(path), HoodieTable(str(path)).read())
