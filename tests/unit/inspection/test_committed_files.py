"""What archived commits have written is checked too: most of a table may be older than the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.inspection.findings import Finding
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive.archived_timeline import archive_files
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
ARCHIVE = {"6": ".hoodie/archived", "9": ".hoodie/timeline/history"}


@pytest.fixture(params=["6", "9"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> HoodieTable:
    """Oslo was written by commits that are all archived; of each bucket and city there are rows."""
    options = {**TRIPS, BUCKETS: "1", TYPE: request.param, VERSION: version}
    table = HoodieTable(tmp_path, options)
    for number in range(2):
        table.upsert(trips(("a", "oslo", number, 1.0), (f"b{number}", "oslo", number, 1.0)))
    last = table.timeline.commits[-1]
    for number in range(6):
        table.upsert(trips(("c", "bergen", number, 1.0)))
    assert table.archive(KEEP)
    assert table.timeline.commits[0].time > last.time
    return table


def cut(data: bytes) -> bytes:
    return data[:-1]


def flip(data: bytes) -> bytes:
    return data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]


@pytest.mark.parametrize(
    ("damage", "kind"), [(None, "missing-file"), (cut, "wrong-size"), (flip, "damaged-file")]
)
def test_damage_to_files_of_archived_commits(
    table: HoodieTable, tmp_path: Path, damage: Callable[[bytes], bytes] | None, kind: str
) -> None:
    assert table.inspect.verify().findings == ()
    files = [p for p in (tmp_path / "oslo").iterdir() if p.name != ".hoodie_partition_metadata"]
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    if damage is None:
        newest.unlink()
    else:
        newest.write_bytes(damage(newest.read_bytes()))
    (found,) = table.inspect.verify().damage
    assert found.kind.value == kind
    assert f"oslo/{newest.name}" in found.where + found.message


def test_a_damaged_archive(table: HoodieTable, tmp_path: Path, version: str) -> None:
    file = max((tmp_path / ARCHIVE[version]).iterdir(), key=lambda path: path.stat().st_size)
    data = file.read_bytes()
    file.write_bytes(data[:-1500] + b"\xff" * 1000 + data[-500:])
    (found,) = table.inspect.verify().findings
    assert (found.kind.value, found.where) == ("damaged-instant", ARCHIVE[version])


def test_a_lost_file_of_the_archive_makes_no_data_file_missing() -> None:
    """Of layout 1, whose archive is no more than its files: one may say that others were replaced.

    Hudi leaves gaps, too, where it merges files.
    """
    storage = MemoryStorage()
    options = {**TRIPS, TYPE: "COPY_ON_WRITE", BUCKETS: "1", VERSION: "6"}
    table = HoodieTable("/t", options, storage=storage)
    table.upsert(trips(("z", "bergen", 0, 1.0)))
    for number in range(12):
        table.upsert(trips(("a", "oslo", number, 1.0)))
        if number % 4 == 3:
            table.delete_partitions(["oslo"])
        table.clean({"hoodie.clean.commits.retained": "1"})
        table.archive(KEEP)
    said: list[Finding] = []
    for lost in list(archive_files(storage, ARCHIVE["6"]).values())[:-1]:
        left = storage.copy()
        left.delete(lost)
        damage = HoodieTable("/t", storage=left).inspect.verify().damage
        assert {(one.kind.value, one.where) for one in damage} <= {("damaged-instant", lost)}
        said += damage
    assert said
    (of_bergen,) = (p for p in left.files if p.startswith("bergen/") and "parquet" in p)
    left.delete(of_bergen)
    (one,) = HoodieTable("/t", storage=left).inspect.verify().damage
    assert of_bergen in one.message


def test_files_that_were_replaced_long_ago_are_not_missed(tmp_path: Path, version: str) -> None:
    """A bucket's new file group may have the name that an older one of it had."""
    table = HoodieTable(tmp_path, {**TRIPS, BUCKETS: "1", VERSION: version})
    for number in range(12):
        rows = trips(("a", "oslo", number, 1.0))
        if number % 4 == 3:
            table.overwrite(rows)
        else:
            table.upsert(rows)
        table.clean({"hoodie.clean.commits.retained": "1"})
        table.archive(KEEP)
        assert table.inspect.verify().findings == ()
    for file in (tmp_path / "oslo").glob("*.parquet"):
        file.unlink()
    assert {found.kind.value for found in table.inspect.verify().damage} == {"missing-file"}
