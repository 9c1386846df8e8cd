"""Which files a clean deletes: those that Apache Hudi deletes, and none that anybody needs."""

from __future__ import annotations

import datetime as dt
import zipfile
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.services.clean_planner import (
    commits_since_last,
    may_find_something,
    plan_clean,
)
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import FaultyStorage, MemoryStorage
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.loading import load_timeline
from tests.golden.golden_tables import FOLDER, unzip_table
from tests.tables import TRIPS, TYPE, VERSION, found, trips
from tests.unit.services.cleaned_tables import (
    BY_COMMITS,
    BY_HOURS,
    BY_VERSIONS,
    Cleaned,
    base,
    day,
    log,
)

KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
_CLEANS = FOLDER.parent / "cleans"
_JAN_10_MS = int(dt.datetime(2025, 1, 10).timestamp() * 1000)


def _five() -> Cleaned:
    """One file group, rewritten on five days."""
    cleaned = Cleaned().commit(1, base(1), first=True)
    for number in range(2, 6):
        cleaned.commit(number, base(number))
    return cleaned


def _golden(name: str) -> tuple[MemoryStorage, dict[str, bytes]]:
    """The table when Hudi began to clean it, and what Hudi left, by path."""
    with zipfile.ZipFile(_CLEANS / f"{name}.zip") as archive:
        content = {path: archive.read(path) for path in archive.namelist()}
    stages: dict[str, dict[str, bytes]] = {"before": {}, "after": {}}
    for path, data in content.items():
        stage, _, rest = path.partition("/")
        stages[stage][rest] = data
    return MemoryStorage(files=stages["before"]), stages["after"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("v6_cow_commits", CleaningOptions(commits=2)),
        ("v6_cow_hours", CleaningOptions(policy=BY_HOURS, hours=1)),
        ("v6_mor_versions", CleaningOptions(policy=BY_VERSIONS, versions=1)),
        ("v9_cow_commits", CleaningOptions(commits=2)),
        ("v9_mor_hours", CleaningOptions(policy=BY_HOURS, hours=2)),
        ("v9_mor_versions", CleaningOptions(policy=BY_VERSIONS, versions=1)),
    ],
)
def test_hudi_has_made_the_same_plan(
    name: str, options: CleaningOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, after = _golden(name)
    (path,) = (path for path in after if path.endswith(".clean.requested"))
    theirs = CleanerPlan.from_bytes(after[path], path)
    cleaned_at = dt.datetime.strptime(path.rpartition("/")[2][:14], "%Y%m%d%H%M%S")
    now_ms = int(cleaned_at.timestamp() * 1000)  # in the zone of the timeline, the machine's
    table = open_table(storage)
    ours = plan_clean(table, table.load_timeline(), options, now_ms)
    assert ours is not None
    assert ours.policy == theirs.policy
    earliest, expected = (
        plan.earliest and (plan.earliest.time, plan.earliest.action) for plan in (ours, theirs)
    )
    assert earliest == expected
    assert (ours.last_completed, ours.extra) == (theirs.last_completed, theirs.extra)
    assert sorted(ours.paths) == sorted(theirs.paths)
    left = {p for p in storage.files if ".hoodie/" not in p} - set(ours.paths)
    assert left == {p for p in after if ".hoodie/" not in p}


def test_a_table_that_hudi_has_cleaned_needs_no_clean(tmp_path: Path) -> None:
    path = unzip_table("v6_cow_cleaned", tmp_path)
    files = {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    storage = MemoryStorage(files=files)
    # Hudi's recipe kept one commit, and its last clean came after the last commit.
    table, options = open_table(storage), CleaningOptions(commits=1)
    assert plan_clean(table, load_timeline(storage, 1), options, 0) is None
    for file in files:
        if ".clean" in file:
            storage.delete(file)  # so that nothing spares looking at every partition
    assert plan_clean(table, load_timeline(storage, 1), options, 0) is None


@pytest.mark.parametrize(
    ("kept", "going"),
    [
        # The version before the oldest retained commit is what that commit's readers began with.
        (1, {base(1), base(2), base(3)}),
        (2, {base(1), base(2)}),
        (4, set()),
        (5, set()),  # no commit before those that are retained
    ],
)
def test_latest_commits_keep_their_files_and_those_before(kept: int, going: set[str]) -> None:
    assert _five().going(kept) == going


@pytest.mark.parametrize(
    ("kept", "going"), [(1, {base(1), base(2), base(3), base(4)}), (3, {base(1), base(2)})]
)
def test_latest_versions_are_counted_in_each_file_group(kept: int, going: set[str]) -> None:
    cleaned = _five().commit(6, base(6, "b"), first=True)
    assert cleaned.going(kept, BY_VERSIONS) == going


@pytest.mark.parametrize(
    ("days", "going"),
    [(8, set()), (7, {base(1)}), (5, {base(1), base(2), base(3)}), (4, set())],
)
def test_commits_of_the_latest_hours_keep_their_files(days: int, going: set[str]) -> None:
    # Counted from the 10th: 7 days back is the 3rd. With no commit within, Hudi cleans nothing.
    assert _five().going(24 * days, BY_HOURS, _JAN_10_MS) == going


def test_logs_go_with_their_slice() -> None:
    cleaned = Cleaned().commit(1, base(1), first=True, action=Action.DELTA_COMMIT)
    cleaned.commit(2, log(1, 1), action=Action.DELTA_COMMIT)
    cleaned.commit(3, log(1, 2), action=Action.DELTA_COMMIT)
    cleaned.commit(4, base(4), compacted=True)
    assert cleaned.going(1) == set()  # who reads beside the fourth commit has begun before it
    cleaned.commit(5, log(4), action=Action.DELTA_COMMIT)
    plan = cleaned.plan(1)
    assert plan is not None
    names = [path.removeprefix("p/") for path in (base(1), log(1, 1), log(1, 2))]
    assert plan.files == {"p": tuple(names)}


def test_commits_of_compactions_are_counted_and_log_files_supersede_nothing() -> None:
    cleaned = Cleaned().commit(1, log(1), first=True, action=Action.DELTA_COMMIT)
    for number in range(2, 5):
        cleaned.commit(number, log(1, number), action=Action.DELTA_COMMIT)
    assert cleaned.going(1) == set()
    assert cleaned.going(1, BY_VERSIONS) == set()
    cleaned.commit(5, base(5), first=True, compacted=True)
    assert cleaned.going(1, BY_VERSIONS) == {log(1, number) for number in range(1, 5)}


def test_log_files_of_a_plan_that_is_gone_belong_to_the_slice_before() -> None:
    cleaned = Cleaned().commit(1, base(1), first=True)
    cleaned.commit(2, log(2), action=Action.DELTA_COMMIT)
    cleaned.commit(3, action=Action.DELTA_COMMIT).commit(4, action=Action.DELTA_COMMIT)
    assert cleaned.going(1, BY_VERSIONS) == cleaned.going(1) == set()
    cleaned.commit(5, base(5)).commit(6)
    assert cleaned.going(1) == {base(1), log(2)}


@pytest.mark.parametrize("archived", [False, True])
def test_a_log_file_that_took_long_lies_on_the_base_file_before_its_end(
    archived: bool, tmp_path: Path
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: "9"})
    for number in (1, 2):
        table.upsert(trips(("a", "x", number, float(number))))
    assert table.compact()
    _, slow, compaction = table.timeline.commits
    folder = tmp_path / ".hoodie/timeline"
    (file,) = folder.glob(f"{slow.time}_*")
    file.rename(folder / f"{slow.time}_{int(compaction.ended) + 1}{file.suffix}")
    if archived:
        for number in (3, 4, 5):
            table.upsert(trips(("a", "x", number, float(number))))
        assert table.archive({**KEEP, "hoodie.clean.commits.retained": "1"})
    before, logs = found(table), set(tmp_path.rglob(".*.log.*"))
    assert len(table.clean({**VERSIONS, "hoodie.clean.fileversions.retained": "1"})) == 1
    assert set(tmp_path.rglob(".*.log.*")) == logs
    assert found(table) == before


def test_replaced_file_groups_go_whole_once_no_reader_sees_them() -> None:
    cleaned = Cleaned().commit(1, base(1), first=True).commit(2, base(2))
    cleaned.commit(3, base(3, "b"), first=True, action=Action.REPLACE_COMMIT, replaced={"p": ["a"]})
    assert cleaned.going(1) == set()  # readers of the third commit began with the second
    assert cleaned.going(1, BY_VERSIONS) == {base(1), base(2)}
    cleaned.commit(4, base(4, "b"))
    assert cleaned.going(1) == {base(1), base(2)}


@pytest.mark.parametrize("action", [Action.COMMIT, Action.COMPACTION, Action.REPLACE_COMMIT])
@pytest.mark.parametrize("policy", CleaningPolicy)
def test_a_pending_write_keeps_the_files_that_it_may_read(
    action: Action, policy: CleaningPolicy
) -> None:
    cleaned = Cleaned().commit(1, base(1), first=True).commit(2, base(2))
    cleaned.put(3, action)
    cleaned.commit(4, base(4)).commit(5, base(5)).commit(6, base(6))
    hours_ms = int(dt.datetime(2025, 1, 6).timestamp() * 1000)
    going = cleaned.going(1, policy, hours_ms)
    if policy is BY_VERSIONS:
        assert going == {base(1), base(4), base(5)}
    else:
        # The earliest commit to retain is the second, and the first is the version before it.
        assert going == set()


def test_nothing_is_deleted_while_the_first_write_is_pending() -> None:
    cleaned = Cleaned().put(1, Action.COMMIT)
    for number in range(2, 6):
        cleaned.commit(number, base(number))
    assert cleaned.going(1) == set()


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS])
def test_a_savepoint_keeps_its_files(policy: CleaningPolicy) -> None:
    cleaned = _five().save(2, base(2))
    assert cleaned.going(1, policy) == _five().going(1, policy) - {base(2)}
    cleaned.put(3, Action.SAVEPOINT, State.INFLIGHT)  # one that is being made says nothing yet
    assert cleaned.going(1, policy) == _five().going(1, policy) - {base(2), base(3)}
    plan = cleaned.plan(1, policy)
    assert plan is not None
    assert plan.extra == {"savepointed_timestamps": f"{day(2)},{day(3)}"}


