"""What exactly-once costs an append-only batch: ours against a bare Arrow writer of the same files.

    .venv/bin/python benchmarks/append_overhead.py LINEITEM WORK

The bare writer gets the same record batches and does the same useful work: it puts the meta
columns on, encodes in a thread of its own while the next batches are taken, closes row groups and
files at the same sizes, with the same codec, and syncs each file and its folder. It has no
instant, marker, checksum, manifest or commit. That row groups and columns come out the same in
rows and size is checked in the warm-up round. Parquet's page checksums, which ours have, are not
among what makes a batch exactly-once: ``bare`` goes without them, ``bare with page checksums`` not.

Not the same: ours writes through a Python file object, which is where the file's checksum is
taken, the bare writer through Arrow's own file; the bare writer prints the sequence numbers of rows
with Arrow, ours has code of its own for that.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from results import emit, lineitem_rows

from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task

BATCH_ROWS = 10_000  # as Spark hands them over
CHUNK_BYTES = 32 << 20
GROUP_BYTES = FILE_BYTES = 120 << 20
INSTANT = "20260101000000000"
REPEATED = pa.dictionary(pa.int32(), pa.string())
UNIQUE = ("_hoodie_commit_seqno", "_hoodie_record_key")


class BareWriter:
    """Meta columns and Parquet, and nothing else."""

    def __init__(self, folder: Path, schema: pa.Schema, page_checksums: bool) -> None:
        self._folder, self._page_checksums = folder, page_checksums
        kinds = [pa.string() if name in UNIQUE else REPEATED for name in META_COLUMNS]
        self._schema = pa.schema([*zip(META_COLUMNS, kinds, strict=True), *schema])
        self._number = self._first_row = 0
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0

    def write(self, rows: pa.Table) -> None:
        """Put the meta columns on; close the row group, then the file, when they are full."""
        if self._writer is None:
            self._open()
        rows = self._stamped(rows)
        self._pending.append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= GROUP_BYTES:
            self._flush()
            if self._output.tell() >= FILE_BYTES:
                self.close()

    def close(self) -> None:
        """Finish the file and make it durable."""
        if self._writer is None:
            return
        self._flush()
        self._writer.close()
        self._output.close()
        self._writer = None
        for path, flags in ((self._path, os.O_RDONLY), (self._folder, os.O_DIRECTORY)):
            descriptor = os.open(path, flags)
            os.fsync(descriptor)
            os.close(descriptor)

    def _open(self) -> None:
        self._path = self._folder / f"{self._number:036}-0_0-0-0_{INSTANT}.parquet"
        self._number += 1
        self._output = pa.OSFile(str(self._path), "wb")
        self._writer = pq.ParquetWriter(
            self._output,
            self._schema,
            compression="snappy",
            use_dictionary=[name for name in self._schema.names if name not in UNIQUE],
            store_schema=False,
            write_page_checksum=self._page_checksums,
        )

    def _stamped(self, rows: pa.Table) -> pa.Table:
        count, first = rows.num_rows, self._first_row
        self._first_row += count
        numbers = pc.cast(pa.array(np.arange(first, first + count)), pa.string())
        sequence = pc.binary_join_element_wise(f"{INSTANT}_0", numbers, "_")
        time_, partition, name = (_repeat(t, count) for t in (INSTANT, "", self._path.name))
        meta = [time_, sequence, sequence, partition, name]
        return pa.Table.from_arrays([*meta, *rows.columns], schema=self._schema)

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending).unify_dictionaries()
        groups = max(1, round(self._pending_bytes / GROUP_BYTES))
        self._pending, self._pending_bytes = [], 0
        self._writer.write_table(rows, row_group_size=-(-rows.num_rows // groups))


def _repeat(text: str, count: int) -> pa.DictionaryArray:
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([text]))


def bare(batches: list[pa.RecordBatch], folder: Path, page_checksums: bool) -> dict[str, float]:
    """Write the files with Arrow alone; returns the seconds it took."""
    folder.mkdir(parents=True)
    started = time.perf_counter()
    writer = BareWriter(folder, batches[0].schema, page_checksums)
    running: deque[Future[None]] = deque()
    with ThreadPoolExecutor(max_workers=1) as pool:
        for chunk in _chunks(batches):
            while len(running) > 1:
                running.popleft().result()
            running.append(pool.submit(writer.write, chunk))
        for future in running:
            future.result()
        writer.close()
    return {"": time.perf_counter() - started}


def _chunks(batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def ours(batches: list[pa.RecordBatch], folder: Path) -> dict[str, float]:
    """Write a micro-batch, the second of its table; returns the seconds it took, and parts took."""
    options = {"path": str(folder), "hoodie.table.name": "lineitem"}
    coordinator = Coordinator.of(WriteOptions.parse(options))
    for number, rows in enumerate((batches[:1], batches)):
        started = time.perf_counter()
        batch = coordinator.begin(batches[0].schema)
        begun = time.perf_counter()
        message = write_task(batch, TaskId(), BatchId("bench", number), rows, sole_writer=True)
        written = time.perf_counter()
        coordinator.commit([message])
        ended = time.perf_counter()
    assert sum(status.stat.num_writes for status in message.statuses) == sum(map(len, batches))
    return {"": ended - started, ", begin": begun - started, ", commit": ended - written}


def layout(folder: Path) -> list[list[int]]:
    """Rows, and bytes of each column, of the row groups of a batch's files.

    Left out is the file of the batch that created the table, of `BATCH_ROWS` rows.
    """
    files = [pq.read_metadata(path) for path in folder.glob("*.parquet")]
    groups = [file.row_group(i) for file in files for i in range(file.num_row_groups)]
    return sorted(
        [g.num_rows, *(g.column(i).total_compressed_size for i in range(g.num_columns))]
        for g in groups
        if g.num_rows != BATCH_ROWS
    )


def check_same(one: list[list[int]], other: list[list[int]]) -> None:
    """Row groups must match; sizes nearly, since file names and page checksums differ."""
    assert [group[0] for group in one] == [group[0] for group in other], (one, other)
    assert np.allclose(one, other, rtol=0.02, atol=64), f"not the same files: {one}, {other}"


def main() -> None:
    """Take turns, in an order drawn from a seed, several rounds; round 0 is the warm-up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lineitem", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    every = lineitem_rows(chosen.lineitem, max(chosen.rows))
    sides: dict[str, Callable[..., dict[str, float]]] = {
        "bare": partial(bare, page_checksums=False),
        "bare with page checksums": partial(bare, page_checksums=True),
        "hoodie_ds": ours,
    }
    for count in chosen.rows:
        batches = every.slice(0, count).to_batches(max_chunksize=BATCH_ROWS)
        for number in range(chosen.rounds + 1):
            shutil.rmtree(chosen.work, ignore_errors=True)
            order = random.Random(number).sample(list(sides), len(sides))
            taken = {}
            for side in order:
                os.sync()  # what the round before left to be written is not this one's
                taken[side] = sides[side](batches, chosen.work / side)
            if number == 0:
                layouts = [layout(chosen.work / side) for side in list(sides)[1:]]
                check_same(*layouts)
                continue
            report(f"append of {count:,} rows", taken, number)
    shutil.rmtree(chosen.work)


def report(work: str, taken: dict[str, dict[str, float]], number: int) -> None:
    """Print the times of a round, and the overhead within it: noise that lasts is in both."""
    for side, parts in taken.items():
        for part, seconds in parts.items():
            emit(f"{work}, {side}{part}", seconds, round=number)
    for side in ("bare", "bare with page checksums"):
        ratio = taken["hoodie_ds"][""] / taken[side][""]
        emit(f"{work}, overhead over {side}, %", 100 * (ratio - 1), goal=2, round=number)


if __name__ == "__main__":
    main()
