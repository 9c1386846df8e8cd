"""Bodies of commits in timeline layout 2, field by field as Apache Hudi writes them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.timeline.bodies.commit_metadata import DIGEST_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.paths import instant_path
from tests.golden.golden_tables import FOLDER, golden_names
from tests.tables import TRIPS, VERSION, trips

WRITES = re.compile(
    r"\.hoodie/timeline/\d+(_\d+)?\.((commit|deltacommit|replacecommit)(\.inflight)?|inflight)$"
)

MEASURED = {"runtimeStats", "totalLogReadTimeMs", "cdcStats"}
"""Fields of a write stat with which Hudi says how long it took, and of its change data."""


def bodies(name: str) -> dict[str, bytes]:
    """The completed and inflight files of writes of a golden table, by path."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as file:
        return {
            path: body
            for path in file.namelist()
            if WRITES.match(path) and (body := file.read(path))
        }


def with_nothing_measured(record: dict[str, Any]) -> dict[str, Any]:
    stats = record["partitionToWriteStats"]
    assert all("totalUpsertTime" in s["runtimeStats"] for listed in stats.values() for s in listed)
    return {
        **record,
        "partitionToWriteStats": {
            partition: [{k: v for k, v in s.items() if k not in MEASURED} for s in listed]
            for partition, listed in stats.items()
        },
    }


@pytest.mark.parametrize("name", [n for start in ("v8", "v9") for n in golden_names(start)])
def test_a_body_is_written_as_hudi_writes_it(name: str) -> None:
    found = bodies(name)
    assert found
    for path, theirs in found.items():
        inflight = path.endswith("inflight")
        ours = CommitMetadata.from_bytes(theirs, path).to_bytes(2, inflight=inflight)
        schema_ends = theirs.index(b"\x00", theirs.index(b"avro.schema"))
        assert ours[4:schema_ends] == theirs[4:schema_ends], path
        if inflight:  # Hudi's has a profile of the work, which ours has not
            continue
        written, expected = read_record(ours, path), read_record(theirs, path)
        del written["extraMetadata"][DIGEST_KEY]
        assert with_nothing_measured(written) == with_nothing_measured(expected), path


REQUESTED = re.compile(r"(.*)/(\d+)\.replacecommit\.requested$")


def requested_by_hudi(name: str) -> dict[str, bytes]:
    """Requested files of replacements of a golden table, by what they did."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as file:
        paths = file.namelist()
        found = {}
        for path in paths:
            if match := REQUESTED.fullmatch(path):
                done = rf"{match[1]}/{match[2]}(_\d+)?\.replacecommit"
                (completed,) = (other for other in paths if re.fullmatch(done, other))
                commit = CommitMetadata.from_bytes(file.read(completed), completed)
                found[commit.operation_type] = file.read(path)
    return found


@pytest.mark.parametrize("version", [6, 9])
def test_a_replacement_is_requested_as_hudi_requests_it(version: int, tmp_path: Path) -> None:
    theirs = requested_by_hudi(f"v{version}_cow_history")
    table = HoodieTable(str(tmp_path / "t"), {**TRIPS, VERSION: str(version)})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.overwrite(trips(("a", "x", 1, 1.0)), partitions_only=True)
    table.overwrite(trips(("a", "x", 1, 1.0)))
    table.delete_partitions("x")
    seen = set()
    for commit in table.timeline.replace_commits:
        read = (tmp_path / "t").joinpath
        kind = CommitMetadata.from_bytes(read(instant_path(commit)).read_bytes(), "p")
        path = instant_path(Instant(commit.time, commit.action, State.REQUESTED, 0, commit.layout))
        ours, hudis = read(path).read_bytes(), theirs[kind.operation_type]
        schema_ends = hudis.index(b"\x00", hudis.index(b"avro.schema"))
        assert ours[4:schema_ends] == hudis[4:schema_ends]
        assert read_record(ours, path) == read_record(hudis, path)
        seen.add(kind.operation_type)
    assert seen == {"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"}