def test_a_savepoint_keeps_whole_slices_also_of_replaced_file_groups() -> None:
    cleaned = Cleaned().commit(1, base(1), log(1), first=True).commit(2, base(2), log(2))
    cleaned.commit(3, action=Action.REPLACE_COMMIT, replaced={"p": ["a"]})
    cleaned.commit(4).commit(5)
    assert cleaned.going(1) == {base(1), log(1), base(2), log(2)}
    cleaned.save(3, log(1))  # as another engine may say it
    assert cleaned.going(1) == {base(2), log(2)}


def test_a_savepoint_that_cannot_be_read_lets_nothing_go() -> None:
    plan = _five().plan(1)
    assert plan is not None
    cleaned = _five().put(2, Action.SAVEPOINT, State.COMPLETED, plan.to_bytes("/t"))
    with pytest.raises(CorruptFileError, match=r"20250102000000000\.savepoint is no savepoint"):
        cleaned.plan(1)


def test_a_clean_leaves_files_that_no_commit_names() -> None:
    cleaned = _five()
    lost, failed = base(2, token="0-2-2"), base(6)
    for path in (lost, failed, "p/other.txt"):
        cleaned.storage.put_if_absent(path, b"")
    cleaned.put(6, Action.COMMIT)
    assert cleaned.going(1) == {base(1), base(2), base(3)}


