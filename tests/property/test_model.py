"""Random batches against a dictionary: the merged result is equal after every batch.

The model knows Hudi's rules and nothing of this library. A copy-on-write table forgets a delete as
soon as it is applied; a merge-on-read slice remembers it until compaction, and its readers fold
the log records first and lay the outcome over the base row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs

_names = count()

EVENT = st.tuples(
    st.integers(0, 7),
    st.one_of(st.none(), st.integers(-3, 6)),
    st.booleans(),
)
BATCH = st.one_of(
    st.tuples(st.just("upsert"), st.lists(EVENT, min_size=1, max_size=12)),
    st.tuples(st.just("delete"), st.lists(st.tuples(st.integers(0, 7)), min_size=1, max_size=4)),
)


@dataclass
class Record:
    """One version of a key: its ordering value, its payload, and whether it deletes."""

    order: int | None
    value: int
    deleted: bool

    @property
    def unconditional(self) -> bool:
        return self.deleted and self.order is None

    def wins_over(self, old: Record, event_time: bool) -> bool:
        if event_time and self.deleted and old.unconditional:
            return False  # what is deleted unconditionally stays so
        if not event_time or self.unconditional or old.unconditional:
            return True
        return (self.order or 0) >= (old.order or 0)  # Hudi takes 0 for a null


@dataclass
class Model:
    """A table as a dictionary from key to base row and log outcome."""

    event_time: bool
    merge_on_read: bool
    base: dict[int, Record] = field(default_factory=dict)
    log: dict[int, Record] = field(default_factory=dict)
    buckets_with_base: set[int] = field(default_factory=set)

    def fold(self, records: list[tuple[int, Record]]) -> dict[int, Record]:
        folded: dict[int, Record] = {}
        for key, record in records:
            old = folded.get(key)
            if old is None or record.wins_over(old, self.event_time):
                folded[key] = record
        return folded

    def write(self, records: list[tuple[int, Record]], began: bool) -> None:
        combined = self.fold(records)
        if self.merge_on_read and began:
            for key, record in combined.items():
                old = self.log.get(key)
                if old is None or record.wins_over(old, self.event_time):
                    self.log[key] = record
            return
        for key, record in combined.items():
            old = self.base.get(key)
            if old is None and not record.deleted:
                self.base[key] = record
            elif old is not None and record.wins_over(old, self.event_time):
                if record.deleted:
                    del self.base[key]
                else:
                    self.base[key] = record
            if self.merge_on_read and record.deleted:
                self.log[key] = record

    def rows(self) -> dict[int, int]:
        rows = {key: record.value for key, record in self.base.items()}
        for key, record in self.log.items():
            old = self.base.get(key)
            if old is not None and not record.wins_over(old, self.event_time):
                continue
            rows.pop(key, None)
            if not record.deleted:
                rows[key] = record.value
        return rows


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("event_time", [True, False])
@given(batches=st.lists(BATCH, min_size=1, max_size=6))
def test_table_equals_model(
    tmp_path_factory: Any, table_type: str, event_time: bool, batches: list[tuple[str, list[Any]]]
) -> None:
    path = str(tmp_path_factory.mktemp("model") / str(next(_names)))
    options = {
        "hoodie.table.name": "model",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": table_type,
        # One bucket: whether a group began with a base file is then the same for all keys.
        "hoodie.bucket.index.num.buckets": "1",
    }
    if event_time:
        options["hoodie.datasource.write.precombine.field"] = "ts"
    table = HoodieTable(path, options)
    model = Model(event_time, table_type == "MERGE_ON_READ")
    began = False
    for number, (operation, events) in enumerate(batches):
        if operation == "upsert":
            values = [100 * number + i for i in range(len(events))]
            table.upsert(
                pa.table(
                    {
                        "id": pa.array([event[0] for event in events], pa.int32()),
                        "ts": pa.array([event[1] for event in events], pa.int64()),
                        "v": pa.array(values, pa.int64()),
                        "_hoodie_is_deleted": pa.array([event[2] for event in events]),
                    }
                )
            )
            records = [
                (event[0], Record(event[1], value, event[2]))
                for event, value in zip(events, values, strict=True)
            ]
        elif not began:
            continue
        else:
            table.delete(pa.table({"id": pa.array([e[0] for e in events], pa.int32())}))
            records = [(event[0], Record(None, 0, True)) for event in events]
        model.write(records, began)
        began = True
        rows = table.read(columns=["id", "v"]).to_pylist()
        assert len(rows) == len({row["id"] for row in rows})
        assert {row["id"]: row["v"] for row in rows} == model.rows()
    if began:
        theirs = read_with_hudi_rs(path).select(["id", "v"]).to_pylist()
        assert {row["id"]: row["v"] for row in theirs} == model.rows()
