"""Retries on a storage that fails n times, with a clock that only the pauses move."""

from __future__ import annotations

import errno
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pytest

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OutOfSpaceError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.fsspec_storage import FsspecStorage
from hoodie_ds.storage.protocol import abort_uploads
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, Operation


@dataclass
class SlowMotion:
    """A clock and the pauses that move it; each pause is as long as it may be."""

    now: int = 1_000
    pauses: list[int] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def pause(self, longest_ms: int) -> int:
        self.pauses.append(longest_ms)
        self.now += longest_ms
        return longest_ms


class FlakySystem(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
    """The memory file system, whose next calls raise what the test planned.

    With ``after``, a call does its work first and then raises: its answer is lost.
    """

    protocol = "flaky"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012 - shared on purpose, like the memory file system's
    pseudo_dirs = [""]  # noqa: RUF012
    plan: list[tuple[Exception, bool]] = []  # noqa: RUF012
    calls: Counter[str] = Counter()  # noqa: RUF012

    def _fail(self, name: str, work: Callable[[], Any]) -> Any:
        type(self).calls[name] += 1
        if not self.plan:
            return work()
        error, after = self.plan.pop(0)
        if after:
            work()
        raise error

    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return self._fail("read", lambda: super(FlakySystem, self).cat_file(path, *args, **kwargs))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> Any:
        return self._fail(
            "put", lambda: super(FlakySystem, self).pipe_file(path, value, mode, **kwargs)
        )

    def rm(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return self._fail("delete", lambda: super(FlakySystem, self).rm(path, *args, **kwargs))


BUSY = OSError(errno.EBUSY, "slow down")
RESET = ConnectionResetError(errno.ECONNRESET, "reset by peer")


@pytest.fixture
def motion() -> SlowMotion:
    return SlowMotion()


@pytest.fixture
def storage(motion: SlowMotion, tmp_path: Path) -> Iterator[RetryingStorage]:
    fsspec.register_implementation("flaky", FlakySystem, clobber=True)
    FlakySystem.plan.clear()
    FlakySystem.calls.clear()
    FlakySystem.store.clear()
    inner = FsspecStorage(f"flaky:/{tmp_path}", atomic_put=True)
    yield RetryingStorage(inner, 5_000, motion, motion)
    FlakySystem.plan.clear()


def plan(*errors: Exception, after: bool = False) -> None:
    FlakySystem.plan[:] = [(error, after) for error in errors]


@pytest.mark.parametrize("error", [BUSY, RESET, TimeoutError("60 s"), OSError(errno.EREMOTEIO, "")])
def test_unavailable_operations_are_retried(
    storage: RetryingStorage, motion: SlowMotion, error: Exception
) -> None:
    storage.put_if_absent("f", b"x")
    plan(error, error, error)
    assert storage.read("f") == b"x"
    assert FlakySystem.calls["read"] == 4
    assert motion.pauses == [100, 200, 400]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError(errno.EACCES, "no"), AccessDeniedError),
        (OSError(errno.EROFS, "read-only"), AccessDeniedError),
        (OSError(errno.ENOSPC, "full"), OutOfSpaceError),
        (OSError(errno.EDQUOT, "quota"), OutOfSpaceError),
        (FileNotFoundError("gone"), NotFoundError),
        (OSError(errno.EINVAL, "malformed"), StorageError),
        (ValueError("a bug"), StorageError),
    ],
)
def test_other_errors_are_not_retried(
    storage: RetryingStorage, motion: SlowMotion, error: Exception, kind: type[StorageError]
) -> None:
    for call in (lambda: storage.put_if_absent("f", b"x"), lambda: storage.read("f")):
        plan(error)
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
    assert motion.pauses == []


def test_the_deadline_is_kept(storage: RetryingStorage, motion: SlowMotion) -> None:
    plan(*[BUSY] * 99)
    with pytest.raises(UnavailableError, match="in 5000 ms") as caught:
        storage.replace("f", b"x")
    assert "hoodie.py.storage.retry.deadline.ms" in str(caught.value)
    assert motion.now == 6_000
    assert motion.pauses == [100, 200, 400, 800, 1600, 1900]


def test_a_clock_set_back_does_not_prolong_the_deadline(
    motion: SlowMotion, storage: RetryingStorage
) -> None:
    class Backwards(SlowMotion):
        def now_ms(self) -> int:
            self.now -= 10_000
            return self.now

    plan(*[BUSY] * 99)
    with pytest.raises(UnavailableError):
        RetryingStorage(storage.inner, 5_000, Backwards(), motion).read("f")
    assert sum(motion.pauses) == 5_000


@pytest.mark.parametrize("lost", [1, 3])
def test_a_put_with_a_lost_answer_is_recognised_by_its_content(
    storage: RetryingStorage, lost: int
) -> None:
    plan(*[RESET] * lost, after=True)
    # The memory file system refuses the second try, whose own error hides that of the plan.
    FlakySystem.plan[1:] = [(RESET, False)] * (lost - 1)
    storage.put_if_absent("f", b"mine")
    assert storage.read("f") == b"mine"


def test_a_put_with_a_lost_answer_may_be_another_writers(storage: RetryingStorage) -> None:
    storage.put_if_absent("f", b"theirs")
    plan(RESET)
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("f", b"mine")
    assert storage.read("f") == b"theirs"


