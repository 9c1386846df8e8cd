"""The boundary between a batch and the table services that it brings along.

The batch goes on whatever becomes of a service: what fails is logged, reported and due again with
a later batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import HoodieError

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
