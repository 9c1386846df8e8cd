"""The boundary between a batch and the table services that it brings along.

The batch goes on whatever becomes of a service: what fails is logged, noted on storage, reported
and due again with a later batch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import pyarrow as pa

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import HoodieError, NotFoundError, StorageError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import FAILED_SERVICES

_log = logging.getLogger("hoodie_ds")


@dataclass(frozen=True, slots=True)
class ServiceFailure:
    """A table service that failed beside a batch, and is tried again with a later one.

    Parameters
    ----------
    service : Service
        Which it was.
    instant : str
        The instant that it was about; that of the batch where it has none yet.
    reason : str
        What went wrong.
    """

    service: Service
    instant: str
    reason: str

    def __str__(self) -> str:
        return f"{self.service.value} at instant {self.instant} failed: {self.reason}"


def attempted(
    service: Service, root: str, instant: str, work: Callable[[], object]
) -> ServiceFailure | None:
    """Do a part of a service beside a batch, which goes on whatever becomes of it.

    Parameters
    ----------
    service : Service
        Which it is.
    root : str
        The table's base path, for the log.
    instant : str
        The instant that it is about.
    work : callable
        Does it.

    Returns
    -------
    ServiceFailure or None
        What went wrong, which is logged; None if nothing did.
    """
    try:
        work()
    except (HoodieError, OSError, pa.ArrowException) as error:
        failure = ServiceFailure(service, instant, f"{type(error).__name__}: {error}")
        _log.warning("%s: %s; a later batch tries again", root, failure)
        return failure
    return None


def note_failures(storage: Storage, time: str | None, failures: Sequence[ServiceFailure]) -> None:
    """Note what failed beside a commit, which is complete by then and cannot say so itself.

    There is one note of a table, of the newest such commit.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    time : str or None
        The commit's; None if there is none.
    failures : sequence of ServiceFailure
        What went wrong; nothing is written where nothing did.
    """
    if time is not None and failures:
        note = {"instant": time, "failures": [asdict(failure) for failure in failures]}
        with suppress(StorageError):  # it may be what they failed of
            storage.replace(FAILED_SERVICES, json.dumps(note).encode())


def noted_failures(storage: Storage, time: str) -> tuple[ServiceFailure, ...]:
    """Return what failed beside a commit; nothing once another one has had failures.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    time : str
        The commit's.
    """
    # No note, or a damaged one, on which nothing depends.
    with suppress(NotFoundError, ValueError, KeyError, TypeError, RecursionError):
        note = json.loads(storage.read(FAILED_SERVICES))
        if note["instant"] == time:
            return tuple(
                ServiceFailure(Service(one["service"]), str(one["instant"]), str(one["reason"]))
                for one in note["failures"]
            )
    return ()
