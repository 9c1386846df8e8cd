"""A stream compacts its own table: the tasks of a batch share the work of a plan.

A compaction is due after 5 delta commits (Hudi's ``hoodie.compact.inline.max.delta.commits``).
A reader sees the same rows whatever is compacted, so the newest row of each key is the oracle.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import CorruptFileError, LockTimeoutError
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.compaction.executor import CompactionExecutor
from hoodie_ds.services.compaction.result import CompactionResult
from hoodie_ds.services.failures import noted_failures
from hoodie_ds.sink import coordinator
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.messages import METRICS_KEY
from hoodie_ds.testing import FaultyStorage, Operation, check_table
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import compaction_claims
from tests.faults.writers import MODE, SEVERAL, Place
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.micro_batches import MicroBatches
from tests.tables import BUCKETS, TRIPS, TYPE, trips

ASYNC = "hoodie.datasource.compaction.async.enable"
DELTA_COMMITS = 5
GROUPS = 4
KEYS = [str(key) for key in range(20)]


def _stream(**options: str) -> MicroBatches:
    given = {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: str(GROUPS), ASYNC: "true", **options}
    return MicroBatches(Place(given))


def _due(**options: str) -> MicroBatches:
    """A stream with a plan, after two batches; of one file group unless the options say more."""
    given = {"hoodie.compact.inline.max.delta.commits": "1", BUCKETS: "1", **options}
    stream = _stream(**given)
    stream.run(0, _rows(0))
    stream.run(1, _rows(1))
    return stream


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def _die_compacting(
    stream: MicroBatches, batch: Batch, task: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let a task of batch 2 end once it has taken a file group."""
    with monkeypatch.context() as patched:
        patched.setattr(CompactionExecutor, "execute", _killed)
        with pytest.raises(KeyboardInterrupt):
            stream.task(batch, 2, task, _rows(2))


def _rows(number: int) -> pa.Table:
    return trips(*((key, "x", number, float(number)) for key in KEYS))


def _newest(number: int) -> list[tuple[str, str, int, float]]:
    return sorted((key, "x", number, float(number)) for key in KEYS)


def _compactions(stream: MicroBatches) -> tuple[list[str], list[str]]:
    """Times of the pending compactions, and of those that are complete."""
    timeline = load_timeline(stream.place.storage, 1)
    done = [i.time for i in timeline.commits if i.action is Action.COMMIT]
    return [i.time for i in timeline.pending_compactions], done


def test_a_plan_is_made_after_five_delta_commits_and_done_by_the_next_batch() -> None:
    stream = _stream()
    seen = []
    for number in range(4 * DELTA_COMMITS):
        assert stream.run(number, _rows(number)).failed_services == ()
        assert stream.place.rows() == _newest(number)
        pending, done = _compactions(stream)
        seen.append((len(pending), len(done)))
    # The batch after a plan is the first delta commit of those after which the next one is due.
    assert [done for _, done in seen] == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5
    assert [pending for pending, _ in seen] == ([0] * 4 + [1]) * 4
    assert check_table(stream.place.storage.files, buckets=True) == []


def test_hudi_rs_reads_every_row_after_every_batch(tmp_path: Path) -> None:
    # It knows log files only of slices whose base file is committed.
    stream = _stream()
    for number in range(2 * DELTA_COMMITS + 1):
        stream.run(number, _rows(number))
        path = tmp_path / str(number)
        for name, body in stream.place.storage.files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(body)
        rows = read_with_hudi_rs(path).select(["id", "city", "ts", "fare"]).to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == _newest(number)
    assert len(_compactions(stream)[1]) == 2


