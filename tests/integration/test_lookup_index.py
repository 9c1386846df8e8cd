"""Tables whose index looks keys up: however rows come, each key is stored once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.index_options import _SUPPORTED
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, UnsupportedTableError
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.index.choice import _LOOKUPS
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import KeyLookup, LookupContext, LookupIndex
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys, StoredKeys
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.sent_rows import sent_by_key
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, coordinator, found, tree, trips
from tests.tiers import by_day

INDEX = "hoodie.index.type"
GLOBAL = "index.global.enabled"
LOOKUP = {k: v for k, v in TRIPS.items() if k != BUCKETS}


def options(kind: str, index: str, **more: str) -> dict[str, str]:
    return {
        **{k.replace("__", "."): v for k, v in more.items()},
        TYPE: kind,
        INDEX: index,
        GLOBAL: "false",
    }


def write(
    path: Path, rows: pa.Table, opts: dict[str, str], tasks: int, how: str
) -> list[TaskCommitMessage]:
    """Write rows in several tasks: dealt out, by key, or as the assigner says."""
    writer = coordinator(path, **{k.replace(".", "__"): v for k, v in opts.items()})
    if how == "dealt out":
        owners = np.arange(rows.num_rows) % tasks
    elif how == "by key":
        owners = np.array([hash(key) % tasks for key in rows["id"].to_pylist()], np.int32)
        rows = sent_by_key(writer.preview(rows.schema), rows, owners, tasks)
    else:
        rows = pa.concat_tables(FileIdAssigner(writer.preview(rows.schema), tasks).assign(rows))
        owners = rows.column(TASK_COLUMN).to_numpy()
    batch = writer.begin(rows.schema)
    messages = []
    for number in range(tasks):
        chunks = rows.filter(pa.array(owners == number)).to_batches(16)
        messages.append(write_task(batch, TaskId(number, 1, number), None, chunks, tasks == 1))
    writer.commit(messages)
    return messages


@pytest.fixture(autouse=True)
def no_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tables.TRIPS", LOOKUP)


LOOK_UPS = [
    ("BLOOM", 1, "dealt out", "1g"),
    ("BLOOM", 3, "dealt out", "4k"),
    ("BLOOM", 3, "by key", "1g"),
    ("BLOOM", 3, "assigned", "4k"),
    ("SIMPLE", 3, "dealt out", "1g"),
    ("SIMPLE", 3, "by key", "4k"),
    ("SIMPLE", 5, "assigned", "1g"),
    ("FLINK_STATE", 1, "dealt out", "4k"),
    ("FLINK_STATE", 3, "by key", "1g"),
    ("FLINK_STATE", 3, "assigned", "1g"),
    ("FLINK_STATE, filtered", 1, "dealt out", "4k"),
    ("FLINK_STATE, filtered", 3, "assigned", "1g"),
]


@pytest.mark.parametrize(
    ("kind", "index", "tasks", "how", "memory"),
    by_day(
        [(kind, *each) for each in LOOK_UPS for kind in TYPES],
        [(TYPES[n % 2], *each) for n, each in enumerate(LOOK_UPS)],
    ),
)
def test_random_batches_give_the_model(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    index: str,
    tasks: int,
    how: str,
    memory: str,
) -> None:
    index, _, filtered = index.partition(", ")
    if filtered:  # as where there are many file groups
        monkeypatch.setattr("hoodie_ds.index.front_filter._ASKED_FOR", 0)
        monkeypatch.setattr("hoodie_ds.index.front_filter._ADDED_FOR", 0)
    draw = random.Random(5)
    model: dict[str, tuple[str, str, int, float]] = {}
    for number in range(5):
        rows = [
            (f"k{i}", f"c{i % 2}", draw.randrange(5), 100.0 * number + n)
            for n, i in enumerate(draw.choices(range(60), k=50))
        ]
        for row in rows:
            if row[0] not in model or row[2] >= model[row[0]][2]:
                model[row[0]] = row
        # Rows of one key stay in order only within a task: let ordering values decide.
        distinct = {(row[0], row[2]): row for row in rows}
        chosen = [row for row in rows if distinct[row[0], row[2]] == row]
        # Files that are full after a few rows: some inserts fill them, others begin new ones.
        more = {
            "write.task.max.size": memory,
            "hoodie.copyonwrite.record.size.estimate": "16000000",
        }
        opts = {**options(kind, index), **more}
        messages = write(tmp_path, trips(*chosen), opts, tasks, how)
        if how == "assigned":
            assert [m.staged for m in messages] == [()] * tasks  # the commit moves no data
        table = HoodieTable(str(tmp_path))
        assert found(table) == sorted(model.values())
        assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


@pytest.mark.parametrize("kind", TYPES)
def test_deletes_and_what_comes_after_them(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, **options(kind, "BLOOM")})
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 2.0), ("c", "y", 1, 3.0)))
    table.delete(pa.table({"id": ["a", "none"], "city": ["x", "x"]}))
    assert [row[0] for row in found(table)] == ["b", "c"]
    marked = trips(("c", "y", 2, 0.0), ("d", "y", 2, 0.0))
    table.upsert(marked.append_column("_hoodie_is_deleted", pa.array([True, True])))
    assert [row[0] for row in found(table)] == ["b"]
    back = trips(("a", "x", 5, 9.0), ("c", "y", 5, 9.0)).append_column(
        "_hoodie_is_deleted", pa.array([False, False])
    )
    table.upsert(back)
    assert [row[0] for row in found(table)] == ["a", "b", "c"]
    assert_same_rows(read_with_hudi_rs(tmp_path), table.read())


def test_inserts_become_base_files_with_the_footers_that_hudi_looks_for(tmp_path: Path) -> None:
    """Hudi's bloom index on the JVM does not see keys in log files."""
    opts = {**LOOKUP, **options("MERGE_ON_READ", "BLOOM"), "hoodie.parquet.small.file.limit": "0"}
    table = HoodieTable(str(tmp_path), opts)
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 1.0), ("b", "x", 2, 1.0)))
    stats = read_commit(coordinator(tmp_path).storage, table.timeline.commits[-1]).stats
    assert sorted(stat.log is None for stat in stats) == [False, True]
    for path in tmp_path.rglob("*.parquet"):
        footers = pq.read_metadata(path).metadata
        assert b"org.apache.hudi.bloomfilter" in footers
        assert footers[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"


def test_an_insert_looks_nothing_up_unless_it_must(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**LOOKUP, **options("COPY_ON_WRITE", "SIMPLE")})
    rows = trips(("a", "x", 1, 1.0))
    table.insert(rows)
    table.insert(rows)
    assert [row[0] for row in found(table)] == ["a", "a"]
    table.insert(rows, {"hoodie.datasource.insert.dup.policy": "drop"})
    assert [row[0] for row in found(table)] == ["a", "a"]
    table.overwrite(trips(("b", "x", 1, 1.0)))
    assert [row[0] for row in found(table)] == ["b"]


