from __future__ import annotations

import io
import json

import fastavro
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.timeline.bodies.rollback_metadata import PLAN_SCHEMA
from hoodie_ds.timeline.bodies.savepoint_metadata import (
    SAVEPOINT_SCHEMA,
    savepoint_to_bytes,
    savepointed_files,
)
from tests.golden.golden_tables import golden_file

_GOLDEN = "v6_mor_restored"


def test_the_schema_is_the_one_that_hudi_embeds() -> None:
    container = fastavro.reader(io.BytesIO(golden_file(_GOLDEN, r"\.savepoint$")))
    assert json.loads(container.metadata["avro.schema"]) == SAVEPOINT_SCHEMA


def test_what_hudi_wrote_is_read_and_written_again() -> None:
    theirs = golden_file(_GOLDEN, r"\.savepoint$")
    record = read_record(theirs, "golden")
    kept = {path: part["savepointDataFile"] for path, part in record["partitionMetadata"].items()}
    at_ms, user, comments = record["savepointedAt"], record["savepointedBy"], record["comments"]
    ours = savepoint_to_bytes(kept, user, at_ms, comments)
    assert read_record(ours, "ours") == record
    names = [f"{path}/{name}" if path else name for path in kept for name in kept[path]]
    assert names
    assert savepointed_files(theirs, "golden") == frozenset(names)


def test_what_is_no_savepoint_is_refused() -> None:
    body = write_record(PLAN_SCHEMA, {})
    with pytest.raises(CorruptFileError, match="x is no savepoint"):
        savepointed_files(body, "x")
