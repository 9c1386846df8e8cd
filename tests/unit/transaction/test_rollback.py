from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from hoodie_ds.errors import TimelineError
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, read_blocks
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind
from hoodie_ds.timeline.bodies.rollback_metadata import METADATA_SCHEMA, PLAN_SCHEMA, plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import TEMP, instant_path, marker_path
from hoodie_ds.transaction.rollback import finish_rollback, roll_back
from tests.golden.golden_tables import golden_file
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    MIXED_LOG,
    NEW_BASE,
    OLD_BASE,
    OTHER_BASE,
    PURE_LOG,
    FixedClock,
    begin,
    commit,
    commit_body,
    data_block,
    data_files,
    new_table,
    put_file,
)

_GOLDEN = "v6_mor_failed_rolled_back"
_CLOCK = FixedClock()


def _rollbacks(table: Table) -> list[Instant]:
    return [i for i in load_timeline(table.storage, 1).completed if i.action is Action.ROLLBACK]


def _metadata(table: Table) -> dict[str, Any]:
    (rollback,) = _rollbacks(table)
    path = instant_path(rollback)
    return read_record(table.storage.read(path), path)


def _request(table: Table, instant: Instant, time: str) -> Instant:
    rollback = Instant(time, Action.ROLLBACK, State.REQUESTED)
    plan = plan_to_bytes(table.storage.root, instant, {})
    table.storage.put_if_absent(instant_path(rollback), plan)
    return rollback


@pytest.mark.parametrize(
    ("ending", "schema"), [("rollback.requested$", PLAN_SCHEMA), ("rollback$", METADATA_SCHEMA)]
)
def test_the_schemas_are_those_that_hudi_embeds(ending: str, schema: dict[str, Any]) -> None:
    container = fastavro.reader(io.BytesIO(golden_file(_GOLDEN, ending)))
    assert json.loads(container.metadata["avro.schema"]) == schema


def test_the_command_block_is_hudis_but_for_its_times(storage: Storage) -> None:
    (theirs,) = read_blocks(golden_file(_GOLDEN, r"\.log\.3_"), "golden")
    table = new_table(storage)
    put_file(table, MIXED_LOG, data_block(DONE) + data_block(FAILED))
    commit(table, DONE, MIXED_LOG, action=Action.DELTA_COMMIT)
    roll_back(table, begin(table, FAILED, Action.DELTA_COMMIT, ours=False), _CLOCK)
    (ours,) = read_blocks(storage.read(MIXED_LOG.replace("1_0-2-2", "2_1-0-1")), "ours")
    assert (ours.block_type, bytes(ours.content)) == (theirs.block_type, bytes(theirs.content))
    assert set(ours.header) == set(theirs.header)
    assert ours.header[HeaderKey.COMMAND_BLOCK_TYPE] == theirs.header[HeaderKey.COMMAND_BLOCK_TYPE]


