"""Instants that span several micro-batches: durable with each of them, visible with the last."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import cast

import fsspec
import pyarrow as pa
import pytest
import xxhash

from hoodie_ds import HoodieTable, foreach_batch
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import CorruptFileError, OptionError, TimelineError, WriteConflictError
from hoodie_ds.sink.commit.commit_record import ROWS_KEY
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import METRICS_KEY, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, Kind, Operation
from hoodie_ds.timeline.bodies.commit_metadata import CHECKSUMS_KEY, CommitMetadata
from hoodie_ds.timeline.loading import load_timeline, read_commit
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, KEY, TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day
from tests.unit.sink.replay.test_replay import archive
from tests.unit.transaction.failed_tables import DyingStorage, KilledError

SPAN = "hoodie.streaming.batches.per.commit"
INDEX = "hoodie.index.type"
_stages = count(1)

Row = tuple[str, str, int, float]


def options(kind: str, index: str, span: int) -> dict[str, str]:
    chosen = {k: v for k, v in TRIPS.items() if index == "BUCKET" or k != BUCKETS}
    return {**chosen, TYPE: kind, INDEX: index, SPAN: str(span)}


def writer(path: str, opts: Mapping[str, str], storage: Storage | None = None) -> Coordinator:
    parsed = WriteOptions.parse({**opts, "path": path})
    return Coordinator(parsed, storage or open_storage(path), SystemClock(), RandomIds())


def stream(
    coordinator: Coordinator, number: int, rows: pa.Table, tasks: int = 1, stage: int | None = None
) -> None:
    """One micro-batch, as Spark calls the sink."""
    batch = coordinator.begin(rows.schema)
    stage = next(_stages) if stage is None else stage
    step = -(-rows.num_rows // tasks)
    coordinator.commit(
        [
            write_task(
                batch,
                TaskId(task, stage, task),
                BatchId("q", number),
                rows.slice(task * step, step).to_batches(),
                sole_writer=tasks == 1,
            )
            for task in range(tasks)
        ]
    )


def batches(number: int, size: int = 30) -> list[list[Row]]:
    """Each key at most once in a batch, with an ordering value later than before."""
    draw = random.Random(3)
    return [
        [(f"k{i}", f"c{i % 2}", b, float(100 * b + i)) for i in draw.sample(range(60), size)]
        for b in range(number)
    ]


def folded(made: list[list[Row]]) -> list[Row]:
    return sorted({row[0]: row for batch in made for row in batch}.values())


@pytest.mark.parametrize(
    ("index", "kind", "tasks"),
    [
        (index, TYPES[(n + m) % 2], 1 + m)
        for n, index in enumerate(("BUCKET", "BLOOM", "FLINK_STATE"))
        for m in range(2)
    ],
)
def test_rows_appear_with_the_last_batch(tmp_path: Path, kind: str, index: str, tasks: int) -> None:
    opts = options(kind, index, 3)
    made = batches(6)
    table = HoodieTable(str(tmp_path), opts)
    for number, rows in enumerate(made):
        stream(writer(str(tmp_path), opts), number, trips(*rows), tasks)
        whole = (number + 1) // 3 * 3
        if whole:
            assert found(table) == folded(made[:whole])
        assert len(table.timeline.commits) == whole // 3
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())
    storage = open_storage(str(tmp_path))
    named = set()
    for instant in load_timeline(storage, 1).commits:
        commit = read_commit(storage, instant)
        assert commit.extra[ROWS_KEY] == "90"
        for path, checksum in eval(commit.extra[CHECKSUMS_KEY]).items():
            name, _, part = path.partition("#")
            content = (tmp_path / name).read_bytes()
            footer = content[-8 - int.from_bytes(content[-8:-4], "little") :]
            assert xxhash.xxh64_hexdigest(footer if part else content) == checksum
        for stat in commit.stats:
            assert stat.file_size_bytes == (tmp_path / stat.path).stat().st_size
            assert stat.prev_commit != instant.time or stat.log is not None
        named |= {stat.path for stat in commit.stats}
    there = {
        str(p.relative_to(tmp_path))
        for p in tmp_path.rglob("*")
        if p.is_file() and ".hoodie" not in p.parts and p.name != ".hoodie_partition_metadata"
    }
    assert there == named  # what a batch rewrote within its instant is gone


@pytest.mark.parametrize("index", ["BUCKET", "BLOOM"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_file_of_an_earlier_batch_is_missing(tmp_path: Path, version: str, index: str) -> None:
    opts = {**options("COPY_ON_WRITE", index, 3), VERSION: version}
    made = batches(3)
    stream(writer(str(tmp_path), opts), 0, trips(*made[0]))
    path = next(p for p in tmp_path.rglob("*.parquet") if ".hoodie" not in p.parts)
    kept = path.rename(tmp_path.parent / "kept")
    with pytest.raises(CorruptFileError, match=f"{path.name} is missing, which"):
        stream(writer(str(tmp_path), opts), 1, trips(*made[1]))
    kept.rename(path)
    for number in (1, 2):
        stream(writer(str(tmp_path), opts), number, trips(*made[number]))
    assert found(HoodieTable(str(tmp_path))) == folded(made)


@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_counts_its_changes_from_before_the_instant(tmp_path: Path, kind: str) -> None:
    opts = options(kind, "BUCKET", 2)
    stream(writer(str(tmp_path), opts), 0, trips(("a", "x", 1, 1.0)))
    stream(writer(str(tmp_path), opts), 1, trips(("a", "x", 2, 1.0), ("b", "x", 1, 1.0)))
    storage = open_storage(str(tmp_path))
    (instant,) = load_timeline(storage, 1).commits
    stats = read_commit(storage, instant).stats
    bases = [stat for stat in stats if stat.log is None]
    assert {stat.prev_commit for stat in bases} == {"null"}
    assert sum(stat.num_inserts + stat.num_update_writes for stat in stats) == 3


def test_rows_without_keys_keep_different_keys(tmp_path: Path) -> None:
    opts = {k: v for k, v in options("COPY_ON_WRITE", "BLOOM", 3).items() if k not in (KEY, INDEX)}
    for number in range(3):
        # Another application's tasks may have the same numbers.
        stream(writer(str(tmp_path), opts), number, trips(*batches(1)[0]), tasks=2, stage=1)
    table = HoodieTable(str(tmp_path))
    rows = table.read()
    assert rows.num_rows == 90
    assert len(set(rows.column("_hoodie_record_key").to_pylist())) == 90
    assert len(set(rows.column("_hoodie_commit_seqno").to_pylist())) == 90
    assert len(table.timeline.commits) == 1


def test_a_replayed_batch_of_an_open_instant_changes_nothing(tmp_path: Path) -> None:
    opts = options("MERGE_ON_READ", "BUCKET", 3)
    made = batches(3)
    for number in (0, 0, 1, 0, 1, 2, 2):
        stream(writer(str(tmp_path), opts), number, trips(*made[number]))
    table = HoodieTable(str(tmp_path))
    assert len(table.timeline.commits) == 1
    assert found(table) == folded(made)


@pytest.mark.parametrize("last", [1, 2])
def test_a_commit_may_be_asked_for_twice(tmp_path: Path, last: int) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 3)
    made = batches(3)
    for number in range(last):
        stream(writer(str(tmp_path), opts), number, trips(*made[number]))
    coordinator = writer(str(tmp_path), opts)
    rows = trips(*made[last])
    batch = coordinator.begin(rows.schema)
    message = write_task(batch, TaskId(0, 99, 9), BatchId("q", last), rows.to_batches(), True)
    coordinator.commit([message])
    coordinator.commit([message])
    for number in range(last + 1, 3):
        stream(writer(str(tmp_path), opts), number, trips(*made[number]))
    assert found(HoodieTable(str(tmp_path))) == folded(made)


def test_another_writer_ends_the_instant_and_the_open_batch_is_run_again(tmp_path: Path) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 3)
    made = batches(3)
    stream(writer(str(tmp_path), opts), 0, trips(*made[0]))
    coordinator = writer(str(tmp_path), opts)
    rows = trips(*made[1])
    batch = coordinator.begin(rows.schema)
    message = write_task(batch, TaskId(0, 99, 9), BatchId("q", 1), rows.to_batches(), True)
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(trips(("other", "c0", 0, 0.0)))
    assert found(table) == sorted([*folded(made[:1]), ("other", "c0", 0, 0.0)])
    with pytest.raises(TimelineError, match="another writer completed instant"):
        coordinator.commit([message])
    coordinator.abort([message])
    assert found(table) == sorted([*folded(made[:1]), ("other", "c0", 0, 0.0)])
    for number in (1, 2):
        stream(writer(str(tmp_path), opts), number, trips(*made[number]))
    # The instant of the two is still open: whoever begins next ends it.
    table.upsert(trips(("last", "c0", 0, 0.0)))
    more = [("other", "c0", 0, 0.0), ("last", "c0", 0, 0.0)]
    assert found(table) == sorted([*folded(made), *more])


def test_what_cannot_span_batches_is_refused(tmp_path: Path) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 2)
    stream(writer(str(tmp_path), opts), 0, trips(*batches(1)[0]))
    replacing = {**opts, "hoodie.datasource.write.operation": "insert_overwrite"}
    with pytest.raises(OptionError, match=SPAN):
        writer(str(tmp_path), replacing).begin(trips().schema)
    given = {**opts, "path": str(tmp_path)}
    given["hoodie.datasource.write.streaming.checkpoint.identifier"] = "me"
    with pytest.raises(OptionError, match=SPAN):
        foreach_batch(given)


def test_a_batch_write_ends_the_instant(tmp_path: Path) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 5)
    stream(writer(str(tmp_path), opts), 0, trips(("a", "x", 1, 1.0)))
    table = HoodieTable(str(tmp_path), opts)
    table.upsert(trips(("a", "x", 2, 1.0), ("b", "x", 1, 1.0)))
    assert len(table.timeline.commits) == 1
    assert found(table) == [("a", "x", 2, 1.0), ("b", "x", 1, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("every", by_day([3, 1], {3}))
@pytest.mark.parametrize(
    ("kind", "index", "after"),
    by_day(
        [
            (*table, after)
            for table in zip(TYPES, ("BUCKET", "BLOOM"), strict=True)
            for after in (False, True)
        ],
        {(TYPES[0], "BUCKET", False), (TYPES[1], "BLOOM", True)},
    ),
)
def test_a_stream_may_be_killed_at_any_operation(
    tmp_path: Path, kind: str, index: str, after: bool, every: int
) -> None:
    """Spark runs the batch again whose commit did not return; the stream then goes on."""
    opts = options(kind, index, 2)
    made = batches(4, size=6)
    operation = 0
    while True:
        operation += every
        path = f"memory://{tmp_path}/{operation}"
        real = open_storage(path)
        dying = cast(Storage, DyingStorage(real, operation, after=after))
        died = False
        for number, rows in enumerate(made):
            try:
                stream(writer(path, opts, real if died else dying), number, trips(*rows), stage=1)
            except KilledError:
                died = True
                stream(writer(path, opts, real), number, trips(*rows), stage=1)
        table = HoodieTable(path, opts)
        assert found(table) == folded(made), operation
        assert len(table.timeline.commits) == 2, operation
        fsspec.filesystem("memory").rm(path, recursive=True)
        if not died:
            break
    assert operation > 60


@pytest.mark.parametrize("key", [ROWS_KEY, METRICS_KEY])
@pytest.mark.parametrize("text", [None, "no number", "[]"])
def test_a_manifest_that_does_not_say_what_its_batches_held_is_named(
    tmp_path: Path, key: str, text: str | None
) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 3)
    stream(writer(str(tmp_path), opts), 0, trips(("a", "x", 1, 1.0)))
    (path,) = tmp_path.rglob("manifest_1.json")
    whole = path.read_bytes()
    manifest = CommitMetadata.from_bytes(whole, str(path))
    extra = {k: v for k, v in manifest.extra.items() if k != key}
    extra |= {} if text is None else {key: text}
    path.write_bytes(replace(manifest, extra=extra).to_bytes(1))
    read_commit.cache_clear()
    with pytest.raises(CorruptFileError, match=r"manifest_1\.json does not say what"):
        stream(writer(str(tmp_path), opts), 1, trips(("b", "x", 1, 1.0)))
    path.write_bytes(whole)
    read_commit.cache_clear()
    for number in (1, 2):
        stream(writer(str(tmp_path), opts), number, trips(("b", "x", number, 1.0)))
    assert found(HoodieTable(str(tmp_path))) == [("a", "x", 1, 1.0), ("b", "x", 2, 1.0)]


def test_an_instant_that_goes_while_a_batch_begins_is_named(tmp_path: Path) -> None:
    """Another writer completes it, and its timeline is archived, before the batch looks again."""
    opts = options("COPY_ON_WRITE", "BUCKET", 3)
    stream(writer(str(tmp_path), opts), 0, trips(("a", "x", 1, 1.0)))
    looks: list[str] = []

    def others(operation: Operation) -> None:
        if operation.kind is Kind.READ and operation.path.endswith(".inflight"):
            looks.append(operation.path)
            if len(looks) == 3:  # whether it is ours, and one of several; then to go on
                HoodieTable(str(tmp_path), TRIPS).upsert(trips(("b", "x", 1, 1.0)))
                archive(tmp_path, keep=1)

    storage = FaultyStorage(open_storage(str(tmp_path)), before_each=others)
    with pytest.raises(WriteConflictError, match="completed or rolled back instant"):
        writer(str(tmp_path), opts, storage).begin(trips().schema)
    for number in (1, 2, 3):
        stream(writer(str(tmp_path), opts), number, trips(("c", "x", number, 1.0)))
    assert [row[0] for row in found(HoodieTable(str(tmp_path)))] == ["a", "b", "c"]


def test_of_two_queries_that_go_on_with_one_instant_the_second_is_told(tmp_path: Path) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 3)
    stream(writer(str(tmp_path), opts), 0, trips(("a", "x", 1, 1.0)))
    batches = []
    coming = (BatchId("q", 1), ("q", "x", 1, 1.0)), (BatchId("r", 0), ("r", "y", 1, 1.0))
    for task, (batch_id, row) in enumerate(coming):
        sink = writer(str(tmp_path), opts)
        batch = sink.begin(trips().schema)
        message = write_task(
            batch, TaskId(0, task + 7, task + 7), batch_id, trips(row).to_batches(), True
        )
        batches.append((sink, message))
    batches[1][0].commit([batches[1][1]])
    with pytest.raises(WriteConflictError, match=r"another query continued.*run it again"):
        batches[0][0].commit([batches[0][1]])
    stream(writer(str(tmp_path), opts), 2, trips(("c", "x", 1, 1.0)))
    rows = found(HoodieTable(str(tmp_path)))
    assert rows == [("a", "x", 1, 1.0), ("c", "x", 1, 1.0), ("r", "y", 1, 1.0)]


@pytest.mark.parametrize("next_span", [1, 3])
def test_a_damaged_manifest_of_the_first_of_several_batches_is_refused(
    tmp_path: Path, next_span: int
) -> None:
    opts = options("COPY_ON_WRITE", "BUCKET", 3)
    stream(writer(str(tmp_path), opts), 0, trips(("a", "x", 1, 1.0)))
    (path,) = tmp_path.rglob("manifest_1.json")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"UPSERT"', b'"UPSERS"'))
    following = options("COPY_ON_WRITE", "BUCKET", next_span)
    with pytest.raises(CorruptFileError, match=r"manifest_1\.json"):
        stream(writer(str(tmp_path), following), 1, trips(("b", "x", 1, 1.0)))
    path.write_bytes(whole)
    for number in (1, 2):
        stream(writer(str(tmp_path), opts), number, trips((str(number), "x", 1, 1.0)))
    assert [row[0] for row in found(HoodieTable(str(tmp_path)))] == ["1", "2", "a"]
