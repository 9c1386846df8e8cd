"""The boundary between a batch and the table services that follow it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import CorruptFileError, LockTimeoutError
from hoodie_ds.services.after_commit import ServiceFailure, attempted, follow_up
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline

TIME = "20250101000000000"
TIMELINE = Timeline.of([Instant(TIME, Action.COMMIT, State.COMPLETED)])
CONTEXT = ServiceContext(
    WriteOptions.parse({"path": "/t"}), MemoryStorage(), SystemClock(), RandomIds()
)


def failing(error: BaseException) -> Callable[..., None]:
    def work(*_: object) -> None:
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


def test_one_service_that_fails_keeps_no_other_from_its_turn() -> None:
    seen: list[tuple[Service, Timeline]] = []

    def noted(service: Service) -> Callable[[ServiceContext, Timeline], None]:
        return lambda context, timeline: seen.append((service, timeline))

    services = {service: noted(service) for service in reversed(Service)}
    services[Service.COMPACTION_PLAN] = failing(CorruptFileError("a plan cannot be read"))
    failures = follow_up(CONTEXT, set(Service), TIMELINE, services)
    reason = "CorruptFileError: a plan cannot be read"
    assert failures == (ServiceFailure(Service.COMPACTION_PLAN, TIME, reason),)
    # A compaction that is done makes room for the next plan; what a clean leaves may be archived.
    assert [service for service, _ in seen] == [
        Service.COMPACTION,
        Service.CLEAN,
        Service.ARCHIVE,
    ]
    assert {timeline for _, timeline in seen} == {TIMELINE}


def test_what_is_not_wanted_is_not_done() -> None:
    services = {service: failing(AssertionError(service.value)) for service in Service}
    assert follow_up(CONTEXT, (), TIMELINE, services) == ()