def test_an_index_that_a_table_cannot_take_is_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path / "b"), TRIPS).upsert(trips(("a", "x", 1, 1.0)))
    HoodieTable(str(tmp_path / "s"), {**LOOKUP, INDEX: "SIMPLE"}).upsert(trips(("a", "x", 1, 1.0)))
    for name, index, kind in (
        ("b", "BLOOM", OptionError),
        ("s", "BUCKET", OptionError),
        ("s", "HBASE", OptionError),
    ):
        before = tree(tmp_path / name)
        with pytest.raises(kind, match=index):
            HoodieTable(str(tmp_path / name), {INDEX: index, GLOBAL: "false"}).upsert(
                trips(("a", "x", 1, 1.0))
            )
        assert tree(tmp_path / name) == before
    properties = tmp_path / "b" / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "index" not in line]
    properties.write_text("\n".join([*kept, f"{INDEX}=HBASE"]) + "\n")
    with pytest.raises(OptionError, match="'HBASE' is refused: this release has BUCKET"):
        HoodieTable(str(tmp_path / "b")).upsert(trips(("a", "x", 1, 1.0)))
    properties.write_text("\n".join(kept) + "\n")
    with pytest.raises(UnsupportedTableError, match="named after buckets"):
        HoodieTable(str(tmp_path / "b"), {INDEX: "SIMPLE"}).upsert(trips(("a", "x", 1, 1.0)))


