"""Random batches against a dictionary: the merged result is equal after every batch."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import count, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from tests.golden.histories import TABLES
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.merge_model import KINDS, Model, Record, orders
from tests.row_operations import logged_as_rows
from tests.tables import BUCKETS, KEY, ORDERING, VERSION

_names = count()

Batch = tuple[str, list[tuple[int, Any, bool]]]
Keyed = list[tuple[int, Record]]


def batches_of(kind: str) -> st.SearchStrategy[list[Batch]]:
    event = st.tuples(st.integers(0, 5), orders(kind), st.booleans())
    key = st.tuples(st.integers(0, 5), st.none(), st.just(True))
    batch = st.one_of(
        st.tuples(st.just("upsert"), st.lists(event, min_size=1, max_size=12)),
        st.tuples(st.just("delete"), st.lists(key, min_size=1, max_size=4)),
    )
    return st.lists(batch, min_size=1, max_size=6)


def rows_of(kind: str, records: Keyed, *, by_operation: bool = False) -> pa.Table:
    keys, found = zip(*records, strict=True)
    columns: dict[str, pa.Array] = {
        "id": pa.array(keys, pa.int32()),
        "ts": pa.array([record.order for record in found], KINDS[kind][0]),
        "v": pa.array([record.value for record in found], pa.int64()),
    }
    if by_operation:
        columns["_hoodie_operation"] = pa.array(["UD"[record.deleted] for record in found])
    else:
        columns["_hoodie_is_deleted"] = pa.array([record.deleted for record in found])
    return pa.table(columns)


def keyed(kind: str, number: int, batch: Batch) -> Keyed:
    """Records whose values tell them from all others."""
    zero = {"int": 0, "date": KINDS["date"][1][1]}.get(kind, ...)
    return [
        (key, Record(order, 100 * number + place, deleted, order == zero))
        for place, (key, order, deleted) in enumerate(batch[1])
    ]


def new_table(
    folder: Any, table: str, version: str, *, event_time: bool = True
) -> tuple[str, HoodieTable]:
    options = {
        "hoodie.table.name": "model",
        KEY: "id",
        # One bucket: whether a group began with a base file is then the same for all keys.
        BUCKETS: "1",
        VERSION: version,
        **TABLES[table],
    }
    path = str(folder.mktemp("model") / str(next(_names)))
    return path, HoodieTable(path, {**options, ORDERING: "ts"} if event_time else options)


def write(
    table: HoodieTable, kind: str, operation: str, records: Keyed, *, by_operation: bool = False
) -> None:
    rows = rows_of(kind, records, by_operation=by_operation)
    if operation == "delete":
        table.delete(rows.select(["id"]))
    else:
        table.upsert(rows)


def values(rows: pa.Table) -> dict[int, int]:
    found = {row["id"]: row["v"] for row in rows.select(["id", "v"]).to_pylist()}
    assert len(found) == rows.num_rows
    return found


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("event_time", [True, False])
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_table_equals_model(
    tmp_path_factory: Any, table: str, event_time: bool, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    batches = data.draw(batches_of(kind))
    path, ours = new_table(
        tmp_path_factory, table, data.draw(st.sampled_from("689")), event_time=event_time
    )
    by_operation = data.draw(st.booleans())
    model = Model(table != "cow", event_time)
    for number, batch in enumerate(batches):
        if not (model.began or batch[0] == "upsert"):
            continue
        records = keyed(kind, number, batch)
        # Flink logs rows of deletes as they are, one for each key.
        is_flink = by_operation and model.began and table != "cow" and batch[0] == "upsert"
        if is_flink:
            records = [*dict(records).items()]
        with logged_as_rows() if is_flink else nullcontext():
            write(ours, kind, batch[0], records, by_operation=by_operation)
        model.write(records)
        assert values(ours.read(columns=["id", "v"])) == model.rows()
    # Of rows without an ordering value every reader has an opinion of its own, and hudi-rs also of
    # deletes without one before rows that delete by their operation.
    nulls = any(
        order is None and (by_operation or not gone)
        for _, events in batches
        for _, order, gone in events
    )
    if model.began and not (nulls and event_time and table != "cow"):
        assert values(read_with_hudi_rs(path)) == model.rows()


@pytest.mark.parametrize("table", ["mor_avro", "mor_parquet"])
def test_a_delete_without_a_value_outlives_a_later_one_of_the_first_batch(
    tmp_path_factory: Any, table: str
) -> None:
    """By Hudi's ``deltaMergeDeleteRecord``, so a row without a value is there after it."""
    _, ours = new_table(tmp_path_factory, table, "9")
    batches: list[Batch] = [
        ("upsert", [(0, None, True), (0, None, False), (0, 7, True)]),
        ("upsert", [(0, None, False)]),
    ]
    for number, batch in enumerate(batches):
        write(ours, "long", batch[0], keyed("long", number, batch))
    assert values(ours.read(columns=["id", "v"])) == {0: 100}


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_neither_table_type_nor_block_format_nor_cut_changes_which_row_wins(
    tmp_path_factory: Any, data: st.DataObject
) -> None:
    """Rows alone; what becomes of deletes depends on the type of the table, as the model says."""
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    event = st.tuples(st.integers(0, 2), orders(kind), st.just(False))
    events = data.draw(st.lists(event, min_size=1, max_size=12))
    records = keyed(kind, 0, ("upsert", events))
    winners: dict[int, Record] = {}
    for key, record in records:
        if key not in winners or record.wins_over(winners[key]):
            winners[key] = record
    for table, version in zip(TABLES, data.draw(st.permutations("689")), strict=True):
        cuts = data.draw(st.sets(st.integers(1, len(records) - 1)) if events[1:] else st.just(()))
        edges = [0, *sorted(cuts), len(records)]
        _, ours = new_table(tmp_path_factory, table, version)
        for start, end in pairwise(edges):
            write(ours, kind, "upsert", records[start:end])
        found = values(ours.read(columns=["id", "v"]))
        assert found == {key: record.value for key, record in winners.items()}, table
