"""Hudi's lock on object stores: two never hold it, whatever happens between two requests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import combinations, product

import pytest

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import LockProvider
from hoodie_ds.errors import (
    CorruptFileError,
    LockTimeoutError,
    OptionError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage import probe
from hoodie_ds.storage.protocol import Storage, Version
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, Operation, SimClock
from hoodie_ds.timeline.paths import TABLE_LOCK
from hoodie_ds.transaction.lock import held
from hoodie_ds.transaction.storage_lock import LockFile, StorageLock

VALIDITY_MS, RENEW_MS, DRIFT_MS = 300_000, 30_000, 500
SHARED = Concurrency(is_shared=True, lock_provider=LockProvider.STORAGE, lock_wait_ms=0)


class Place:
    """A storage, its clock, and the locks of writers on it."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.storage = MemoryStorage(clock=self.clock)

    def lock(
        self, owner: str, storage: Storage | None = None, clock: SimClock | None = None
    ) -> StorageLock:
        given = storage or self.storage
        return StorageLock(given, VALIDITY_MS, RENEW_MS, owner, clock or self.clock)

    def faulty(self, effect: Effect, kind: Kind, skip: int = 0) -> FaultyStorage:
        fault = Fault(effect, kinds=frozenset({kind}), skip=skip, error=UnavailableError)
        return FaultyStorage(self.storage, [fault])

    @property
    def content(self) -> dict[str, object]:
        found = json.loads(self.storage.files[TABLE_LOCK])
        assert isinstance(found, dict)
        return found


@pytest.fixture
def place() -> Place:
    return Place()


def test_the_file_is_that_of_hudi(place: Place) -> None:
    first, second = place.lock("a"), place.lock("b")
    until = place.clock.now_ms() + VALIDITY_MS
    assert TABLE_LOCK == ".hoodie/.locks/table_lock.json"
    assert first.try_take()
    text = f'{{"expired":false,"validUntil":{until},"owner":"hoodie_ds a"}}'
    assert place.storage.files[TABLE_LOCK] == text.encode()
    assert not second.try_take()
    first.release()
    assert place.storage.files[TABLE_LOCK] == text.replace("false", "true").encode()
    assert second.try_take()
    second.release()
    assert list(place.storage.files) == [TABLE_LOCK]


def test_a_lock_of_a_writer_on_the_jvm_excludes_ours_until_it_is_released_or_expires(
    place: Place,
) -> None:
    until = place.clock.now_ms() + 1_000
    theirs = (
        f'{{"expired":false,"validUntil":{until},"owner":"6f9c1ae2","later":{{"a":"release"}}}}'
    )
    place.storage.replace(TABLE_LOCK, theirs.encode())
    place.clock.advance(1_000 + DRIFT_MS)
    assert not place.lock("a").try_take()
    place.clock.advance(1)
    dead = place.lock("a")
    assert dead.try_take()
    dead.release()
    theirs = theirs.replace("false", "true").replace(str(until), str(until + 10**9))
    place.storage.replace(TABLE_LOCK, theirs.encode())
    mine = place.lock("b")
    assert mine.try_take()
    mine.release()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"expired":false,"owner":"a"}', b'{"validUntil":null}', b"\xff"]
)
def test_a_file_that_is_no_lock_is_refused(place: Place, content: bytes) -> None:
    place.storage.put_if_absent(TABLE_LOCK, content)
    with pytest.raises(CorruptFileError, match=r"table_lock\.json is no lock.*delete it"):
        place.lock("a").try_take()
    assert place.storage.files[TABLE_LOCK] == content


def test_a_holder_that_others_have_relieved_knows_it_and_leaves_their_lock(place: Place) -> None:
    late, other = place.lock("late"), place.lock("other")
    assert late.try_take()
    place.clock.advance(VALIDITY_MS + DRIFT_MS + 1)
    assert other.try_take()
    assert not late.is_held()
    assert not late.renew()
    late.release()
    assert other.is_held()
    assert place.content["owner"] == "hoodie_ds other"
    other.release()
    assert not late.is_held()


def test_a_holder_that_nobody_has_relieved_goes_on(place: Place) -> None:
    late, other = place.lock("late"), place.lock("other")
    assert late.try_take()
    place.clock.advance(10 * VALIDITY_MS)
    assert late.is_held()
    assert not other.try_take()
    late.release()
    assert other.try_take()
    other.release()


