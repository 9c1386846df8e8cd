"""Tables that keep change data: what is logged is what changed, beside the base files."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.formats.log.cdc_block import decode_cdc_block
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import MemoryStorage, check_table
from hoodie_ds.timeline.loading import read_commit
from tests.tables import BUCKETS, PARTITION, TRIPS, TYPE, TYPES, VERSION, found, trips

LOGGED = {"hoodie.table.cdc.enabled": "true"}
BLOOM = {BUCKETS: "", "hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "100"}
SIMPLE = {BUCKETS: "", "hoodie.index.type": "SIMPLE"}
KEEP_ONE = {"hoodie.clean.commits.retained": "1"}
VERSIONS = pytest.mark.parametrize("version", ["6", "9"])


def made(options: Mapping[str, str]) -> tuple[HoodieTable, MemoryStorage]:
    storage = MemoryStorage()
    given = {k: v for k, v in {**TRIPS, **LOGGED, **options}.items() if v}
    return HoodieTable("/t", given, storage=storage), storage


def change_files(storage: MemoryStorage) -> dict[str, str]:
    """Files of change data, each with the instant in its name."""
    paths = (path for path in storage.files if path.endswith(".cdc"))
    return {path: path.rpartition("_")[0].rpartition("_")[2].partition(".")[0] for path in paths}


def base_instants(storage: MemoryStorage) -> set[str]:
    paths = (path for path in storage.files if path.endswith(".parquet"))
    return {path.rpartition("_")[2].partition(".")[0] for path in paths if "/history/" not in path}


def newest_changes(table: HoodieTable, storage: MemoryStorage) -> list[dict[str, Any]]:
    commit = read_commit(storage, next(table.timeline.commits_backwards()))
    paths = [path for stat in commit.stats for path, _ in stat.change_files]
    assert commit.checksums.keys() >= set(paths)
    blocks = ((path, block) for path in paths for block in read_blocks(storage.files[path], path))
    return [row for path, block in blocks for row in decode_cdc_block(block, path).to_pylist()]


@VERSIONS
@pytest.mark.parametrize("index", [{}, BLOOM, {**SIMPLE, "hoodie.populate.meta.fields": "false"}])
def test_what_is_logged_makes_one_snapshot_of_the_other(
    version: str, index: dict[str, str]
) -> None:
    """Random upserts and deletes, many of them late, with one base file for all keys."""
    generator = random.Random(7)
    table, storage = made({**index, VERSION: version, BUCKETS: "1" if not index else ""})
    table.upsert(trips(*((f"k{n}", "x", 5, 0.0) for n in range(8))))
    for step in range(6):
        before = {row[0]: row for row in found(table)}
        keys = generator.sample(range(12), 5)
        if step % 3 == 2:
            table.delete(trips(*((f"k{n}", "x", 0, 0.0) for n in keys)).select(["id", "city"]))
        else:
            late = [(f"k{n}", "x", generator.randrange(3, 9), step + 0.5) for n in keys]
            table.upsert(trips(*late))
        after = dict(before)
        for change in newest_changes(table, storage):
            images = (change["before"], change["after"])
            old, new = (image and tuple(image.values()) for image in images)
            key = (old or new)[0]
            assert before.get(key) == old
            assert change["op"] == ("i" if old is None else "d" if new is None else "u")
            after.pop(key, None)
            if new is not None:
                after[key] = new
        assert after == {row[0]: row for row in found(table)}
    wrong = check_table(storage.files, settled=True)
    assert [line for line in wrong if "of instant None" not in line] == []  # of virtual keys


@VERSIONS
def test_a_clean_takes_change_data_with_the_base_files(version: str) -> None:
    table, storage = made({VERSION: version, PARTITION: "", BUCKETS: "1", **KEEP_ONE})
    for ts in range(4):
        table.upsert(trips(("a", "x", ts, float(ts))))
    first, *later = sorted(base_instants(storage))
    assert set(change_files(storage).values()) == set(later)
    table.clean()
    kept = base_instants(storage)
    assert kept < {first, *later}
    assert set(change_files(storage).values()) == kept
    assert check_table(storage.files, settled=True) == []
    with pytest.raises(TimelineError, match="keeps those since"):
        table.savepoint(first)


@VERSIONS
def test_what_is_taken_back_takes_its_change_data_along(version: str) -> None:
    table, storage = made({VERSION: version, PARTITION: "", BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    second = table.upsert(trips(("a", "x", 2, 2.0))).instant_time
    assert second is not None
    table.savepoint(second)
    table.upsert(trips(("a", "x", 3, 3.0)))
    fourth = table.upsert(trips(("a", "x", 4, 4.0))).instant_time
    assert fourth is not None
    assert len(change_files(storage)) == 3
    table.rollback(fourth)
    assert fourth not in change_files(storage).values()
    table.upsert(trips(("a", "x", 5, 5.0)))
    table.restore(second)
    assert set(change_files(storage).values()) == {second}
    assert found(table) == [("a", "x", 2, 2.0)]
    assert check_table(storage.files, settled=True) == []


@VERSIONS
def test_log_files_tell_the_slice_that_they_change(version: str) -> None:
    """By which the JVM finds what was there before."""
    options = {TYPE: "MERGE_ON_READ", VERSION: version, PARTITION: "", BUCKETS: "1"}
    table, storage = made(options)
    names = []
    for ts in range(3):
        table.upsert(trips(("a", "x", ts, float(ts))))
        (stat,) = read_commit(storage, next(table.timeline.commits_backwards())).stats
        names.append(stat.path)
    assert stat.log is not None
    assert (stat.log.base_file, stat.log.log_files) == (names[0], (names[1], names[2]))
    assert not change_files(storage)
    table.compact()
    assert len(change_files(storage)) == 1
    assert [change["op"] for change in newest_changes(table, storage)] == ["u"]


@VERSIONS
def test_a_table_changes_its_version_with_its_change_data(version: str) -> None:
    table, storage = made({VERSION: version, PARTITION: "", BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)))
    before = newest_changes(table, storage)
    if version == "6":
        table.upgrade(9)
    else:
        table.downgrade(6)
    assert newest_changes(HoodieTable("/t", storage=storage), storage) == before != []


@pytest.mark.parametrize("kind", TYPES)
def test_rows_that_fill_a_small_file_are_logged_as_inserts(kind: str) -> None:
    """Also a row whose key is there: an insert changes no stored row."""
    table, storage = made({**BLOOM, TYPE: kind, PARTITION: ""})
    table.insert(trips(("a", "x", 1, 1.0)))
    assert not change_files(storage)
    table.insert(trips(("a", "x", 2, 2.0), ("b", "x", 2, 2.0)))
    changes = newest_changes(table, storage)
    assert sorted((change["op"], change["after"]["id"]) for change in changes) == [
        ("i", "a"),
        ("i", "b"),
    ]
    assert len(found(table)) == 3
    assert check_table(storage.files, settled=True) == []


@VERSIONS
def test_of_two_writers_the_loser_leaves_no_change_data(version: str) -> None:
    shared = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    options = {VERSION: version, PARTITION: "", BUCKETS: "1", **shared}
    table, storage = made(options)
    table.upsert(trips(("a", "x", 1, 1.0)))
    given = {k: v for k, v in {**TRIPS, **LOGGED, **options, "path": "/t"}.items() if v}
    late = Coordinator(WriteOptions.parse(given), storage, SystemClock(), RandomIds())
    rows = trips(("a", "x", 3, 3.0))
    batch = late.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    assert len(change_files(storage)) == 1
    won = table.upsert(trips(("a", "x", 2, 2.0))).instant_time
    with pytest.raises(WriteConflictError):
        late.commit([message])
    late.abort([message])
    last = table.upsert(trips(("a", "x", 4, 4.0))).instant_time
    assert set(change_files(storage).values()) == {won, last}
    (change,) = newest_changes(table, storage)
    assert (change["before"]["ts"], change["after"]["ts"]) == (2, 4)
    assert check_table(storage.files, settled=True) == []


def test_a_schema_that_has_grown_is_that_of_the_images() -> None:
    table, storage = made({PARTITION: "", BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)).append_column("tip", pa.array([0.5])))
    (change,) = newest_changes(table, storage)
    assert (change["before"]["tip"], change["after"]["tip"]) == (None, 0.5)
