"""What each handle writes, says of it, and leaves behind when it gives up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.config.enums import LogBlockFormat, MergeMode
from hoodie_ds.errors import AlreadyExistsError, SchemaError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, read_blocks
from hoodie_ds.handles.append_handle import AppendHandle, LogTarget
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.create_handle import CreateHandle, create_files
from hoodie_ds.handles.merge_handle import merge_base_file
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId

FIRST, SECOND = "20250101000000000", "20250102000000000"
GROUP = FileGroupId("p/q", "g-0")
MERGER = Merger(MergeMode.EVENT_TIME_ORDERING)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def context(
    storage: Storage, time: str = FIRST, *, block_bytes: int = 1 << 20, avro: bool = False
) -> WriteContext:
    schema = with_meta_columns(pa.schema([("ts", pa.int64()), ("v", pa.string())]))
    return WriteContext(
        storage=storage,
        instant_time=time,
        task_partition=3,
        batch_attempt="batch",
        task_attempt="1-9",
        schema=schema,
        avro_schema=arrow_to_avro(schema, "t"),
        codec="snappy",
        row_group_bytes=1 << 20,
        log_block_bytes=block_bytes,
        log_block_format=LogBlockFormat.AVRO if avro else LogBlockFormat.PARQUET,
    )


def records(*rows: tuple[str, int | None, str], deleted: tuple[bool, ...] = ()) -> RecordSet:
    kinds = {"_hoodie_record_key": pa.string(), "ts": pa.int64(), "v": pa.string()}
    table = pa.Table.from_pylist(
        [dict(zip(kinds, row, strict=True)) for row in rows], schema=pa.schema(kinds)
    )
    marks = np.array(deleted or [False] * len(rows), np.bool_)
    return RecordSet(table, marks, (table.column("ts"),))


def create(storage: Storage) -> BaseFile:
    handle = CreateHandle(context(storage), GROUP)
    handle.write(records(("a", 5, "a"), ("b", 5, "b"), ("c", 5, "c")).rows)
    status = handle.close()
    name = BaseFileName.parse(status.stat.path.rpartition("/")[2])
    assert name is not None
    return BaseFile(GROUP.partition_path, name, status.stat.file_size_bytes)


def merge(storage: Storage, base: BaseFile, new: RecordSet) -> WriteStatus | None:
    return merge_base_file(
        context(storage, SECOND), base, new, MERGER, ("ts",), lambda rows: [rows]
    )


def check_file(storage: Storage, status: WriteStatus) -> bytes:
    """The file is there, and size and checksum are those of its bytes."""
    data = storage.read(status.stat.path)
    assert len(data) == status.stat.file_size_bytes == status.stat.total_write_bytes
    assert xxhash.xxh64(data).hexdigest() == status.checksum
    return data


def paths(storage: Storage) -> list[str]:
    return [found.path for found in storage.list("", recursive=True)]


def test_a_new_base_file_is_announced_and_its_rows_are_stamped(storage: Storage) -> None:
    base = create(storage)
    name = f"g-0_{context(storage).write_token}_{FIRST}.parquet"
    assert paths(storage) == [
        f".hoodie/.temp/{FIRST}/p/q/{name}.marker.CREATE",
        "p/q/.hoodie_partition_metadata",
        f"p/q/{name}",
    ]
    with storage.open_input(base.path) as source:
        rows = pq.read_table(source).to_pylist()
    assert rows[1] == {
        "_hoodie_commit_time": FIRST,
        "_hoodie_commit_seqno": f"{FIRST}_3_1",
        "_hoodie_record_key": "b",
        "_hoodie_partition_path": "p/q",
        "_hoodie_file_name": name,
        "ts": 5,
        "v": "b",
    }
    metafile = storage.read("p/q/.hoodie_partition_metadata").decode()
    assert f"commitTime={FIRST}\npartitionDepth=2\n" in metafile


def test_statistics_of_a_new_file(storage: Storage) -> None:
    handle = CreateHandle(context(storage), FileGroupId("", "g-0"))
    handle.write(records(("a", 5, "a")).rows)
    status = handle.close()
    check_file(storage, status)
    stat = status.stat
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (1, 1, 0)
    assert (stat.partition_path, stat.prev_commit, stat.log) == ("", "null", None)


def test_a_merge_keeps_what_stays_as_it_was(storage: Storage) -> None:
    base = create(storage)
    new = records(
        ("a", 4, "late"),
        ("b", 6, "new"),
        ("c", 9, ""),
        ("d", 1, "d"),
        ("e", 1, ""),
        deleted=(False, False, True, False, True),
    )
    status = merge(storage, base, new)
    assert status is not None
    check_file(storage, status)
    stat = status.stat
    counts = stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes
    assert counts == (3, 1, 1, 1)
    assert stat.prev_commit == FIRST
    with storage.open_input(stat.path) as source:
        rows = {row["v"]: row for row in pq.read_table(source).to_pylist()}
    assert set(rows) == {"a", "new", "d"}
    assert rows["a"]["_hoodie_commit_time"] == FIRST
    assert rows["a"]["_hoodie_commit_seqno"] == f"{FIRST}_3_0"
    assert {row["_hoodie_file_name"] for row in rows.values()} == {stat.path.rpartition("/")[2]}
    assert rows["new"]["_hoodie_commit_time"] == rows["d"]["_hoodie_commit_time"] == SECOND
    assert f".hoodie/.temp/{SECOND}/{stat.path}.marker.MERGE" in paths(storage)


def test_a_merge_that_changes_nothing_writes_nothing(storage: Storage) -> None:
    base = create(storage)
    before = paths(storage)
    late = records(("a", 4, "late"), ("x", 9, ""), deleted=(False, True))
    assert merge(storage, base, late) is None
    assert paths(storage) == before


def test_all_rows_of_a_file_may_go(storage: Storage) -> None:
    base = create(storage)
    gone = records(("a", 5, ""), ("b", 9, ""), ("c", None, ""), deleted=(True, True, True))
    status = merge(storage, base, gone)
    assert status is not None
    assert (status.stat.num_writes, status.stat.num_deletes) == (0, 3)
    with storage.open_input(status.stat.path) as source:
        assert pq.read_table(source).num_rows == 0


@pytest.mark.parametrize("avro", [False, True])
def test_a_log_file_has_rows_first_then_deletes_apart_by_kind(storage: Storage, avro: bool) -> None:
    target = LogTarget(GROUP, FIRST, "base.parquet", 4, is_new=False)
    handle = AppendHandle(context(storage, SECOND, avro=avro), target)
    handle.write(
        records(
            ("a", 1, "x"),
            ("b", None, ""),
            ("c", 7, ""),
            deleted=(False, True, True),
        )
    )
    status = handle.close()
    stat = status.stat
    assert stat.path == f"p/q/.g-0_{FIRST}.log.4_{context(storage).log_token(4)}"
    blocks = list(read_blocks(check_file(storage, status), stat.path))
    data = BlockType.AVRO_DATA if avro else BlockType.PARQUET_DATA
    assert [b.block_type for b in blocks] == [data, BlockType.DELETE, BlockType.DELETE]
    assert {b.header[HeaderKey.INSTANT_TIME] for b in blocks} == {SECOND}
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts) == (1, 1, 0)
    assert (stat.num_deletes, stat.total_log_blocks, stat.total_log_records) == (2, 3, 3)
    assert stat.prev_commit == FIRST
    assert stat.log is not None
    assert (stat.log.version, stat.log.base_file) == (4, "base.parquet")


def test_a_log_that_begins_a_group_makes_the_partition(storage: Storage) -> None:
    handle = AppendHandle(context(storage), LogTarget(GROUP, FIRST, "", 1, is_new=True))
    handle.write(records(("a", 1, "x")))
    assert handle.close().stat.num_inserts == 1
    assert "p/q/.hoodie_partition_metadata" in paths(storage)


def test_large_rows_come_in_several_blocks(storage: Storage) -> None:
    target = LogTarget(GROUP, FIRST, "", 1, is_new=False)
    handle = AppendHandle(context(storage, block_bytes=1000), target)
    handle.write(records(*((f"k{i}", i, "x" * 100) for i in range(100))))
    status = handle.close()
    assert status.stat.total_log_blocks > 5
    assert status.stat.num_writes == 100


def test_a_handle_that_gives_up_leaves_no_file_but_its_marker(storage: Storage) -> None:
    base = CreateHandle(context(storage), GROUP)
    base.write(records(("a", 1, "x")).rows)
    log = AppendHandle(context(storage), LogTarget(GROUP, FIRST, "", 1, is_new=False))
    for handle in (base, log):
        handle.discard(ValueError("stop"))
    assert [path for path in paths(storage) if "g-0" in path and ".temp" not in path] == []
    assert sum(".marker." in path for path in paths(storage)) == 2


def test_an_attempt_does_not_write_a_file_twice(storage: Storage) -> None:
    create(storage)
    with pytest.raises(AlreadyExistsError):
        create(storage)


def test_no_other_attempt_has_a_name(storage: Storage) -> None:
    """And each part of a write token is a number that Hudi on the JVM can read."""
    some = context(storage)
    tokens = [
        replace(some, batch_attempt=batch, task_attempt=task).log_token(version)
        for batch in ("b", "c")
        for task in ("0-1", "0-2", "1-2")
        for version in range(50)
    ]
    assert len(set(tokens)) == len(tokens) == 300
    parts = [[int(part) for part in token.split("-")] for token in tokens]
    assert {first for first, _, _ in parts} == {some.task_partition}
    assert max(max(part) for part in parts) < 2**31


def test_files_of_a_size_are_begun_and_the_last_one_is_given_up_with_its_rows(
    storage: Storage, tmp_path: Path
) -> None:
    rows = records(*((key, 5, key * 9) for key in "abcdef")).rows

    def pieces() -> Iterator[pa.Table]:
        yield rows
        raise SchemaError("the rows end here")

    whole = create_files(context(storage), "p", [rows], rows.nbytes // 2)
    assert [status.stat.num_inserts for status in whole] == [3, 3]
    with pytest.raises(SchemaError, match="end here"):
        create_files(context(storage, SECOND), "p", pieces(), 1 << 20)
    names = {Path(status.stat.path).name for status in whole}
    assert {file.name for file in (tmp_path / "p").iterdir()} == {
        *names,
        ".hoodie_partition_metadata",
    }
