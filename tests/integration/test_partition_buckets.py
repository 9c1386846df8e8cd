"""Tables whose partitions have different numbers of buckets."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.bucket_rules import BucketRules
from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.datasource.python_bucket import task_mapper
from hoodie_ds.errors import HoodieError, OptionError, UnsupportedTableError
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.record.keys.keygen import KeySpec
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, KEY, TRIPS, TYPE, TYPES, coordinator, found, trips
from tests.unit.transaction.failed_tables import DyingStorage, KilledError

RULES = "hoodie.bucket.index.partition.expressions"
CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
CONFIG = f"{CONFIGS}/00000000000000.hashing_config"
OPTIONS = {**TRIPS, BUCKETS: "3", RULES: "^large,17;la,2;^s$,1"}
COUNTS = {"large-1": 17, "other": 3, "plain": 2, "salami": 2, "s": 1}
SIX_ROWS = trips(*((f"k{i}", "large-1", 1, 1.0) for i in range(6)))


def java_bucket(key: str, buckets: int) -> int:
    """The bucket of a key of one value: Java's hash of a list of one string."""
    code = 0
    for character in key:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return ((31 + code) & 0x7FFFFFFF) % buckets


def data_files(path: Path) -> list[tuple[str, int]]:
    """Partition, and the bucket in the name, of every data file."""
    files = [*path.glob("*/*.parquet"), *path.glob("*/.*.log.*")]
    return [(file.parent.name, int(file.name.lstrip(".")[:8])) for file in files]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("tasks", [1, 3])
def test_upserts_over_partitions_of_different_sizes(tmp_path: Path, kind: str, tasks: int) -> None:
    draw = random.Random(kind + str(tasks))
    model: dict[str, tuple[str, str, int, float]] = {}
    more = {key.replace(".", "__"): text for key, text in OPTIONS.items()}
    for turn in range(4):
        ids = draw.sample(range(120), 50)
        rows = [(f"k{i}", list(COUNTS)[i % 5], turn, float(turn * 1000 + i)) for i in ids]
        model.update({row[0]: row for row in rows})
        writer = coordinator(tmp_path, **more, **{TYPE.replace(".", "__"): kind})
        batch = writer.begin(trips(*rows).schema)
        parts = [trips(*rows[task::tasks]).to_batches() for task in range(tasks)]
        writer.commit(
            [
                write_task(batch, TaskId(n, 1, n), None, part, tasks == 1)
                for n, part in enumerate(parts)
            ]
        )
        assert found(HoodieTable(str(tmp_path))) == sorted(model.values())
    table = HoodieTable(str(tmp_path)).read()
    assert_same_rows(read_with_hudi_rs(tmp_path), table)
    for row in table.to_pylist():
        expected = java_bucket(row["id"], COUNTS[row["city"]])
        assert int(row["_hoodie_file_name"][:8]) == expected
    used = data_files(tmp_path)
    assert all(bucket < COUNTS[city] for city, bucket in used)
    assert max(bucket for city, bucket in used if city == "large-1") > 2


def test_later_writes_need_no_option(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), OPTIONS).upsert(SIX_ROWS)
    HoodieTable(str(tmp_path)).upsert(SIX_ROWS)
    assert len(found(HoodieTable(str(tmp_path)))) == 6


@pytest.mark.parametrize(
    ("given", "shown"),
    [({RULES: "^large,17;la,3"}, "'^large,17;la,2;^s$,1'"), ({BUCKETS: "4"}, "'3'")],
)
def test_an_option_that_contradicts_the_table_is_refused(
    tmp_path: Path, given: Mapping[str, str], shown: str
) -> None:
    HoodieTable(str(tmp_path), OPTIONS).upsert(SIX_ROWS)
    with pytest.raises(OptionError, match="leave the option out") as caught:
        HoodieTable(str(tmp_path), {**OPTIONS, **given}).upsert(SIX_ROWS)
    assert shown in str(caught.value)
    assert caught.value.key in given


def test_rules_for_a_table_without_are_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(SIX_ROWS)
    with pytest.raises(OptionError, match="has 'none'"):
        HoodieTable(str(tmp_path), {**TRIPS, RULES: "a,4"}).upsert(SIX_ROWS)


@pytest.mark.parametrize("before", [True, False])
def test_rules_need_the_bucket_index(tmp_path: Path, before: bool) -> None:
    bloom = {key: text for key, text in TRIPS.items() if key != BUCKETS}
    bloom["hoodie.index.type"] = "BLOOM"
    if before:
        HoodieTable(str(tmp_path), bloom).upsert(SIX_ROWS)
    with pytest.raises(OptionError, match=RULES):
        HoodieTable(str(tmp_path), {**bloom, RULES: "a,4"}).upsert(SIX_ROWS)
    assert before or not list(tmp_path.iterdir())