def test_a_compaction_is_complete_before_the_commit_of_the_batch_that_did_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = _due()
    batch = stream.begin(_rows(2).schema)
    message = stream.task(batch, 2, 0, _rows(2))
    with monkeypatch.context() as patched:
        patched.setattr(coordinator, "complete", _killed)
        with pytest.raises(KeyboardInterrupt):
            stream.commit([message])
    assert batch.share is not None
    assert _compactions(stream) == ([], [batch.share.time])
    assert stream.place.rows() == _newest(1)
    assert stream.commit([message]).failed_services == ()
    assert stream.place.rows() == _newest(2)


def test_a_task_that_has_spent_its_time_leaves_the_rest_to_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = {"hoodie.py.compaction.max.seconds.per.batch": "2"}
    stream = _due(**{BUCKETS: str(GROUPS), **seconds})
    execute = CompactionExecutor.execute

    def slow(executor: CompactionExecutor, one: CompactionOperation) -> CompactionResult:
        stream.place.clock.advance(1500)
        return execute(executor, one)

    monkeypatch.setattr(CompactionExecutor, "execute", slow)
    batch = stream.begin(_rows(2).schema)
    message = stream.task(batch, 2, 0, _rows(2))
    assert message.metrics.num_compacted == 2
    assert stream.commit([message]).failed_services == ()
    assert batch.share is not None
    assert _compactions(stream) == ([batch.share.time], [])
    assert stream.place.rows() == _newest(2)
    stream.run(3, _rows(3), tasks=1)
    assert batch.share.time in _compactions(stream)[1]
    assert stream.place.rows() == _newest(3)


def test_a_compaction_changes_no_commit_time_and_its_statistics_say_that_it_is_one() -> None:
    stream = _stream()
    for number in range(2 * DELTA_COMMITS - 1):
        stream.run(number, _rows(number))
    place = stream.place
    (time,) = _compactions(stream)[1]
    timeline = load_timeline(place.storage, 1)
    completed = timeline.commit_at(time)
    assert completed is not None
    commit = read_commit(place.storage, completed)
    assert commit.operation_type == "COMPACT"
    assert len(commit.stats) == GROUPS
    times = {row[0] for row in place.read("_hoodie_commit_time")}
    assert times == {timeline.commits[-1].time}
    assert timeline.commits[-1].action is Action.DELTA_COMMIT


def test_a_batch_that_comes_again_is_known_where_a_compaction_is_the_newest_commit() -> None:
    stream, last = _stream(), DELTA_COMMITS - 2
    for number in range(last + 1):
        stream.run(number, _rows(number))
    place = stream.place
    place.clock.advance(1000)
    place.table.compact()
    commits = load_timeline(place.storage, 1).commits
    assert commits[-1].action is Action.COMMIT
    for number in (last, last - 1, 0):
        assert stream.run(number, _rows(number)).already_committed, number
    assert load_timeline(place.storage, 1).commits == commits
    assert place.rows() == _newest(last)


def test_tasks_share_the_work_and_a_task_without_rows_does_its_part() -> None:
    stream = _due(**{BUCKETS: str(GROUPS)})
    batch = stream.begin(_rows(2).schema)
    assert batch.share is not None
    assert len(batch.share.operations) == GROUPS
    idle = stream.task(batch, 2, 1, _rows(2))
    assert idle.metrics.num_compacted == GROUPS
    busy = stream.task(batch, 2, 0, _rows(2))
    assert busy.metrics.num_compacted == 0  # all was taken
    stream.commit([busy, idle])
    commits = load_timeline(stream.place.storage, 1).commits
    total = json.loads(read_commit(stream.place.storage, commits[-1]).extra[METRICS_KEY])
    assert total["num_compacted"] == GROUPS
    assert stream.place.rows() == _newest(2)


def test_the_next_try_of_a_task_does_what_the_dead_one_had_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = _due()
    batch = stream.begin(_rows(2).schema)
    _die_compacting(stream, batch, 0, monkeypatch)
    assert stream.commit([stream.task(batch, 2, 0, _rows(2))]).failed_services == ()
    assert batch.share is not None
    assert _compactions(stream)[1] == [batch.share.time]


