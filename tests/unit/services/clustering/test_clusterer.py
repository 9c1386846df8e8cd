"""What becomes of a clustering when others act between two of its steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, cast

import pytest

from hoodie_ds.errors import CorruptFileError, TimelineError, WriteConflictError
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, SimClock
from hoodie_ds.testing.fault import Operation
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path, manifest_path
from hoodie_ds.transaction.resolution import resolve_instant
from tests.faults.rewriting import CLUSTERED as TABLES
from tests.faults.rewriting import clusterer, table
from tests.faults.stream import Step, found, run
from tests.tables import trips

COW = TABLES["copy-on-write"]
MOR = TABLES["merge-on-read"]
RESULT, MARKER = "*/clustered/*", "*.marker.*"
UPDATE = trips(("b", "x", 9, 9.0))


class StoppedError(Exception):
    """The process goes no further."""


def _stop() -> None:
    raise StoppedError


def _before(
    storage: MemoryStorage, kind: Kind, pattern: str, act: Callable[[], object], times: int = 1
) -> Any:
    """A storage before some of whose operations somebody else acts."""
    left = [times]

    def before_each(operation: Operation) -> None:
        if left[0] and operation.kind is kind and fnmatchcase(operation.path, pattern):
            left[0] -= 1
            act()

    return FaultyStorage(cast(Storage, storage), before_each=before_each)


def _cancel(storage: MemoryStorage) -> None:
    for instant in load_timeline(storage, 1).pending:
        resolve_instant(open_table(storage), instant, SimClock())


def _data(storage: MemoryStorage) -> set[str]:
    return {path for path in storage.files if path.endswith(".parquet")}


def _foreign_update(storage: MemoryStorage, options: dict[str, str], number: list[int]) -> None:
    """A writer that does not know of clusterings: their plan is out of its sight."""
    hidden = {p: storage.read(p) for p in storage.files if p.endswith("replacecommit.requested")}
    begun = {p: storage.read(p) for p in storage.files if p.endswith("replacecommit.inflight")}
    for path in (*hidden, *begun):
        storage.delete(path)
    temp = {p: body for p, body in storage.files.items() if p.startswith(".hoodie/.temp/")}
    number[0] += 1
    rows = trips(("b", "x", 9 + number[0], 9.0))
    run(storage, options, 0, Step(rows), number[0], f"foreign {number[0]}")
    for path, body in {**hidden, **begun, **temp}.items():
        if path not in storage.files:
            storage.put_if_absent(path, body)


def test_a_group_with_a_result_is_not_rewritten_again() -> None:
    start, model = table("shared", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None

    storage = _before(start, Kind.PUT, "y/*", _stop)
    with pytest.raises(StoppedError):
        clusterer(storage, COW, "a").run(planned)
    (first,) = [path for path in start.files if fnmatchcase(path, RESULT)]
    done = {path for path in _data(start) if str(planned.instant_time) in path}
    assert len(done) == 1
    assert first
    clusterer(start, COW, "b").run(planned)
    assert done < _data(start)
    assert found(start) == model.plain()


def test_the_first_of_two_results_of_a_group_counts() -> None:
    start, model = table("at once", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None

    def other() -> None:  # as far as it comes before the first one's result
        (instant,) = load_timeline(start, 1).pending
        clusterer(start, COW, "b").execute(instant, planned.plan)

    clusterer(_before(start, Kind.PUT, RESULT, other), COW, "a").run(planned)
    assert found(start) == model.plain()
    assert len([path for path in _data(start) if str(planned.instant_time) in path]) == 2


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (Kind.PUT, "*.replacecommit.inflight"),
        (Kind.PUT, MARKER),
        (Kind.PUT, RESULT),
        (Kind.PUT, "*/manifest_1.json"),
        (Kind.PUT, ".hoodie/.locks/decisions/*4"),
    ],
)
def test_a_clustering_completed_by_another_process_is_left_alone(kind: Kind, pattern: str) -> None:
    start, model = table("completed", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None

    def other() -> None:
        clusterer(start, COW, "b").run(planned)

    clusterer(_before(start, kind, pattern, other), COW, "a").run(planned)
    assert found(start) == model.plain()
    assert len([path for path in _data(start) if str(planned.instant_time) in path]) == 2
    assert load_timeline(start, 1).pending == ()


@pytest.mark.parametrize(
    "pattern", ["*.replacecommit.inflight", MARKER, RESULT, "*/manifest_1.json"]
)
def test_a_clustering_rolled_back_meanwhile_leaves_no_files(pattern: str) -> None:
    start, model = table("rolled back", COW)
    before = _data(start)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None
    storage = _before(start, Kind.PUT, pattern, lambda: _cancel(start))
    with pytest.raises(TimelineError, match=f"clustering {planned.instant_time} was rolled back"):
        clusterer(storage, COW, "a").run(planned)
    run(start, COW, 0, Step(UPDATE), 7, "next")
    assert {p for p in _data(start) if str(planned.instant_time) in p} == set()
    assert before < _data(start)
    assert load_timeline(start, 1).pending == ()
    assert len(found(start)) == len(model.plain())


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_rows_that_another_engine_commits_meanwhile_are_among_those_rewritten(
    options: dict[str, str],
) -> None:
    start, model = table("foreign", options)
    planned = clusterer(start, options, "a").schedule()
    assert planned is not None
    number = [20]
    act = partial(_foreign_update, start, options, number)
    clusterer(_before(start, Kind.PUT, "y/*", act), options, "a").run(planned)
    assert found(start) == model.after(Step(trips(("b", "x", 30, 9.0)))).plain()


def test_a_clustering_whose_groups_keep_changing_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    start, _ = table("disturbed", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None
    monkeypatch.setattr(Clusterer, "rewritten", lambda *_: None)
    with pytest.raises(WriteConflictError, match="others change the file groups of clustering"):
        clusterer(start, COW, "a").run(planned)
    assert load_timeline(start, 1).pending[0].action is Action.REPLACE_COMMIT


@pytest.mark.parametrize("same", [True, False])
def test_a_manifest_that_is_there_counts_if_it_names_the_same_files(same: bool) -> None:
    start, model = table("manifest", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None
    assert planned.instant_time is not None
    path = manifest_path(planned.instant_time)
    kept: list[bytes] = []

    storage = _before(start, Kind.PUT, "*decisions*", _stop)
    with pytest.raises(StoppedError):
        clusterer(storage, COW, "a").run(planned)
    kept.append(start.read(path))
    if not same:
        start.replace(path, b"damaged")
    clusterer(start, COW, "b").run(planned)
    completed = start.read(f".hoodie/{planned.instant_time}.replacecommit")
    assert completed == kept[0]
    assert found(start) == model.plain()


def test_a_damaged_result_is_made_again() -> None:
    start, model = table("damaged", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None

    def damage() -> None:
        for path in [path for path in start.files if fnmatchcase(path, RESULT)]:
            start.replace(path, b"{}" if "0_" in path else b"not JSON")

    clusterer(_before(start, Kind.PUT, "y/*", damage), COW, "a").run(planned)
    assert found(start) == model.plain()


@pytest.mark.parametrize("name", [r"\.parquet$", r"\.log\.1"])
def test_a_missing_file_is_reported_and_nothing_is_rewritten(name: str) -> None:
    start, _ = table("lost", MOR)
    planned = clusterer(start, MOR, "a").schedule()
    assert planned is not None
    lost = next(path for path in start.files if path.startswith("x/") and re.search(name, path))
    start.delete(lost)
    with pytest.raises(CorruptFileError, match="is missing"):
        clusterer(start, MOR, "a").run(planned)
    assert load_timeline(start, 1).pending[0].state is State.INFLIGHT


def test_a_plan_that_is_decided_and_not_there_is_carried_out() -> None:
    start, model = table("decided", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None
    start.delete(f".hoodie/{planned.instant_time}.replacecommit.requested")
    (done,) = clusterer(start, COW, "b").cluster()
    assert done == planned
    assert found(start) == model.plain()


@pytest.mark.parametrize("requested", [None, b""], ids=["gone", "empty"])
def test_a_replacement_without_a_plan_is_no_clustering(requested: bytes | None) -> None:
    start, _ = table("replacement", COW)
    planned = clusterer(start, COW, "a").schedule()
    assert planned is not None
    later = Instant(following(str(planned.instant_time)), Action.REPLACE_COMMIT, State.INFLIGHT)
    start.put_if_absent(instant_path(later), b"")
    if requested is not None:
        start.put_if_absent(instant_path(later.at(State.REQUESTED)), requested)
    assert clusterer(start, COW, "b").cluster(dry=True).done == (planned,)
