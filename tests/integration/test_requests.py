"""How often a micro-batch asks its storage: as often in a large table as in a small one.

S3 gets a request for each operation, but two for the deletion of a folder.
"""

from __future__ import annotations

from typing import cast

import pytest

from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Recorder
from hoodie_ds.testing.fault import Kind
from hoodie_ds.timeline.paths import (
    DECISIONS,
    FORMER_DECISIONS,
    HASHING_CONFIGS,
    HOODIE,
    SUMMARIES,
    TEMP,
)
from tests.faults.writers import Place
from tests.micro_batches import MicroBatches
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

GROUPS = 8
FILES = 2 * GROUPS
"""A marker and a data file for each file group."""


def _operations(options: dict[str, str], partitions: int) -> dict[str, list[tuple[Kind, str]]]:
    """Operations of each phase of a third batch into the file groups of one partition of many."""
    place = Place({**TRIPS, BUCKETS: str(GROUPS), **options})
    stream, recorder = MicroBatches(place), Recorder()
    groups = [(str(key), "oslo", 1, 1.0) for key in range(40)]
    others = [("x", f"city{number}", 1, 1.0) for number in range(1, partitions)]
    stream.run(0, trips(*groups, *others))
    stream.run(1, trips(*groups))
    place.storage = cast(MemoryStorage, FaultyStorage(place.storage, recorder=recorder))
    ends = [0]
    begun = stream.begin(trips(*groups).schema)
    ends.append(len(recorder.operations))
    id_ = BatchId(stream.query, 2)
    rows = trips(*groups).to_batches()
    message = write_task(begun, TaskId(), id_, rows, sole_writer=True, clock=place.clock)
    ends.append(len(recorder.operations))
    stream.commit([message])
    assert len({status.stat.file_id for status in message.statuses}) == GROUPS
    asked: list[tuple[Kind, str]]
    asked = [(o.kind, o.path) for o in recorder.operations if o.kind is not Kind.CREATE]
    created = [o.kind is Kind.CREATE for o in recorder.operations]  # asks for nothing yet
    ends = [end - sum(created[:end]) for end in [*ends, len(created)]]
    phases = zip(("begin", "task", "commit"), ends, ends[1:], strict=False)
    return {phase: asked[start:end] for phase, start, end in phases}


@pytest.mark.parametrize(
    ("kind", "version", "most"),
    [
        ("MERGE_ON_READ", "6", (7, 12, 13)),
        ("MERGE_ON_READ", "9", (7, 12, 13)),
        ("COPY_ON_WRITE", "6", (7, 20, 13)),
    ],
)
def test_a_micro_batch_asks_as_often_in_any_table(
    kind: str, version: str, most: tuple[int, int, int]
) -> None:
    options = {TYPE: kind, VERSION: version}
    small, large = (_operations(options, partitions) for partitions in (1, 20))
    counts = {phase: len(asked) for phase, asked in large.items()}
    begin, task, commit = most
    assert counts == {"begin": begin, "task": FILES + task, "commit": commit}
    assert counts == {phase: len(asked) for phase, asked in small.items()}
    listed = {path for asked in large.values() for one, path in asked if one is Kind.LIST}
    folders = {HOODIE, f"{HOODIE}/timeline", DECISIONS, FORMER_DECISIONS, HASHING_CONFIGS, "oslo"}
    assert {p for p in listed - folders if not p.startswith((f"{SUMMARIES}/", TEMP))} == set()