def test_what_a_dead_task_had_taken_the_next_batch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _due()
    batch = stream.begin(_rows(2).schema)
    _die_compacting(stream, batch, 1, monkeypatch)
    again = [stream.task(batch, 2, task, _rows(2)) for task in (0, 2)]
    assert [message.metrics.num_compacted for message in again] == [0, 0]
    assert stream.commit(again).failed_services == ()
    pending, done = _compactions(stream)
    assert (len(pending), done) == (1, [])
    stream.run(3, _rows(3))
    assert _compactions(stream)[1] == pending
    assert stream.place.rows() == _newest(3)


def test_a_compaction_that_fails_is_counted_and_done_by_a_later_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = _due()

    def fails(*_: object) -> None:
        raise CorruptFileError("a log file is damaged")

    with monkeypatch.context() as patched:
        patched.setattr(CompactionExecutor, "execute", fails)
        result = stream.run(2, _rows(2))
    assert result.instant_time is not None
    (failed,) = result.failed_services
    assert (failed.service, failed.reason) == (
        Service.COMPACTION,
        "CorruptFileError: a log file is damaged",
    )
    assert noted_failures(stream.place.storage, result.instant_time) == (failed,)
    commit = load_timeline(stream.place.storage, 1).commit_at(result.instant_time)
    assert commit is not None
    metrics = json.loads(read_commit(stream.place.storage, commit).extra[METRICS_KEY])
    assert (metrics["num_compacted"], metrics["num_failed_services"]) == (0, 1)
    assert stream.place.rows() == _newest(2)
    assert _compactions(stream)[1] == []
    stream.run(3, _rows(3))
    assert len(_compactions(stream)[1]) == 1


def test_claims_do_not_pile_up_while_a_file_group_cannot_be_compacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = _due(**{BUCKETS: str(GROUPS)})

    def fails(*_: object) -> None:
        raise CorruptFileError("a log file is damaged")

    monkeypatch.setattr(CompactionExecutor, "execute", fails)
    for number in range(2, 6):
        stream.run(number, _rows(number))
        assert not stream.place.storage.list(compaction_claims(_compactions(stream)[0][0]))
    assert stream.place.rows() == _newest(5)


def test_what_others_complete_and_clean_is_no_failure_of_a_task() -> None:
    assert _overtaken_at(1)
    for number in count(2):
        if not _overtaken_at(number):
            break
    assert number > 10  # it claims a file group, reads and writes


def _overtaken_at(number: int) -> bool:
    """Run an idle task, and before one of its operations a compaction and a clean to their ends."""
    policy = {
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
    }
    stream = _due(**policy)
    place = stream.place
    overtaken: list[Operation] = []

    def before_each(operation: Operation) -> None:
        if operation.number == start + number and not overtaken:
            overtaken.append(operation)
            place.clock.advance(10)
            place.table.compact()
            place.clock.advance(10)
            place.table.clean()

    storage = FaultyStorage(place.storage, before_each=before_each)
    start = sys.maxsize
    place.clock.advance(1000)
    batch = stream.writer(storage).begin(_rows(2).schema, is_stream=True)
    start = len(storage.recorder.operations)
    message = stream.task(batch, 2, 1, _rows(2))
    assert message.metrics.num_failed_services == 0
    return bool(overtaken)


def test_so_is_one_beside_a_batch_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _due()

    def fails(*_: object) -> None:
        raise CorruptFileError("a log file is damaged")

    with monkeypatch.context() as patched:
        patched.setattr(CompactionExecutor, "execute", fails)
        result = stream.run(2, _rows(2).slice(0, 0))
    assert result.instant_time is None
    assert [one.service for one in result.failed_services] == [Service.COMPACTION]


