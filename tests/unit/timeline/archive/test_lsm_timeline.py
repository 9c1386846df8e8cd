"""The archive of layout 2: by the golden table's, and by files put as Hudi's tech spec has them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.errors import CorruptFileError, NotFoundError, TimelineError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.archive.lsm_snapshot import HISTORY, VERSION
from hoodie_ds.timeline.archive.lsm_timeline import archived_body, ended
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline, read_commit
from tests.golden.golden_tables import unzip_table

T = [f"2025010{day}000000000" for day in range(10)]
C = [f"2025010{day}120000000" for day in range(10)]
BODY = CommitMetadata(operation_type="UPSERT").to_bytes(2)


def put_file(storage: Storage, name: str, *days: int, body: bytes | None = BODY) -> str:
    rows = pa.table(
        {
            "instantTime": [T[day] for day in days],
            "completionTime": pa.array([C[day] if day != 9 else None for day in days], pa.string()),
            "action": ["commit"] * len(days),
            "metadata": pa.array([body] * len(days), pa.binary()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    storage.put_if_absent(f"{HISTORY}/{name}", sink.getvalue())
    return name


def put_manifest(storage: Storage, number: int, *names: str) -> None:
    listed = {"files": [{"fileName": name, "fileLen": 1} for name in names]}
    storage.put_if_absent(f"{HISTORY}/manifest_{number}", json.dumps(listed).encode())
    storage.replace(VERSION, str(number).encode())


def commit(day: int) -> Instant:
    return Instant(T[day], Action.COMMIT, State.COMPLETED, layout=2, completion_time=C[day])


@pytest.fixture
def storage() -> Storage:
    """Days 1 to 3 are archived, and 4 is active."""
    storage = MemoryStorage()
    first = put_file(storage, f"{T[1]}_{T[2]}_1.parquet", 1, 2)
    second = put_file(storage, f"{T[3]}_{T[3]}_0.parquet", 3)
    put_file(storage, f"{T[1]}_{T[1]}_0.parquet", 5)  # merged into the first, which is no more
    put_manifest(storage, 7, first, second)
    storage.put_if_absent(f".hoodie/timeline/{T[4]}_{C[4]}.commit", BODY)
    return storage


def test_when_an_archived_instant_ended(storage: Storage) -> None:
    timeline = load_timeline(storage, 2)
    found = {day: ended(storage, timeline, T[day]) for day in (1, 2, 3, 4, 5)}
    assert found == {1: C[1], 2: C[2], 3: C[3], 4: C[4], 5: None}
    assert ended(storage, timeline, "20250102000000001") is None


def test_of_a_pending_instant_the_archive_is_not_asked(storage: Storage) -> None:
    storage.put_if_absent(f".hoodie/timeline/{T[5]}.inflight", b"")
    timeline = load_timeline(storage, 2)
    storage.replace(f"{HISTORY}/manifest_7", b"damaged")
    assert timeline.is_pending(T[5])
    assert ended(storage, timeline, T[5]) is None
    with pytest.raises(CorruptFileError):
        ended(storage, timeline, T[1])


def test_an_upgraded_archive_is_in_no_order() -> None:
    """Its file's name begins with the times of its first and last row, whichever is greater."""
    storage = MemoryStorage()
    put_manifest(storage, 1, put_file(storage, f"{T[3]}_{T[2]}_0.parquet", 3, 9, 1, 2))
    storage.put_if_absent(f".hoodie/timeline/{T[9][:-1]}1_{C[9]}.commit", BODY)
    timeline = load_timeline(storage, 2)
    assert [ended(storage, timeline, T[day]) for day in (1, 2, 3, 8)] == [C[1], C[2], C[3], None]
    assert ended(storage, timeline, T[9]) == T[9]  # it was archived without one


class Merging(MemoryStorage):
    """A storage on which others merge the files of the archive once they are listed."""

    def open_input(self, path: str) -> BinaryIO:
        raise NotFoundError(path)


def test_a_file_that_is_never_there_is_no_answer(storage: MemoryStorage) -> None:
    merging = Merging(files=storage.files)
    with pytest.raises(NotFoundError, match="come and go; try again"):
        ended(merging, load_timeline(merging, 2), T[2])
    with pytest.raises(NotFoundError, match="come and go; try again"):
        archived_body(merging, commit(2))


def test_a_commit_that_is_archived_while_it_is_read(storage: Storage) -> None:
    assert read_commit(storage, commit(2)).operation_type == "UPSERT"
    with pytest.raises(TimelineError, match="is gone"):
        read_commit(storage, commit(6))


def test_an_instant_that_is_in_no_file_whose_range_has_its_time() -> None:
    storage = MemoryStorage()
    put_manifest(storage, 1, put_file(storage, f"{T[1]}_{T[3]}_0.parquet", 1, 3))
    assert archived_body(storage, commit(2)) is None


def test_an_instant_may_have_been_archived_without_its_body() -> None:
    storage = MemoryStorage()
    put_manifest(storage, 1, put_file(storage, f"{T[1]}_{T[1]}_0.parquet", 1, body=None))
    assert archived_body(storage, commit(1)) is None


def test_a_damaged_file_is_named(storage: Storage) -> None:
    storage.replace(f"{HISTORY}/{T[3]}_{T[3]}_0.parquet", b"PAR1")
    with pytest.raises(CorruptFileError, match=f"{T[3]}_0.parquet"):
        archived_body(storage, commit(3))


def test_the_archive_that_hudi_wrote(tmp_path: Path) -> None:
    """What its newest manifest names, each with a commit of rows: by pyarrow, not by our reader."""
    path = unzip_table("v9_cow_archived", tmp_path)
    history = path / ".hoodie" / "timeline" / "history"
    manifest = json.loads((history / f"manifest_{(history / '_version_').read_text()}").read_text())
    rows = pa.concat_tables([pq.read_table(history / f["fileName"]) for f in manifest["files"]])
    commits = [row for row in rows.to_pylist() if row["action"] == "commit"]
    assert commits
    storage = LocalStorage(str(path))
    timeline = load_timeline(storage, 2)
    for row in commits:
        time, end = row["instantTime"], row["completionTime"]
        assert timeline.is_committed(time)
        assert ended(storage, timeline, time) == end
        instant = Instant(time, Action.COMMIT, State.COMPLETED, layout=2, completion_time=end)
        assert read_commit(storage, instant) == CommitMetadata.from_bytes(row["metadata"], "")
        assert read_commit(storage, instant).stats