def test_a_table_without_commits_needs_no_clean() -> None:
    assert [Cleaned().plan(1, policy) for policy in CleaningPolicy] == [None] * 3


def _listed(cleaned: Cleaned) -> set[str]:
    """Folders that the plan of a clean lists, the empty path for the whole table."""
    storage = FaultyStorage(cleaned.storage)
    timeline = load_timeline(cleaned.storage, 1)
    table = open_table(cleaned.storage)
    plan_clean(type(table)(storage, table.properties), timeline, CleaningOptions(commits=1), 0)
    listed = (op.path for op in storage.recorder.operations if op.kind.value == "list")
    return {path for path in listed if not path.startswith(".hoodie")}


def test_only_partitions_are_listed_where_something_was_superseded() -> None:
    cleaned = Cleaned()
    paths = [base(1, "a", partition) for partition in "pqr"]
    cleaned.commit(1, *paths, first=True).commit(2, *(base(2, "a", p) for p in "pqr")).commit(3)
    assert "" in _listed(cleaned)
    cleaned.clean(4)
    cleaned.commit(5, base(5)).commit(6, base(6, "b", "q"), first=True)
    cleaned.commit(7, log(2, 1, "a", "r"), action=Action.DELTA_COMMIT).commit(8).commit(9)
    assert _listed(cleaned) == {"p"}
    assert cleaned.going(1) == {base(2)}


