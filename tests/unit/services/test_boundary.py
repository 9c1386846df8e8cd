"""The boundary between a batch and the table services that it brings along."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import CorruptFileError, LockTimeoutError
from hoodie_ds.services.boundary import attempted

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
def test_what_a_service_meets_on_storage_is_told_and_goes_no_further(
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
def test_a_bug_or_the_user_is_not_taken_for_a_failing_service(error: BaseException) -> None:
    with pytest.raises(type(error)):
        attempted(Service.CLEAN, "/t", TIME, failing(error))