class _Scan(KeyLookup):
    """Looks keys up among all that are stored."""

    def __init__(self, context: LookupContext) -> None:
        self._stored = context.merged_keys

    def find(
        self, slices: Sequence[FileSlice], keys: pa.Array, live_only: bool = False
    ) -> RecordLocations:
        held = [set(self._stored(slice_).live.keys.to_pylist()) for slice_ in slices]
        places = ([n for n, some in enumerate(held) if key in some] for key in keys.to_pylist())
        first = np.array([found[0] if found else -1 for found in places])
        return replace(RecordLocations.nowhere(len(keys)), slices=first)


class _ScanIndex(LookupIndex):
    """As small as an index can be; by one of its names keys are unique in the whole table."""

    @classmethod
    def of(cls, kind: IndexType, properties: TableProperties, options: WriteOptions) -> _ScanIndex:
        return cls(kind, properties.record_key_fields, kind is IndexType.HBASE, True)

    def lookup(self, context: LookupContext) -> KeyLookup:
        return _Scan(context)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("index", "how"),
    [("INMEMORY", "dealt out"), ("INMEMORY", "assigned"), ("HBASE", "dealt out")],
)
def test_another_index_is_a_class_a_name_and_a_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, index: str, how: str
) -> None:
    monkeypatch.setitem(_SUPPORTED, index, IndexType[index])
    monkeypatch.setitem(_LOOKUPS, IndexType[index], _ScanIndex)
    opts = options(kind, index)
    write(tmp_path, trips(*((f"k{n}", f"c{n % 2}", 1, 1.0) for n in range(9))), opts, 3, how)
    write(tmp_path, trips(*((f"k{n}", "c0", 2, 2.0) for n in range(4, 12))), opts, 3, how)
    stays = {(f"k{n}", f"c{n % 2}", 1, 1.0) for n in range(9)}
    written = {(f"k{n}", "c0", 2, 2.0) for n in range(4, 12)}
    replaced = {row for row in stays if row[0] in {f"k{n}" for n in range(4, 9)}}
    if index == "INMEMORY":  # a key of another partition is another one
        replaced = {row for row in replaced if row[1] == "c0"}
    assert found(HoodieTable(str(tmp_path))) == sorted(stays - replaced | written)
    assert f"{INDEX}={index}\n" in (tmp_path / ".hoodie" / "hoodie.properties").read_text()


def test_keys_that_are_kept_are_searched_and_not_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[int] = []
    scan = StoredKeys.scan

    def counting(self: StoredKeys, query: KeyQuery) -> Mask:
        scans.append(len(query.keys))
        return scan(self, query)

    monkeypatch.setattr(StoredKeys, "scan", counting)
    table = HoodieTable(str(tmp_path), {**LOOKUP, INDEX: "SIMPLE"})
    table.insert(trips(*((f"k{i}", "x", 1, 1.0) for i in range(50))))
    timeline = table.timeline
    storage = open_storage(str(tmp_path))
    slices = FileSystemView(storage, timeline).latest_slices("x")
    lookup = _lookup(storage, KeyCache(1 << 20), use_bloom=False)
    for _ in range(3):
        assert lookup.find(slices, pa.array(["k49", "x", "k0", "k49"])).first.tolist() == [
            0,
            -1,
            0,
            0,
        ]
    assert scans == [3]  # those that log files delete are fewer than the keys asked for