def test_partitions_of_replace_commits_and_compactions_are_listed() -> None:
    cleaned = Cleaned().commit(1, base(1), first=True).commit(2, base(2)).commit(3).clean(4)
    cleaned.commit(5, action=Action.REPLACE_COMMIT, replaced={"p": ["a"]})
    cleaned.commit(6, base(6, "c", "q"), first=True, compacted=True).commit(7).commit(8)
    assert _listed(cleaned) == {"p", "q"}
    assert cleaned.going(1) == {base(2)}


@pytest.mark.parametrize("why", ["no retention", "empty", "archived", "savepoint"])
def test_all_partitions_are_listed_without_a_usable_last_clean(why: str) -> None:
    cleaned = _five()
    if why == "savepoint":
        cleaned.save(2, base(2))
    policy = BY_VERSIONS if why == "no retention" else BY_COMMITS
    cleaned.clean(6, policy=policy)
    cleaned.commit(7, base(7)).commit(8, base(8, "b"), first=True)
    cleaned.commit(9, base(9)).commit(10)
    if why == "empty":
        cleaned.put(11, Action.CLEAN, State.COMPLETED)
    elif why == "savepoint":
        cleaned.storage.delete(f".hoodie/{day(2)}.savepoint")
    elif why == "archived":
        for number in range(1, 7):
            cleaned.storage.delete(f".hoodie/{day(number)}.commit")
    assert "" in _listed(cleaned)
    kept = {base(9), base(8, "b")}
    assert cleaned.left - cleaned.going(1) == kept


def test_commits_are_counted_since_the_last_clean() -> None:
    cleaned = _five()
    assert commits_since_last(cleaned.storage, load_timeline(cleaned.storage, 1)) == 5
    cleaned.clean(6)
    assert commits_since_last(cleaned.storage, load_timeline(cleaned.storage, 1)) == 0
    cleaned.commit(7).commit(8)
    assert commits_since_last(cleaned.storage, load_timeline(cleaned.storage, 1)) == 2


@pytest.mark.parametrize(("policy", "kept"), [(BY_COMMITS, 1), (BY_VERSIONS, 3)])
def test_a_look_at_a_few_commits_says_whether_a_plan_may_find_something(
    policy: CleaningPolicy, kept: int
) -> None:
    options = CleaningOptions(policy=policy, commits=kept, versions=kept)
    added = Cleaned().commit(1, base(1), first=True).commit(2, base(2, "b"), first=True).commit(3)
    for cleaned, expected in ((added, False), (_five(), True)):
        timeline = load_timeline(cleaned.storage, 1)
        assert may_find_something(cleaned.storage, timeline, options, 0, False) is expected
