"""The file that says that an instant was completed is lost, and the decision log knows of it.

Reads left its rows out, the next write rolled it back, and then nothing was found wrong.
"""

from __future__ import annotations

from itertools import product

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.inspection.findings import Kind, Severity
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.bodies.rollback_metadata import plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import commit_path, instant_path
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day

COW, MOR = TYPES
NUMBERS = {"older": 1, "newest": 3}


def _lost(
    version: str, kind: str, number: int
) -> tuple[MemoryStorage, HoodieTable, str, tuple[str, bytes]]:
    """A table of four commits, one of which is lost.

    Returns
    -------
    tuple
        Its storage, the table, the commit's time, and its file.
    """
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, BUCKETS: "1", TYPE: kind, VERSION: version}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for key in "abcd":
        table.upsert(trips((key, key, 1, 1.0)))
    commit = table.timeline.commits[number]
    path = commit_path(commit)
    file = path, storage.read(path)
    storage.delete(path)
    there = storage.copy()  # as another process finds it
    fresh = HoodieTable("/t", options, storage=there, clock=SimClock(), ids=SimIds("new"))
    return there, fresh, commit.time, file


@pytest.mark.parametrize(("version", "kind"), [("6", COW), ("6", MOR), ("9", MOR)])
def test_a_cleanup_deleted_the_files_of_a_write_whose_instant_has_vanished(
    version: str, kind: str
) -> None:
    storage, table, time, _ = _lost(version, kind, 3)
    for path in [path for path in storage.files if path.startswith(".hoodie/") and time in path]:
        if ".locks/" not in path:
            storage.delete(path)
    before = dict(storage.files)
    (finding,) = table.inspect.verify().findings
    assert finding.kind is Kind.DAMAGED_INSTANT
    assert f"{time} was completed" in finding.message
    assert not table.cleanup()
    assert dict(storage.files) == before
    table.upsert(trips(("e", "e", 1, 1.0)))
    data = {path: body for path, body in before.items() if not path.startswith(".hoodie/")}
    assert data.items() <= storage.files.items()


def test_log_blocks_of_a_write_whose_instant_has_vanished_were_not_missed() -> None:
    storage, table, _, (path, body) = _lost("6", MOR, 3)
    storage.put_if_absent(path, body)
    before = set(storage.files)
    time = str(table.upsert(trips(("a", "a", 2, 2.0))).instant_time)
    (log,) = (path for path in storage.files.keys() - before if path.startswith("a/"))
    for path in [path for path in storage.files if path.startswith(f".hoodie/{time}")]:
        storage.delete(path)
    (finding,) = table.inspect.verify().findings
    assert f"deltacommit {time} was completed" in finding.message
    assert not table.cleanup()
    # Another engine took the write back, and has archived its rollback.
    header: dict[int, str] = {
        HeaderKey.INSTANT_TIME: following(time),
        HeaderKey.TARGET_INSTANT_TIME: time,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    storage.replace(log, storage.files[log] + encode_block(BlockType.COMMAND, header, b""))
    assert table.inspect.verify().findings == ()


def test_rolled_back_instants_have_not_vanished() -> None:
    storage, table, time, (path, body) = _lost("9", COW, 3)
    storage.put_if_absent(path, body)
    data = {path: body for path, body in storage.files.items() if time in path and "_" in path}
    table.rollback(time)
    for path, body in data.items():
        if path.endswith(".parquet"):
            storage.put_if_absent(path, body)
    assert [finding.kind for finding in table.inspect.verify().findings] == [Kind.ORPHAN]
    assert len(table.cleanup().files) == 1


@pytest.mark.parametrize(
    ("version", "kind", "which"),
    by_day(
        product(["6", "8", "9"], TYPES, NUMBERS),
        [("6", COW, "older"), ("8", MOR, "newest"), ("9", MOR, "older")],
    ),
)
def test_rows_of_a_lost_completion_were_left_out_and_deleted(
    version: str, kind: str, which: str
) -> None:
    storage, table, time, (path, body) = _lost(version, kind, NUMBERS[which])
    before = storage.files
    remedy = rf"{path} is missing.*restore the file from a copy.*`hoodie-py rollback .*{time}`"
    with pytest.raises(CorruptFileError, match=remedy):
        table.read()
    with pytest.raises(CorruptFileError, match=remedy):
        table.upsert(trips(("e", "e", 1, 1.0)))
    with pytest.raises(CorruptFileError, match=remedy):
        table.read_incremental("000")
    data = {path: body for path, body in before.items() if not path.startswith(".hoodie/")}
    assert data.items() <= storage.files.items()
    (damage,) = table.inspect.verify().findings
    assert (damage.kind, damage.where) == (Kind.DAMAGED_INSTANT, path)

    storage.put_if_absent(path, body)
    assert [row[0] for row in found(table)] == ["a", "b", "c", "d"]
    table.upsert(trips(("e", "e", 1, 1.0)))
    assert [row[0] for row in found(table)] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("version", "kind", "which"),
    by_day(product(["6", "9"], TYPES, NUMBERS), [("6", MOR, "newest"), ("9", COW, "older")]),
)
def test_rows_of_a_lost_completion_are_given_up_by_hand(
    version: str, kind: str, which: str
) -> None:
    number = NUMBERS[which]
    _, table, time, _ = _lost(version, kind, number)
    stays = table.timeline.commits[-1].time
    undoing = table.rollback(time)
    assert undoing.target == stays
    whole = {
        "older": f"without {time} commit, pending; later writes stay, up to {stays}",
        "newest": f"back to {stays}, without {time} commit, pending",
    }
    assert str(undoing).replace("deltacommit", "commit") == whole[which]
    left = [key for key in "abcd" if key != "abcd"[number]]
    assert [row[0] for row in found(table)] == left
    table.upsert(trips(("e", "e", 1, 1.0)))
    assert [row[0] for row in found(table)] == [*left, "e"]
    findings = table.inspect.verify().findings
    assert not [found for found in findings if found.severity is Severity.DAMAGE]