def test_rules_need_record_keys(tmp_path: Path) -> None:
    keyless = {key: text for key, text in OPTIONS.items() if key not in (KEY, BUCKETS)}
    with pytest.raises(OptionError, match=RULES):
        HoodieTable(str(tmp_path), keyless).insert(SIX_ROWS)


def test_stored_rules_count_before_the_properties(tmp_path: Path) -> None:
    """As after Hudi has rescaled a table, and in tables of other engines."""
    HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "17"}).upsert(SIX_ROWS)
    text = '{"expressions": "x,2", "defaultBucketNumber": 17, "rule": "REGEX", "version": 1}'
    (tmp_path / CONFIG).parent.mkdir(parents=True)
    (tmp_path / CONFIG).write_text(text)
    HoodieTable(str(tmp_path)).upsert(trips(*((f"k{i}", "x", 1, 1.0) for i in range(50))))
    assert {bucket for city, bucket in data_files(tmp_path) if city == "x"} == {0, 1}
    with pytest.raises(OptionError, match="has 'x,2'"):
        HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "17", RULES: "y,4"}).upsert(SIX_ROWS)


def test_stored_rules_beyond_what_both_languages_share_are_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(SIX_ROWS)
    text = r'{"expressions":"\\p{L},2","defaultBucketNumber":2,"rule":"regex","version":1}'
    (tmp_path / CONFIG).parent.mkdir(parents=True)
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(UnsupportedTableError, match="the table can be read here"):
        HoodieTable(str(tmp_path)).upsert(SIX_ROWS)
    assert len(found(HoodieTable(str(tmp_path)))) == 6


def test_a_group_above_its_partitions_number_is_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), OPTIONS).upsert(SIX_ROWS)
    shutil.move(tmp_path / "large-1", tmp_path / "s")
    for commit in (tmp_path / ".hoodie").glob("*.commit"):
        commit.write_text(
            commit.read_text().replace("_hoodie_ds_", "_theirs_").replace("large-1", "s")
        )
    with pytest.raises(UnsupportedTableError, match="belongs to no bucket of 1"):
        HoodieTable(str(tmp_path)).upsert(trips(("k1", "s", 2, 2.0)))


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_creation_that_was_killed_anywhere_is_completed(tmp_path: Path, after: bool) -> None:
    operation = 0
    finished = False
    while not finished:
        operation += 1
        path = tmp_path / str(operation)
        inner = open_storage(str(path))
        try:
            dying = DyingStorage(inner, operation, after=after)
            HoodieTable(str(path), OPTIONS, storage=dying).upsert(SIX_ROWS)
            finished = True
        except KilledError:
            assert (path / CONFIG).exists() or not data_files(path)
        HoodieTable(str(path), OPTIONS).upsert(SIX_ROWS)
        assert len(found(HoodieTable(str(path)))) == 6
        assert [file.name for file in (path / CONFIGS).iterdir()] == [Path(CONFIG).name]
    assert operation > 15


def test_what_a_killed_process_left_beside_missing_rules_goes(tmp_path: Path) -> None:
    """Hudi takes every file of the folder for rules, and stumbles over an unfinished one."""
    HoodieTable(str(tmp_path), OPTIONS).upsert(SIX_ROWS)
    (tmp_path / CONFIG).rename(tmp_path / CONFIGS / ".12-0.tmp")
    HoodieTable(str(tmp_path)).upsert(SIX_ROWS)
    assert [file.name for file in (tmp_path / CONFIGS).iterdir()] == [Path(CONFIG).name]


def test_an_error_of_a_partition_path_is_typed(tmp_path: Path) -> None:
    with pytest.raises(HoodieError, match="control characters"):
        HoodieTable(str(tmp_path), OPTIONS).upsert(trips(("a", "x\ny", 1, 1.0)))


def test_every_bucket_of_every_partition_goes_to_one_task_and_they_spread() -> None:
    rules = BucketRules.parse("^p0$,1;^p1$,64")
    keys = ("id",)
    buckets = Buckets(4, keys, keys, rules)
    spec = KeySpec(KeyGeneratorType.SIMPLE, keys, ("city",))
    draw = random.Random(2)
    cities = [f"p{draw.randrange(4)}" for _ in range(8000)]
    ids = [f"{draw.getrandbits(64):x}" for _ in cities]
    rows = pa.table({"id": ids, "city": cities})
    (batch,) = list(task_mapper(buckets, spec, 8)(rows.to_batches()))
    tasks: dict[tuple[str, int], set[int]] = {}
    counts = {"p0": 1, "p1": 64}
    for row in batch.to_pylist():
        bucket = java_bucket(row["id"], counts.get(row["city"], 4))
        tasks.setdefault((row["city"], bucket), set()).add(row[TASK_COLUMN])
    assert len(tasks) == 1 + 64 + 4 + 4
    assert all(len(found_) == 1 for found_ in tasks.values())
    of_p1 = [task for (city, _), (task,) in tasks.items() if city == "p1"]
    assert np.bincount(of_p1, minlength=8).tolist() == [8] * 8
