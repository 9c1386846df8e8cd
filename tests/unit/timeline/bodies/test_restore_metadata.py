from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.timeline.bodies.restore_metadata import (
    RESTORE_METADATA_SCHEMA,
    RESTORE_PLAN_SCHEMA,
    RestoreRequest,
    restore_to_bytes,
)
from hoodie_ds.timeline.bodies.rollback_metadata import PLAN_SCHEMA, PartitionRollback
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.golden.golden_tables import golden_file

_GOLDEN = "v6_mor_restored"


@pytest.mark.parametrize(
    ("ending", "schema"),
    [("restore.requested$", RESTORE_PLAN_SCHEMA), ("restore$", RESTORE_METADATA_SCHEMA)],
)
def test_the_schemas_are_those_that_hudi_embeds(ending: str, schema: dict[str, Any]) -> None:
    container = fastavro.reader(io.BytesIO(golden_file(_GOLDEN, ending)))
    assert json.loads(container.metadata["avro.schema"]) == schema


def test_hudis_plan_is_read_and_written_again() -> None:
    theirs = golden_file(_GOLDEN, "restore.requested$")
    request = RestoreRequest.from_bytes(theirs, "golden")
    assert read_record(request.to_bytes(), "ours") == read_record(theirs, "golden")
    assert request.target
    assert list(request.times) == sorted(request.times, reverse=True)
    assert min(request.times) > request.target


def test_what_was_done_is_written_as_hudi_does() -> None:
    theirs = read_record(golden_file(_GOLDEN, "restore$"), "golden")
    plan = golden_file(_GOLDEN, "restore.requested$")
    request = RestoreRequest.from_bytes(plan, "golden")
    done = {}
    for time, action in request.instants:
        (rollback,) = theirs["hoodieRestoreMetadata"][time]
        done[Instant(time, Action(action), State.COMPLETED)] = {
            path: PartitionRollback(
                tuple(name.rpartition("/")[2] for name in part["successDeleteFiles"])
            )
            for path, part in rollback["partitionMetadata"].items()
        }
    time, taken = theirs["startRestoreTime"], theirs["timeTakenInMillis"]
    ours = read_record(restore_to_bytes("/t", time, request, done, taken), "ours")
    for key in ("instantsToRollback", "restoreInstantInfo", "startRestoreTime", "version"):
        assert ours[key] == theirs[key]
    assert ours["hoodieRestoreMetadata"].keys() == theirs["hoodieRestoreMetadata"].keys()
    for time in request.times:
        (mine,), (other,) = (one["hoodieRestoreMetadata"][time] for one in (ours, theirs))
        for key in ("totalFilesDeleted", "commitsRollback", "instantsRollback", "version"):
            assert mine[key] == other[key]


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="x is not the plan of a restore"):
        RestoreRequest.from_bytes(write_record(PLAN_SCHEMA, {}), "x")
