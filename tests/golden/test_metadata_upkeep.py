"""A metadata table that Apache Hudi wrote stays small as instants of its table are added."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import product

import pytest

from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.payload import FILES, RecordType, encode_record
from hoodie_ds.metadata_table.record_schema import SCHEMA
from hoodie_ds.metadata_table.upkeep import look_after
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import MUTATING, Effect, Fault, FaultyStorage, MemoryStorage, SimulatedCrash
from hoodie_ds.timeline.archive.archive import archived_writes
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import LAYOUTS, METADATA_TABLE, V1, instant_path
from tests.golden.test_metadata_compaction import loaded, opened, records
from tests.metadata_tables import hfile_block
from tests.tiers import by_day

NAMES = ["v6_mor_files_ri__logs", "v9_mor_files_cs_ps_ri__logs"]
FILE_ID = "files-0000-0"
LAST = "20990101000000000"
"""A time after all others: that of the only instant which the table has not archived."""


def started(name: str) -> MemoryStorage:
    storage = loaded(name)
    layout = open_table(storage).layout
    rule = LAYOUTS[layout]
    for status in storage.list(rule.folder):
        if rule.parse(status.path.rpartition("/")[2]):
            storage.delete(status.path)
    last = Instant(LAST, Action.COMMIT, State.COMPLETED, layout=layout)
    done = last if layout == V1.version else last.completed(following(LAST))
    storage.replace(instant_path(done), CommitMetadata().to_bytes(layout))
    return storage.copy()


def add(storage: MemoryStorage, number: int) -> None:
    """Record a file under an instant of the table."""
    metadata = opened(storage)
    layout, (slice_,) = metadata.timeline.layout, metadata.slices("files")
    time = following(max(i.ended for i in metadata.timeline.completed)[:17])
    start, version = (slice_.base_instant, len(slice_.logs) + 1) if layout == 1 else (time, 1)
    name = f".{FILE_ID}_{start}.log.{version}_0-0-0"
    entry = {"size": 1, "isDeleted": False}
    value = encode_record({"type": RecordType.FILE_LIST, FILES: {f"file{number}": entry}})
    block = hfile_block(time, {"region=eu": value}, SCHEMA)
    stat = WriteStat(FILE_ID, f"files/{name}", "files", log=LogWrite(version, 0, "", (name,)))
    end = "" if layout == V1.version else time
    done = Instant(time, Action.DELTA_COMMIT, State.COMPLETED, layout=layout).completed(end)
    storage.replace(f"{METADATA_TABLE}/files/{name}", block)
    body = CommitMetadata((stat,), "UPSERT_PREPPED").to_bytes(layout)
    storage.replace(f"{METADATA_TABLE}/{instant_path(done)}", body)


def tend(storage: Storage) -> None:
    look_after(open_table(storage))


def grown(storage: MemoryStorage, first: int, count: int) -> None:
    for number in range(first, first + count):
        add(storage, number)
        tend(storage)


def listed(storage: MemoryStorage) -> set[str]:
    listing = MetadataListing(opened(storage))
    return {file.path.rpartition("/")[2] for file in listing.files(["region=eu"])}


def assert_small(storage: MemoryStorage) -> None:
    timeline = opened(storage).timeline
    assert not timeline.pending
    assert len(timeline.commits) <= 40
    folder = f"{METADATA_TABLE}/files/"
    files = [path for path in storage.files if path.startswith(folder)]
    assert len([path for path in files if path.endswith(".hfile")]) == 3
    assert len(files) <= 50


@pytest.mark.parametrize("name", NAMES)
def test_files_and_instants_stay_few(name: str) -> None:
    storage = started(name)
    before = listed(storage)
    grown(storage, 0, 75)
    assert listed(storage) == before | {f"file{number}" for number in range(75)}
    assert_small(storage)
    timeline = opened(storage).timeline
    archived = archived_writes(SubfolderStorage(storage, METADATA_TABLE), timeline, "archived")
    kinds = Counter(instant.action for instant in archived)
    assert kinds[Action.DELTA_COMMIT] > 30
    assert max(i.time for i in archived) < min(i.time for i in timeline.commits)


@pytest.mark.parametrize(
    ("name", "one_in"), by_day([(NAMES[0], 4), *product(NAMES, [1])], {(NAMES[0], 4)})
)
def test_what_a_crash_left_is_done_after_the_next_compaction(name: str, one_in: int) -> None:
    storage = started(name)
    for number in range(200):
        add(storage, number)
        due = storage.copy()
        tend(storage)
        if any("history/" in path or "archived/" in path for path in storage.files):
            break
    expected = records(due)

    whole = FaultyStorage(due.copy())
    tend(whole)
    changes = [one.number for one in whole.recorder.operations if one.kind in MUTATING]
    assert len(changes) > 30
    for number in changes[::one_in]:
        left = due.copy()
        with suppress(SimulatedCrash):
            tend(FaultyStorage(left, [Fault(Effect.CRASH_BEFORE, at=number)]))
        assert records(left) == expected
        grown(left, 200, 10)
        assert_small(left)


@pytest.mark.parametrize("name", NAMES)
def test_what_may_be_of_active_instants_is_not_archived(name: str) -> None:
    storage = loaded(name)
    grown(storage, 0, 45)
    timeline = opened(storage).timeline
    first = min(i.time for i in open_table(storage).load_timeline().commits)
    assert first in {instant.time for instant in timeline.commits}
    assert len(timeline.commits) > 45