def test_files_that_cannot_hold_a_key_are_not_read(tmp_path: Path) -> None:
    opts = {**LOOKUP, **options("COPY_ON_WRITE", "BLOOM"), "hoodie.parquet.small.file.limit": "0"}
    table = HoodieTable(str(tmp_path), opts)
    table.insert(trips(*((f"k{i:03}", "x", 1, 1.0) for i in range(0, 100, 2))))
    table.insert(trips(*((f"z{i:03}", "x", 1, 1.0) for i in range(0, 100, 2))))
    batch = coordinator(tmp_path, hoodie__index__type="BLOOM").begin(
        trips(("a", "x", 1, 1.0)).schema
    )

    storage = batch.table.storage
    slices = FileSystemView(storage, batch.timeline).latest_slices("x")
    cache = KeyCache(1 << 20)
    lookup = _lookup(batch.table.storage, cache)
    keys = pa.array(["k000", "k001", "z098", "a", "z999"])
    numbers = lookup.find(slices, keys).first
    names = [slices[n].group.file_id if n >= 0 else None for n in numbers]
    assert names[0] is not None
    assert names[2] is not None
    assert names[0] != names[2]
    assert [name is None for name in names] == [False, True, False, True, True]
    cache = KeyCache(1 << 20)
    lookup = _lookup(batch.table.storage, cache)
    assert lookup.find(slices, pa.array(["a", "k001", "zz"])).first.tolist() == [-1, -1, -1]
    # Range and bloom filter denied them all.
    assert [cache.get(KeySource(storage.root, found, "")) for found in slices] == [None, None]


def _lookup(storage: Storage, cache: KeyCache, *, use_bloom: bool = True) -> FileLookup:
    context = LookupContext(storage, Timeline(), _no_logs, memory_bytes=0)
    return FileLookup(context, cache, use_bloom=use_bloom)


def _no_logs(slice_: FileSlice) -> SliceKeys:
    raise AssertionError(f"{slice_} has no log files")


def test_the_state_index_reads_no_file_twice_and_follows_other_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class Counting(BaseFileReader):
        def __init__(self, source: BinaryIO, schema: pa.Schema, name: str, **options: Any) -> None:
            opened.append(name)
            super().__init__(source, schema, name, **options)

    monkeypatch.setattr("hoodie_ds.index.file_lookup.BaseFileReader", Counting)
    opts = {**LOOKUP, **options("MERGE_ON_READ", "FLINK_STATE")}
    table = HoodieTable(str(tmp_path), opts)
    table.insert(trips(*((f"k{i:03}", "x", 1, 1.0) for i in range(50))))
    row = trips(("a", "x", 1, 1.0))
    batch = coordinator(tmp_path, hoodie__index__type="FLINK_STATE").begin(row.schema)
    (slice_,) = FileSystemView(batch.table.storage, batch.timeline).latest_slices("x")
    cache = KeyCache(1 << 20)
    for asked in (["k001", "k0010"], ["k0010", "k001", "k0010"], ["k049", "", "k000"]):
        lookup = _lookup(batch.table.storage, cache)
        expected = [0 if len(key) == 4 else -1 for key in asked]
        assert lookup.find([slice_], pa.array(asked)).first.tolist() == expected
    for _ in range(2):
        lookup = _lookup(batch.table.storage, cache)
        assert lookup.find([slice_], pa.array(["k001", "k0010"])).first.tolist() == [0, -1]
    assert len(opened) == 1
    tiny = KeyCache(1)
    for _ in range(3):
        lookup = _lookup(batch.table.storage, tiny)
        assert lookup.find([slice_], pa.array(["k001", "k0010"])).first.tolist() == [0, -1]
    assert len(opened) == 4
    # Another writer moves the table on, by another index; what is kept is not asked any more.
    HoodieTable(str(tmp_path), {"hoodie.index.type": "SIMPLE"}).upsert(
        trips(("k001", "x", 2, 2.0), ("new", "x", 2, 2.0))
    )
    table.upsert(trips(("new", "x", 3, 3.0), ("k001", "x", 3, 3.0)))
    assert len(found(table)) == 51
    assert found(table)[-1] == ("new", "x", 3, 3.0)
