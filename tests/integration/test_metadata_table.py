"""Reads that list files by a metadata table: the rows are those of the folders, whatever it lacks.

A metadata table that is behind, damaged or being built is not believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.properties import keys
from hoodie_ds.errors import CommitOutcomeUnknownError, CorruptFileError
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.metadata_table.compaction import compact_if_due
from hoodie_ds.metadata_table.follower import MetadataFollower
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table, update_properties
from hoodie_ds.testing import FaultyStorage
from hoodie_ds.testing import Kind as Of
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import METADATA_TABLE, instant_path
from tests.metadata_tables import Recorder, block, recorded
from tests.tables import TRIPS, TYPE, VERSION, found, trips

RETAINED = "hoodie.clean.commits.retained"
LATER = "20991231000000000"
LISTED = (Of.LIST,)
OPENED = (Of.READ, Of.OPEN)


def history(path: Path, version: str, kind: str = "MERGE_ON_READ") -> HoodieTable:
    """A table with updates, deletes, a compaction, a clean and a replaced partition."""
    for name, content in made(version, kind).items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return HoodieTable(str(path), TRIPS)


@cache
def made(version: str, kind: str) -> dict[str, bytes]:
    """The files of such a table."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        make(path, version, kind)
        files = (file for file in path.rglob("*") if file.is_file())
        return {str(file.relative_to(path)): file.read_bytes() for file in files}


def make(path: Path, version: str, kind: str) -> None:
    table = HoodieTable(str(path), {**TRIPS, RETAINED: "1", VERSION: version, TYPE: kind})
    for ts in range(4):
        rows = [(f"{city}{number}", city, ts, float(ts)) for city in "xyz" for number in range(3)]
        table.upsert(trips(*rows[ts:]))
        if ts == 2 and kind == "MERGE_ON_READ":
            table.compact()
    table.delete(trips(("x1", "x", 9, None)))
    table.clean()
    table.overwrite(trips(("z9", "z", 1, 1.0)), partitions_only=True)


def listing(path: Path) -> MetadataListing | None:
    table = open_table(LocalStorage(str(path)))
    metadata = MetadataTable.open(table, table.load_timeline())
    return None if metadata is None else MetadataListing.of(metadata)


def listed(path: Path) -> set[str]:
    """Paths of the files that the metadata table lists, which has caught up."""
    by = listing(path)
    assert by is not None
    return {file.path for file in by.files(by.partitions())}


def in_folders(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.glob("?/*") if ".hoodie" not in f.name}


def operations(path: Path, city: str | None, **options: str) -> FaultyStorage:
    """The storage after a read of one partition or of all, in a process that knows nothing."""
    storage = FaultyStorage(LocalStorage(str(path)))
    table = HoodieTable(str(path), options, storage=storage)
    table.read(filter=None if city is None else pc.field("city") == city)
    return storage


