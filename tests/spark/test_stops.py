"""SIGSTOP of a driver within a micro-batch, another that takes over, and SIGCONT for the first."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.spark import fail_points
from tests.spark.streams import Job

pytestmark = pytest.mark.spark

_SECONDS = 300.0


def stop_and_go_on(job: Job, point: str) -> None:
    """Stop a stream in its third batch, run another to the end, and let the first one on."""
    fail_points.Armed(point, "stand still").put(job.points)
    behind = job.start()
    _until(lambda: _states(behind.pid) == {"T"}, "the driver was never stopped")
    job.run()
    expected = job.expected()
    assert job.actual() == expected
    for process in _of_session(behind.pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
    code = behind.wait(_SECONDS)
    assert code != 0, "the driver left behind did not find that its batch was another's"
    assert fail_points.struck(job.points) == [point]
    job.check()


def _until(happens: object, what: str) -> None:
    assert callable(happens)
    end = time.monotonic() + _SECONDS
    while not happens():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def _of_session(session: int) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(entry.name)) == session:
                yield int(entry.name)


def _states(session: int) -> set[str]:
    """States of a session's processes but for those that have ended."""
    found = set()
    for process in _of_session(session):
        with suppress(OSError):
            found.add((Path("/proc") / str(process) / "stat").read_text().rpartition(") ")[2][0])
    return found - {"Z"}


@pytest.mark.slow
@pytest.mark.parametrize("job", ["mor"], indirect=True)
def test_a_driver_left_behind_deletes_no_committed_file(job: Job) -> None:
    stop_and_go_on(job, "data file in the middle")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("job", ["cow", "mor", "mor bloom", "append"], indirect=True)
@pytest.mark.parametrize("point", ["data file begun", "data file whole", "before the manifest"])
def test_drivers_left_behind_at_further_points(job: Job, point: str) -> None:
    stop_and_go_on(job, point)
