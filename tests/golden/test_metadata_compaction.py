"""Compactions of metadata tables that Apache Hudi wrote change no record that counts."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.metadata_table.compaction import compact_if_due
from hoodie_ds.metadata_table.payload import STATS, Record, encode_record, without_deletes
from hoodie_ds.metadata_table.record_schema import SCHEMA
from hoodie_ds.metadata_table.stored import MetadataTable, latest_compaction
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import CRASHES, ERRORS, MemoryStorage, sweep
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import METADATA_TABLE, instant_path
from tests.metadata_tables import hfile_block

FOLDER = Path(__file__).resolve().parent / "metadata"
NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))
WITH_LOGS = ["v6_mor_files_ri__logs", "v9_mor_files_cs_ps_ri__logs"]
COMPACTED = ["v6_mor_files_ri", "v9_mor_files_cs_ps_ri"]
"""Hudi has compacted their metadata tables."""


@pytest.fixture(autouse=True)
def _due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie_ds.metadata_table.compaction._DELTA_COMMITS", 1)


def loaded(name: str) -> MemoryStorage:
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        return MemoryStorage(files={one: archive.read(one) for one in archive.namelist()})


def opened(storage: Storage) -> MetadataTable:
    table = open_table(storage)
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    return metadata


def compact(storage: Storage) -> None:
    compact_if_due(opened(storage))


def records(storage: Storage) -> dict[tuple[str, str], Record]:
    """All records that count, by partition and key."""
    metadata = opened(storage)
    found = (
        ((partition, key), without_deletes({**record, "_hoodie_file_name": None}))
        for partition in metadata.partitions
        for group in metadata.records(partition)
        for key, record in group.items()
    )
    return {place: record for place, record in found if record is not None}


@pytest.mark.parametrize("name", NAMES)
def test_records_are_the_same_and_in_base_files_alone(name: str) -> None:
    storage = loaded(name)
    before = records(storage)
    compact(storage)
    assert records(storage) == before
    metadata = opened(storage)
    slices = [one for partition in metadata.partitions for one in metadata.slices(partition)]
    assert all(one.base is not None and not one.logs for one in slices)
    assert not compact_if_due(metadata)


def test_base_files_have_no_deletes() -> None:
    storage = loaded("v9_mor_files_cs_ps_ri__logs")
    (group,) = opened(storage).records("column_stats")
    key, record = next(iter(group.items()))
    deleted = {**record, STATS: {**record[STATS], "isDeleted": True}}
    record_more(storage, "column_stats", "col-stats-0000-0", {key: encode_record(deleted)})
    (group,) = opened(storage).records("column_stats")
    assert group[key] == deleted
    compact(storage)
    (group,) = opened(storage).records("column_stats")
    assert group
    assert key not in group


def record_more(
    storage: MemoryStorage, partition: str, file_id: str, entries: Mapping[str, bytes]
) -> None:
    """Put a log file of layout 2, and a delta commit that names it."""
    timeline = opened(storage).timeline
    time = following(max(instant.ended for instant in timeline.completed))
    name = f".{file_id}_{time}.log.1_0-0-0"
    content = hfile_block(time, entries, SCHEMA)
    stat = WriteStat(file_id, f"{partition}/{name}", partition, log=LogWrite(1, 0, "", (name,)))
    done = Instant(time, Action.DELTA_COMMIT, State.COMPLETED, layout=2, completion_time=time)
    body = CommitMetadata((stat,), "UPSERT_PREPPED").to_bytes(2)
    storage.replace(f"{METADATA_TABLE}/{partition}/{name}", content)
    storage.replace(f"{METADATA_TABLE}/{instant_path(done)}", body)


@pytest.mark.parametrize(
    "name",
    ["v6_mor_files_ri__logs", pytest.param("v8_cow_files_cs__logs", marks=pytest.mark.slow)],
)
def test_whoever_continues_it_puts_the_same_files(name: str) -> None:
    start = loaded(name)
    before, whole = records(start), start.copy()
    compact(whole)

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        assert records(left) == before
        compact(left)
        assert left.files == whole.files

    assert sweep(start, compact, check, CRASHES | ERRORS, every=5) > 10


@pytest.mark.parametrize("name", COMPACTED)
def test_one_of_another_engine_is_continued_by_its_plan(name: str) -> None:
    storage = loaded(name)
    before = records(storage)
    newest = max(i for i in opened(storage).timeline.completed if i.action is Action.COMMIT)
    storage.delete(f"{METADATA_TABLE}/{instant_path(newest)}")
    torn = [path for path in storage.files if path.endswith(f"_{newest.time}.hfile")]
    for path in torn:
        storage.replace(path, b"")
    storage = storage.copy()  # which no process knows
    compact(storage)
    assert torn
    assert storage.files.keys().isdisjoint(torn)
    assert records(storage) == before
    assert latest_compaction(opened(storage).timeline) == newest.time


@pytest.mark.parametrize("name", WITH_LOGS)
def test_it_waits_for_older_instants_of_the_table(name: str) -> None:
    storage = loaded(name)
    layout = open_table(storage).layout
    older = Instant("20261122054000000", Action.COMMIT, State.REQUESTED, layout=layout)
    storage.replace(instant_path(older), b"")
    assert not compact_if_due(opened(storage))
    storage.delete(instant_path(older))
    assert compact_if_due(opened(storage))


@pytest.mark.parametrize("is_recorded", [False, True])
def test_it_waits_for_a_clean_once_that_is_recorded(is_recorded: bool) -> None:
    storage = loaded(WITH_LOGS[0])
    table, recorded = open_table(storage), opened(storage).timeline.completed
    time = recorded[-1].time if is_recorded else "20261122054000000"
    for path in [path for path in storage.files if path.startswith(f".hoodie/{time}")]:
        storage.delete(path)
    clean = Instant(time, Action.CLEAN, State.REQUESTED, layout=table.layout)
    storage.replace(instant_path(clean), b"")
    assert compact_if_due(opened(storage)) is not is_recorded


def test_it_is_due_after_ten_delta_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    storage = loaded("v9_mor_files_cs_ps_ri__logs")
    timeline = opened(storage).timeline
    newest = max(timeline.completed, key=lambda instant: instant.ended)
    last, time = latest_compaction(opened(storage).timeline), newest.ended
    body = storage.read(f"{METADATA_TABLE}/{instant_path(newest)}")
    since = [i for i in timeline.completed if i.ended > last and i.action is Action.DELTA_COMMIT]
    for _ in range(len(since), 10):
        assert not compact_if_due(opened(storage))
        time = following(time)
        more = replace(newest, time=time, completion_time=time)
        storage.replace(f"{METADATA_TABLE}/{instant_path(more)}", body)
    assert compact_if_due(opened(storage))


def test_a_planned_log_file_that_is_missing_is_named() -> None:
    storage = loaded("v9_mor_files_cs_ps_ri__logs")
    compact(storage)
    metadata = opened(storage)
    (done,) = (
        i for i in metadata.timeline.completed if i.time == latest_compaction(metadata.timeline)
    )
    storage.delete(f"{METADATA_TABLE}/{instant_path(done)}")
    storage.delete(next(path for path in sorted(storage.files) if ".files-0000-0_2" in path))
    storage = storage.copy()  # which no process knows
    with pytest.raises(CorruptFileError, match="to be compacted, is missing"):
        compact(storage)


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("v6_mor_files_ri__logs", "{}001".format),
        # Only in layout 1 hudi-rs knows times with a suffix.
        ("v9_mor_files_cs_ps_ri__logs", following),
    ],
)
def test_base_files_are_named_after_a_time_between_those_of_the_table(
    name: str, after: Callable[[str], str]
) -> None:
    storage = loaded(name)
    compact(storage)
    metadata = opened(storage)
    time = after(
        max(i.ended for i in metadata.timeline.completed if i.action is Action.DELTA_COMMIT)
    )
    assert latest_compaction(metadata.timeline) == time
    (base,) = (one.base for one in metadata.slices("files"))
    assert base is not None
    assert base.name == BaseFileName("files-0000-0", "0-0-0", time, "hfile")
