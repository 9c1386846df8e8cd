from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.columns.meta_columns import RECORD_KEY, with_meta_columns
from hoodie_ds.config.enums import LogBlockFormat, SupplementalLogging
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.log.cdc_block import decode_cdc_block
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.handles.change_log import open_change_log
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.testing import MemoryStorage

TIME = "20250101000000000"
COLUMNS = pa.schema({"id": pa.string(), "n": pa.int64(), "who": pa.struct([("a", pa.int32())])})


def context(logging: SupplementalLogging | None, block_bytes: int = 1 << 20) -> WriteContext:
    schema = with_meta_columns(COLUMNS)
    return WriteContext(
        storage=MemoryStorage(),
        instant_time=TIME,
        task_partition=0,
        batch_attempt="b",
        task_attempt="t",
        schema=schema,
        avro_schema=arrow_to_avro(schema, "t"),
        codec="zstd",
        row_group_bytes=1 << 20,
        log_block_bytes=block_bytes,
        log_block_format=LogBlockFormat.PARQUET,
        logging=logging,
    )


def rows(*items: tuple[str, int | None]) -> pa.Table:
    listed = [{"id": k, "n": n, "who": None if n is None else {"a": None}} for k, n in items]
    table = pa.Table.from_pylist(listed, COLUMNS)
    return table.append_column(RECORD_KEY, table.column("id"))


def blocks(where: WriteContext) -> list[list[dict[str, Any]]]:
    storage = where.storage
    assert isinstance(storage, MemoryStorage)
    (path,) = (path for path in storage.files if path.endswith(".cdc"))
    assert path == f"p/.g-0_{TIME}.log.1_{where.write_token}.cdc"
    assert f".hoodie/.temp/{TIME}/{path}.marker.CREATE" in storage.files
    found = read_blocks(storage.files[path], path)
    return [decode_cdc_block(block, path).to_pylist() for block in found]


def image(key: str, n: int | None) -> dict[str, Any]:
    return {"id": key, "n": n, "who": None if n is None else {"a": None}}


def logged(logging: SupplementalLogging, block_bytes: int = 1 << 20) -> list[list[dict[str, Any]]]:
    where = context(logging, block_bytes)
    with open_change_log(where, "p", "g-0") as changes:
        assert changes is not None
        changes.removed(rows(("a", 1), ("b", None)))
        changes.removed(rows())
        changes.removed(rows(("c", 3)))
        changes.added(rows(("c", 4), ("d", None)))
        changes.added(rows(("b", 5)))
    storage = where.storage
    assert isinstance(storage, MemoryStorage)
    ((path, size),) = changes.stat
    assert size == len(storage.files[path])
    assert len(changes.checksums[0]) == 16
    return blocks(where)


def test_operations_and_keys() -> None:
    assert logged(SupplementalLogging.OP_KEY_ONLY) == [
        [
            {"op": "u", "record_key": "c"},
            {"op": "i", "record_key": "d"},
            {"op": "u", "record_key": "b"},
            {"op": "d", "record_key": "a"},
        ]
    ]


def test_before_images() -> None:
    assert logged(SupplementalLogging.DATA_BEFORE) == [
        [
            {"op": "u", "record_key": "c", "before": image("c", 3)},
            {"op": "i", "record_key": "d", "before": None},
            {"op": "u", "record_key": "b", "before": image("b", None)},
            {"op": "d", "record_key": "a", "before": image("a", 1)},
        ]
    ]


def test_before_and_after_images() -> None:
    time = {"ts_ms": TIME}
    expected = [
        {"op": "u", **time, "before": image("c", 3), "after": image("c", 4)},
        {"op": "i", **time, "before": None, "after": image("d", None)},
        {"op": "u", **time, "before": image("b", None), "after": image("b", 5)},
        {"op": "d", **time, "before": image("a", 1), "after": None},
    ]
    assert logged(SupplementalLogging.DATA_BEFORE_AFTER) == [expected]
    small = logged(SupplementalLogging.DATA_BEFORE_AFTER, block_bytes=1)
    assert small == [[change] for change in expected]


def test_a_rewrite_without_changes_logs_an_empty_block() -> None:
    where = context(SupplementalLogging.DATA_BEFORE)
    with open_change_log(where, "p", "g-0") as changes:
        assert changes is not None
        changes.added(rows())
    assert blocks(where) == [[]]


def test_a_table_without_cdc_writes_no_change_file() -> None:
    where = context(None)
    with open_change_log(where, "p", "g-0") as changes:
        assert changes is None
    storage = where.storage
    assert isinstance(storage, MemoryStorage)
    assert not storage.files


def test_a_failed_write_leaves_only_the_marker() -> None:
    where = replace(context(SupplementalLogging.OP_KEY_ONLY))
    with pytest.raises(KeyError), open_change_log(where, "p", "g-0"):
        raise KeyError
    storage = where.storage
    assert isinstance(storage, MemoryStorage)
    assert [path.rpartition(".")[2] for path in storage.files] == ["CREATE"]
    assert where.files == [f"p/.g-0_{TIME}.log.1_{where.write_token}.cdc"]