def test_a_name_that_was_taken_and_is_free_again_was_not_ours(motion: SlowMotion) -> None:
    theirs = MemoryStorage(files={"f": b"mine"})

    def on_the_way(operation: Operation) -> None:
        if operation.number == 1:
            raise UnavailableError("no answer")
        if operation.kind is Kind.READ:
            theirs.delete("f")

    storage = RetryingStorage(FaultyStorage(theirs, before_each=on_the_way), 5_000, motion, motion)
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("f", b"mine")
    assert theirs.files == {}


def test_a_name_found_taken_by_the_first_try_is_lost_also_with_equal_content(
    storage: RetryingStorage,
) -> None:
    storage.put_if_absent("f", b"same")
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("f", b"same")


def test_an_unknown_outcome_is_neither_success_nor_refusal(
    storage: RetryingStorage,
) -> None:
    plan(*[RESET] * 99)
    FlakySystem.plan[0] = (RESET, True)
    with pytest.raises(UnavailableError):
        storage.put_if_absent("f", b"mine")


def test_a_later_refusal_does_not_settle_an_unknown_outcome(storage: RetryingStorage) -> None:
    denied = PermissionError(errno.EACCES, "credentials expired")
    plan(RESET, *[denied] * 99)
    with pytest.raises(UnavailableError, match="expired"):
        storage.put_if_absent("f", b"mine")


def test_reading_back_is_retried_too(storage: RetryingStorage) -> None:
    plan(RESET, after=True)
    storage.put_if_absent("f", b"mine")
    storage.delete("f")
    storage.put_if_absent("f", b"theirs")
    FlakySystem.calls.clear()

    def refuse_then_busy(self: FlakySystem, path: str, *args: Any, **kwargs: Any) -> bytes:
        type(self).calls["read"] += 1
        if type(self).calls["read"] < 3:
            raise BUSY
        return b"mine"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlakySystem, "cat_file", refuse_then_busy)
        plan(RESET)
        storage.put_if_absent("f", b"mine")
    assert FlakySystem.calls == {"put": 4, "read": 3}


@pytest.mark.parametrize("effect", [Effect.LOST_ANSWER, Effect.FAILED, Effect.DELAYED])
def test_a_replace_of_a_version_counts_once_whatever_became_of_its_first_try(
    motion: SlowMotion, effect: Effect
) -> None:
    fault = Fault(effect, kinds=frozenset({Kind.REPLACE}), error=UnavailableError)
    inner = MemoryStorage(files={"f": b"one"})
    storage = RetryingStorage(FaultyStorage(inner, [fault]), 5_000, motion, motion)
    first = storage.read_version("f")[1]
    second = storage.replace_version("f", b"two", first)
    assert storage.read_version("f") == (b"two", second)
    with pytest.raises(AlreadyExistsError):  # no try of this call was lost
        storage.replace_version("f", b"two", first)


def test_a_replace_of_a_version_may_lose_after_a_lost_answer(motion: SlowMotion) -> None:
    inner = MemoryStorage(files={"f": b"one"})
    others = [lambda: inner.replace("f", b"theirs"), lambda: inner.delete("f")]

    def before_each(operation: Operation) -> None:
        if operation.kind is Kind.REPLACE and others:
            others.pop(0)()

    while others:
        fault = Fault(Effect.FAILED, kinds=frozenset({Kind.REPLACE}), error=UnavailableError)
        faulty = FaultyStorage(inner, [fault], before_each=before_each)
        storage = RetryingStorage(faulty, 5_000, motion, motion)
        version = storage.read_version("f")[1]
        with pytest.raises(AlreadyExistsError):
            storage.replace_version("f", b"mine", version)
    assert inner.files == {}


def test_outputs_and_deletes_are_retried(storage: RetryingStorage) -> None:
    with storage.open_output("f") as file:
        file.write(b"rows")
        plan(BUSY, BUSY)
    assert storage.read("f") == b"rows"
    plan(BUSY)
    storage.delete("f")
    assert storage.list("") == []


def test_reads_of_an_input_are_retried_where_they_began(
    storage: RetryingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.put_if_absent("f", b"0123456789")
    with storage.open_input("f") as file:
        inner = file._file._file  # type: ignore[attr-defined]
        real, failures = inner.read, [RESET, BUSY]

        def read(size: int = -1) -> bytes:
            content: bytes = real(size)
            if failures:
                raise failures.pop()
            return content

        monkeypatch.setattr(inner, "read", read)
        file.seek(2)
        assert file.read(3) == b"234"
        assert file.read() == b"56789"


def test_a_retrying_storage_can_be_pickled() -> None:
    storage = open_storage("ftp://host/t", for_write=False, retry_ms=7)
    assert isinstance(storage, RetryingStorage)
    assert pickle.loads(pickle.dumps(storage)) == storage
    assert hash(storage) == hash(pickle.loads(pickle.dumps(storage)))
    assert storage.deadline_ms == 7


def test_parts_that_may_not_be_listed_stay(caplog: pytest.LogCaptureFixture) -> None:
    class Denied(MemoryStorage):
        def abort_uploads(self, paths: list[str]) -> None:
            raise AccessDeniedError(f"may not list {paths}")

    storage = RetryingStorage(Denied("memory://denied"), 0)
    abort_uploads(storage, ["f"])
    assert "parts of 1 dropped files may be left: may not list ['f']" in caplog.text
