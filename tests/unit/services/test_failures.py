"""The boundary between a batch and the table services that it brings along."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import CorruptFileError, LockTimeoutError
from hoodie_ds.services.failures import (
    ServiceFailure,
    attempted,
    note_failures,
    noted_failures,
)
from hoodie_ds.testing import Effect, Fault, FaultyStorage, MemoryStorage
from hoodie_ds.timeline.paths import FAILED_SERVICES

TIME = "20250101000000000"


def failing(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    "error",
    [
        CorruptFileError("a plan cannot be read"),
        LockTimeoutError("others hold the lock"),
        PermissionError("no entry"),
        pa.ArrowInvalid("not a parquet file"),
        pa.ArrowMemoryError("too much"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_storage_error_of_a_service_is_reported_and_not_raised(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hoodie_ds"):
        failure = attempted(Service.CLEAN, "/t", TIME, failing(error))
    assert failure is not None
    assert (failure.service, failure.instant) == (Service.CLEAN, TIME)
    assert str(error) in failure.reason
    (line,) = caplog.messages
    for told in ("/t", "clean", TIME, str(error), "a later batch tries again"):
        assert told in line


@pytest.mark.parametrize("error", [AssertionError("a bug"), KeyboardInterrupt(), KeyError("x")])
def test_bugs_and_interrupts_are_raised(error: BaseException) -> None:
    with pytest.raises(type(error)):
        attempted(Service.CLEAN, "/t", TIME, failing(error))


LATER = "20250102000000000"
FAILURES = (
    ServiceFailure(Service.COMPACTION, TIME, "CorruptFileError: a plan cannot be read"),
    ServiceFailure(Service.ARCHIVE, LATER, "LockTimeoutError: others hold the lock"),
)


_NO_FAILURES = ("1", "[1]", "[{}]", '[{"service": "x", "instant": "1", "reason": ""}]')


def test_failures_of_a_commit_are_recorded_until_a_later_commit_has_failures() -> None:
    storage = MemoryStorage()
    assert noted_failures(storage, TIME) == ()
    note_failures(storage, TIME, FAILURES)
    assert noted_failures(storage, TIME) == FAILURES
    assert noted_failures(storage, LATER) == ()
    note_failures(storage, LATER, FAILURES[1:])
    assert (noted_failures(storage, TIME), noted_failures(storage, LATER)) == ((), FAILURES[1:])
    assert len(storage.files) == 1


def test_nothing_is_recorded_without_failures_or_without_a_commit() -> None:
    storage = MemoryStorage()
    note_failures(storage, TIME, ())
    note_failures(storage, None, FAILURES)
    assert not storage.files


@pytest.mark.parametrize(
    "note",
    [b"", b"\xff", b"[]", b"1", b"{}", b"[" * 100_000]
    + [f'{{"instant": "{TIME}", "failures": {one}}}'.encode() for one in _NO_FAILURES],
    ids=range(10),
)
def test_a_damaged_record_is_ignored(note: bytes) -> None:
    storage = MemoryStorage()
    storage.replace(FAILED_SERVICES, note)
    assert noted_failures(storage, TIME) == ()


def test_a_record_that_cannot_be_written_fails_no_batch() -> None:
    storage = FaultyStorage(MemoryStorage(), [Fault(Effect.FAILED, path=FAILED_SERVICES)])
    note_failures(storage, TIME, FAILURES)
    assert noted_failures(storage, TIME) == ()
