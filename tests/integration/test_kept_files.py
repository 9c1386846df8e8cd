"""What a process keeps of small files of a metadata table."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.metadata_table.delta_commit import log_blocks
from hoodie_ds.metadata_table.record_index import index_record, places_of
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import FaultyStorage, Kind
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.paths import METADATA_TABLE
from tests.integration.test_record_index_kept import begun
from tests.tables import trips

KEYS = ("a", "b")


def places(storage: Storage) -> dict[str, FileGroupId]:
    table = open_table(storage)
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    return places_of(metadata, pa.array(KEYS)).by_key()


def written(path: Path, version: str, *keys: str) -> HoodieTable:
    table = begun(path, version, "COPY_ON_WRITE")
    table.upsert(trips(*((key, "x", 1, 1.0) for key in keys)))
    return table


@pytest.mark.parametrize(("version", "is_kept"), [("9", True), ("6", False)])
def test_small_files_are_read_once(tmp_path: Path, version: str, is_kept: bool) -> None:
    table = written(tmp_path, version, *KEYS)
    storage = FaultyStorage(open_storage(str(tmp_path)))

    def read() -> set[str]:
        before = len(storage.recorder.operations)
        assert places(storage).keys() == {*KEYS}
        operations = storage.recorder.operations[before:]
        paths = {one.path for one in operations if one.kind in (Kind.OPEN, Kind.READ)}
        return {path for path in paths if "/record_index/" in path}

    known = read()
    assert known
    by_commits = {path for path in known if "_000" not in path}  # not by the test's set-up
    assert read() == (known - by_commits if is_kept else known)
    table.upsert(trips(("a", "y", 2, 1.0)))
    assert len(read() - known) == 1
    table.delete(trips(("a", "y", 3, None), ("b", "x", 3, None)))
    assert places(storage) == {}


def test_a_file_of_another_commit_of_the_same_time_is_read(tmp_path: Path) -> None:
    """Another engine may take a delta commit back, and put it again."""
    written(tmp_path, "9", "a")
    storage = open_storage(str(tmp_path))
    known = places(storage)["a"]
    metadata = tmp_path / METADATA_TABLE
    commit = max((metadata / ".hoodie/timeline").glob("*_*.deltacommit"))
    time, end = commit.stem.split("_")
    (log,) = (metadata / "record_index").glob(f".*_{time}.log*")
    uuid, at = UUID(known.file_id[:36]), epoch_ms(time, utc=True)
    for number in range(1, 256):
        other = FileGroupId("x", f"{UUID(int=uuid.int ^ number)}{known.file_id[36:]}")
        data = log_blocks("record_index", time, {"a": index_record(other, at)})
        if len(data) == log.stat().st_size:
            break
    log.write_bytes(data)
    assert places(storage)["a"] == known  # nobody changes what a commit has written
    commit.rename(commit.with_name(f"{time}_{int(end) + 1}.deltacommit"))
    assert places(storage)["a"] == other