def findings(path: Path) -> dict[str, str]:
    """What `verify` says of the metadata table, by path."""
    found = HoodieTable(str(path), TRIPS).inspect.verify().findings
    assert {one.kind for one in found} <= {Kind.METADATA_TABLE}
    return {one.where: one.message for one in found}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_it_lists_what_the_folders_hold(tmp_path: Path, version: str, kind: str) -> None:
    rows = found(history(tmp_path, version, kind))
    recorded(tmp_path)
    assert listed(tmp_path) == in_folders(tmp_path)
    assert found(HoodieTable(str(tmp_path))) == rows
    assert findings(tmp_path) == {}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_read_lists_no_folder_and_opens_as_many_files_of_a_larger_table(
    tmp_path: Path, version: str
) -> None:
    opened = []
    for count in (4, 30):
        path = tmp_path / str(count)
        table = HoodieTable(str(path), {**TRIPS, VERSION: version})
        for ts in range(2):
            table.upsert(trips(*[(f"k{n}", f"c{n}", ts, 1.0) for n in range(count)]))
        recorded(path)
        recorder = operations(path, "c3").recorder.operations
        lists = [one.path for one in recorder if one.kind in LISTED]
        assert all(folder.startswith(".hoodie") for folder in lists), lists
        opened.append(len([one for one in recorder if one.kind in OPENED]))
    assert opened[0] == opened[1] < 40


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_read_of_one_partition_of_10_000_opens_few_files(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.metadata_table.compaction._DELTA_COMMITS", 1)
    table = HoodieTable(str(tmp_path), {**TRIPS, VERSION: version})
    table.upsert(trips(("k", "c3", 1, 1.0)))
    file = "00000000-0000-0000-0000-000000000000-0_0-0-0_20000101000000000.parquet"
    recorder = Recorder(open_storage(str(tmp_path)))
    recorder.begin({f"p{number}": {file: 1} for number in range(9_999)})
    recorder.catch_up()
    metadata = MetadataTable.open(recorder.table, recorder.table.load_timeline())
    assert metadata is not None
    assert compact_if_due(metadata)
    storage = operations(tmp_path, "c3")
    done = storage.recorder.operations
    assert all(one.path.startswith(".hoodie") for one in done if one.kind in LISTED)
    assert len([one for one in done if one.kind in OPENED]) < 20
    by = listing(tmp_path)
    assert by is not None
    assert len(by.partitions()) == 10_000


@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.slow)])
def test_a_query_of_one_of_many_files_opens_one(tmp_path: Path, version: str) -> None:
    """By statistics of columns; those of partitions, in version 9, leave out their partitions."""
    options = {**TRIPS, VERSION: version, "hoodie.metadata.enable": "true"}
    options["hoodie.metadata.index.column.stats.enable"] = "true"
    table = HoodieTable(str(tmp_path), options)
    table.upsert(trips(*((f"k{number}", f"c{number}", number, 1.0) for number in range(60))))
    storage = FaultyStorage(LocalStorage(str(tmp_path)))
    rows = HoodieTable(str(tmp_path), storage=storage).read(filter="ts = 37")
    assert rows["id"].to_pylist() == ["k37"]
    done = [one.path for one in storage.recorder.operations if one.kind in OPENED]
    assert len({path for path in done if path.endswith(".parquet")}) == 1
    assert len(set(done)) < 20


def test_it_is_not_opened_where_it_is_switched_off(tmp_path: Path) -> None:
    history(tmp_path, "9")
    recorded(tmp_path)
    by_folders = operations(tmp_path, "x", **{"hoodie.metadata.enable": "false"})
    assert not any(METADATA_TABLE in one.path for one in by_folders.recorder.operations)
    by_default = operations(tmp_path, "x")
    assert any(METADATA_TABLE in one.path for one in by_default.recorder.operations)


def test_a_rollback_that_may_have_added_log_files_needs_a_delta_commit(tmp_path: Path) -> None:
    table = history(tmp_path, "6")
    table.upsert(trips(("new", "x", 9, 9.0)))
    table.rollback()
    recorded(tmp_path, leaving_out=[table.timeline.completed[-1].time])
    assert listing(tmp_path) is None


@pytest.mark.parametrize("version", ["6", "9"])
def test_an_instant_that_it_lacks_makes_reads_list_folders(tmp_path: Path, version: str) -> None:
    whole = history(tmp_path / "whole", version)
    rows, timeline = found(whole), whole.timeline
    for number, instant in enumerate(timeline.completed[1:]):
        path = tmp_path / str(number)
        history(path, version)
        recorded(path, leaving_out=[instant.time])
        assert found(HoodieTable(str(path))) == rows
        assert listing(path) is None
        said = findings(path)
        assert said[instant_path(instant)] == "the metadata table lacks the instant"


@pytest.mark.parametrize("version", ["6", "9"])
def test_what_the_first_listing_has_seen_needs_no_delta_commit(
    tmp_path: Path, version: str
) -> None:
    table = history(tmp_path, version)
    rows, (*early, last) = found(table), table.timeline.completed
    recorder = Recorder(LocalStorage(str(tmp_path)))
    files: dict[str, dict[str, int | None]] = {folder: {} for folder in "xyz"}
    for path in in_folders(tmp_path):
        files[path[0]][path[2:]] = (tmp_path / path).stat().st_size
    recorder.begin(files, ended=last.time)
    recorder.catch_up([instant.time for instant in early])
    assert listed(tmp_path) == in_folders(tmp_path)
    assert found(HoodieTable(str(tmp_path))) == rows


