"""What is archived when: as Apache Hudi did with its own tables, and never too much."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.services.archive_planner import is_archiving_due, plan_archive
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive.archived_timeline import archive_files, read_archive_file
from hoodie_ds.timeline.archive.lsm_snapshot import HISTORY
from hoodie_ds.timeline.bodies.clean_metadata import METADATA_SCHEMA
from hoodie_ds.timeline.bodies.commit_metadata import PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import V1, V2, Layout, instant_path
from hoodie_ds.transaction.decision_log import Decision, Outcome, append_decision
from tests.archived import entries
from tests.golden.golden_tables import unzip_table

_FEW: Final = ArchivingOptions(min_commits=2, max_commits=3)


def _time(number: int) -> str:
    return f"20260101{number:09d}"


def _archived(storage: MemoryStorage, options: ArchivingOptions = _FEW) -> list[int]:
    """Numbers of what is to be archived."""
    plan = plan_archive(storage, load_timeline(storage, 1), options)
    return [int(instant.time[8:]) for instant in plan.instants]


def _put(
    storage: MemoryStorage,
    number: int,
    action: Action = Action.COMMIT,
    state: State = State.COMPLETED,
    body: bytes | None = None,
) -> None:
    content = CommitMetadata().to_bytes(1) if body is None else body
    storage.put_if_absent(instant_path(Instant(_time(number), action, state)), content)


def _commits(count: int) -> MemoryStorage:
    storage = MemoryStorage()
    for number in range(1, count + 1):
        _put(storage, number)
    return storage


def _clean(storage: MemoryStorage, number: int, earliest: str) -> None:
    record = {
        "startCleanTime": _time(number), "timeTakenInMillis": 1, "totalFilesDeleted": 0,
        "earliestCommitToRetain": earliest, "lastCompletedCommitTimestamp": "",
        "partitionMetadata": {}, "version": 2, "extraMetadata": {},
    }  # fmt: skip
    _put(storage, number, Action.CLEAN, body=write_record(METADATA_SCHEMA, record))


def _decide(storage: MemoryStorage, number: int) -> None:
    instant = Instant(_time(number), Action.COMMIT, State.INFLIGHT)
    assert append_decision(storage, Decision(1, Outcome.COMPLETE, instant, "test"))


# What Hudi did


def _history(storage: LocalStorage) -> tuple[dict[str, bytes], list[list[Instant]]]:
    """All files that a golden table's timeline ever had, and what went into each archive file."""
    files: dict[str, bytes] = {}
    runs = []
    for path in archive_files(storage, ".hoodie/history").values():
        found = list(read_archive_file(storage, path))
        runs.append([e.instant for e in found if e.instant.state is State.COMPLETED])
        files |= {instant_path(e.instant): _body(e.content) for e in found}
    return files | _active(storage, V1), runs


def _body(content: Mapping[str, Any]) -> bytes:
    if "hoodieCleanMetadata" in content:
        return write_record(METADATA_SCHEMA, content["hoodieCleanMetadata"])
    said = [content[key] for key in content if key.endswith("CommitMetadata")]
    return json.dumps(said[0]).encode() if said else b""


def _later_history(storage: LocalStorage) -> tuple[dict[str, bytes], list[list[Instant]]]:
    """The same of layout 2: two runs have become a file of level 1, and there are two more."""
    paths = [status.path for status in storage.list(HISTORY)]
    merged = min(path for path in paths if path.endswith("_1.parquet"))
    runs = [
        entries(pq.read_table(io.BytesIO(storage.read(path))).to_pylist())
        for path in (merged, *sorted(path for path in paths if path.endswith("_0.parquet")))
    ]
    files = {instant_path(entry.instant): entry.metadata for run in runs for entry in run}
    return files | _active(storage, V2), [[entry.instant for entry in run] for run in runs]


def _active(storage: LocalStorage, layout: Layout) -> dict[str, bytes]:
    listed = storage.list(layout.folder)
    paths = [s.path for s in listed if layout.parse(s.path.rpartition("/")[2]) is not None]
    return {path: storage.read(path) for path in paths}