def test_a_driver_that_dies_before_it_completes_leaves_that_to_the_next() -> None:
    stream = _due()
    batch = stream.begin(_rows(2).schema)
    stream.task(batch, 2, 1, _rows(2))
    after = stream.begin(_rows(2).schema)
    assert after.share is not None
    assert after.share.operations == ()
    stream.commit([stream.task(after, 2, 0, _rows(2))])
    assert _compactions(stream)[1] == [after.share.time]
    assert stream.place.rows() == _newest(2)


def test_a_completion_that_fails_is_told_and_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _due()

    def fails(*_: object) -> None:
        raise LockTimeoutError("others hold the lock")

    with monkeypatch.context() as patched:
        patched.setattr(Compactor, "complete", fails)
        result = stream.run(2, _rows(2))
    told = [(one.service, one.reason) for one in result.failed_services]
    assert told == [(Service.COMPACTION, "LockTimeoutError: others hold the lock")]
    assert stream.place.rows() == _newest(2)
    pending, done = _compactions(stream)
    assert done == []
    assert stream.run(3, _rows(3)).failed_services == ()
    assert _compactions(stream)[1] == pending


@pytest.mark.parametrize(
    "off",
    [
        {ASYNC: "false"},
        {"hoodie.datasource.write.streaming.disable.compaction": "true"},
        {"hoodie.table.services.enabled": "false"},
    ],
)
def test_each_switch_turns_it_off(off: dict[str, str]) -> None:
    stream = _stream(**off)
    for number in range(DELTA_COMMITS + 2):
        stream.run(number, _rows(number))
    assert _compactions(stream) == ([], [])


def test_a_stream_may_plan_and_leave_the_work_to_others() -> None:
    stream = _stream(**{ASYNC: "false", "compaction.schedule.enabled": "true"})
    for number in range(2 * DELTA_COMMITS):
        stream.run(number, _rows(number))
    pending, done = _compactions(stream)
    assert (len(pending), done) == (1, [])
    stream.place.table.compact()
    assert stream.place.rows() == _newest(2 * DELTA_COMMITS - 1)


def test_two_streams_beside_one_another_share_a_table_and_its_compactions() -> None:
    first = _stream(**{MODE: SEVERAL})
    second = MicroBatches(first.place, "another")
    for number in range(2 * DELTA_COMMITS):
        for stream, key in ((first, "first"), (second, "second")):
            rows = trips((key, "x", number, float(number)))
            assert stream.run(number, rows).failed_services == ()
    last = 2 * DELTA_COMMITS - 1
    assert first.place.rows() == [(key, "x", last, float(last)) for key in ("first", "second")]
    assert len(_compactions(first)[1]) >= 2


def test_a_compaction_that_a_stream_left_is_in_no_other_streams_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = _due(**{MODE: SEVERAL})
    batch = stream.begin(_rows(2).schema)
    _die_compacting(stream, batch, 0, monkeypatch)
    assert batch.share is not None
    assert stream.place.storage.read(f".hoodie/{batch.share.time}.compaction.inflight") == b""
    another = MicroBatches(stream.place, "another")
    assert another.run(0, _rows(3)).failed_services == ()
    assert stream.place.rows() == _newest(3)


def test_a_batch_write_compacts_after_itself_where_it_is_asked_to() -> None:
    stream = _stream()
    for number in range(DELTA_COMMITS):
        stream.place.clock.advance(1000)
        stream.place.table.upsert(_rows(number), {"hoodie.compact.inline": "true"})
    pending, done = _compactions(stream)
    assert (pending, len(done)) == ([], 1)
    assert stream.place.rows() == _newest(DELTA_COMMITS - 1)


def test_a_copy_on_write_table_has_nothing_to_compact() -> None:
    stream = _stream(**{TYPE: "COPY_ON_WRITE", "hoodie.compact.inline": "true"})
    for number in range(DELTA_COMMITS):
        assert stream.run(number, _rows(number)).failed_services == ()
    stream.place.clock.advance(1000)
    result = stream.place.table.upsert(_rows(DELTA_COMMITS))
    assert result.failed_services == ()
    assert _compactions(stream)[0] == []
