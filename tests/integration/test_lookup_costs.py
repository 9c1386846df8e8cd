"""What a look-up of keys reads of file slices with log files, and that it finds what is there."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import LookupContext
from hoodie_ds.sink.locate.key_locations import known_keys
from hoodie_ds.table.fs_view import FileSystemView
from tests.merge_hooks import HOOK, MODE
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, coordinator, found, trips

INDEXES = ("BLOOM", "SIMPLE", "FLINK_STATE", "GLOBAL_SIMPLE")
STORED = [(f"k{number:03}", "x", 5, float(number)) for number in range(100)]


def options(index: str) -> dict[str, str]:
    given = {key: value for key, value in TRIPS.items() if key != BUCKETS}
    more = {TYPE: "MERGE_ON_READ", "hoodie.index.type": index, VERSION: "9"}
    return {**given, **more, "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each read of a base file."""
    reads: list[list[str]] = []
    for name in ("pieces", "read"):
        inner: Callable[..., Any] = getattr(BaseFileReader, name)

        def noted(
            reader: BaseFileReader,
            columns: list[str] | None = None,
            *rest: Any,
            inner: Callable[..., Any] = inner,
        ) -> Any:
            if reader._name.endswith(".parquet"):  # not a block of a log file
                reads.append(list(columns or reader.schema.names))
            return inner(reader, columns, *rest)

        monkeypatch.setattr(BaseFileReader, name, noted)
    return reads


@pytest.mark.parametrize("index", INDEXES)
def test_base_files_that_cannot_have_the_keys_are_not_read(
    index: str, tmp_path: Path, read: list[list[str]]
) -> None:
    table = HoodieTable(str(tmp_path), options(index))
    table.upsert(trips(*STORED))
    table.upsert(trips(("k001", "x", 6, -1.0), ("k050", "x", 6, -1.0)))
    read.clear()
    table.upsert(trips(("new", "x", 6, 1.0), ("a", "x", 6, 1.0)))
    assert read == []
    assert len(found(table)) == 102


@pytest.mark.parametrize("index", INDEXES)
def test_keys_of_a_base_file_are_read_once(
    index: str, tmp_path: Path, read: list[list[str]]
) -> None:
    table = HoodieTable(str(tmp_path), {**options(index), "hoodie.write.record.positions": "false"})
    table.upsert(trips(*STORED))
    table.upsert(trips(("k001", "x", 6, -1.0)))
    read.clear()
    table.upsert(trips(("k002", "x", 6, -2.0)))
    assert read == [[RECORD_KEY, "ts"]]
    assert len(found(table)) == 100


def test_a_record_index_answers_without_base_files(tmp_path: Path, read: list[list[str]]) -> None:
    enabled = dict.fromkeys(
        ("hoodie.metadata.enable", "hoodie.metadata.record.index.enable"), "true"
    )
    table = HoodieTable(str(tmp_path), {**options("RECORD_INDEX"), **enabled})
    table.upsert(trips(*STORED))
    table.upsert(trips(("k001", "x", 6, -1.0)))
    read.clear()
    table.upsert(trips(("k001", "x", 7, -2.0), ("k002", "x", 4, -3.0)))
    assert read == []
    assert found(table)[1:3] == [("k001", "x", 7, -2.0), ("k002", "x", 5, 2.0)]


def test_what_log_files_replace_is_known_to_later_batches(
    tmp_path: Path, read: list[list[str]]
) -> None:
    table = HoodieTable(str(tmp_path), options("BLOOM"))
    table.upsert(trips(*STORED))
    table.upsert(trips(("k001", "x", 6, -1.0)))
    assert len(found(table)) == 100
    read.clear()
    table.delete(trips(("k002", "x", 7, None)).select(["id", "city", "ts"]))
    assert read == [[RECORD_KEY]]
    assert len(found(table)) == 99


def test_a_hook_is_asked_of_rows_with_their_old_ones(tmp_path: Path) -> None:
    hook = {MODE: "CUSTOM", HOOK: "tests.merge_hooks:lowers"}
    table = HoodieTable(str(tmp_path), {**options("BLOOM"), **hook})
    table.upsert(trips(*STORED))
    table.upsert(trips(("k001", "x", 6, -1.0)))
    table.upsert(trips(("new", "x", 6, 1.0)))
    assert len(found(table)) == 101


@pytest.mark.parametrize("seed", range(6))
def test_random_slices_have_the_keys_that_they_are_found_to_have(seed: int, tmp_path: Path) -> None:
    """A slice of a bucket has keys in log files alone; what merging gives is the model."""
    draw = random.Random(seed)
    bucket = {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"}
    mode = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")[seed % 2]
    table = HoodieTable(str(tmp_path), {**bucket, MODE: mode})
    names = [f"k{number:02}" for number in range(40)]
    base = set(draw.sample(names, 15))
    table.upsert(trips(*((key, "x", draw.randint(3, 6), 0.0) for key in base)))
    for _ in range(4):
        some = trips(*((key, "x", draw.randint(1, 9), 1.0) for key in draw.sample(names, 6)))
        if draw.random() < 0.4:
            columns = ["id", "city", "ts"] if draw.random() < 0.5 else ["id", "city"]
            table.delete(some.select(columns))
        else:
            table.upsert(some)
    live = {row[0] for row in found(table)}
    batch = coordinator(tmp_path, **{BUCKETS: "1"}).begin(trips(*STORED[:1]).schema)
    storage, timeline = batch.table.storage, batch.timeline
    slices = FileSystemView(storage, timeline).latest_slices("x")
    caches = [KeyCache(1 << 20), KeyCache(1)]
    for _ in range(8):
        asked = draw.sample([*names, "a", "z"], draw.choice([1, 1, 2, 20]))
        for cache in caches:
            merged = partial(known_keys, batch.plan)
            context = LookupContext(storage, timeline, merged, 1 << 20, splits_slices=True)
            lookup = FileLookup(context, cache, use_bloom=draw.random() < 0.5)
            keys = pa.array(asked)
            for live_only in (True, False):
                numbers = lookup.find(slices, keys, live_only).first.tolist()
                there = live if live_only else live | base
                assert [number >= 0 for number in numbers] == [key in there for key in asked]
            at = lookup.positions(slices[0], keys)
            assert at is None or [p >= 0 for p in at] == [key in base for key in asked]
