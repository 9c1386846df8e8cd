"""The old part of a timeline: kept in little room, looked at again where it may have changed."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Mapping
from functools import cache

import pytest
import xxhash

from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline, save_timeline
from hoodie_ds.timeline.paths import LAYOUTS as RULES
from hoodie_ds.timeline.paths import SUMMARIES, instant_path
from hoodie_ds.timeline.settled_instants import Settled
from hoodie_ds.timeline.timeline import Timeline
from tests.tiers import by_day

LONG = 400
LAYOUTS = [1, 2]


class Stored(MemoryStorage):
    """A storage with a timeline of one layout."""

    def __init__(self, layout: int, files: Mapping[str, bytes] | None = None) -> None:
        super().__init__(files=files)
        self.layout = layout

    def load(self) -> Timeline:
        return load_timeline(self, self.layout)

    def path(self, time: str, action: Action, state: State = State.COMPLETED) -> str:
        """Where an instant's file lies; in layout 2 it takes 700 ms."""
        instant = Instant(time, action, state, layout=self.layout)
        if self.layout == 2 and state is State.COMPLETED:
            instant = instant.completed(f"{int(time) + 700}")
        return instant_path(instant)


def renewed(storage: Stored) -> Stored:
    """Return the same files, as a process sees them that knows nothing."""
    return Stored(storage.layout, storage.files)


def time_of(number: int) -> str:
    minutes, hours = number // 6, number // 360
    return f"202601{1 + hours // 24:02d}{hours % 24:02d}{minutes % 60:02d}{number % 6}0123"


def completed(layout: int, number: int, action: Action) -> Instant:
    end = f"{int(time_of(number)) + 700}" if layout == 2 else ""
    return Instant(time_of(number), action, State.COMPLETED, 0, layout, end)


def put(storage: Stored, time: str, action: Action, *states: State) -> None:
    for state in states or tuple(State):
        storage.replace(storage.path(time, action, state), b"{}")


@cache
def files(layout: int) -> dict[str, bytes]:
    storage = Stored(layout)
    for number in range(LONG):
        put(storage, time_of(number), Action.CLEAN if number % 50 == 49 else Action.COMMIT)
    return storage.files


def grown(layout: int) -> Stored:
    return Stored(layout, files(layout))


def known(layout: int) -> Stored:
    """A storage whose timeline has been loaded, and is settled in part."""
    storage = grown(layout)
    assert len(storage.load().settled) > LONG // 2
    return storage


def truth(storage: Stored) -> Timeline:
    return Timeline.of(
        (
            instant
            for path in sorted(storage.files)
            if path.rpartition("/")[0] == RULES[storage.layout].folder
            and (instant := RULES[storage.layout].parse(path.rpartition("/")[2]))
        ),
        layout=storage.layout,
    )


