"""Filters reach files and log blocks: whatever is left out, the rows are those of a plain read."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.datasource.scan import SliceRows, TaskRows
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.filters.rows import matching
from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.slices.merge_outcomes import merge_outcomes
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import forget_process
from tests.merge_hooks import HOOK, MODE
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, TYPES, VERSION
from tests.tiers import by_day

Row = dict[str, Any]
Condition = tuple[str, str, Any]
BLOCKS: Final = "hoodie.logfile.data.block.format"
KINDS: Final = {"id": pa.string(), "city": pa.string(), "ts": pa.int64(), "fare": pa.float64()}
COLUMNS: Final = [*KINDS, "name"]
SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
    "in": lambda value, values: value in values,
    "not in": lambda value, values: value not in values,
}
MODES: Final = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM")
ALL = [
    variant
    for variant in product(TYPES, ("6", "8", "9"), ("parquet", "avro"), MODES)
    if (variant[0], variant[-1]) != (TYPES[0], MODES[-1])  # which merges rows as it writes them
]
QUICK = [
    ("MERGE_ON_READ", "6", "avro", "EVENT_TIME_ORDERING"),
    ("MERGE_ON_READ", "8", "parquet", "COMMIT_TIME_ORDERING"),
    ("MERGE_ON_READ", "9", "avro", "CUSTOM"),
]


def batch(chance: random.Random) -> pa.Table:
    """Rows of some keys, each in one city, with nulls."""
    keys = chance.sample(range(40), 12)
    rows = [
        {
            "id": f"k{key:02}",
            "city": "xyz"[key % 3],
            "ts": chance.randint(0, 5),
            "fare": chance.choice([None, 1.0, 2.0, 3.0, -1.0]),
            "name": chance.choice([None, "a", "b", "bc"]),
        }
        for key in keys
    ]
    return pa.Table.from_pylist(rows, pa.schema({**KINDS, "name": pa.string()}))


def condition(chance: random.Random) -> Condition:
    """A comparison of a column with values that it may have."""
    given: dict[str, list[Any]] = {"id": ["k03", "k17", "k99"], "city": ["x", "y"]}
    given |= {"ts": [0, 2, 5], "fare": [-1.0, 2.0, 9.0], "name": ["a", "bc"]}
    column, sign = chance.choice(list(given)), chance.choice(list(SIGNS))
    found = chance.sample(given[column], 2)
    return column, sign, found if "in" in sign else found[0]


def matches(row: Row, conditions: list[Condition]) -> bool:
    """Whether all conditions are true, as none is of a null."""
    values = [(row[column], sign, value) for column, sign, value in conditions]
    return all(has is not None and SIGNS[sign](has, value) for has, sign, value in values)


def in_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.select(COLUMNS).to_pylist()))


def by_spark(path: Path, hook: str | None, given: list[Condition]) -> list[str]:
    """The rows that come through Python for Spark; none is one that the filter rules out.

    Those of log files and those that Spark itself reads of base files are as many.
    """
    pinned = PinnedTable.latest(open_storage(str(path)), hook)
    query, predicate = SnapshotQuery(pinned), predicate_of(given, pinned.schema)
    plan, found = query.plan(predicate), list[str]()
    logged, pruner = LoggedRows(pinned.reader()), pinned.pruner(predicate)
    for task in plan.tasks:
        pieces = [*TaskRows(plan.executor, pinned.schema, predicate)(task)]
        whole = in_order(pa.Table.from_batches(pieces, pinned.schema))
        found += whole
        if task.slice.base is None or not task.slice.logs:
            continue
        alone = pinned.reader().read(replace(task.slice, logs=()), pinned.schema.names)
        base = pa.concat_tables([pinned.schema.empty_table(), *alone])
        stays = base.filter(pa.array(~logged.replaced(task.slice)))
        for prepare in (merge_outcomes.cache_clear, int):
            prepare()
            rows = [*SliceRows(logged, pinned.schema, predicate, pruner)(task)]
            both = [pa.Table.from_batches(rows, pinned.schema), matching(stays, predicate)]
            assert in_order(pa.concat_tables(both)) == whole
    return sorted(found)


@pytest.mark.parametrize(("kind", "version", "block", "mode"), by_day(ALL, QUICK))
def test_filters_find_what_is_among_all_rows(
    kind: str, version: str, block: str, mode: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{kind}/{version}/{block}/{mode}")
    options = {**TRIPS, TYPE: kind, VERSION: version, BLOCKS: block, MODE: mode, BUCKETS: "1"}
    options["hoodie.parquet.block.size"] = "4k"
    if mode == "CUSTOM":
        options[HOOK] = "tests.merge_hooks:fill"
    if mode == "COMMIT_TIME_ORDERING":
        del options[ORDERING]
    table = HoodieTable(tmp_path, options)
    for _ in range(3):
        table.upsert(batch(chance))
        table.delete(batch(chance).slice(0, 2))
    every = table.read().to_pylist()
    assert len(every) > 15
    lazy = hoodie_ds.scan_hudi(table)
    assert in_order(lazy.collect().to_arrow()) == in_order(pa.Table.from_pylist(every))
    for number in range(8):
        if number % 2 == 0:
            forget_process()  # what it remembers of merges, too
        given = [condition(chance) for _ in range(chance.randint(1, 2))]
        expected = sorted(
            repr({name: row[name] for name in COLUMNS}) for row in every if matches(row, given)
        )
        assert in_order(table.read(COLUMNS, given)) == expected, given
        assert table.count(given) == len(expected), given
        assert table.scan(["id"], given).head(3).num_rows == min(3, len(expected)), given
        assert by_spark(tmp_path, options.get(HOOK), given) == expected, given
    assert table.count() == len(every)