def test_what_the_markers_of_our_instant_announce_is_deleted(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    instant = begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    put_file(table, OTHER_BASE, marker=FAILED)
    storage.put_if_absent(marker_path(FAILED, "p/never-written_0-1-1_1.parquet", "CREATE"), b"")

    roll_back(table, instant, _CLOCK)

    assert data_files(storage) == [OLD_BASE]
    assert storage.list(TEMP, recursive=True) == []
    timeline = load_timeline(storage, 1)
    assert timeline.pending == ()
    assert [i.time for i in timeline.commits] == [DONE]


def test_a_rollback_lists_the_deleted_files(storage: Storage) -> None:
    table = new_table(storage)
    instant = begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    roll_back(table, instant, _CLOCK)
    (rollback,) = _rollbacks(table)
    path = instant_path(rollback.at(State.REQUESTED))
    plan = read_record(storage.read(path), path)
    deleted = [f"{storage.root}/{NEW_BASE}"]
    assert plan["instantToRollback"] == {"commitTime": FAILED, "action": "commit"}
    assert [r["filesToBeDeleted"] for r in plan["RollbackRequests"]] == [deleted]
    assert storage.read(instant_path(rollback.at(State.INFLIGHT))) == b""
    done = _metadata(table)
    assert (done["commitsRollback"], done["totalFilesDeleted"]) == ([FAILED], 1)
    assert done["partitionMetadata"]["p"]["successDeleteFiles"] == deleted
    assert done["startRollbackTime"] == rollback.time > FAILED


def test_a_completed_instant_is_left_alone(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, NEW_BASE, marker=FAILED)
    completed = commit(table, FAILED, NEW_BASE)
    roll_back(table, completed.at(State.INFLIGHT), _CLOCK)
    assert data_files(storage) == [NEW_BASE]
    assert _rollbacks(table) == []


class _CompletingStorage:
    """Lets the writer that seemed dead commit just before the rollback is put."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.endswith(".rollback.requested"):
            completed = Instant(FAILED, Action.COMMIT, State.COMPLETED)
            self._inner.put_if_absent(instant_path(completed), commit_body(NEW_BASE))
        self._inner.put_if_absent(path, data)


def test_an_instant_that_completes_meanwhile_is_left_alone(storage: Storage) -> None:
    table = new_table(storage)
    instant = begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    racing: Any = _CompletingStorage(storage)
    roll_back(Table(racing, table.properties), instant, _CLOCK)
    assert data_files(storage) == [NEW_BASE]
    timeline = load_timeline(storage, 1)
    assert ([i.time for i in timeline.completed], timeline.pending) == ([FAILED], ())


def test_an_instant_that_is_gone_is_left_alone(storage: Storage) -> None:
    table = new_table(storage)
    roll_back(table, Instant(FAILED, Action.COMMIT, State.INFLIGHT), _CLOCK)
    assert load_timeline(storage, 1).completed == ()


def test_another_engines_files_are_found_without_markers(storage: Storage) -> None:
    table = new_table(storage, hoodie__datasource__write__table__type="MERGE_ON_READ")
    put_file(table, OLD_BASE)
    put_file(table, MIXED_LOG, data_block(DONE) + data_block(FAILED))
    commit(table, DONE, OLD_BASE, MIXED_LOG, action=Action.DELTA_COMMIT)
    instant = begin(table, FAILED, Action.DELTA_COMMIT, ours=False)
    put_file(table, OTHER_BASE)
    put_file(table, PURE_LOG, data_block(FAILED))

    roll_back(table, instant, _CLOCK)

    # Log files of its own stay too: the engine that wrote them may give their names once more.
    command = MIXED_LOG.replace("1_0-2-2", "3_1-0-1")
    assert data_files(storage) == sorted([OLD_BASE, MIXED_LOG, PURE_LOG, command])
    (block,) = read_blocks(storage.read(command), command)
    assert block.block_type is BlockType.COMMAND
    assert block.header[HeaderKey.TARGET_INSTANT_TIME] == FAILED
    assert block.header[HeaderKey.INSTANT_TIME] == _rollbacks(table)[0].time
    done = _metadata(table)["partitionMetadata"]["p"]
    assert done["rollbackLogFiles"] == {f"{storage.root}/{command}": len(storage.read(command))}
    logs = [f"{storage.root}/{path}" for path in (MIXED_LOG, PURE_LOG)]
    assert list(done["logFilesFromFailedCommit"]) == logs


def test_log_files_of_later_slices_are_not_read(storage: Storage) -> None:
    """Their names tell that they were begun when the write had failed."""
    table = new_table(storage, hoodie__datasource__write__table__type="MERGE_ON_READ")
    later = PURE_LOG.replace(DONE, "20250103000000000")
    put_file(table, later)
    put_file(table, MIXED_LOG)
    pending = begin(table, FAILED, Action.DELTA_COMMIT, ours=False)
    asked = FaultyStorage(storage)
    roll_back(replace(table, storage=asked), pending, _CLOCK)
    read = {done.path for done in asked.recorder.operations if done.kind is Kind.READ}
    assert MIXED_LOG in read
    assert later not in read


def test_a_marker_of_another_engine_may_name_a_base_file_of_another_commit(
    storage: Storage,
) -> None:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    instant = begin(table, FAILED, ours=False)
    storage.put_if_absent(marker_path(FAILED, OLD_BASE, "APPEND"), b"")
    roll_back(table, instant, _CLOCK)
    assert data_files(storage) == [OLD_BASE]


def test_an_existing_command_is_not_put_again(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, MIXED_LOG, data_block(DONE) + data_block(FAILED))
    commit(table, DONE, MIXED_LOG, action=Action.DELTA_COMMIT)
    for _ in range(2):
        roll_back(table, begin(table, FAILED, Action.DELTA_COMMIT, ours=False), _CLOCK)
    assert data_files(storage) == [MIXED_LOG, MIXED_LOG.replace("1_0-2-2", "2_1-0-1")]
    assert len(_rollbacks(table)) == 2


def test_a_rollback_takes_the_next_free_time(storage: Storage) -> None:
    table = new_table(storage)
    late = "29990101000000000"
    instant = begin(table, late)
    roll_back(table, instant, _CLOCK)
    assert [i.time for i in _rollbacks(table)] == ["29990101000000001"]


def test_a_rollback_that_another_engine_began_is_finished(storage: Storage) -> None:
    table = new_table(storage)
    instant = begin(table, FAILED, ours=False)
    put_file(table, NEW_BASE)
    rollback = _request(table, instant, "20250103000000000")
    finish_rollback(table, rollback, _CLOCK)
    assert data_files(storage) == []
    timeline = load_timeline(storage, 1)
    assert timeline.completed == (rollback.at(State.COMPLETED),)
    assert timeline.pending == ()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_rollback_interrupted_before_its_last_step_is_finished(
    storage: Storage, kind: str
) -> None:
    table = new_table(storage, hoodie__table__type=kind)
    put_file(table, NEW_BASE, marker=FAILED)
    gone = Instant(FAILED, Action.COMMIT, State.INFLIGHT)
    rollback = _request(table, gone, "20250103000000000")
    finish_rollback(table, rollback, _CLOCK)
    assert _rollbacks(table) == [rollback.at(State.COMPLETED)]
    assert storage.list(TEMP, recursive=True) == []


def test_a_log_file_deleted_by_another_rollback_is_skipped(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, PURE_LOG, data_block(FAILED))
    instant = begin(table, FAILED, Action.DELTA_COMMIT, ours=False)
    reads = frozenset({Kind.READ})
    faulty = FaultyStorage(storage, [Fault(Effect.MISSING, kinds=reads, path=PURE_LOG)])
    roll_back(Table(faulty, table.properties), instant, _CLOCK)
    assert len(_rollbacks(table)) == 1
    assert load_timeline(storage, 1).pending == ()


def test_a_rollback_without_a_plan_is_withdrawn(storage: Storage) -> None:
    table = new_table(storage)
    rollback = Instant("20250103000000000", Action.ROLLBACK, State.REQUESTED)
    storage.put_if_absent(instant_path(rollback), b"")
    finish_rollback(table, rollback, _CLOCK)
    assert load_timeline(storage, 1).latest_time is None


def test_a_pending_rollback_of_a_completed_commit_is_refused(storage: Storage) -> None:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    rollback = _request(table, commit(table, DONE, OLD_BASE), FAILED)
    with pytest.raises(TimelineError, match=f"{FAILED}.*{DONE} commit"):
        finish_rollback(table, rollback, _CLOCK)
    assert data_files(storage) == [OLD_BASE]


def test_a_pending_rollback_of_a_compaction_is_refused(storage: Storage) -> None:
    table = new_table(storage)
    compaction = begin(table, FAILED, Action.COMPACTION, ours=False)
    rollback = _request(table, compaction, "20250103000000000")
    with pytest.raises(TimelineError, match="compaction"):
        finish_rollback(table, rollback, _CLOCK)
    assert compaction in load_timeline(storage, 1).pending
