"""With a record index a shuffle sends all rows of a key to the task of its file group."""

from __future__ import annotations

import random
from itertools import count, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import WriteConflictError
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.metadata_table import record_changes, task_keys
from hoodie_ds.metadata_table.touched_slices import TouchedSlices
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.hidden_columns import LOCATION_COLUMN, TASK_COLUMN, encode_locations
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.slices.slice_keys import NO_KEYS
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import FaultyStorage, Recorder
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from tests.integration.test_global_index import MODE, Model, Row, arrow, stored
from tests.integration.test_record_index_kept import assert_indexed
from tests.integration.test_record_lookup import INDEX, LOOKUP, MOVES, RECORDS
from tests.integration.test_several_batches import writer
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.sent_rows import sent_by_key
from tests.tables import TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day

COW, MOR = TYPES
LIMIT = "hoodie.parquet.small.file.limit"
FEW = {LIMIT: "104857600", "hoodie.copyonwrite.record.size.estimate": "20000000"}
"""Files that are full after six rows: inserts fill some and begin others."""
OPERATION = "hoodie.datasource.write.operation"
_stages = count(1)


def assigned(path: Path, opts: dict[str, str], rows: pa.Table, tasks: int) -> pa.Table:
    """What a shuffle adds to rows, each half of which has an assigner in a process of its own."""
    half = rows.num_rows // 2
    parts = [part for part in (rows.slice(0, half), rows.slice(half)) if part.num_rows]
    plans = (writer(str(path), opts).preview(rows.schema) for _ in parts)
    return pa.concat_tables(
        sent
        for part, plan in zip(parts, plans, strict=True)
        for sent in FileIdAssigner(plan, tasks).assign(part)
    )


def written(begun: Coordinator, rows: pa.Table) -> list[TaskCommitMessage]:
    """What tasks write, each the rows that were sent to it."""
    batch = begun.begin(rows.schema)
    owners, stage = rows.column(TASK_COLUMN).to_numpy(), next(_stages)
    parts = {task: rows.filter(pa.array(owners == task)) for task in np.unique(owners).tolist()}
    return [
        write_task(batch, TaskId(task, stage, task), None, part.to_batches(16))
        for task, part in parts.items()
    ]


def upsert(
    path: Path, opts: dict[str, str], rows: pa.Table, tasks: int = 3
) -> list[TaskCommitMessage]:
    """A shuffled upsert; the driver is left nothing to merge."""
    begun = writer(str(path), opts)
    messages = written(begun, assigned(path, opts, rows, tasks))
    assert not any(message.staged for message in messages)
    begun.commit(messages)
    return messages


def of_updates_alone(
    before: TouchedSlices, after: TouchedSlices, stat: WriteStat, time: str
) -> tuple[pa.Array, pa.Array]:
    """What the driver finds in a file without reading a key: by the file's counts there is none."""
    counts = [stat.num_inserts, stat.num_deletes]
    assert (stat.log, counts) == (None, [0, 0]), "the driver reads keys"
    return NO_KEYS, NO_KEYS


CASES = [*product(TYPES, "69", [True, False], [True, False], [True, False])]