def archive(storage: Stored, count: int) -> None:
    folder = RULES[storage.layout].folder
    for number in range(count):
        for path in [p for p in storage.files if p.startswith(f"{folder}/{time_of(number)}")]:
            storage.delete(path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_settled_instants_say_what_they_were_made_of(layout: int) -> None:
    instants = [
        completed(layout, n, Action.ROLLBACK if n % 7 == 3 else Action.DELTA_COMMIT)
        for n in range(30)
    ]
    settled = Settled().extended(instants[:10])
    assert settled is not None
    settled = settled.extended(instants[10:])
    assert settled is not None
    again = Settled.unpacked(settled.packed, settled.digest, layout)
    for found in (settled, again):
        assert found.latest_end == max(instant.completion_time for instant in instants)
        writes = [i for i in instants if i.action is Action.DELTA_COMMIT]
        assert len(found) == 30
        assert list(found.instants) == instants
        assert list(found.writes()) == writes
        assert list(found.writes_backwards()) == writes[::-1]
        assert found.of_action(Action.ROLLBACK) == tuple(instants[3::7])
        assert found.at(instants[3].time) == (instants[3],)
        assert found.write_at(instants[3].time) is None
        assert found.write_at(instants[4].time) == instants[4]
        assert found.write_at(following(instants[4].time)) is None
        assert found.write_at(instants[4].time[:14]) is None
        assert found.write_at("20270101000000000") is None
        assert list(found.before(instants[4].time).instants) == instants[:4]
    assert Settled().write_at(time_of(0)) is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_timelines_that_differ_are_distinguished(layout: int) -> None:
    one = Settled().extended(completed(layout, n, Action.COMMIT) for n in range(5))
    assert one is not None
    longer = one.extended([completed(layout, 9, Action.COMMIT)])
    assert longer is not None
    assert [i.time for i in longer.writes_beyond(one)] == [time_of(9)]
    assert list(one.writes_beyond(longer)) == []
    actions = {2: Action.REPLACE_COMMIT}
    other = Settled().extended(
        completed(layout, n, actions.get(n, Action.COMMIT)) for n in range(6)
    )
    assert other is not None
    assert len(list(other.writes_beyond(one))) == 6


def test_instants_of_two_layouts_are_not_settled_together() -> None:
    one = Settled().extended(completed(1, n, Action.COMMIT) for n in range(5))
    two = Settled().extended(completed(2, n, Action.COMMIT) for n in range(5))
    assert one is not None
    assert two is not None
    assert one.extended([completed(2, 6, Action.COMMIT)]) is None
    assert list(one.writes_beyond(two)) == list(two.writes_beyond(one)) == []
    later = two.extended([])
    assert later is not None
    assert later.layout == 2


def test_what_was_completed_again_at_another_time_is_told_apart() -> None:
    one = Settled().extended(completed(2, n, Action.COMMIT) for n in range(5))
    ended = completed(2, 3, Action.COMMIT).completed(following(time_of(9)))
    instants = [completed(2, n, Action.COMMIT) for n in range(5)]
    other = Settled().extended([*instants[:3], ended, *instants[4:]])
    assert one is not None
    assert other is not None
    assert len(list(other.writes_beyond(one))) == 5
    timeline = Timeline(settled=other, layout=2)
    assert [*timeline.commits_beyond(Timeline(settled=one, layout=2))] == [ended]
    assert timeline.latest_time == following(time_of(9))


def test_times_of_old_tables_and_prepared_instants_are_not_settled() -> None:
    assert Settled().extended([Instant(time_of(0)[:14], Action.COMMIT, State.COMPLETED)]) is None
    assert Settled().extended([Instant(time_of(0), Action.COMMIT, State.COMPLETED, 2)]) is None
    storage = Stored(1)
    for number in range(LONG):
        put(storage, time_of(number)[:14], Action.COMMIT)
    assert len(storage.load().settled) == 0
    assert storage.load().num_completed == LONG


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_settled_timeline_answers_as_one_that_is_not(layout: int) -> None:
    settled = grown(layout).load()
    plain = Timeline.of(settled.instants, layout=layout)
    assert len(settled.settled) >= LONG // 2
    assert len(plain.settled) == 0
    assert settled == plain
    assert hash(settled) == hash(plain)
    assert settled.digest == plain.digest
    assert settled.commits == plain.commits
    assert list(settled.commits_backwards()) == list(plain.commits[::-1])
    assert settled.first_commit == plain.first_commit
    assert settled.latest_time == plain.latest_time
    assert settled.deletions == plain.deletions
    assert settled.rollbacks == plain.rollbacks == ()
    assert list(settled.commits_beyond(plain)) == list(plain.commits_beyond(settled)) == []
    for number in (0, 49, 60, LONG - 1, LONG):
        time = time_of(number)
        assert settled.commit_at(time) == plain.commit_at(time)
        assert settled.at(time) == plain.at(time)
        assert settled.is_committed(time) == plain.is_committed(time)
        assert settled.is_committed(following(time)) == plain.is_committed(following(time))
    only = Timeline(settled=settled.settled, layout=layout)
    assert only.latest_time == only.completed[-1].ended


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_is_settled_that_is_younger_than_a_pending_instant(layout: int) -> None:
    storage = grown(layout)
    put(storage, time_of(10), Action.DELTA_COMMIT, State.REQUESTED)
    storage.delete(storage.path(time_of(10), Action.COMMIT, State.COMPLETED))
    storage.delete(storage.path(time_of(10), Action.COMMIT, State.INFLIGHT))
    storage.delete(storage.path(time_of(10), Action.COMMIT, State.REQUESTED))
    assert len(storage.load().settled) == 10


def add_commits(storage: Stored) -> None:
    for number in range(LONG, LONG + 20):
        put(storage, time_of(number), Action.COMMIT)


def roll_back_pending(storage: Stored) -> None:
    put(storage, time_of(LONG), Action.COMMIT, State.REQUESTED, State.INFLIGHT)
    storage.load()
    storage.delete(storage.path(time_of(LONG), Action.COMMIT, State.REQUESTED))
    storage.delete(storage.path(time_of(LONG), Action.COMMIT, State.INFLIGHT))
    put(storage, time_of(LONG + 1), Action.ROLLBACK)


def restore(storage: Stored) -> None:
    for number in range(LONG - 1, 100, -1):
        for action in (Action.COMMIT, Action.CLEAN):
            for state in State:
                storage.delete(storage.path(time_of(number), action, state))
    put(storage, time_of(LONG + 1), Action.RESTORE)


def begin_to_restore(storage: Stored) -> None:
    put(storage, time_of(LONG + 1), Action.RESTORE, State.REQUESTED)


def archive_most(storage: Stored) -> None:
    archive(storage, LONG - 30)


def archive_few(storage: Stored) -> None:
    archive(storage, 120)


def savepoint(storage: Stored) -> None:
    put(storage, time_of(LONG - 3), Action.SAVEPOINT, State.INFLIGHT, State.COMPLETED)


def savepoint_of_old(storage: Stored) -> None:
    put(storage, time_of(3), Action.SAVEPOINT, State.INFLIGHT, State.COMPLETED)


def commit_by_a_slow_clock(storage: Stored) -> None:
    put(storage, following(time_of(30)), Action.COMMIT)


def commit_and_archive_as_much(storage: Stored) -> None:
    commit_by_a_slow_clock(storage)
    archive(storage, 1)


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "change",
    [
        *(add_commits, roll_back_pending, restore, begin_to_restore, archive_most, archive_few),
        *(savepoint, savepoint_of_old, commit_by_a_slow_clock, commit_and_archive_as_much),
    ],
)
def test_what_other_processes_change_is_seen_at_any_time(
    layout: int, change: Callable[[Stored], None], is_new: bool
) -> None:
    storage = known(layout)
    save_timeline(storage, storage.layout)
    change(storage)
    if is_new:
        storage = renewed(storage)
    assert storage.load() == truth(storage)
    add_commits(storage)
    assert storage.load() == truth(storage)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", by_day(range(4), {0, 1}))
