"""The old part of a timeline: kept in little room, looked at again where it may have changed."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from functools import cache

import pytest
import xxhash

from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.instants import Timeline
from hoodie_ds.timeline.paths import SUMMARIES, instant_path
from hoodie_ds.timeline.settled import Settled
from hoodie_ds.timeline.timeline import load_timeline, save_timeline

LONG = 400


def renewed(storage: MemoryStorage) -> MemoryStorage:
    """Return the same files, as a process sees them that knows nothing."""
    return MemoryStorage(storage.root, storage.files)


def time_of(number: int) -> str:
    minutes, hours = number // 6, number // 360
    return f"202601{1 + hours // 24:02d}{hours % 24:02d}{minutes % 60:02d}{number % 6}0123"


def put(storage: MemoryStorage, time: str, action: Action, *states: State) -> None:
    for state in states or tuple(State):
        storage.replace(instant_path(Instant(time, action, state)), b"{}")


@cache
def files() -> dict[str, bytes]:
    storage = MemoryStorage()
    for number in range(LONG):
        put(storage, time_of(number), Action.CLEAN if number % 50 == 49 else Action.COMMIT)
    return storage.files


def grown() -> MemoryStorage:
    return MemoryStorage(files=files())


def known() -> MemoryStorage:
    """A storage whose timeline has been loaded, and is settled in part."""
    storage = grown()
    assert len(load_timeline(storage, 1).settled) > LONG // 2
    return storage


def truth(storage: MemoryStorage) -> Timeline:
    files = {p: data for p, data in storage.files.items() if not p.startswith(SUMMARIES)}
    return load_timeline(MemoryStorage(files=files), 1)


def archive(storage: MemoryStorage, count: int) -> None:
    for number in range(count):
        for path in [p for p in storage.files if p.startswith(f".hoodie/{time_of(number)}")]:
            storage.delete(path)


def test_settled_instants_say_what_they_were_made_of() -> None:
    instants = [
        Instant(time_of(n), Action.ROLLBACK if n % 7 == 3 else Action.DELTA_COMMIT, State.COMPLETED)
        for n in range(30)
    ]
    settled = Settled().extended(instants[:10])
    assert settled is not None
    settled = settled.extended(instants[10:])
    assert settled is not None
    again = Settled.unpacked(settled.packed, settled.digest)
    for found in (settled, again):
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


def test_what_goes_another_way_is_told_apart() -> None:
    one = Settled().extended(Instant(time_of(n), Action.COMMIT, State.COMPLETED) for n in range(5))
    assert one is not None
    longer = one.extended([Instant(time_of(9), Action.COMMIT, State.COMPLETED)])
    assert longer is not None
    assert [i.time for i in longer.writes_beyond(one)] == [time_of(9)]
    assert list(one.writes_beyond(longer)) == []
    other = Settled().extended(
        Instant(time_of(n), Action.REPLACE_COMMIT if n == 2 else Action.COMMIT, State.COMPLETED)
        for n in range(6)
    )
    assert other is not None
    assert len(list(other.writes_beyond(one))) == 6


def test_times_of_old_tables_and_prepared_instants_are_not_settled() -> None:
    assert Settled().extended([Instant(time_of(0)[:14], Action.COMMIT, State.COMPLETED)]) is None
    assert Settled().extended([Instant(time_of(0), Action.COMMIT, State.COMPLETED, 2)]) is None
    storage = MemoryStorage()
    for number in range(LONG):
        put(storage, time_of(number)[:14], Action.COMMIT)
    assert len(load_timeline(storage, 1).settled) == 0
    assert load_timeline(storage, 1).num_completed == LONG


def test_a_settled_timeline_answers_as_one_that_is_not() -> None:
    settled = load_timeline(grown(), 1)
    plain = Timeline.of(settled.instants)
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
    only = Timeline(settled=settled.settled)
    assert only.latest_time == only.completed[-1].time


def test_nothing_is_settled_that_is_younger_than_a_pending_instant() -> None:
    storage = grown()
    put(storage, time_of(10), Action.DELTA_COMMIT, State.REQUESTED)
    storage.delete(instant_path(Instant(time_of(10), Action.COMMIT, State.COMPLETED)))
    storage.delete(instant_path(Instant(time_of(10), Action.COMMIT, State.INFLIGHT)))
    storage.delete(instant_path(Instant(time_of(10), Action.COMMIT, State.REQUESTED)))
    assert len(load_timeline(storage, 1).settled) == 10


def add_commits(storage: MemoryStorage) -> None:
    for number in range(LONG, LONG + 20):
        put(storage, time_of(number), Action.COMMIT)


def roll_back_pending(storage: MemoryStorage) -> None:
    put(storage, time_of(LONG), Action.COMMIT, State.REQUESTED, State.INFLIGHT)
    load_timeline(storage, 1)
    storage.delete(instant_path(Instant(time_of(LONG), Action.COMMIT, State.REQUESTED)))
    storage.delete(instant_path(Instant(time_of(LONG), Action.COMMIT, State.INFLIGHT)))
    put(storage, time_of(LONG + 1), Action.ROLLBACK)


def restore(storage: MemoryStorage) -> None:
    for number in range(LONG - 1, 100, -1):
        for action in (Action.COMMIT, Action.CLEAN):
            for state in State:
                storage.delete(instant_path(Instant(time_of(number), action, state)))
    put(storage, time_of(LONG + 1), Action.RESTORE)


def begin_to_restore(storage: MemoryStorage) -> None:
    put(storage, time_of(LONG + 1), Action.RESTORE, State.REQUESTED)


def archive_most(storage: MemoryStorage) -> None:
    archive(storage, LONG - 30)


def archive_few(storage: MemoryStorage) -> None:
    archive(storage, 120)


def savepoint(storage: MemoryStorage) -> None:
    put(storage, time_of(LONG - 3), Action.SAVEPOINT, State.INFLIGHT, State.COMPLETED)


def savepoint_of_old(storage: MemoryStorage) -> None:
    put(storage, time_of(3), Action.SAVEPOINT, State.INFLIGHT, State.COMPLETED)


def commit_by_a_slow_clock(storage: MemoryStorage) -> None:
    put(storage, following(time_of(30)), Action.COMMIT)


def commit_and_archive_as_much(storage: MemoryStorage) -> None:
    commit_by_a_slow_clock(storage)
    archive(storage, 1)


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        *(add_commits, roll_back_pending, restore, begin_to_restore, archive_most, archive_few),
        *(savepoint, savepoint_of_old, commit_by_a_slow_clock, commit_and_archive_as_much),
    ],
)
def test_what_others_do_is_seen_wherever_it_is(
    change: Callable[[MemoryStorage], None], is_new: bool
) -> None:
    storage = known()
    save_timeline(storage)
    change(storage)
    if is_new:
        storage = renewed(storage)
    assert load_timeline(storage, 1) == truth(storage)
    add_commits(storage)
    assert load_timeline(storage, 1) == truth(storage)


@pytest.mark.parametrize("seed", range(4))
def test_a_table_that_lives_looks_the_same_whoever_asks(seed: int) -> None:
    draw, storage, archived = random.Random(seed), known(), 0
    for number in range(LONG, LONG + 400, 20):
        for later in range(number, number + 20):
            put(storage, time_of(later), draw.choice([Action.COMMIT, Action.REPLACE_COMMIT]))
        if draw.random() < 0.2:  # Hudi archives down to some dozen instants
            archive(storage, number - draw.randint(20, 40))
            archived += 1
        if draw.random() < 0.4:
            save_timeline(storage)
        if draw.random() < 0.3:
            storage = renewed(storage)
        assert load_timeline(storage, 1) == truth(storage)
    assert archived


def test_a_new_process_takes_the_settled_instants_from_the_summary() -> None:
    storage = known()
    save_timeline(storage)
    new = renewed(storage)
    assert len(load_timeline(new, 1).settled) == len(load_timeline(storage, 1).settled)
    save_timeline(new)  # there is nothing to add
    assert new.files == storage.files


def test_what_another_process_has_summed_up_is_not_written_again() -> None:
    one = known()
    another = renewed(one)
    load_timeline(another, 1)
    save_timeline(one)
    for path, data in one.files.items():
        another.replace(path, data)
    save_timeline(another)
    assert another.files == one.files
    assert repr(load_timeline(another, 1)).startswith(f"<Timeline: {LONG} completed, 0 pending")


@pytest.mark.parametrize("damage", ["cut", "changed", "other", "no object", "no fields"])
def test_a_summary_that_cannot_be_read_is_left_alone(damage: str) -> None:
    storage = known()
    save_timeline(storage)
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
    assert load_timeline(renewed(storage), 1) == truth(storage)


def test_of_the_summaries_two_are_kept() -> None:
    storage = known()
    save_timeline(storage)
    for number in range(LONG, LONG + 1000):
        put(storage, time_of(number), Action.COMMIT)
        if number % 100 == 0:
            load_timeline(storage, 1)
            save_timeline(storage)
    assert len([path for path in storage.files if path.startswith(SUMMARIES)]) == 2
