"""Failures of table services that run with a batch.

The batch continues whatever happens to a service: a failure is logged, recorded on storage and
reported, and the service is due again with a later batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import pyarrow as pa

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import HoodieError, NotFoundError, StorageError
from hoodie_ds.log import Log
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import FAILED_SERVICES


@dataclass(frozen=True, slots=True)
class ServiceFailure:
    """A table service that failed during a batch; a later batch tries it again.

    Parameters
    ----------
    service : Service
        The service.
    instant : str
        Its instant; that of the batch if it has none yet.
    reason : str
        The error.
    """

    service: Service
    instant: str
    reason: str

    def __str__(self) -> str:
        return f"{self.service.value} at instant {self.instant} failed: {self.reason}"


def attempted(
    service: Service, root: str, instant: str, work: Callable[[], object]
) -> ServiceFailure | None:
    """Run a part of a service; return its failure, which is logged, instead of raising it."""
    try:
        work()
    except (HoodieError, OSError, pa.ArrowException) as error:
        failure = ServiceFailure(service, instant, f"{type(error).__name__}: {error}")
        Log(root, instant).warning("%s; a later batch tries again", failure)
        return failure
    return None


def note_failures(storage: Storage, time: str | None, failures: Sequence[ServiceFailure]) -> None:
    """Record on storage which services failed during a commit that is complete already.

    A table has one such file, that of the newest commit with failures.
    """
    if time is not None and failures:
        note = {"instant": time, "failures": [asdict(failure) for failure in failures]}
        with suppress(StorageError):  # it may be why they failed
            storage.replace(FAILED_SERVICES, json.dumps(note).encode())


def noted_failures(storage: Storage, time: str) -> tuple[ServiceFailure, ...]:
    """Return the services that failed during a commit; nothing once a later one had failures."""
    # There is none, or it is damaged; nothing depends on it.
    with suppress(NotFoundError, ValueError, KeyError, TypeError, RecursionError):
        note = json.loads(storage.read(FAILED_SERVICES))
        if note["instant"] == time:
            return tuple(
                ServiceFailure(Service(one["service"]), str(one["instant"]), str(one["reason"]))
                for one in note["failures"]
            )
    return ()
