"""Tables that get another number of buckets: rows and buckets change in one step."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import (
    CorruptFileError,
    HoodieError,
    OptionError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.sink import bucket_rescale
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing.memory import MemoryStorage
from tests.integration.test_partition_buckets import CONFIGS, java_bucket
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, coordinator, found, trips
from tests.tiers import by_day
from tests.unit.transaction.failed_tables import DyingStorage, KilledError

KINDS = [(version, kind) for version in ("6", "8", "9") for kind in TYPES]
ROWS = trips(*((f"k{i}", "abc"[i % 3], 1, float(i)) for i in range(60)))
MORE = trips(*((f"k{i}", "abc"[i % 3], 2, float(i)) for i in range(40, 80)))
OPTIONS = {**TRIPS, BUCKETS: "4"}
WITHOUT_NUMBER = {key: text for key, text in OPTIONS.items() if key != BUCKETS}


def table_at(path: Path, version: str = "6", kind: str = TYPES[0]) -> HoodieTable:
    return HoodieTable(str(path), {**OPTIONS, VERSION: version, TYPE: kind})


def in_memory(storage: object, version: str = "6", kind: str = TYPES[0]) -> HoodieTable:
    options = {**WITHOUT_NUMBER, VERSION: version, TYPE: kind}
    return HoodieTable("memory://table", options, storage=storage)  # type: ignore[arg-type]


def assert_in_buckets(table: HoodieTable, counts: dict[str, int]) -> None:
    """Each row is in the bucket that Java's hash of its key says; each key is there once."""
    rows = table.read().to_pylist()
    for row in rows:
        expected = java_bucket(row["id"], counts[row["city"]])
        assert int(row["_hoodie_file_name"][:8]) == expected
    assert len({row["id"] for row in rows}) == len(rows)


@pytest.mark.parametrize(("version", "kind"), by_day(KINDS, [KINDS[0], KINDS[3], KINDS[5]]))
def test_rows_come_into_other_buckets(tmp_path: Path, version: str, kind: str) -> None:
    table = table_at(tmp_path, version, kind)
    table.upsert(ROWS)
    first = table.upsert(MORE).instant_time
    before = found(table)
    would = table.rescale_buckets(7, dry=True)
    assert (would.before, would.after, would.partitions, would.groups) == (4, 7, 3, 12)
    assert found(table) == before
    done = table.rescale_buckets(7)
    assert (done.rows, done.instant_time) == (80, next(table.timeline.commits_backwards()).time)
    assert "from 4 to 7 buckets" in str(done)
    assert found(table) == before
    assert_in_buckets(table, dict.fromkeys("abc", 7))
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())
    assert table.read(as_of=first).num_rows == 80

    later = HoodieTable(str(tmp_path))
    later.upsert(ROWS)
    assert_in_buckets(later, dict.fromkeys("abc", 7))
    assert len(found(later)) == 80
    assert later.properties.num_buckets == 7
    with pytest.raises(OptionError, match="leave the option out") as caught:
        table.upsert(ROWS)
    assert caught.value.key == BUCKETS
    assert not later.rescale_buckets(7)
    assert "nothing to do" in str(later.rescale_buckets(7))

    later.rescale_buckets(2, "^b$,5")
    later.upsert(MORE)
    assert_in_buckets(later, {"a": 2, "b": 5, "c": 2})
    assert not later.inspect.verify().findings
    assert later.rescale_buckets(2).rules == ""  # what is not given again is gone
    assert_in_buckets(later, {"a": 2, "b": 2, "c": 2})


FEW = trips(*((f"k{i}", "a", 1, float(i)) for i in range(9)))
FEW_MORE = trips(*((f"k{i}", "a", 2, float(i)) for i in range(6, 12)))