def test_an_instant_that_was_completed_after_the_first_listing_is_not_in_it(
    tmp_path: Path,
) -> None:
    table = history(tmp_path, "9")
    (*early, _) = table.timeline.completed
    recorder = Recorder(LocalStorage(str(tmp_path)))
    recorder.begin(ended=early[1].completion_time)
    recorder.catch_up([instant.time for instant in early])
    assert listing(tmp_path) is None
    assert found(HoodieTable(str(tmp_path))) == found(table)


def test_a_listing_before_any_delta_commit_is_not_believed_without_times(tmp_path: Path) -> None:
    history(tmp_path, "6")
    Recorder(LocalStorage(str(tmp_path))).begin()
    assert listing(tmp_path) is None


def test_a_rollback_needs_no_delta_commit_but_what_it_undid_must_be_gone(tmp_path: Path) -> None:
    table = history(tmp_path, "9")
    rows = found(table)
    table.upsert(trips(("new", "x", 9, 9.0)))
    newest = table.timeline.completed[-1]
    recorder = Recorder(LocalStorage(str(tmp_path)))
    forgotten = recorder.files_of(newest)
    table.rollback()
    rollback = table.timeline.completed[-1]
    assert rollback.action is Action.ROLLBACK
    recorder.begin()
    recorder.catch_up([rollback.time])
    assert listed(tmp_path) == in_folders(tmp_path)
    assert findings(tmp_path) == {}
    recorder.deltacommit(newest.time, block(newest.time, forgotten), newest.completion_time)
    assert listing(tmp_path) is None
    assert found(HoodieTable(str(tmp_path))) == rows
    assert instant_path(rollback) in findings(tmp_path)


def test_a_partition_that_is_being_built_is_not_read(tmp_path: Path) -> None:
    history(tmp_path, "9")
    recorder = recorded(tmp_path)
    update_properties(recorder.table, {keys.METADATA_PARTITIONS_INFLIGHT: "files"}, (), 0)
    assert listing(tmp_path) is None


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_block_of_an_instant_that_is_pending_in_the_table_does_not_count(
    tmp_path: Path, version: str
) -> None:
    rows = found(history(tmp_path, version))
    recorder = recorded(tmp_path)
    gone = {path[0]: {path[2:]: None} for path in in_folders(tmp_path)}
    recorder.deltacommit(LATER, block(LATER, gone), LATER)
    pending = Instant(LATER, Action.CLEAN, State.INFLIGHT, layout=recorder.table.layout)
    (tmp_path / instant_path(pending)).write_bytes(b"")
    assert listed(tmp_path) == in_folders(tmp_path)
    assert found(HoodieTable(str(tmp_path))) == rows


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_block_of_an_instant_that_is_pending_there_does_not_count(
    tmp_path: Path, version: str
) -> None:
    history(tmp_path, version)
    recorder = recorded(tmp_path)
    gone = {path[0]: {path[2:]: None} for path in in_folders(tmp_path)}
    recorder.deltacommit(LATER, block(LATER, gone), LATER)
    layout = recorder.table.layout
    done = Instant(LATER, Action.DELTA_COMMIT, State.COMPLETED, layout=layout)
    (path,) = (tmp_path / METADATA_TABLE).rglob(f"{LATER}*.deltacommit")
    path.unlink()
    recorder.put(replace(done, state=State.INFLIGHT))
    assert listed(tmp_path) == in_folders(tmp_path)


