"""A merge by several tasks has the rows and counts of a merge in one process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, TableMerge
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.write_options import WriteOptions, of_call
from hoodie_ds.errors import MergeCardinalityError, OptionError, RecordKeyError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.merged_rows import MergeCounts
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.row_merge import GivenClause
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from tests.integration.test_changes_by_filter import INDEXES
from tests.merge_by_tasks import begun_by_tasks
from tests.tables import BUCKETS, KEY, PARTITION, TRIPS, TYPE, TYPES, VERSION, found, trips

TASKS = 3
ROWS = trips(*((f"k{n}", f"c{n % 4}", 1, float(n)) for n in range(40)))
CHANGES = trips(
    *((f"k{n}", f"c{n % 4}", 2, None if n % 3 == 0 else n + 0.5) for n in range(0, 60, 2))
)
KEYLESS = {KEY: "", BUCKETS: ""}
KINDS = {**INDEXES, "no keys": KEYLESS, "neither keys nor partitions": {**KEYLESS, PARTITION: ""}}


class Tasks:
    """Merges by tasks one after another, with what Spark's joins do done row by row."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.given = {key: value for key, value in {**TRIPS, **options}.items() if value}
        self.storage = MemoryStorage()
        self.table = HoodieTable("/t", self.given, storage=self.storage)
        self.table.insert(ROWS)

    def merge(self, source: pa.Table, on: str) -> TableMerge:
        return TableMerge(partial(self._execute, source, on))

    def _execute(
        self,
        source: pa.Table,
        on: str,
        clauses: tuple[GivenClause, ...],
        _call: Mapping[str, str] | None,
        _dry: bool,
    ) -> WriteResult:
        options = of_call(WriteOptions.parse({**self.given, "path": "/t"}), Operation.UPSERT)
        writer = Coordinator(options, self.storage, SimClock(), SimIds())

        counts = MergeCounts()
        batch, parts = begun_by_tasks(writer, source, on, clauses, TASKS, counts)
        messages = [
            write_task(batch, TaskId(task, 0, task), None, rows) for task, rows in enumerate(parts)
        ]
        return counts.of(writer.commit(messages))


def clauses(merge: TableMerge) -> TableMerge:
    merge = merge.when_matched_delete("source.fare is null")
    merge.when_matched_update({"fare": "source.fare", "ts": "source.ts"})
    merge.when_not_matched_insert_all("source.fare is not null")
    return merge.when_not_matched_by_source_update({"fare": 0.0}, "target.fare > 36")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("version", "table_type"), [*zip("69", TYPES, strict=True)])
def test_rows_and_counts_are_those_of_one_process(version: str, table_type: str, kind: str) -> None:
    options = {VERSION: version, TYPE: table_type, **KINDS[kind]}
    one, several = Tasks(options), Tasks(options)
    expected = clauses(one.table.merge(CHANGES, "id")).execute()
    done = clauses(several.merge(CHANGES, "id")).execute()
    assert (done.inserted, done.updated, done.deleted) == (
        expected.inserted,
        expected.updated,
        expected.deleted,
    )
    assert found(several.table) == found(one.table)
    assert not several.table.inspect.verify().findings


@pytest.mark.parametrize("index", ["bucket", "global"])
def test_what_is_refused_changes_nothing(index: str) -> None:
    place = Tasks({VERSION: "9", TYPE: TYPES[1], **INDEXES[index]})
    before = found(place.table)
    twice, calls = pa.concat_tables([CHANGES, CHANGES]), iter(range(1000))

    def other(rows: pa.Table) -> pa.Array:
        return pa.array([f"new {next(calls)}" for _ in range(rows.num_rows)])

    refused = {
        "would be inserted with record key": (
            MergeCardinalityError,
            place.merge(twice, "id").when_not_matched_insert_all("source.fare > 40"),
        ),
        "match one row of the table": (
            MergeCardinalityError,
            place.merge(twice, "id").when_matched_update_all(),
        ),
        "record key 'k2', which a row has that it does not match": (
            RecordKeyError,
            place.merge(trips(("k2", "c2", 2, 2.5)), "fare").when_not_matched_insert_all(),
        ),
        "must return the same for the same rows": (
            OptionError,
            place.merge(CHANGES, "id").when_not_matched_insert(
                {"id": other, "city": "source.city", "ts": 1}
            ),
        ),
    }
    for match, (error, merge) in refused.items():
        with pytest.raises(error, match=match):
            merge.execute()
    assert found(place.table) == before