def _replayed(
    files: Mapping[str, bytes], layout: Layout, options: ArchivingOptions
) -> list[list[Instant]]:
    """What our planner archives after each write."""
    steps = {path: step for path in files if (step := layout.parse(path.rpartition("/")[2]))}
    times = sorted({step.time for step in steps.values()})
    cleans = {step.time for step in steps.values() if step.action is Action.CLEAN}
    storage, found = MemoryStorage(), []
    for time, following in zip(times, [*times[1:], ""], strict=True):
        for path in (path for path, step in steps.items() if step.time == time):
            storage.put_if_absent(path, files[path])
        if following in cleans:  # Hudi archives after the clean that follows a commit
            continue
        plan = plan_archive(storage, load_timeline(storage, layout.version), options)
        found += [list(plan.instants)] if plan.instants else []
        gone = {instant.time for instant in plan.instants}
        for path, step in steps.items():
            if step.time in gone:
                storage.delete(path)
    return found


@pytest.mark.parametrize("name", ["v6_cow_archived", "v6_cow_archived_beyond_savepoint"])
def test_after_each_write_the_same_is_archived_as_by_hudi(name: str, tmp_path: Path) -> None:
    files, runs = _history(LocalStorage(str(unzip_table(name, tmp_path))))
    options = ArchivingOptions(min_commits=2, max_commits=3, beyond_savepoint="beyond" in name)
    assert len(runs) >= 3
    assert _replayed(files, V1, options) == runs


def test_the_same_is_archived_as_by_hudi_in_timeline_layout_2(tmp_path: Path) -> None:
    files, runs = _later_history(LocalStorage(str(unzip_table("v9_cow_archived", tmp_path))))
    first, second, *others = _replayed(files, V2, _FEW)
    assert [first + second, *others] == runs


# How many


def test_nothing_is_archived_before_there_are_too_many() -> None:
    assert _archived(_commits(3)) == []
    assert _archived(_commits(4)) == [1, 2]
    assert not is_archiving_due(load_timeline(_commits(3), 1), _FEW)
    assert is_archiving_due(load_timeline(_commits(4), 1), _FEW)


@pytest.mark.parametrize(("end", "expected"), [("", [1, 2, 3, 4]), (_time(3), [1, 2]), ("0", [])])
def test_nothing_is_archived_from_an_end_on(end: str, expected: list[int]) -> None:
    storage = _commits(6)
    plan = plan_archive(storage, load_timeline(storage, 1), _FEW, end)
    assert [int(instant.time[8:]) for instant in plan.instants] == expected


@pytest.mark.parametrize("end", ["", _time(2)])
def test_no_clean_is_archived_from_an_end_on(end: str) -> None:
    storage = MemoryStorage()
    for number in range(1, 5):
        _clean(storage, number, "")
    plan = plan_archive(storage, load_timeline(storage, 1), _FEW, end)
    assert [int(instant.time[8:]) for instant in plan.instants] == ([1] if end else [1, 2])


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
def test_cleans_and_rollbacks_are_counted_on_their_own(action: Action) -> None:
    storage = _commits(3)
    for number in range(11, 15):
        _put(storage, number, action, body=b"")
    _put(storage, 9, Action.RESTORE, body=b"")
    assert _archived(storage) == [11, 12]


# What stays


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("action", [Action.COMMIT, Action.COMPACTION, Action.CLEAN])
def test_a_pending_instant_stays_and_the_commit_before_it(action: Action, state: State) -> None:
    storage = _commits(5)
    _put(storage, 6)
    storage.delete(instant_path(Instant(_time(3), Action.COMMIT, State.COMPLETED)))
    _put(storage, 3, action, state, b"")
    _put(storage, 7)
    assert _archived(storage) == [1]


def test_a_pending_instant_that_is_the_first_one_keeps_all() -> None:
    storage = _commits(6)
    storage.delete(instant_path(Instant(_time(1), Action.COMMIT, State.COMPLETED)))
    _put(storage, 1, state=State.INFLIGHT)
    for number in range(11, 15):
        _put(storage, number, Action.ROLLBACK, body=b"")
    assert _archived(storage) == []


def test_a_savepoint_keeps_its_commit_and_those_after_it() -> None:
    storage = _commits(8)
    _put(storage, 3, Action.SAVEPOINT, body=b"")
    assert _archived(storage) == [1, 2]
    beyond = ArchivingOptions(min_commits=2, max_commits=3, beyond_savepoint=True)
    # The savepoint's commit counts, as in Hudi: six of eight are too many.
    assert _archived(storage, beyond) == [1, 2, 4, 5, 6, 7]