@pytest.mark.parametrize(
    ("passed", "renewed"),
    [(VALIDITY_MS - RENEW_MS - 1, False), (VALIDITY_MS - RENEW_MS, True), (-1, True)],
)
def test_what_is_about_to_expire_is_renewed_before_it_counts(
    place: Place, passed: int, renewed: bool
) -> None:
    lock = place.lock("a")
    assert lock.try_take()
    before = place.content["validUntil"]
    place.clock.advance(passed)  # -1: the clock was set back, and says nothing
    assert lock.is_held()
    assert (place.content["validUntil"] != before) is renewed
    lock.release()


def test_a_renewal_that_may_have_failed_does_not_count(place: Place) -> None:
    storage = place.faulty(Effect.FAILED, Kind.REPLACE)
    late, other = place.lock("late", storage), place.lock("other")
    assert late.try_take()
    place.clock.advance(VALIDITY_MS)
    with pytest.raises(UnavailableError):
        late.renew()
    place.clock.advance(DRIFT_MS + 1)
    assert other.try_take()
    assert not late.is_held()
    late.release()
    other.release()


def test_clocks_of_writers_may_differ_by_half_a_second(place: Place) -> None:
    fast, faster = SimClock(), SimClock()
    fast.advance(DRIFT_MS)
    faster.advance(DRIFT_MS + 1)
    holder = place.lock("holder")
    assert holder.try_take()
    for clock in (place.clock, fast, faster):
        clock.advance(VALIDITY_MS)
    assert not place.lock("a", clock=fast).try_take()
    taken = place.lock("b", clock=faster)
    assert taken.try_take()
    assert not holder.is_held()
    for lock in (holder, taken):
        lock.release()


def test_a_thread_renews_the_lock_until_it_is_released(place: Place) -> None:
    lock = StorageLock(place.storage, VALIDITY_MS, 1, "a", place.clock)
    assert lock.try_take()
    for _ in range(3):
        before = place.content["validUntil"]
        place.clock.advance(VALIDITY_MS + DRIFT_MS + 1)
        until = time.monotonic() + 10
        while place.content["validUntil"] == before:
            assert time.monotonic() < until, "it was not renewed"
            time.sleep(0.001)
        assert not place.lock("b").try_take()
    lock.release()
    released = place.storage.files[TABLE_LOCK]
    time.sleep(0.02)
    assert place.storage.files[TABLE_LOCK] == released