@pytest.mark.parametrize(
    ("kind", "version", "moves", "by_event_time", "fills"),
    by_day(
        CASES,
        [
            (COW, "6", True, True, True),
            (COW, "9", True, False, False),
            (MOR, "6", True, False, True),
            (MOR, "9", True, True, True),
            (MOR, "9", False, True, False),
        ],
    ),
)
def test_random_batches_give_the_model(
    tmp_path: Path,
    kind: str,
    version: str,
    moves: bool,
    by_event_time: bool,
    fills: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that are late, deleted or move, by tasks that have their file groups to themselves."""
    monkeypatch.setattr(task_keys, "LEAST_KEYS", 1)
    monkeypatch.delattr(FileLookup, "find")  # the index says where keys are
    monkeypatch.setattr(record_changes, "moved_keys", of_updates_alone)
    draw = random.Random(f"{kind} {version} {moves}")
    mode = "EVENT_TIME_ORDERING" if by_event_time else "COMMIT_TIME_ORDERING"
    opts = {**RECORDS, TYPE: kind, VERSION: version, MODE: mode, MOVES: str(moves).lower()}
    opts |= FEW if fills else {}
    model = Model(by_event_time, moves)
    for number in range(6):
        tasks, deletes = draw.choice([2, 3, 5]), number in (2, 5)
        rows: list[Row] = [
            (
                f"k{draw.randrange(10 + 10 * number)}",
                f"c{draw.randrange(3)}",
                1 + draw.randrange(3 + 2 * number),
                100.0 * number + n,
                deletes or draw.random() < 0.2,
            )
            for n in range(10 if deletes else 40)
        ]
        given = {**opts, OPERATION: "delete"} if deletes else opts
        upsert(tmp_path, given, arrow(rows, not deletes), tasks)
        model.apply(rows)
        assert stored(tmp_path) == model.live(), number
        assert_indexed(open_storage(str(tmp_path)))
    assert_same_rows(read_with_hudi_rs(tmp_path), HoodieTable(str(tmp_path)).read())


def four(path: Path, *, index: str = "RECORD_INDEX", **more: str) -> dict[str, str]:
    """Options of a table with sixteen keys in eight file groups of two partitions."""
    opts = {**RECORDS, INDEX: index, **more}
    for number in range(4):
        rows = ((f"k{number}{n}", f"c{n % 2}", 1, 1.0) for n in range(4))
        HoodieTable(str(path), opts).upsert(trips(*rows))
    return opts


EVERY = [f"k{number}{n}" for number in range(4) for n in range(4)]
BY_CITY = sorted(EVERY, key=lambda key: -(int(key[2]) % 2))
NEWER = trips(*((key, f"c{int(key[2]) % 2}", 2, 2.0) for key in EVERY))
MOVED = trips(*((key, f"c{(int(key[2]) + 1) % 2}", 2, 2.0) for key in EVERY))


def distrusting(path: Path, opts: dict[str, str], rows: pa.Table) -> pa.Table:
    """What assigners add that do not believe the record index, as one of a later moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie_ds.sink.locate.key_locations.trusted_index", lambda *_: None)
        return assigned(path, opts, rows, 2)


@pytest.mark.parametrize("index", ["RECORD_INDEX", "RECORD_LEVEL_INDEX"])
def test_rows_that_were_looked_up_in_different_ways_are_refused(tmp_path: Path, index: str) -> None:
    """A deleted key is nowhere by an index of a partition, and in its log file by the files."""
    opts = four(tmp_path, index=index, **{TYPE: MOR, VERSION: "9"})
    before = found(HoodieTable(str(tmp_path)))
    believed, other = assigned(tmp_path, opts, NEWER, 2), distrusting(tmp_path, opts, NEWER)
    begun = writer(str(tmp_path), opts)
    with pytest.raises(WriteConflictError, match="can be run again"):
        written(begun, pa.concat_tables([believed, other]))
    batch = begun.begin(NEWER.schema)
    apart = [
        write_task(batch, TaskId(task, 1, task), None, rows.filter(owners == task).to_batches())
        for task, rows in enumerate([believed, other])
        for owners in [rows.column(TASK_COLUMN).to_numpy()]
    ]
    with pytest.raises(WriteConflictError, match="can be run again"):
        begun.commit(apart)
    assert found(HoodieTable(str(tmp_path))) == before


def rows_of(table: pa.Table) -> list[tuple[str, str, int, float]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("kind", TYPES)
def test_rows_are_distributed_by_keys_where_the_index_is_not_believed(
    tmp_path: Path, kind: str
) -> None:
    """As with every other global index; so the commit merges what comes to base files."""
    opts = four(tmp_path, **{TYPE: kind})
    new = trips(*((f"new{n}", "c0", 2, 2.0) for n in range(40)))
    by_key = distrusting(tmp_path, opts, new).column(TASK_COLUMN)
    assert assigned(tmp_path, opts, new, 2).column(TASK_COLUMN) == by_key
    assert len(by_key.unique()) == 2
    begun = writer(str(tmp_path), opts)
    messages = written(begun, distrusting(tmp_path, opts, MOVED))
    assert all(message.owns_keys for message in messages)
    assert any(message.staged for message in messages) == (kind == COW)
    begun.commit(messages)
    assert found(HoodieTable(str(tmp_path))) == rows_of(MOVED)
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("kind", TYPES)
def test_rows_that_an_older_view_has_sent_are_looked_up_anew(tmp_path: Path, kind: str) -> None:
    opts = four(tmp_path, **{TYPE: kind})
    rows = assigned(tmp_path, opts, MOVED, 3)
    HoodieTable(str(tmp_path), opts).upsert(trips(("k00", "c2", 1, 1.0), ("k01", "c1", 3, 3.0)))
    begun = writer(str(tmp_path), opts)
    messages = written(begun, rows)
    assert any(message.staged for message in messages)
    begun.commit(messages)
    expected = {row[0]: row for row in rows_of(MOVED)} | {"k01": ("k01", "c1", 3, 3.0)}
    assert found(HoodieTable(str(tmp_path))) == sorted(expected.values())
    assert_indexed(open_storage(str(tmp_path)))


@pytest.mark.parametrize("moves", ["false", "true"])
def test_the_driver_reads_no_row(tmp_path: Path, moves: str) -> None:
    """What it reads does not grow with the rows, wherever these were and are."""
    opts = four(tmp_path, **{MOVES: moves, LIMIT: FEW[LIMIT]})
    rows = pa.concat_tables([MOVED, trips(*((f"n{n}", f"c{n % 2}", 2, 2.0) for n in range(9)))])
    sent = assigned(tmp_path, opts, rows, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_keys, "LEAST_KEYS", 1)
        messages = written(writer(str(tmp_path), opts), sent)
    recorder = Recorder()
    storage = FaultyStorage(open_storage(str(tmp_path)), recorder=recorder)
    writer(str(tmp_path), opts, storage).commit(messages)
    done = [one.path for one in recorder.operations if not one.path.startswith(".hoodie")]
    assert not [path for path in done if path.endswith(".parquet")]
    assert found(HoodieTable(str(tmp_path))) == rows_of(rows)
    assert_indexed(open_storage(str(tmp_path)))


def test_a_key_in_a_file_group_that_is_not_there_goes_where_files_have_it(tmp_path: Path) -> None:
    """All assigners agree about other keys, whether or not they meet such a key."""
    opts = four(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie_ds.metadata_table.follower.record_changes", lambda *_: {})
        table = HoodieTable(str(tmp_path), opts)
        table.overwrite(NEWER.filter(pc.equal(NEWER["city"], "c0")), partitions_only=True)
    newer = trips(*((key, f"c{n // 8}", 3, 3.0) for n, key in enumerate(BY_CITY)))
    upsert(tmp_path, opts, newer)
    assert found(HoodieTable(str(tmp_path))) == rows_of(newer)


def test_a_copy_in_a_file_group_of_another_task_is_refused(tmp_path: Path) -> None:
    """Inserts make copies. A task that does not believe the index any more finds all of them."""
    opts = four(tmp_path, **{MOVES: "false"})
    copies = NEWER.filter(pc.starts_with(NEWER["id"], "k0"))
    HoodieTable(str(tmp_path), opts).insert(copies)
    before = found(HoodieTable(str(tmp_path)))
    sent = assigned(tmp_path, opts, NEWER, 5)
    begun = writer(str(tmp_path), opts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie_ds.sink.locate.key_locations.trusted_index", lambda *_: None)
        with pytest.raises(WriteConflictError, match="can be run again"):
            written(begun, sent)
    assert found(HoodieTable(str(tmp_path))) == before
    upsert(tmp_path, opts, NEWER, 5)
    assert len(found(HoodieTable(str(tmp_path)))) == 20


@pytest.mark.parametrize("version", "69")
def test_a_base_file_beside_a_log_file_of_another_task_is_refused(
    tmp_path: Path, version: str
) -> None:
    """In layout 1 the log file would not count."""
    opts = {**LOOKUP, **FEW, INDEX: "BLOOM", TYPE: MOR, VERSION: version}
    HoodieTable(str(tmp_path), opts).upsert(trips(("a", "x", 1, 1.0)))
    begun = writer(str(tmp_path), opts)
    rows = assigned(tmp_path, opts, trips(("a", "x", 2, 2.0)), 2)
    (owner,) = rows.column(TASK_COLUMN).to_pylist()
    news = assigned(tmp_path, opts, trips(*((f"n{n}", "x", 2, 2.0) for n in range(9))), 2)
    news = news.filter(pc.field(TASK_COLUMN) == owner)
    assert news.num_rows
    astray = rows.set_column(4, TASK_COLUMN, pa.array([1 - owner], pa.int32()))
    messages = written(begun, pa.concat_tables([astray, news]))
    with pytest.raises(WriteConflictError, match="beside a base file"):
        begun.commit(messages)
    assert found(HoodieTable(str(tmp_path))) == [("a", "x", 1, 1.0)]


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", "RECORD_LEVEL_INDEX"])
@pytest.mark.parametrize("sent", ["other keys", "other index", "no place"])
def test_rows_sent_for_another_table_are_the_commits(tmp_path: Path, index: str, sent: str) -> None:
    """Rows of a key are in several tasks then, each of which would write it."""
    opts = {**LOOKUP, **RECORDS, INDEX: index, TYPE: MOR, VERSION: "9"}
    rows = trips(*((f"k{n % 9}", "c0", n // 9, 1.0 * n) for n in range(18)))
    begun = writer(str(tmp_path), opts)
    batch, owners = begun.begin(rows.schema), np.arange(18) % 2
    if sent == "other keys":
        keys = {"hoodie.datasource.write.recordkey.field": "fare"}
        other = writer(str(tmp_path / "other"), {**opts, **keys}).preview(rows.schema)
        rows = sent_by_key(other, rows, owners, 2)
    else:
        rows = rows.append_column(TASK_COLUMN, pa.array(owners, pa.int32()))
        if sent == "other index":  # whose assigners know another table
            way = encode_locations(batch.plan.timeline.digest + 1, np.full(18, -2))
            rows = rows.append_column(LOCATION_COLUMN, way)
    messages = [
        write_task(batch, TaskId(n, 1, n), None, rows.filter(pa.array(owners == n)).to_batches())
        for n in range(2)
    ]
    assert not any(message.owns_keys for message in messages)
    begun.commit(messages)
    assert found(HoodieTable(str(tmp_path))) == [(f"k{n}", "c0", 1, 9.0 + n) for n in range(9)]


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE"])
def test_rows_that_were_sent_to_two_and_to_three_tasks_are_refused(
    tmp_path: Path, index: str
) -> None:
    """The one or the other key may be in two of them."""
    begun = writer(str(tmp_path), {**LOOKUP, INDEX: index, VERSION: "9"})
    rows = trips(("a", "x", 1, 1.0))
    batch = begun.begin(rows.schema)
    sent = (sent_by_key(batch.plan, rows, task, tasks) for task, tasks in ((0, 2), (1, 3)))
    messages = [
        write_task(batch, TaskId(task, 1, task), None, some.to_batches())
        for task, some in enumerate(sent)
    ]
    with pytest.raises(WriteConflictError, match="can be run again"):
        begun.commit(messages)
