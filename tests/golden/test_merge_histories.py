"""Histories of record keys: what Apache Hudi on the JVM made of them, and what we make of them.

A delete is handed over as its keys: where the operation is ``delete``, Hudi on Spark looks at no
more of the rows.

With parquet log blocks Hudi 1.2 answers by the same rule but for two mistakes, which the tests name
key by key. *Writing*, it stores a delete that takes the place of an earlier row of its key in the
same batch without its ordering value, and so as an unconditional one: what is left then depends on
how rows are cut into batches. *Reading*, it takes for the text by which a row is ordered the first
bytes of the text in the last row of the block, as many as the row's own text has: the text of a
row is not copied from the buffer into which the next row is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.delete_block import decode_delete_block
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, read_blocks
from tests.golden.histories import OPTIONS, TABLES, Step, names, steps, unzip_table
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.merge_model import KINDS, Model, Record, fold

ANSWERED = [name for name in names() if not name.endswith("_nulls")]
NUMBERS = [name for name in ANSWERED if name != "string"]
ZEROS = {"int": 0, "date": KINDS["date"][1][1]}
NUM_STEPS = 7

Values = dict[str, str]


def values(rows: Any) -> Values:
    return {row["id"]: row["v"] for row in rows.select(["id", "v"]).to_pylist()}


def write(table: HoodieTable, step: Step) -> None:
    if step.operation == "delete":
        table.delete(step.rows.select(["id"]))
    else:
        table.upsert(step.rows)


def records(name: str, step: Step) -> list[tuple[str, Record]]:
    zero = ZEROS.get(name, ...)
    rows = step.rows.to_pylist()
    if step.operation == "delete":
        return [(row["id"], Record(None, row["v"], True)) for row in rows]
    return [
        (row["id"], Record(row["ts"], row["v"], row["_hoodie_is_deleted"], row["ts"] == zero))
        for row in rows
    ]


@pytest.mark.parametrize("table", ["cow", "mor_avro"])
@pytest.mark.parametrize("name", names())
def test_rows_win_as_in_hudi(name: str, table: str, tmp_path: Path) -> None:
    ours = HoodieTable(str(tmp_path), {**OPTIONS, **TABLES[table]})
    for step in steps(name):
        if table not in step.refused:
            write(ours, step)
        assert values(ours.read()) == step.answers[table]
    if table == "mor_avro":
        assert values(read_with_hudi_rs(tmp_path)) == values(ours.read())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", names())
def test_no_batch_is_refused_here(name: str, table: str, tmp_path: Path) -> None:
    """Nor does any table end otherwise than the rule says."""
    ours = HoodieTable(str(tmp_path), {**OPTIONS, **TABLES[table]})
    model = Model(merge_on_read=table != "cow")
    for step in steps(name):
        write(ours, step)
        model.write(records(name, step))
        assert values(ours.read()) == model.rows()
    if name in ANSWERED:
        assert values(read_with_hudi_rs(tmp_path)) == model.rows()


@pytest.mark.parametrize("name", NUMBERS)
def test_hudi_loses_ordering_values_of_deletes_in_parquet_logs(name: str) -> None:
    right, lossy = Model(merge_on_read=True), Model(merge_on_read=True, loses_orders=True)
    differing = 0
    for step in steps(name):
        right.write(records(name, step))
        lossy.write(records(name, step))
        assert lossy.rows() == step.answers["mor_parquet"]
        differing += right.rows() != lossy.rows()
    assert differing or name == "double"


@pytest.mark.parametrize("number", range(1, NUM_STEPS + 1))
@pytest.mark.parametrize("name", NUMBERS)
def test_we_read_the_parquet_logs_of_hudi_as_hudi_does(
    name: str, number: int, tmp_path: Path
) -> None:
    table = HoodieTable(str(unzip_table(name, "mor_parquet", tmp_path, number)), {})
    assert values(table.read()) == steps(name)[number - 1].answers["mor_parquet"]


@pytest.mark.parametrize("number", range(1, NUM_STEPS))
def test_hudi_mistakes_texts_in_parquet_logs(number: int, tmp_path: Path) -> None:
    folder = unzip_table("string", "mor_parquet", tmp_path, number)
    answer = steps("string")[number - 1].answers["mor_parquet"]
    assert merged(folder, number, mistaken=True) == answer
    ours = values(HoodieTable(str(folder), {}).read())
    assert merged(folder, number, mistaken=False) == ours
    assert (ours != answer) == (number > 1)


def merged(folder: Path, number: int, *, mistaken: bool) -> Values:
    """Rows of a table ordered by text, from its files, after a number of commits."""
    times = sorted(path.stem for path in (folder / ".hoodie").glob("*.deltacommit"))
    (base,) = folder.glob(f"*_{times[0]}.parquet")
    model = Model(merge_on_read=True, began=True)
    for row in pq.ParquetFile(base).read(["id", "ts", "v"]).to_pylist():
        model.base[row["id"]] = Record(row["ts"], row["v"])
    for log in sorted(folder.glob(".*.log.*"), key=lambda path: path.name.split(".log.")[1]):
        for block in read_blocks(log.read_bytes(), log.name):
            if block.header[HeaderKey.INSTANT_TIME] not in times[:number]:
                continue
            if block.block_type is BlockType.DELETE:
                deletes = decode_delete_block(block, log.name).to_pylist()
                model.write((r["record_key"], Record(r["ordering"], "", True)) for r in deletes)
                continue
            rows = decode_data_block(block, log.name).to_pylist()
            model.write((row["id"], Record(row["ts"], row["v"])) for row in rows)
            if mistaken:
                mistake(model, rows)
    return model.rows()


def mistake(model: Model, rows: list[dict[str, Any]]) -> None:
    """Give the records of a block the texts that Hudi compares once it has read the block."""
    last = rows[-1]
    text = (last["ts"] or last["v"]).encode().ljust(8, b"\0")  # what the buffer then holds there
    for row in rows:
        record = model.log[row["id"]]
        if record.value == row["v"]:
            size = len(row["ts"].encode())
            model.log[row["id"]] = Record(text[:size].decode(errors="surrogateescape"), row["v"])


def test_a_history_is_more_than_rows_that_come_in_order() -> None:
    """Late rows, ties, deletes of both kinds and several rows of a key in a batch are there."""
    for name in ANSWERED:
        several = late = 0
        for step in steps(name)[:-1]:
            by_key: dict[str, list[Record]] = {}
            for key, record in records(name, step):
                by_key.setdefault(key, []).append(record)
            several += sum(len(found) > 1 for found in by_key.values())
            late += sum(fold(found) is not found[-1] for found in by_key.values())
        assert several > 20, name
        assert late > 5, name