def test_a_savepoint_that_is_being_made_counts_already() -> None:
    storage = _commits(8)
    _put(storage, 3, Action.SAVEPOINT, State.INFLIGHT, b"")
    assert _archived(storage) == [1, 2]


def test_the_instant_of_the_newest_decision_stays() -> None:
    storage = _commits(8)
    _decide(storage, 4)
    assert _archived(storage) == [1, 2, 3]


def test_commits_from_which_the_replay_guard_is_read_stay() -> None:
    """The newest commit of ours names 4, which names 2: each may have batches of its own."""
    storage = _commits(8)
    for number, beside in ((4, (2,)), (2, (4, 99)), (7, (4,))):
        storage.delete(instant_path(Instant(_time(number), Action.COMMIT, State.COMPLETED)))
        pending = " ".join(map(_time, beside))
        _put(storage, number, body=CommitMetadata(extra={PENDING_KEY: pending}).to_bytes(1))
    _decide(storage, 8)
    assert _archived(storage) == [1]


def _replacing(number: int, ids: tuple[str, ...] = ("g",)) -> MemoryStorage:
    storage = _commits(8)
    storage.delete(instant_path(Instant(_time(number), Action.COMMIT, State.COMPLETED)))
    body = CommitMetadata(replaced={"p": ids}).to_bytes(1)
    _put(storage, number, Action.REPLACE_COMMIT, body=body)
    return storage


def test_replaced_file_groups_keep_their_commit_until_a_clean_has_gone_past_it() -> None:
    assert _archived(_replacing(4)) == [1, 2, 3]
    for earliest, archived in ((4, [1, 2, 3]), (5, [1, 2, 3, 4, 5, 6])):
        storage = _replacing(4)
        _clean(storage, 9, _time(earliest))
        assert _archived(storage) == archived


def test_a_clean_by_versions_has_gone_past_what_was_replaced_before_it() -> None:
    for clean, archived in ((3, [1, 2]), (9, [1, 2, 4, 5, 6, 7])):
        storage = _replacing(4)
        storage.delete(instant_path(Instant(_time(3), Action.COMMIT, State.COMPLETED)))
        _put(storage, 10)
        _clean(storage, clean, "")
        assert _archived(storage) == archived


@pytest.mark.parametrize("file", ["g_0-1-1_20260101000000001.parquet", ".g_20260101.log.1_0-1-1"])
def test_replaced_files_that_are_still_there_keep_their_commit(file: str) -> None:
    storage = _replacing(4)
    _clean(storage, 9, _time(5))
    storage.put_if_absent(f"p/h{file}", b"")
    storage.put_if_absent("p/other", b"")
    assert _archived(storage) == [1, 2, 3, 4, 5, 6]
    storage.put_if_absent(f"p/{file}", b"")
    assert _archived(storage) == [1, 2, 3]


def test_a_commit_that_replaced_nothing_keeps_nothing() -> None:
    assert _archived(_replacing(4, ())) == [1, 2, 3, 4, 5, 6]


# Of timeline layout 2


def _later(*instants: tuple[int, Action]) -> list[int]:
    """Numbers of what is to be archived of completed instants of layout 2."""
    storage = MemoryStorage()
    for number, action in instants:
        instant = Instant(_time(number), action, State.COMPLETED, 0, 2, _time(number))
        body = CommitMetadata().to_bytes(2) if action is Action.COMMIT else b""
        storage.put_if_absent(instant_path(instant), body)
    plan = plan_archive(storage, load_timeline(storage, 2), _FEW)
    return [int(instant.time[8:]) for instant in plan.instants]


_FOUR: Final = [(number, Action.COMMIT) for number in (1, 3, 5, 7)]


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
def test_cleans_and_rollbacks_before_archived_commits_are_archived_with_them(
    action: Action,
) -> None:
    assert _later(*_FOUR) == [1, 3]
    assert _later(*_FOUR, (2, action), (4, action), (8, action)) == [1, 2, 3]


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.INDEXING])
def test_nothing_before_an_archived_commit_stays(action: Action) -> None:
    """Hudi would take the commit for pending: it is later than the first active instant."""
    assert _later(*_FOUR, (2, action)) == [1, 2, 3]


def test_cleans_are_not_counted_and_rollbacks_are() -> None:
    commits = _FOUR[:3]
    assert _later(*commits, *((number, Action.CLEAN) for number in range(11, 19))) == []
    assert _later(*commits, *((number, Action.ROLLBACK) for number in range(11, 15))) == [11, 12]