ENDS = [(*table, after, every) for table in KINDS for after in (False, True) for every in (7, 1)]
SOME_ENDS = {(*table, bool((n + n // 2) % 2), 7) for n, table in enumerate(KINDS)}


@pytest.mark.parametrize(("version", "kind", "after", "every"), by_day(ENDS, SOME_ENDS))
def test_killed_anywhere_it_is_done_or_not(
    version: str, kind: str, after: bool, every: int
) -> None:
    start = MemoryStorage()
    HoodieTable(
        "memory://table", {**OPTIONS, BUCKETS: "2", VERSION: version, TYPE: kind}, storage=start
    ).upsert(FEW)
    rows = found(in_memory(start, version, kind))
    seen = set()
    for number in count(1, every):
        left = start.copy()
        dying = DyingStorage(left, number, after=after)
        try:
            in_memory(dying, version, kind).rescale_buckets(3)
        except KilledError:
            pass
        else:
            break
        table = HoodieTable("memory://table", storage=left)
        assert found(table) == rows
        if table.timeline.pending:  # which the next write completes or rolls back
            table.upsert(FEW_MORE)
        names = table.read().column("_hoodie_file_name").to_pylist()
        buckets = max(int(name[:8]) for name in names) + 1
        seen.add(buckets)
        if number % 3 == 0:
            buckets = table.rescale_buckets(3).after
        # Whoever says the number that counts may go on, whatever the properties say by then.
        named = HoodieTable("memory://table", {BUCKETS: str(buckets)}, storage=left)
        named.upsert(FEW_MORE)
        assert_in_buckets(table, {"a": buckets})
        assert len(found(table)) == 12
        assert table.properties.num_buckets == buckets
        assert not table.inspect.verify().damage
    assert seen == {2, 3}
    assert number > 40


def test_what_a_stopped_process_puts_late_does_not_count(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.upsert(ROWS)
    done = table.rescale_buckets(7)
    late = tmp_path / CONFIGS / f"{done.instant_time}.hashing_config"
    text = late.read_text("utf-8")
    assert json.loads(text)["defaultBucketNumber"] == 7
    table = HoodieTable(str(tmp_path))
    table.rollback()
    assert not late.exists()
    late.write_text(text)
    assert found(table) == sorted(zip(*ROWS.to_pydict().values(), strict=True))
    table.upsert(MORE)
    assert not late.exists()
    assert_in_buckets(table, dict.fromkeys("abc", 4))
    assert table.properties.num_buckets == 4


def test_what_is_late_by_a_whole_archive_does_not_count(tmp_path: Path) -> None:
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    keep["hoodie.clean.commits.retained"] = "1"
    table = table_at(tmp_path)
    table.upsert(ROWS)
    done = table.rescale_buckets(7)
    late = tmp_path / CONFIGS / f"{done.instant_time}.hashing_config"
    text = late.read_text("utf-8")
    table = HoodieTable(str(tmp_path), keep)
    table.rollback()
    for _ in range(8):
        table.upsert(MORE)
        table.clean()
        table.archive()
    assert done.instant_time is not None
    assert table.timeline.starts_after(done.instant_time)
    late.write_text(text)
    table.upsert(ROWS)
    assert_in_buckets(table, dict.fromkeys("abc", 4))
    assert not late.exists()


def test_an_archived_change_still_counts(tmp_path: Path) -> None:
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    keep["hoodie.clean.commits.retained"] = "1"
    table = table_at(tmp_path)
    table.upsert(ROWS)
    done = table.rescale_buckets(7)
    table = HoodieTable(str(tmp_path), keep)
    for _ in range(8):
        table.upsert(MORE)
        table.clean()
        table.archive()
    assert done.instant_time is not None
    assert table.timeline.starts_after(done.instant_time)
    table.upsert(ROWS)
    assert_in_buckets(table, dict.fromkeys("abc", 7))


def test_a_restore_brings_the_buckets_back(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    first = table.upsert(ROWS)
    table.savepoint(first)
    table.rescale_buckets(7)
    table = HoodieTable(str(tmp_path))
    table.upsert(MORE)
    table.restore(first)
    table.upsert(MORE)
    assert_in_buckets(table, dict.fromkeys("abc", 4))
    assert table.properties.num_buckets == 4


def other_writer(path: Path, **more: str) -> Callable[[], object]:
    """Begin and write a batch of a new partition; return what commits it."""
    writer = coordinator(path, **more)
    rows = trips(*((f"new{i}", "z", 1, 1.0) for i in range(9)))
    batch = writer.begin(rows.schema)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    return lambda: writer.commit([message])


SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}


@pytest.mark.parametrize("several", [False, True])
def test_rows_in_buckets_of_before_are_refused(tmp_path: Path, several: bool) -> None:
    more = {**OPTIONS, **(SEVERAL if several else {})}
    HoodieTable(str(tmp_path), more).upsert(ROWS)
    commit = other_writer(tmp_path, **{key.replace(".", "__"): text for key, text in more.items()})
    HoodieTable(str(tmp_path), SEVERAL).rescale_buckets(7)
    with pytest.raises(HoodieError) as caught:
        commit()
    assert not several or isinstance(caught.value, WriteConflictError)
    table = HoodieTable(str(tmp_path), SEVERAL if several else {})
    table.upsert(trips(*((f"new{i}", "z", 2, 1.0) for i in range(9))))
    assert_in_buckets(table, dict.fromkeys("abcz", 7))
    assert len(found(table)) == 69


def test_rows_that_are_written_later_into_buckets_of_before_are_refused(tmp_path: Path) -> None:
    """As in a table of Hudi's, whose properties do not say the number of buckets."""
    HoodieTable(str(tmp_path), OPTIONS).upsert(ROWS)
    file = tmp_path / ".hoodie" / "hoodie.properties"
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if BUCKETS not in line), "utf-8")
    writer = coordinator(tmp_path, **{key.replace(".", "__"): v for key, v in OPTIONS.items()})
    rows = trips(*((f"new{i}", "z", 1, 1.0) for i in range(9)))
    batch = writer.begin(rows.schema)
    HoodieTable(str(tmp_path), OPTIONS).rescale_buckets(7)
    message = write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)
    with pytest.raises(WriteConflictError, match="another number of buckets"):
        writer.commit([message])
    HoodieTable(str(tmp_path)).upsert(rows)
    assert_in_buckets(HoodieTable(str(tmp_path)), dict.fromkeys("abcz", 7))


NEW_PARTITION = trips(*((f"new{i}", "z", 1, 1.0) for i in range(20)))


@pytest.mark.parametrize("theirs", [MORE, NEW_PARTITION], ids=["stored", "new partition"])
def test_rows_that_come_meanwhile_are_not_lost(theirs: pa.Table) -> None:
    started: list[str] = []

    class Interrupting(MemoryStorage):
        """Another writer commits once the rescaling has begun to write."""

        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            if path.endswith(".hashing_config") and not started and "/0000" not in path:
                started.append(path)
                in_memory_several(self).upsert(theirs)

    def in_memory_several(storage: MemoryStorage) -> HoodieTable:
        return HoodieTable("memory://table", {**OPTIONS, **SEVERAL}, storage=storage)

    storage = Interrupting()
    in_memory_several(storage).upsert(ROWS)
    HoodieTable("memory://table", SEVERAL, storage=storage).rescale_buckets(7)
    assert started  # the first try was refused, the second one has the other's rows
    table = in_memory(storage)
    assert len(found(table)) == 80
    assert_in_buckets(table, dict.fromkeys("abcz", 7))


def test_a_table_without_rows_gets_other_buckets(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.upsert(ROWS)
    table.delete(ROWS)
    assert table.rescale_buckets(7).rows == 0
    table = HoodieTable(str(tmp_path))
    table.upsert(ROWS)
    assert_in_buckets(table, dict.fromkeys("abc", 7))


@pytest.mark.parametrize(
    ("number", "rules", "key"),
    [(0, None, "num_buckets"), (True, None, "num_buckets"), (4, "a,b", "rules")],
)
def test_malformed_numbers_are_refused(
    tmp_path: Path, number: int, rules: str | None, key: str
) -> None:
    table = table_at(tmp_path)
    table.upsert(ROWS)
    with pytest.raises(OptionError) as caught:
        table.rescale_buckets(number, rules)
    assert caught.value.key == key


def test_a_table_without_buckets_is_refused(tmp_path: Path) -> None:
    bloom = {**WITHOUT_NUMBER, "hoodie.index.type": "BLOOM"}
    HoodieTable(str(tmp_path), bloom).upsert(ROWS)
    with pytest.raises(UnsupportedTableError, match="no buckets to rescale"):
        HoodieTable(str(tmp_path), bloom).rescale_buckets(4)


def test_a_pending_compaction_is_to_be_carried_out_first(tmp_path: Path) -> None:
    table = table_at(tmp_path, kind=TYPES[1])
    table.upsert(ROWS)
    table.upsert(MORE)
    Compactor(table._services()).schedule()
    with pytest.raises(TimelineError, match="execute it first"):
        table.rescale_buckets(7)
    table.compact()
    assert table.rescale_buckets(7)


def test_keys_that_would_be_made_otherwise_are_refused(tmp_path: Path) -> None:
    """As those of a table whose properties say another form of partition path than its files."""
    table = table_at(tmp_path)
    table.upsert(ROWS)
    file = tmp_path / ".hoodie" / "hoodie.properties"
    text, key = file.read_text("utf-8"), "hoodie.datasource.write.hive_style_partitioning"
    assert f"{key}=false" in text
    file.write_text(text.replace(f"{key}=false", f"{key}=true"), "utf-8")
    rows = found(table)
    with pytest.raises(UnsupportedTableError, match=r"_hoodie_partition_path = .* makes 'city="):
        table.rescale_buckets(7)
    assert found(table) == rows
    assert table.properties.num_buckets == 4


def test_rows_that_are_lost_on_the_way_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(tmp_path)
    table.upsert(ROWS)
    rows = found(table)

    def losing(*given: Any, **named: Any) -> TaskCommitMessage:
        message = write_task(*given, **named)
        return replace(message, statuses=message.statuses[1:])

    monkeypatch.setattr(bucket_rescale, "write_task", losing)
    with pytest.raises(CorruptFileError, match=r"of 60 rows .* were written to the new buckets"):
        table.rescale_buckets(7)
    assert found(table) == rows
    table.upsert(MORE)
    assert_in_buckets(table, dict.fromkeys("abc", 4))


def test_an_overwrite_beside_a_writer_of_other_partitions_changes_no_buckets(
    tmp_path: Path,
) -> None:
    more = {**OPTIONS, **SEVERAL}
    HoodieTable(str(tmp_path), more).upsert(ROWS)
    commit = other_writer(tmp_path, **{key.replace(".", "__"): text for key, text in more.items()})
    overwriting = trips(("only", "a", 1, 1.0))
    HoodieTable(str(tmp_path), SEVERAL).overwrite(overwriting, partitions_only=True)
    with contextlib.suppress(WriteConflictError):  # as the later instant does not know of it
        commit()
    assert_in_buckets(HoodieTable(str(tmp_path)), dict.fromkeys("abcz", 4))
