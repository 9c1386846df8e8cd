"""Our table services make of a golden table what Apache Hudi's made of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table
from tests.golden.make.services import SMALL_FILES
from tests.interop.hudi_rs import read_with_hudi_rs

_TIME = re.compile(r"_(\d{17})[._]")
_TOKEN = re.compile(r"(?<=[._])\d+-\d+-\d+")


def _data_files(path: Path) -> set[str]:
    found = (p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".hoodie"))
    return {str(p.relative_to(path)) for p in found if ".hoodie" not in p.parts}


def _timeline(path: Path) -> Path:
    """The folder of a table's instants."""
    folder = path / ".hoodie" / "timeline"
    return folder if folder.exists() else folder.parent


def _before(path: Path, time: str) -> None:
    """Take everything off a table that was written at a time or later."""
    for file in _timeline(path).iterdir():
        if file.name[:17] >= time and file.name[:1].isdigit():
            file.unlink()
    for name in _data_files(path):
        (found,) = _TIME.findall(name)
        if found >= time:
            (path / name).unlink()


def _planned(path: Path, pattern: str) -> tuple[str, dict[str, Any]]:
    """Time and content of a plan."""
    (file,) = _timeline(path).glob(pattern)
    return file.name.partition(".")[0], read_record(file.read_bytes(), file.name)


def _names_alone(value: Any) -> Any:
    """A plan with paths cut to names, and records in one order."""
    match value:
        case dict():
            return {key: _names_alone(item) for key, item in value.items()}
        case list():
            cut = [_names_alone(item) for item in value]
            return sorted(cut, key=str) if all(isinstance(item, dict) for item in cut) else cut
        case str():
            return value.rpartition("/")[2] if value.startswith(("file:", "/")) else value
        case _:
            return value


def _commit(path: Path, time: str, action: str) -> CommitMetadata:
    (file,) = _timeline(path).glob(f"{time}*.{action}")
    return CommitMetadata.from_bytes(file.read_bytes(), file.name)


def _counted(commit: CommitMetadata) -> Counter[tuple[object, ...]]:
    """What a commit says of its files, but for names, sizes and durations."""
    return Counter(
        (s.partition_path, s.num_writes, s.num_inserts, s.num_update_writes, s.num_deletes,
         s.total_log_records, s.total_log_files_compacted, s.prev_commit)
        for s in commit.stats
    )  # fmt: skip


def _without_tokens(path: Path) -> list[str]:
    """Data files; log files without the token of the task that wrote them."""
    return sorted(_TOKEN.sub("", n) if ".log." in n else n for n in _data_files(path))


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("v6_cow_clustering", "replacecommit"),
        ("v6_mor_clustering", "replacecommit"),
        ("v9_cow_clustering", "clustering"),
    ],
)
def test_a_clustering_is_planned_and_carried_out_as_by_hudi(
    name: str, action: str, tmp_path: Path
) -> None:
    path = unzip_table(f"{name}_requested", tmp_path)
    time, theirs = _planned(path, f"*.{action}.requested")
    _before(path, time)
    clusterer = Clusterer(HoodieTable(path, SMALL_FILES)._services())
    scheduled = clusterer.schedule()
    assert scheduled is not None
    our_time, ours = _planned(path, f"*.{action}.requested")
    assert _names_alone(ours) == _names_alone(theirs)
    clusterer.run(scheduled)
    done = _commit(path, our_time, "replacecommit")
    their_done = _commit(unzip_table(f"{name}_done", tmp_path), time, "replacecommit")
    assert _counted(done) == _counted(their_done)
    replaced, theirs_replaced = (
        {partition: sorted(ids) for partition, ids in commit.replaced.items()}
        for commit in (done, their_done)
    )
    assert replaced == theirs_replaced


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_is_planned_as_by_hudi(version: int, tmp_path: Path) -> None:
    path = unzip_table(f"v{version}_mor_compaction_requested", tmp_path)
    time, theirs = _planned(path, "*.compaction.requested")
    _before(path, time)
    assert Compactor(HoodieTable(path)._services()).schedule() is not None
    _, ours = _planned(path, "*.compaction.requested")
    assert _names_alone(ours) == _names_alone(theirs)


@pytest.mark.parametrize("name", ["v6_cow_undone", "v6_mor_undone", "v9_mor_undone"])
def test_what_hudi_takes_off_a_table_goes_here_too(name: str, tmp_path: Path) -> None:
    path = unzip_table(f"{name}_before", tmp_path)
    table = HoodieTable(path)
    (savepoint,) = table.timeline.savepoints
    table.rollback()
    assert _without_tokens(path) == _without_tokens(unzip_table(f"{name}_by_a_write", tmp_path))
    assert_rows_equal(table.read(), expected_rows(f"{name}_by_a_write"))
    table.restore(savepoint.time)
    restored = f"{name}_to_a_savepoint"
    assert _without_tokens(path) == _without_tokens(unzip_table(restored, tmp_path))
    assert_rows_equal(table.read(), expected_rows(restored))
    assert_rows_equal(read_with_hudi_rs(path), expected_rows(restored))