def test_a_thread_goes_on_renewing_after_a_failure_and_ends_after_a_loss(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    storage = place.faulty(Effect.FAILED, Kind.REPLACE)
    lock = StorageLock(storage, VALIDITY_MS, 1, "a", place.clock)
    assert lock.try_take()
    until = time.monotonic() + 30
    while len([o for o in storage.recorder.operations if o.kind is Kind.REPLACE]) < 2:
        assert time.monotonic() < until, "it was renewed once"
    assert "the lock was not renewed" in caplog.text
    theirs = LockFile(False, place.clock.now_ms() + VALIDITY_MS, "other")
    place.storage.replace(TABLE_LOCK, theirs.to_bytes())
    while "another writer has taken the lock" not in caplog.text:
        assert time.monotonic() < until, "it went on"
    assert not lock.is_held()
    lock.release()
    assert place.storage.files[TABLE_LOCK] == theirs.to_bytes()


def test_a_waiting_writer_hears_who_holds_the_lock(place: Place) -> None:
    holder = place.lock("the holder")
    assert holder.try_take()
    place.clock.advance(7_000)
    with (
        pytest.raises(LockTimeoutError) as caught,
        held(place.storage, SHARED, "b", place.clock, Never()),
    ):
        raise AssertionError("two have the lock")
    said = str(caught.value)
    assert f". The lock is memory://table/{TABLE_LOCK}, 7 s old, of " in said
    assert '"owner":"hoodie_ds the holder"' in said
    assert "it expires at 300 s (hoodie.write.lock.storage.validity.timeout.secs)" in said
    holder.release()


class Never:
    """Pauses of a writer that finds the lock free."""

    def pause(self, longest_ms: int) -> int:
        raise AssertionError("it waited")


OPERATIONS = 5
"""As many as `_hold` makes by itself, with a file; it makes more where it meets others."""


def _hold(place: Place, storage: Storage, decide: Callable[[StorageLock], None]) -> None:
    """Take, renew and release the lock, as a commit does; errors are those of the faults."""
    lock = place.lock("a", storage)
    with suppress(StorageError):
        try:
            if lock.try_take():
                for _ in range(2):
                    with suppress(StorageError):
                        lock.renew()
                    with suppress(StorageError):
                        decide(lock)
        finally:
            lock.release()


class _Other:
    """Another writer, which acts between two operations of `_hold`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock: StorageLock | None = None
        self.actions = [self.take, self.release, self.long_after, self.a_while_after, self.delete]

    @property
    def is_holding(self) -> bool:
        return self._lock is not None and self._lock.is_held()

    def take(self) -> None:
        lock = self._place.lock("b")
        if lock.try_take():
            self.release()
            self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def long_after(self) -> None:
        self._place.clock.advance(VALIDITY_MS + DRIFT_MS + 1)

    def a_while_after(self) -> None:
        self._place.clock.advance(VALIDITY_MS - RENEW_MS)

    def delete(self) -> None:
        """Somebody cleans up a lock that is free."""
        there = TABLE_LOCK in self._place.storage.files
        if there and self._place.content["expired"]:
            self._place.storage.delete(TABLE_LOCK)


EFFECTS = (None, Effect.FAILED, Effect.LOST_ANSWER, Effect.DELAYED)


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("before", [False, True])
def test_two_never_hold_it_whatever_happens_between_two_requests(
    effect: Effect | None, before: bool
) -> None:
    """Another writer acts at any two of the requests, and one request fails in any way."""
    decided = 0
    for first, second in combinations(range(1, OPERATIONS + 1), 2):
        for chosen in product(range(5), repeat=2):
            decided += _run(effect, before, {first: chosen[0], second: chosen[1]})
    assert decided > 100


def _run(effect: Effect | None, before: bool, turns: dict[int, int]) -> int:
    place = Place()
    if before:
        passed_on = place.lock("c")
        assert passed_on.try_take()
        passed_on.release()
    other, decided = _Other(place), [0]

    def between(operation: Operation) -> None:
        if operation.number in turns:
            other.actions[turns[operation.number]]()

    def decide(lock: StorageLock) -> None:
        if lock.is_held():
            assert place.content["owner"] == "hoodie_ds a"
            assert not other.is_holding
            decided[0] += 1

    at = frozenset({Kind.PUT, Kind.REPLACE})
    faults = [
        Fault(found, kinds=at, skip=min(turns) - 1, error=UnavailableError)
        for found in (effect,)
        if found is not None
    ]
    _hold(place, FaultyStorage(place.storage, faults, before_each=between), decide)
    is_held = other.is_holding
    if TABLE_LOCK in place.storage.files:
        assert is_held == (place.content["owner"] == "hoodie_ds b" and not place.content["expired"])
    other.release()
    last = place.lock("d")
    if not last.try_take():  # the answer that would have told was lost, or the process cannot ask
        assert effect is not None
        place.clock.advance(VALIDITY_MS + DRIFT_MS + 1)
        assert last.try_take()
    last.release()
    return decided[0]


class _Lax(MemoryStorage):
    """A server that ignores the condition of a replace."""

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        self.replace(path, data)
        return data


def test_a_server_that_ignores_the_condition_is_refused(place: Place) -> None:
    lax = RetryingStorage(_Lax(), 1_000)
    with (
        pytest.raises(OptionError, match=r"If-Match.*leave the option out"),
        held(lax, SHARED, "a", place.clock, Never()),
    ):
        raise AssertionError("two could have the lock")
    assert lax.list("", recursive=True) == []


def test_a_server_is_asked_once_whether_it_obeys_the_condition(place: Place) -> None:
    storage = FaultyStorage(place.storage)
    remote = RetryingStorage(storage, 1_000)
    counts = []
    for owner in ("a", "b", "c"):
        with held(remote, SHARED, owner, place.clock, Never()):
            pass
        counts.append(len(storage.recorder.operations))
    assert counts == [5 + 4, 9 + 3, 12 + 3]
    probe._obeying_versions.discard(remote)


class Overtaken(MemoryStorage):
    """Before each replacement it brings an older request of the same writer, which was late."""

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        older = json.loads(self.read(path))
        older["validUntil"] += 1
        self.replace(path, json.dumps(older).encode())
        return super().replace_version(path, data, version)


def test_a_lock_that_late_requests_change_again_and_again_is_not_held(place: Place) -> None:
    lock = place.lock("a", Overtaken(clock=place.clock))
    assert lock.try_take()
    assert not lock.renew()
    assert not lock.is_held()
    lock.release()
