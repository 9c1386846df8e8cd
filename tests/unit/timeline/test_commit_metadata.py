from __future__ import annotations

import json

from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.timeline.commit_metadata import OWNER_KEY, CommitMetadata, LogWrite, WriteStat

BASE = WriteStat("g-0", "p/g-0_0-1-1_1.parquet", "p", num_writes=3, num_inserts=3)
LOG = WriteStat(
    "g-0",
    "p/.g-0_1.log.2_0-1-1",
    "p",
    prev_commit="1",
    num_deletes=2,
    log=LogWrite(2, 0, "g-0_0-1-1_1.parquet", (".g-0_1.log.2_0-1-1",)),
)


def test_metadata_is_read_as_it_was_written() -> None:
    metadata = CommitMetadata((BASE, LOG), "UPSERT", {"schema": "{}"}, {"p": ("old",)}, True)
    assert CommitMetadata.from_bytes(metadata.to_bytes(), "path") == metadata
    assert metadata.file_paths == {BASE.path, LOG.path}


def test_the_body_has_the_names_of_hudi() -> None:
    body = json.loads(CommitMetadata((BASE, LOG), "UPSERT", {"schema": "{}"}).to_bytes())
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


def test_a_commit_of_ours_that_an_upgrade_wrote_anew_in_avro() -> None:
    """Hudi 1.2 keeps the extra metadata and leaves out some fields, as seen in a real upgrade."""
    extra = {"type": "map", "values": "string"}
    schema = {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "extraMetadata", "type": extra},
            {"name": "operationType", "type": "string"},
        ],
    }
    written = json.loads(CommitMetadata((), "UPSERT", {OWNER_KEY: "us"}, compacted=True).to_bytes())
    record = {"extraMetadata": written["extraMetadata"], "operationType": "UPSERT"}
    read = CommitMetadata.from_bytes(write_record(schema, record), "p")
    assert read == CommitMetadata((), "UPSERT", {OWNER_KEY: "us"})