def test_a_rollback_block_hides_what_is_before_it_and_not_what_is_written_again(
    tmp_path: Path,
) -> None:
    table = history(tmp_path, "6")
    last = table.timeline.completed[-1]
    recorded(tmp_path)
    logs = (tmp_path / METADATA_TABLE / "files").glob(".*.log.*")
    log = max(logs, key=lambda path: int(path.name.rpartition(".")[2].partition("_")[0]))
    content = log.read_bytes()
    gone = {path[0]: {path[2:]: None} for path in in_folders(tmp_path)}
    header: dict[int, str] = {
        HeaderKey.INSTANT_TIME: LATER,
        HeaderKey.TARGET_INSTANT_TIME: last.time,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    undone = block(last.time, gone) + encode_block(BlockType.COMMAND, header, b"")
    log.write_bytes(undone + content)
    assert listed(tmp_path) == in_folders(tmp_path)


def lose_a_log_file(path: Path) -> None:
    logs = sorted((path / METADATA_TABLE / "files").glob(".*.log.*"))
    logs[-2].unlink()


def damage_a_log_file(path: Path) -> None:
    log = max((path / METADATA_TABLE / "files").glob(".*.log.*"))
    data = bytearray(log.read_bytes())
    data[data.index(b"DATABLK*") + 50] ^= 0xFF
    log.write_bytes(bytes(data))


def lose_everything(path: Path) -> None:
    for file in (path / METADATA_TABLE / "files").iterdir():
        file.unlink()


@pytest.mark.parametrize("harm", [lose_a_log_file, damage_a_log_file, lose_everything])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_damaged_one_is_not_believed(
    tmp_path: Path, version: str, harm: Callable[[Path], None]
) -> None:
    rows = found(history(tmp_path, version))
    recorded(tmp_path)
    harm(tmp_path)
    with pytest.raises(CorruptFileError):
        listed(tmp_path)
    assert found(HoodieTable(str(tmp_path))) == rows
    assert findings(tmp_path)


@pytest.mark.parametrize("pattern", ["x/*.parquet", "x/.*.log.*"])
def test_a_data_file_that_is_gone_is_named_when_it_is_read(tmp_path: Path, pattern: str) -> None:
    history(tmp_path, "9")
    recorded(tmp_path)
    gone = max(tmp_path.glob(pattern))
    gone.unlink()
    with pytest.raises(CorruptFileError, match=f"{re.escape(gone.name)}.*; restore it from a copy"):
        HoodieTable(str(tmp_path)).read()


def test_each_divergence_is_named(tmp_path: Path) -> None:
    rows = found(history(tmp_path, "9"))
    recorder = recorded(tmp_path)
    last = recorder.table.load_timeline().completed[-1]
    (lacked, *_), (other, *_) = (sorted(tmp_path.glob(f"{c}/*.parquet")) for c in "xy")
    wrong: dict[str, dict[str, int | None]] = {
        "x": {lacked.name: None, "ghost-0_0-0-0_20200101000000000.parquet": 7},
        "y": {other.name: other.stat().st_size + 1},
    }
    content = block(last.time, recorder.files_of(last)) + block(last.time, wrong)
    recorder.deltacommit(last.time, content, last.completion_time)
    size = other.stat().st_size
    assert findings(tmp_path) == {
        f"x/{lacked.name}": "the metadata table lacks the file",
        "x/ghost-0_0-0-0_20200101000000000.parquet": (
            "the metadata table lists the file, and it is not there"
        ),
        f"y/{other.name}": f"it has {size:,} bytes, and the metadata table says {size + 1:,}",
    }
    assert found(HoodieTable(str(tmp_path))) == rows  # a commit names the file that it lacks


def test_a_write_that_it_cannot_follow_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**TRIPS, "hoodie.metadata.enable": "true"}
    table = HoodieTable(str(tmp_path / "t"), options)
    table.insert(trips(("a", "x", 1, 1.0)))
    damage = CorruptFileError("a log file is missing", "have it rebuilt")
    with monkeypatch.context() as patched:
        patched.setattr(MetadataFollower, "before", Mock(side_effect=damage))
        with pytest.raises(CommitOutcomeUnknownError, match="not write the rows again"):
            table.insert(trips(("b", "x", 1, 1.0)))
    assert found(table) == [("a", "x", 1, 1.0)]
    table.insert(trips(("c", "x", 1, 1.0)))
    assert found(table) == [("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "x", 1, 1.0)]