@pytest.mark.parametrize("version", ["6", "9"])
def test_files_of_a_savepoint_with_a_lost_completion_were_deleted(version: str) -> None:
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, BUCKETS: "1", TYPE: COW, VERSION: version}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for key in "abc":
        table.upsert(trips((key, key, 1, 1.0)))
    kept = table.savepoint()
    storage.delete(commit_path(table.timeline.commits[-1]))
    fresh = HoodieTable("/t", options, storage=storage.copy(), clock=SimClock(), ids=SimIds("n"))
    with pytest.raises(TimelineError, match=rf"{kept.time} has a savepoint; delete that first"):
        fresh.rollback(kept.time)
    there = storage.copy()
    for path in [path for path in there.files if path.startswith(".hoodie/")]:
        if ".locks/" in path or (kept.time in path and "savepoint" not in path):
            there.delete(path)  # so that nothing but the savepoint names the files
    assert not HoodieTable("/t", options, storage=there).cleanup(dry=True)


@pytest.mark.parametrize(("version", "kind"), [("6", COW), ("8", MOR), ("9", COW)])
def test_rows_over_a_lost_clustering_were_there_twice(version: str, kind: str) -> None:
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, TYPE: kind, VERSION: version, "hoodie.index.type": "SIMPLE"}
    options["hoodie.parquet.small.file.limit"] = "0"
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for key in "abcd":
        table.upsert(trips((key, "x", 1, 1.0)))
    assert table.cluster()
    path = commit_path(table.timeline.commits[-1])
    table.upsert(trips(("a", "x", 2, 2.0)))
    rows = found(table)
    storage.delete(path)

    fresh = HoodieTable("/t", options, storage=storage.copy(), clock=SimClock(), ids=SimIds("new"))
    remedy = rf"{path} is missing.*restore the file from a copy.*`hoodie-py cluster "
    with pytest.raises(CorruptFileError, match=remedy):
        fresh.read()
    with pytest.raises(CorruptFileError, match=remedy):
        fresh.upsert(trips(("b", "x", 3, 3.0)))
    assert (Kind.DAMAGED_INSTANT, path) in [
        (finding.kind, finding.where) for finding in fresh.inspect.verify().findings
    ]
    assert fresh.cluster()
    assert found(fresh) == rows
    assert fresh.inspect.verify()


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_lost_compaction_hides_no_row(version: str) -> None:
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, BUCKETS: "1", TYPE: MOR, VERSION: version}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for key in "abcd":
        table.upsert(trips((key, "x", 1, 1.0)))
    assert table.compact()
    path = commit_path(table.timeline.commits[-1])
    table.upsert(trips(("a", "x", 2, 2.0)))
    rows = found(table)
    storage.delete(path)

    fresh = HoodieTable("/t", options, storage=storage.copy(), clock=SimClock(), ids=SimIds("new"))
    assert found(fresh) == rows
    (damage,) = fresh.inspect.verify().damage
    assert damage.where == path
    assert "or carry out its plan again with `hoodie-py compact " in damage.remedy
    assert fresh.compact()
    assert found(fresh) == rows
    assert fresh.inspect.verify()


@pytest.mark.parametrize("action", [Action.ROLLBACK, Action.RESTORE])
def test_instants_that_another_engine_rolls_back_are_not_lost(action: Action) -> None:
    """It deletes the completed file first; the plan of its rollback, or its restore, is there."""
    storage, table, time, _ = _lost("6", COW, 3)
    undoing = Instant("20990101000000000", action, State.REQUESTED)
    taken = Instant(time, Action.COMMIT, State.COMPLETED)
    plan = plan_to_bytes("/t", taken, {}) if action is Action.ROLLBACK else b""
    storage.put_if_absent(instant_path(undoing), plan)
    assert [row[0] for row in found(table)] == ["a", "b", "c"]
