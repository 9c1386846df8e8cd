from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest

from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.avro.container import is_container, read_record
from hoodie_ds.timeline.bodies.commit_body import avro_body
from hoodie_ds.timeline.bodies.commit_metadata import (
    DIGEST_KEY,
    OWNER_KEY,
    CommitMetadata,
    LogWrite,
    WriteStat,
)

BASE = WriteStat("g-0", "p/g-0_0-1-1_1.parquet", "p", num_writes=3, num_inserts=3)
LOG = WriteStat(
    "g-0",
    "p/.g-0_1.log.2_0-1-1",
    "p",
    prev_commit="1",
    num_deletes=2,
    log=LogWrite(2, 0, "g-0_0-1-1_1.parquet", (".g-0_1.log.2_0-1-1",)),
)


@pytest.mark.parametrize("layout", [1, 2])
def test_metadata_is_read_as_it_was_written(layout: int) -> None:
    metadata = CommitMetadata((BASE, LOG), "UPSERT", {"schema": "{}"}, {"p": ("old",)}, True)
    assert CommitMetadata.from_bytes(metadata.to_bytes(layout), "path") == metadata
    assert metadata.file_paths == {BASE.path, LOG.path}


def test_the_body_has_the_names_of_hudi() -> None:
    body = json.loads(CommitMetadata((BASE, LOG), "UPSERT", {"schema": "{}"}).to_bytes(1))
    assert set(body) == {
        "partitionToWriteStats",
        "compacted",
        "extraMetadata",
        "operationType",
    }
    first, second = body["partitionToWriteStats"]["p"]
    assert (first["fileId"], first["numInserts"], first["prevCommit"]) == ("g-0", 3, "null")
    assert "logVersion" not in first
    assert (second["logVersion"], second["logFiles"]) == (2, [".g-0_1.log.2_0-1-1"])
    assert second["baseFile"] == "g-0_0-1-1_1.parquet"


def test_what_another_engine_left_out_or_added_is_tolerated() -> None:
    stat = {"fileId": "g", "path": "g_0-1-1_1.parquet", "numWrites": None, "news": {"x": 1}}
    body = {"partitionToWriteStats": {"": [stat]}, "extraMetadata": {"a": None, "b": "c"}}
    metadata = CommitMetadata.from_bytes(json.dumps(body).encode(), "path")
    assert metadata.stats == (WriteStat("g", "g_0-1-1_1.parquet", ""),)
    assert metadata.extra == {"b": "c"}
    assert metadata.with_extra({"d": "e"}).extra == {"b": "c", "d": "e"}


def test_damage_to_a_body_in_avro_is_seen() -> None:
    metadata = CommitMetadata((BASE, LOG), "UPSERT", {OWNER_KEY: "us"})
    body = bytearray(metadata.to_bytes(2))
    for at in range(body.index(b"avro.schema") - 6, len(body)):
        bit = (0x01, 0x20, 0x80)[at % 3]
        body[at] ^= bit
        with suppress(CorruptFileError, UnsupportedTableError):
            assert CommitMetadata.from_bytes(bytes(body), "p") == metadata, at
        body[at] ^= bit


@pytest.mark.parametrize("layout", [1, 2])
def test_a_digest_that_is_gone_is_damage(layout: int) -> None:
    body = CommitMetadata((BASE,), "UPSERT", {OWNER_KEY: "us"}).to_bytes(layout)
    assert body.count(DIGEST_KEY.encode()) == 1
    with pytest.raises(CorruptFileError, match="digest"):
        CommitMetadata.from_bytes(body.replace(DIGEST_KEY.encode(), b"_hoodie_ds_digesT"), "p")


def _written_anew(body: bytes, layout: int, **changes: object) -> bytes:
    """What Hudi writes between table versions: it takes each stat for that of a base file."""
    found = read_record(body, "p") if is_container(body) else json.loads(body)
    for stats in found["partitionToWriteStats"].values():
        for stat in stats:
            for name in ("logVersion", "logOffset", "baseFile", "logFiles", "recordsStats"):
                stat.pop(name, None)
            stat.update({"numUpdates": 0, **changes})
    return avro_body(found, replaces=False) if layout == 2 else json.dumps(found).encode()


@pytest.mark.parametrize("way", [(1, 2), (2, 1), (1, 2, 1), (2, 1, 2)])
@pytest.mark.parametrize("stats", [(BASE,), (BASE, LOG)])
def test_a_commit_of_ours_that_hudi_wrote_anew(
    way: tuple[int, ...], stats: tuple[WriteStat, ...]
) -> None:
    """An upgrade or a downgrade keeps the extra metadata, and leaves out what log files have."""
    body = CommitMetadata(stats, "UPSERT", {OWNER_KEY: "us"}, compacted=True).to_bytes(way[0])
    for layout in way[1:]:
        body = _written_anew(body, layout)
    kept = tuple(replace(stat, log=None) for stat in stats)
    read = CommitMetadata.from_bytes(body, "p")
    assert read == CommitMetadata(kept, "UPSERT", {OWNER_KEY: "us"}, compacted=True)
    with pytest.raises(CorruptFileError, match="digest"):
        CommitMetadata.from_bytes(_written_anew(body, way[-1], numWrites=7), "p")


def test_what_an_upgrade_wrote_anew_of_a_commit_with_one_digest() -> None:
    body = json.loads(CommitMetadata((BASE, LOG), "UPSERT", {OWNER_KEY: "us"}).to_bytes(1))
    first, _ = body["extraMetadata"][DIGEST_KEY].split()
    body["extraMetadata"][DIGEST_KEY] = first
    data = json.dumps(body).encode()
    assert CommitMetadata.from_bytes(data, "p").stats == (BASE, LOG)
    upgraded = _written_anew(data, 2)
    assert CommitMetadata.from_bytes(upgraded, "p").stats == (BASE, replace(LOG, log=None))
    with pytest.raises(CorruptFileError, match="digest"):
        CommitMetadata.from_bytes(data.replace(b'"numWrites": 3', b'"numWrites": 7'), "p")


@pytest.mark.parametrize("operation", ["INSERT_OVERWRITE", "DELETE_PARTITION", "CLUSTER"])
def test_a_replace_commit_that_replaces_nothing(operation: str) -> None:
    metadata = CommitMetadata((BASE,), operation)
    completed = metadata.to_bytes(2)
    assert b'"name":"HoodieReplaceCommitMetadata"' in completed
    assert read_record(completed, "p")["partitionToReplaceFileIds"] == {}
    assert CommitMetadata.from_bytes(completed, "p") == metadata
    assert b'"name":"HoodieCommitMetadata"' in metadata.to_bytes(2, inflight=True)