def test_all_processes_load_the_same_timeline(layout: int, seed: int) -> None:
    draw, storage, archived = random.Random(seed), known(layout), 0
    for number in range(LONG, LONG + 400, 20):
        for later in range(number, number + 20):
            put(storage, time_of(later), draw.choice([Action.COMMIT, Action.REPLACE_COMMIT]))
        if draw.random() < 0.2:  # Hudi archives down to some dozen instants
            archive(storage, number - draw.randint(20, 40))
            archived += 1
        if draw.random() < 0.4:
            save_timeline(storage, storage.layout)
        if draw.random() < 0.3:
            storage = renewed(storage)
        assert storage.load() == truth(storage)
    assert archived


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_process_takes_the_settled_instants_from_the_summary(layout: int) -> None:
    storage = known(layout)
    save_timeline(storage, storage.layout)
    new = renewed(storage)
    assert len(new.load().settled) == len(storage.load().settled)
    assert new.load() == truth(storage)
    save_timeline(new, new.layout)  # there is nothing to add
    assert new.files == storage.files


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_another_process_has_summed_up_is_not_written_again(layout: int) -> None:
    one = known(layout)
    another = renewed(one)
    another.load()
    save_timeline(one, one.layout)
    for path, data in one.files.items():
        another.replace(path, data)
    save_timeline(another, another.layout)
    assert another.files == one.files
    assert repr(another.load()).startswith(f"<Timeline: {LONG} completed, 0 pending")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("damage", ["cut", "changed", "other", "no object", "no fields"])
def test_a_summary_that_cannot_be_read_is_left_alone(layout: int, damage: str) -> None:
    storage = known(layout)
    save_timeline(storage, storage.layout)
    (path,) = (path for path in storage.files if path.startswith(SUMMARIES))
    data = storage.read(path)

    def signed(content: object) -> bytes:
        body = zlib.compress(json.dumps(content).encode())
        return xxhash.xxh64_hexdigest(body).encode() + body

    damaged = {
        "cut": data[:-3],
        "changed": data[:-3] + b"abc",
        "other": signed({"version": 0}),
        "no object": signed([1]),
        "no fields": signed({"version": 1, "up_to": "20260101000000", "settled": "!"}),
    }
    storage.replace(path, damaged[damage])
    assert renewed(storage).load() == truth(storage)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_the_summaries_two_are_kept(layout: int) -> None:
    storage = known(layout)
    save_timeline(storage, storage.layout)
    for number in range(LONG, LONG + 1000):
        put(storage, time_of(number), Action.COMMIT)
        if number % 100 == 0:
            storage.load()
            save_timeline(storage, storage.layout)
    assert len([path for path in storage.files if path.startswith(SUMMARIES)]) == 2
