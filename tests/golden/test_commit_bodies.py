"""Bodies of commits in timeline layout 2, field by field as Apache Hudi writes them."""

from __future__ import annotations

import re
import zipfile
from typing import Any

import pytest

from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.timeline.commit_metadata import DIGEST_KEY, CommitMetadata
from tests.golden.golden_tables import FOLDER, golden_names

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
