"""Locks where others act between two operations of the one who takes or releases it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import LockProvider
from hoodie_ds.errors import LockTimeoutError, StorageError
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, Operation, SimClock
from hoodie_ds.timeline.paths import FILE_LOCK, LEASES
from hoodie_ds.transaction.lock import FileLock, LeaseLock, Lock, held

LEASE_MS = 60_000


class Never:
    """Pauses of a writer that finds the lock free."""

    def pause(self, longest_ms: int) -> int:
        raise AssertionError("it waited")


@dataclass
class Place:
    """A storage, and the locks of the writers on it."""

    clock: SimClock = field(default_factory=SimClock)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(clock=self.clock)

    def lease(self, owner: str) -> LeaseLock:
        return LeaseLock(self.storage, LEASE_MS, owner)

    def file(self, owner: str) -> FileLock:
        return FileLock(self.storage, LEASE_MS, owner, self.clock)

    def interrupted(self, kind: Kind, by: Callable[[], object]) -> FaultyStorage:
        """The storage of a writer that stands still, once, just before such an operation."""
        pending = [by]

        def before_each(operation: Operation) -> None:
            if operation.kind is kind and pending:
                pending.pop()()

        return FaultyStorage(self.storage, before_each=before_each)


@pytest.fixture
def place() -> Place:
    return Place()


def pass_on(lock: Lock) -> None:
    assert lock.try_take()
    lock.release()


@pytest.mark.parametrize("provider", [None, LockProvider.FILE_SYSTEM])
def test_a_commit_succeeds_if_the_lock_cannot_be_released(
    place: Place, provider: LockProvider | None, caplog: pytest.LogCaptureFixture
) -> None:
    last = frozenset({Kind.REPLACE if provider is None else Kind.DELETE})
    faulty = FaultyStorage(place.storage, [Fault(Effect.FAILED, kinds=last)])
    concurrency = Concurrency(is_shared=True, lock_provider=provider, lease_ms=LEASE_MS)
    with held(faulty, concurrency, "a", place.clock, Never()):
        place.storage.put_if_absent("done", b"")
    assert "the lock stays until it is too old" in caplog.text
    other = place.lease("b") if provider is None else place.file("b")
    assert not other.try_take()


@pytest.mark.parametrize("kind", [Kind.DELETE, Kind.LIST])
def test_a_lease_taken_by_a_failed_attempt_is_released(place: Place, kind: Kind) -> None:
    pass_on(place.lease("a"))
    pass_on(place.lease("b"))
    # The first listing is before the lease is taken, the second one after it.
    fault = Fault(Effect.FAILED, kinds=frozenset({kind}), path=f"{LEASES}*", skip=kind is Kind.LIST)
    faulty = FaultyStorage(place.storage, [fault])
    concurrency = Concurrency(is_shared=True, lease_ms=LEASE_MS)
    with suppress(StorageError), held(faulty, concurrency, "c", place.clock, Never()):
        pass
    assert place.lease("d").try_take()


def test_a_timeout_does_not_release_the_lock_of_another_thread(place: Place) -> None:
    concurrency = Concurrency(is_shared=True, lock_provider=LockProvider.IN_PROCESS, lock_wait_ms=0)
    with held(place.storage, concurrency, "a", place.clock, Never()):
        for _ in range(2):
            with (
                pytest.raises(LockTimeoutError),
                held(place.storage, concurrency, "b", place.clock, Never()),
            ):
                raise AssertionError("two have the lock")
    with held(place.storage, concurrency, "b", place.clock, Never()):
        pass


def test_a_file_lock_of_another_holder_is_not_released(place: Place) -> None:
    late, other = place.file("late"), place.file("other")
    assert late.try_take()
    place.clock.advance(LEASE_MS + 1)
    assert not other.try_take()
    assert other.try_take()
    late.release()
    assert b"other" in place.storage.read(FILE_LOCK)


def test_a_file_lock_released_while_its_age_is_read_is_free(place: Place) -> None:
    holder = place.file("holder")
    assert holder.try_take()
    place.clock.advance(LEASE_MS + 1)
    storage = place.interrupted(Kind.LIST, holder.release)
    second = FileLock(storage, LEASE_MS, "second", place.clock)
    assert not second.try_take()
    assert not [o for o in storage.recorder.operations if o.kind is Kind.DELETE]
    assert second.try_take()


def test_one_of_two_writers_takes_the_next_lease(place: Place) -> None:
    first = place.lease("first")
    second = LeaseLock(place.interrupted(Kind.PUT, first.try_take), LEASE_MS, "second")
    assert not second.try_take()
    second.release()
    assert not place.lease("third").try_take()
    first.release()
    assert second.try_take()


@pytest.mark.parametrize("passed", [2, 3])
def test_a_stale_lease_does_not_take_the_lock(place: Place, passed: int) -> None:
    pass_on(place.lease("a"))
    holder = place.lease("holder")

    def others() -> None:
        for _ in range(passed - 1):
            pass_on(place.lease("b"))
        assert holder.try_take()

    late = LeaseLock(place.interrupted(Kind.READ, others), LEASE_MS, "late")
    assert not late.try_take()
    assert f"{LEASES}/{1:012d}" not in place.storage.files
    assert not place.lease("c").try_take()
    late.release()
    assert not place.lease("c").try_take()
    holder.release()
    assert place.lease("c").try_take()


def test_a_lease_deleted_while_it_is_read_is_over(place: Place) -> None:
    assert place.lease("dead").try_take()
    storage = place.interrupted(Kind.READ, lambda: place.storage.delete(LEASES))
    assert LeaseLock(storage, LEASE_MS, "waiting").try_take()
    assert not place.lease("c").try_take()


@pytest.mark.parametrize(
    ("provider", "lease_ms", "end"),
    [
        (None, LEASE_MS, "it expires at 60 s (hoodie.write.lock.storage."),
        (LockProvider.FILE_SYSTEM, LEASE_MS, "it expires at 60 s (hoodie.write.lock.filesystem."),
        (LockProvider.FILE_SYSTEM, 0, "which never expires (hoodie.write.lock.filesystem.expire"),
    ],
)
def test_a_lock_timeout_names_the_holder_and_the_expiry(
    place: Place, provider: LockProvider | None, lease_ms: int, end: str
) -> None:
    """Two writers ended while they held the lock: the second one's is named."""
    is_lease = provider is None
    pass_on(place.lease("one") if is_lease else place.file("one"))
    assert (place.lease("two") if is_lease else place.file("two")).try_take()
    place.clock.advance(7_000)
    concurrency = Concurrency(
        is_shared=True, lock_provider=provider, lease_ms=lease_ms, lock_wait_ms=0
    )
    with (
        pytest.raises(LockTimeoutError) as caught,
        held(place.storage, concurrency, "b", place.clock, Never()),
    ):
        raise AssertionError("two have the lock")
    path = f"{LEASES}/000000000002" if is_lease else FILE_LOCK
    told = str(caught.value)
    assert f". The lock is {place.storage.root}/{path}, 7 s old, of " in told
    assert "two" in told
    assert "if that writer is dead, delete the file, " in told
    assert end in told
